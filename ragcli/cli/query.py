"""`ragcli query`: the options, and which stream the table, the prompt and the warnings go to.

The prompt is the result and goes to stdout; the table is for people and goes to stderr, unless
it is all that was asked for. Searching is `ragcli.retrieval`'s, the prompt `ragcli.generation`'s.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragcli.cli import options
from ragcli.cli.batch import Asked, read_batch, read_text
from ragcli.cli.output import (
    Output,
    counted,
    print_json,
    print_result,
    writing,
)
from ragcli.cli.retrieval import Retrieval, searching
from ragcli.errors import NegativeResult, UsageError
from ragcli.generation.prompt import assemble
from ragcli.generation.visible import visible
from ragcli.records import Prompt, SearchRequest, SearchResult

if TYPE_CHECKING:
    from ragcli.cli.mixing import Mixture
    from ragcli.generation.generators import Generator
    from ragcli.store.index import Index

Search = Callable[[SearchRequest], SearchResult]

_DESCRIPTION = """\
Find the passages that answer a question, and assemble the prompt.

On a terminal: a table of scores and places, then the prompt. Into a pipe or a
file: only the prompt, so that `ragcli query "…" | GENERATOR` works."""

_output = partial(typer.Option, rich_help_panel="Output")

_mixture = partial(typer.Option, rich_help_panel="Mixture [-G hf: and gguf:]")

app = options.command_app()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to make of each question: the request with its question left empty, and the prompt."""

    request: SearchRequest
    budget: int | None
    template: str | None
    explain: bool
    abstain: float | None
    order: str
    mixture: "Mixture | None" = None
    generator: "Generator | None" = None

    def of(self, question: str, search: Search) -> tuple[SearchResult, Prompt]:
        """The hits of `question` and their prompt, counted in the generator's tokens if it can."""
        result = search(replace(self.request, question=question))
        prompt = assemble(
            question, result.hits, budget=self.budget, template=self.template, order=self.order,
            count=self.generator.count if self.generator and self.budget else None,
        )  # fmt: skip
        return result, prompt


@app.command(cls=options.Command, add_help_option=False, help=_DESCRIPTION)
@dataclass(frozen=True, kw_only=True)
class Query(Retrieval):
    """The command line of `ragcli query`."""

    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="the question; - reads it from stdin"),
    ] = None
    explain: Annotated[bool, _output("--explain", help="show where each score comes from")] = False
    show: Annotated[
        frozenset[str] | None,
        _output(
            parser=options.list_of("table", "prompt"),
            metavar="PARTS",
            help="table, prompt or table,prompt [both on a terminal, else prompt]",
        ),
    ] = None
    abstain: Annotated[
        float | None,
        _output(
            parser=options.share,
            metavar="P",
            help="exit 1 where P(answerable) is below; needs ragcli eval --calibrate",
        ),
    ] = None
    generate: Annotated[
        str | None,
        _output(
            "-G",
            "--generate",
            metavar="SPEC",
            help="answer by cmd:COMMAND, ollama:MODEL, openai:URL#MODEL, hf:NAME or gguf:FILE;"
            " none: not, whatever RAGCLI_GENERATOR says",
        ),
    ] = None
    decode: Annotated[
        str,
        _mixture(
            parser=options.one_of("concat", "rag-token", "rag-sequence", "fid"),
            metavar="NAME",
            show_default=False,
            help="all passages in one prompt, or the mixture over one prompt a passage:"
            " rag-token, rag-sequence; fid fuses them in the decoder [concat]",
        ),
    ] = "concat"
    decoding: Annotated[
        str,
        _mixture(
            parser=options.one_of("thorough", "fast"), metavar="NAME", show_default=False,
            help="of rag-sequence: every candidate under every passage, or fast [thorough]",
        ),
    ] = "thorough"  # fmt: skip
    beams: Annotated[
        int,
        _mixture(
            parser=options.whole_number(1), metavar="N", show_default=False,
            help="of the search; 1 is greedy [1]",
        ),
    ] = 1  # fmt: skip
    temperature: Annotated[
        float,
        _mixture(
            parser=options.positive, metavar="T", show_default=False,
            help="p(z|x) is the softmax of score / T [1]",
        ),
    ] = 1.0  # fmt: skip
    score_answer: Annotated[
        str | None, _mixture(metavar="TEXT", help="what both mixtures say of this answer")
    ] = None
    order: Annotated[
        str,
        _output(
            parser=options.one_of("best", "ends"),
            metavar="NAME",
            show_default=False,
            help="of the passages: best first, or the best at both ends [best]",
        ),
    ] = "best"
    template: Annotated[
        Path | None,
        _output(
            parser=Path,
            metavar="FILE",
            help="the prompt's wording, with {context} and {question} once each",
        ),
    ] = None
    batch: Annotated[
        str | None,
        _output(
            metavar="FILE", help='with --json: JSON lines {"id": …, "question": …}; - is stdin'
        ),
    ] = None

    def run(self) -> None:
        """Ask the index, and print what it gives."""
        if self.abstain is not None and (self.batch is not None or self.k == 0):
            raise UsageError(
                "--abstain is for one question over an index",
                "a --batch has `answerable` for each; -k 0 asks no index",
            )
        wanted = self._wanted()
        words = self.words or []
        asked = None if self.batch is None else _batch(self.batch, words, self.output)
        question = _question(words) if asked is None else ""
        # As the user has it: what a search sets for itself is not for the generator's program.
        environment = dict(os.environ)
        with (
            self._generating(environment) as generator,
            _searching(self.k, self.index) as (search, opened),
        ):
            wanted = replace(wanted, generator=generator, mixture=self._mixing(generator))
            if asked is None:
                shown = self.show or _shown(explain=self.explain)
                _answer(question, wanted, search, opened, self.output, shown)
            else:
                _answer_all(asked, wanted, search, opened)

    def _mixing(self, generator: "Generator | None") -> "Mixture | None":
        """What is asked of the mixture. Raises UsageError for what needs a generator."""
        if self.decode == "concat" and self.score_answer is None:
            return None
        asked = "--score-answer" if self.score_answer is not None else f"--decode {self.decode}"
        if generator is None or self.batch is not None or self.k == 0:
            raise UsageError(
                f"{asked} is for one question over passages, with a generator",
                "-G hf:NAME_OR_FOLDER or -G gguf:FILE, without --batch",
            )
        from ragcli.cli.mixing import Mixture

        return Mixture(self.decode, self.decoding, self.beams, self.temperature, self.score_answer)

    @contextmanager
    def _generating(self, environment: dict[str, str]) -> Iterator["Generator | None"]:
        from ragcli.generation.settings import generator_spec

        if generator_spec(self.generate, environment) in (None, "none"):
            yield None  # and nothing of generation is loaded
            return
        from ragcli.cli.answering import generating

        with generating(self.generate, environment) as generator:
            yield generator

    def _wanted(self) -> Wanted:
        return Wanted(
            self.request(""),
            budget=self.budget,
            template=None if self.template is None else read_text(self.template),
            explain=self.explain,
            abstain=self.abstain,
            order=self.order,
        )


