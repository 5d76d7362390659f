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
from ragcli.cli.batch import Asked, read_batch, read_text, reply_all
from ragcli.cli.exclusions import refuse
from ragcli.cli.output import Output
from ragcli.cli.replying import reply, tell_refresh
from ragcli.cli.retrieval import Retrieval, refreshed, searching
from ragcli.cli.wanted import Search, Wanted
from ragcli.errors import UsageError
from ragcli.generation.prompt import ORDERS, template_parts
from ragcli.records import SearchRequest, SearchResult

if TYPE_CHECKING:
    from ragcli.cli.mixing import MixtureRequest
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
        str | None,
        _mixture(
            parser=options.one_of("thorough", "fast"), metavar="NAME",
            help="of rag-sequence: every candidate under every passage, or fast [thorough]",
        ),
    ] = None  # fmt: skip
    beams: Annotated[
        int | None,
        _mixture(
            parser=options.whole_number(1), metavar="N", help="of the search; 1 is greedy [1]"
        ),
    ] = None  # fmt: skip
    temperature: Annotated[
        float | None,
        _mixture(
            parser=options.positive, metavar="T",
            help="p(z|x) is the softmax of score / T [hybrid .1, dense .05, lexical 1]",
        ),
    ] = None  # fmt: skip
    score_answer: Annotated[
        str | None,
        _mixture(metavar="TEXT", help="log p of this answer under both mixtures, on stdout"),
    ] = None
    compare_closed_book: Annotated[
        bool,
        _output("--compare-closed-book", help="-G: answer without the passages too, and compare"),
    ] = False
    order: Annotated[
        str | None,
        _output(
            parser=options.one_of(*ORDERS),
            metavar="NAME",
            help="of the passages: best first, or the best at both ends [best]",
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
    refresh: Annotated[
        str,
        _output(
            parser=options.one_of("auto", "always", "never"),
            metavar="WHEN",
            show_default=False,
            help="take in what has changed in the folder: auto a little, of up to 3,000 files;"
            " always all of it; never [auto]",
        ),
    ] = "auto"
    batch: Annotated[
        str | None,
        _output(
            metavar="FILE", help='with --json: JSON lines {"id": …, "question": …}; - is stdin'
        ),
    ] = None

    def run(self) -> None:
        """Ask the index, and print what it gives."""
        # As the user has it: what a search sets for itself is not for the generator's program.
        environment = dict(os.environ)
        spec = _spec(self.generate, environment)
        refuse(self, spec)
        wanted = self._wanted()
        words = self.words or []
        asked = None if self.batch is None else _batch(self.batch, words, self.output)
        question = _question(words) if asked is None else ""
        refresh = None if self.k == 0 else refreshed(self.index, self.refresh)
        if refresh is not None and not self.output.as_json:
            tell_refresh(refresh, self.output)
        with (
            _searching(self.k, self.index) as (search, opened),
            _generating(spec, environment) as generator,
        ):
            wanted = replace(wanted, generator=generator, refresh=refresh)
            if asked is None:
                shown = self.show or _shown(explain=self.explain, alone=generator is None)
                reply(question, wanted, search, opened, self.output, shown)
            else:
                reply_all(asked, wanted, search, opened)

    def _mixture(self) -> "MixtureRequest | None":
        if self.decode == "concat" and self.score_answer is None:
            return None
        from ragcli.cli.mixing import MixtureRequest

        return MixtureRequest(
            self.decode,
            "fast" if self.decoding == "fast" else "thorough",
            self.beams or 1,
            self.temperature,
            self.score_answer,
        )

    def _wanted(self) -> Wanted:
        template = None if self.template is None else read_text(self.template)
        if template is not None:
            template_parts(template)
        return Wanted(
            self.request(""),
            budget=self.budget,
            template=template,
            explain=self.explain,
            abstain=self.abstain,
            order=self.order or ORDERS[0],
            mixture=self._mixture(),
            compared=self.compare_closed_book,
        )


def _spec(given: str | None, environment: dict[str, str]) -> str | None:
    """The generator's spec, None for none. Raises UsageError for one that names no kind."""
    from ragcli.generation.settings import generator_spec

    spec = generator_spec(given, environment)
    if spec is None or spec == NO_GENERATOR:
        return None
    from ragcli.generation.generators import kind_of

    kind_of(spec)
    return spec


@contextmanager
def _generating(spec: str | None, environment: dict[str, str]) -> Iterator["Generator | None"]:
    """The generator, closed afterwards; without one, nothing of generation is loaded."""
    if spec is None:
        yield None
        return
    from ragcli.cli.answering import generating

    with generating(spec, environment) as generator:
        yield generator


def _shown(*, explain: bool, alone: bool) -> frozenset[str]:
    """What to print where nobody said: `table`, `prompt` or both; with an answer, no prompt."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    parts = ["table"] if terminal or explain else []
    return frozenset([*parts, "prompt"] if alone else parts)


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
