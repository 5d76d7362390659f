"""`ragcli query`: the options, and what is opened for them: the index, the generator.

What is then printed is `replying`'s.
"""

import os
import sys
from collections.abc import Iterator, Sequence
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
)
from ragcli.cli.replying import Search, Wanted, reply, reply_all
from ragcli.cli.retrieval import Retrieval, searching
from ragcli.errors import UsageError
from ragcli.records import SearchRequest, SearchResult

if TYPE_CHECKING:
    from ragcli.cli.mixing import Mixture
    from ragcli.generation.generators import Generator
    from ragcli.store.index import Index

_DESCRIPTION = """\
Find the passages that answer a question, and assemble the prompt.

On a terminal: a table of scores and places, then the prompt. Into a pipe or a
file: only the prompt, so that `ragcli query "…" | GENERATOR` works."""

_output = partial(typer.Option, rich_help_panel="Output")

_mixture = partial(typer.Option, rich_help_panel="Mixture [-G hf: and gguf:]")

NO_GENERATOR = "none"
"""`-G none`: not, whatever the environment names."""

app = options.command_app()


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
    compare_closed_book: Annotated[
        bool,
        _output("--compare-closed-book", help="-G: answer without the passages too, and compare"),
    ] = False
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
            wanted = replace(
                wanted,
                generator=generator,
                mixture=self._mixing(generator),
                compared=self._compared(generator),
            )
            if asked is None:
                shown = self.show or _shown(explain=self.explain)
                reply(question, wanted, search, opened, self.output, shown)
            else:
                reply_all(asked, wanted, search, opened)

    def _compared(self, generator: "Generator | None") -> bool:
        """Whether the closed book is asked too. Raises UsageError where there is nothing to ask."""
        if self.compare_closed_book and (
            generator is None or self.batch is not None or self.k == 0 or self.decode != "concat"
        ):
            raise UsageError(
                "--compare-closed-book is for one question over passages, with a generator",
                "-G SPEC, without --batch or --decode",
            )
        return self.compare_closed_book

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

        spec = generator_spec(self.generate, environment)
        if spec is None or spec == NO_GENERATOR:
            yield None  # and nothing of generation is loaded
            return
        from ragcli.cli.answering import generating

        with generating(spec, environment) as generator:
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
