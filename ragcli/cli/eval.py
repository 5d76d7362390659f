"""`ragcli eval`: a file of questions asked of the index, and how well it answered.

Owns the options, and which of its works was asked for. Measuring is `measuring`'s, sweeps are
`sweeping`'s.
"""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragcli.cli import options
from ragcli.errors import NegativeResult, UsageError

if TYPE_CHECKING:
    from ragcli.evaluation.questions import Questions
    from ragcli.evaluation.run import Way

KS = (1, 3, 5, 10)
MOST = 10_000
"""Hits of a question that are looked at."""

_DESCRIPTION = """\
Ask a file of questions and measure what comes back.

FILE has a JSON object a line: {"question": …, "relevant": ["a.md:10-24"]},
or "answers": ["…"], or "answerable": false; or BEIR's queries.jsonl with
--qrels. - reads it from stdin."""

_retrieval = partial(typer.Option, rich_help_panel="Retrieval [lists make a grid]")
_measuring = partial(typer.Option, rich_help_panel="Measuring")
_comparing = partial(typer.Option, rich_help_panel="Comparing")
_more = partial(typer.Option, rich_help_panel="Instead")

app = options.command_app()


@app.command(cls=options.Command, add_help_option=False, help=_DESCRIPTION)
@dataclass(frozen=True, kw_only=True)
class Eval(options.CommandLine):
    """The command line of `ragcli eval`."""

    words: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="the questions; - is stdin")
    ] = None
    k: Annotated[
        options.Values | None,
        _retrieval(
            "-k", parser=options.several(options.whole_number(1)), metavar="N,N",
            help="how many hits [1,3,5,10]",
        ),
    ] = None  # fmt: skip
    mode: Annotated[
        options.Values | None,
        _retrieval(
            parser=options.several(options.one_of("hybrid", "dense", "lexical")), metavar="NAMES",
            help="hybrid, dense, lexical",
        ),
    ] = None  # fmt: skip
    fusion: Annotated[
        options.Values | None,
        _retrieval(parser=options.several(options.one_of("mix", "rrf")), metavar="NAMES",
                   help="mix, rrf"),
    ] = None  # fmt: skip
    alpha: Annotated[
        options.Values | None,
        _retrieval(parser=options.several(options.share), metavar="0…1", help="dense shares"),
    ] = None
    rerank: Annotated[
        options.Values | None,
        _retrieval(
            parser=options.several(str), metavar="MODELS", help="cross-encoders; '' is none"
        ),
    ] = None
    path: Annotated[list[str] | None, _retrieval(metavar="GLOB", help="only files that match")] = (
        None
    )
    max_per_file: Annotated[
        int | None,
        _retrieval(parser=options.whole_number(1), metavar="N", help="passages of one file"),
    ] = None
    level: Annotated[
        str | None,
        _measuring(
            parser=options.one_of("document", "chunk", "span", "answer"), metavar="NAME",
            help="what must be found: document, chunk, span or answer [as the gold has it]",
        ),
    ] = None  # fmt: skip
    qrels: Annotated[
        Path | None,
        _measuring(parser=Path, metavar="FILE", help="judgements, BEIR's or TREC's"),
    ] = None
    allow_missing: Annotated[
        bool, _measuring("--allow-missing", help="what the index does not have counts as missed")
    ] = False
    trec: Annotated[
        Path | None,
        _measuring(parser=Path, metavar="DIR", help="write run and judgements for other scorers"),
    ] = None
    plot: Annotated[
        Path | None,
        _measuring(parser=Path, metavar="FILE", help="draw it: .html, .svg or .png"),
    ] = None
    save: Annotated[
        Path | None, _comparing(parser=Path, metavar="RUN", help="keep this run in a file")
    ] = None
    baseline: Annotated[
        Path | None,
        _comparing(parser=Path, metavar="RUN", help="compare with a run that was kept"),
    ] = None
    fail_under: Annotated[
        list[str] | None,
        _comparing("--fail-under", metavar="FIGURE=VALUE", help="exit 1 below, as recall@5=.8"),
    ] = None
    fail_regression: Annotated[
        bool, _comparing("--fail-regression", help="exit 1 where the baseline is surely better")
    ] = False

    sweep: Annotated[
        list[str] | None,
        _comparing(
            "--sweep", metavar="NAME=A,B",
            help="index in several ways and ask each: chunk, encoder, mode, fusion, alpha",
        ),
    ] = None  # fmt: skip
    apply: Annotated[bool, _comparing("--apply", help="--sweep: make the index as the best is")] = (
        False
    )
    calibrate: Annotated[
        bool,
        _measuring("--calibrate", help="fit P(answerable), and keep it if it beats the score"),
    ] = False
    make_questions: Annotated[
        int | None,
        _more(
            parser=options.whole_number(1), metavar="N",
            help="print N questions made from the index's own texts",
        ),
    ] = None  # fmt: skip

    def run(self) -> None:
        """Do what was asked: make questions, sweep, or ask and measure."""
        self._refuse_strays()
        if self.plot is not None:
            from ragcli.cli import plot

            plot.require(self.plot)
        if self.make_questions is not None:
            self._make(self.make_questions)
        elif self.sweep:
            from ragcli.cli.sweeping import sweep

            sweep(self, self.sweep)
        elif self.apply:
            raise UsageError(
                "--apply without --sweep", "name what to try: --sweep chunk=auto,words:100"
            )
        else:
            from ragcli.cli.measuring import measure

            measure(self)

    def _refuse_strays(self) -> None:
        """Raises UsageError for options without effect: no gate may be passed over in silence."""
        judging = ("save", "baseline", "fail_under", "fail_regression", "trec", "calibrate")
        asking = ("mode", "fusion", "alpha", "rerank", "path", "max_per_file", "level", "qrels")
        strays: tuple[str, ...]
        if self.make_questions is not None:
            beside, strays = "--make-questions", (*judging, *asking, "k", "sweep", "apply", "plot")
        elif self.sweep:
            beside, strays = "--sweep", judging
        elif len(self.ways()) > 1:
            beside, strays = "a grid of several ways", judging
        else:
            return
        for name in strays:
            if getattr(self, name) not in (None, False, []):
                raise UsageError(
                    f"--{name.replace('_', '-')} says nothing beside {beside}",
                    "give one of them; ragcli eval --help",
                )

    def _make(self, number: int) -> None:
        from ragcli.cli.output import counted, print_json, print_result
        from ragcli.evaluation.synthetic import as_lines, make_questions
        from ragcli.store.index import Index, locate

        if self.words:
            raise UsageError(
                "--make-questions prints questions, and takes no FILE", "drop the FILE"
            )
        with Index.open(locate(self.index)) as index:
            made = make_questions(index, number)
        if not made:
            raise NegativeResult(
                "no question can be made: no sentence of the index stands alone",
                "index texts with whole sentences",
            )
        if len(made) < number:
            self.output.warn(f"only {counted(len(made), 'question')} can be made of these texts")
        lines = list(as_lines(made))
        if self.as_json:
            written = [json.loads(line) for line in lines]
            print_json({"schema": "ragcli.eval/1", "synthetic": len(made), "made": written})
        else:
            print_result("\n".join(lines))

    def questions(self, file: str) -> "Questions":
        """The questions of a file, of stdin for `-`. Raises UsageError."""
        from ragcli.evaluation.questions import read_questions

        return read_questions(None if file == "-" else Path(file), self.qrels)

    def ways(self) -> "list[Way]":
        """How each question is asked, the product of the lists."""
        from ragcli.evaluation.run import grid

        return grid(
            self.mode or (None,),
            self.fusion or ("mix",),
            self.alpha or (None,),
            [name or None for name in self.rerank or ("",)],
            tuple(self.path or ()),
            self.max_per_file,
        )

    @property
    def ks(self) -> tuple[int, ...]:
        """How many hits are looked at, ascending. Raises UsageError for too many."""
        ks = tuple(sorted(self.k or KS))
        if ks[-1] > MOST:
            raise UsageError(f"-k {ks[-1]} is more than {MOST:,}", "look at fewer hits")
        return ks