def _shown(*, explain: bool) -> frozenset[str]:
    """What to print where nobody said: `table`, `prompt` or both."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return frozenset(("table", "prompt") if terminal or explain else ("prompt",))


def _question(words: Sequence[str]) -> str:
    """The question's text, from stdin where it is `-`. Raises UsageError where it is empty."""
    if len(words) != 1:
        told = f"{len(words)} words where one question belongs" if words else "no question"
        raise UsageError(told, 'put it in quotes: ragcli query "your question"')
    given = options.as_given(words[0])
    text = read_text(None).strip() if given == "-" else given
    if not text.strip():
        raise UsageError("the question is empty", 'ragcli query "your question"')
    return text


def _batch(file: str, words: Sequence[str], output: Output) -> list[Asked]:
    if words:
        raise UsageError("both a question and --batch", "give one of them")
    if not output.as_json:
        raise UsageError("--batch prints JSON lines only", "add --json")
    return read_batch(None if file == "-" else Path(file))


@contextmanager
def _searching(k: int, location: Path | None) -> Iterator[tuple[Search, "Index | None"]]:
    """How to search, and the index that is searched; k 0 is the closed book and needs none."""
    if k == 0:
        yield _closed_book, None
        return
    with searching(location) as (retriever, opened):
        yield retriever.search, opened


def _closed_book(request: SearchRequest) -> SearchResult:
    return SearchResult(
        request.question, (), mode="none", fusion=request.fusion, alpha=None, terms=(),
        chunks=0, embedded=0, problems=0,
    )  # fmt: skip


def _answer_all(
    asked: Sequence[Asked], wanted: Wanted, search: Search, opened: "Index | None"
) -> None:
    """One JSON object a line, each written as soon as it is known; none is an error."""
    from ragcli.cli.jsonout import answer

    for identity, question in asked:
        result, prompt = wanted.of(question, search)
        chance = _chance(opened, result, wanted)
        answered = None
        if wanted.generator is not None and (result.hits or opened is None):
            from ragcli.cli.answering import generate

            root = None if opened is None else opened.root
            answered = generate(wanted.generator, prompt, result.hits, root, show=False)
        print_json(
            answer(
                result, prompt, chance, answered, explain=wanted.explain, identity={"id": identity}
            )
        )


def _chance(opened: "Index | None", result: SearchResult, wanted: Wanted) -> float | None:
    """P(answerable), where the index is calibrated."""
    if opened is None:
        return None
    from ragcli.cli.calibrated import answerable

    return answerable(opened, result, wanted.request.rerank)


