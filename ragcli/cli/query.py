"""`ragcli query`: the options, and which stream the table, the prompt and the warnings go to.

The prompt is the result and goes to stdout; the table is for people and goes to stderr, unless
it is all that was asked for. Searching is `ragcli.retrieval`'s, the prompt `ragcli.generation`'s.
"""

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
    from ragcli.store.index import Index

Search = Callable[[SearchRequest], SearchResult]

_DESCRIPTION = """\
Find the passages that answer a question, and assemble the prompt.

On a terminal: a table of scores and places, then the prompt. Into a pipe or a
file: only the prompt, so that `ragcli query "…" | GENERATOR` works."""

_output = partial(typer.Option, rich_help_panel="Output")

app = options.command_app()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to make of each question: the request with its question left empty, and the prompt."""

    request: SearchRequest
    budget: int | None
    template: str | None
    explain: bool
    abstain: float | None

    def of(self, question: str, search: Search) -> tuple[SearchResult, Prompt]:
        """The hits of `question` and their prompt."""
        result = search(replace(self.request, question=question))
        prompt = assemble(question, result.hits, budget=self.budget, template=self.template)
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
        with _searching(self.k, self.index) as (search, opened):
            if asked is None:
                shown = self.show or _shown(explain=self.explain)
                _answer(question, wanted, search, opened, self.output, shown)
            else:
                _answer_all(asked, wanted, search, opened)

    def _wanted(self) -> Wanted:
        return Wanted(
            self.request(""),
            budget=self.budget,
            template=None if self.template is None else read_text(self.template),
            explain=self.explain,
            abstain=self.abstain,
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
        print_json(
            answer(result, prompt, chance, explain=wanted.explain, identity={"id": identity})
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
    if output.as_json:
        from ragcli.cli.jsonout import answer

        print_json(answer(result, prompt, chance, explain=wanted.explain, identity={}))
    else:
        if "table" in shown and opened is not None and result.hits:
            _print_table(result, opened, wanted, output, chance, alone="prompt" not in shown)
        _warn(result, prompt, wanted, output)
    if opened is not None and not result.hits:
        raise _nothing_found(replace(wanted.request, question=question), result, search)
    if wanted.abstain is not None and opened is not None:
        from ragcli.cli.calibrated import abstain

        abstain(opened, chance, wanted.abstain, result)
    if "prompt" in shown and not output.as_json:
        print_result(prompt.text)


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