def _answer(
    question: str,
    wanted: Wanted,
    search: Search,
    opened: "Index | None",
    output: Output,
    shown: frozenset[str],
) -> None:
    """Print what is asked for. Raises NegativeResult where nothing was found, or not enough."""
    result, prompt = wanted.of(question, search)
    chance = _chance(opened, result, wanted)
    generator = wanted.generator
    if not output.as_json:
        if "table" in shown and opened is not None and result.hits:
            alone = "prompt" not in shown and generator is None
            _print_table(result, opened, wanted, output, chance, alone=alone)
        _warn(result, prompt, wanted, output)
    found = opened is None or bool(result.hits)
    refused = None
    try:
        if not found:
            raise _nothing_found(replace(wanted.request, question=question), result, search)
        if wanted.abstain is not None and opened is not None:
            from ragcli.cli.calibrated import abstain

            abstain(opened, chance, wanted.abstain, result)
    except NegativeResult as error:
        refused = error
    answered = None
    if generator is not None and refused is None and wanted.mixture is not None:
        _mix(question, wanted, wanted.mixture, result, output)
        return
    if generator is not None and refused is None:
        from ragcli.cli.answering import generate

        root = None if opened is None else opened.root
        answered = generate(generator, prompt, result.hits, root, show=not output.as_json)
    if output.as_json:
        from ragcli.cli.jsonout import answer

        print_json(answer(result, prompt, chance, answered, explain=wanted.explain, identity={}))
    if refused is not None:
        raise refused
    if answered is not None:
        from ragcli.cli.answering import judge, tell

        if not output.as_json:
            tell(answered, result.hits, output)
        judge(answered)
    elif "prompt" in shown and not output.as_json:
        print_result(prompt.text)


def _mix(
    question: str, wanted: Wanted, mixture: "Mixture", result: SearchResult, output: Output
) -> None:
    """The mixture's answer on stdout, where each word came from on stderr."""
    from ragcli.cli.mixing import lines, mix

    assert wanted.generator is not None
    mixed = mix(wanted.generator, mixture, question, result.hits, wanted.template)
    if output.as_json:
        from ragcli.cli.jsonout import mixture as as_json

        print_json(as_json(result, mixed, wanted.generator.name, explain=wanted.explain))
        return
    if mixture.scored is None:
        print_result(mixed.answers[0].text)
    for line in lines(mixed, result.hits):
        output.tell(line)


def _print_table(
    result: SearchResult,
    opened: "Index",
    wanted: Wanted,
    output: Output,
    chance: float | None,
    *,
    alone: bool,
) -> None:
    """The table on stdout where it is all that was asked for, else on stderr."""
    stream = sys.stdout if alone else sys.stderr
    if stream is None or (output.quiet and not alone):
        return
    from ragcli.cli.render import console, score_table

    with writing():
        score_table(
            console(stream, color=output.color),
            result,
            root=opened.root,
            languages=opened.languages(),
            explain=wanted.explain,
            answerable=chance,
        )
        if not alone:
            stream.write("\n")
        stream.flush()


def _warn(result: SearchResult, prompt: Prompt, wanted: Wanted, output: Output) -> None:
    """What a reader must know of the index and the prompt, a line each; JSON has it all."""
    stale = sorted({visible(hit.path) for hit in result.hits if hit.stale})
    if stale:
        output.warn(
            f"changed or gone since they were indexed: {', '.join(stale)}; "
            "ragcli index makes the index true again"
        )
    if result.problems:
        output.warn(
            f"the index has {counted(result.problems, 'problem')} with files or pages that it "
            "does not cover; ragcli inspect --problems lists them"
        )
    if result.mode in ("hybrid", "dense") and result.embedded < result.chunks:
        missing = result.chunks - result.embedded
        now = f" ({result.embedded_now:,} made for this answer)" if result.embedded_now else ""
        output.warn(f"{missing:,} of {result.chunks:,} passages have no vector yet{now}; "
                    "ragcli index makes them")  # fmt: skip
    if result.cut:
        output.warn(f"the reranker could not read {counted(result.cut, 'passage')} to the end")
    if prompt.dropped:
        ranks = ", ".join(f"[{rank}]" for rank in prompt.dropped)
        output.warn(f"left out of the prompt for --budget {wanted.budget}: {ranks}")
    steps = ", ".join(f"{step} {spent:.1f} ms" for step, spent in result.timings_ms.items())
    if steps:
        output.remark(steps)


def _nothing_found(request: SearchRequest, result: SearchResult, search: Search) -> NegativeResult:
    """Why there is no hit, as well as can be told, and what may help."""
    if not result.chunks:
        return NegativeResult(
            "nothing found: the index holds no passage yet",
            "ragcli index   (if one is at work, wait for its first commit)",
        )
    if request.paths and search(replace(request, paths=(), k=1)).hits:
        return NegativeResult(
            f"nothing found in files that match {' or '.join(request.paths)}; others have passages",
            "leave out --path or widen it; paths are relative to the indexed folder",
        )
    if not result.terms:
        return NegativeResult(
            "nothing found: the question has no word to search for",
            "ask with a word that stands in the documents",
        )
    return NegativeResult(
        "nothing found: no passage has a word of the question",
        "try other words"
        + (", or another --mode" if result.mode == "lexical" and result.embedded else ""),
    )
