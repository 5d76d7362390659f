"""`ragcli inspect`: which view of the index was asked for, and its report on stdout.

What a report holds is `ragcli.inspection`'s, how it looks `ragcli.cli.reports`'.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragcli.cli import options
from ragcli.cli.output import counted, print_json, print_result
from ragcli.cli.retrieval import Retrieval, searching
from ragcli.errors import NegativeResult, UsageError

if TYPE_CHECKING:
    from ragcli.inspection.why import WhyReport
    from ragcli.store.index import Index

_DESCRIPTION = """\
Look into the index: what it holds, and why a passage was found or missed.

TARGET is a file, file:LINE, file#page=N, file#RECORD or a passage's number;
without one, the index card."""

_view = partial(typer.Option, rich_help_panel="Views")
_more = partial(typer.Option, rich_help_panel="More of a view")

app = options.command_app()


@app.command(cls=options.Command, add_help_option=False, help=_DESCRIPTION)
@dataclass(frozen=True, kw_only=True)
class Inspect(Retrieval):
    """The command line of `ragcli inspect`."""

    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help="a file, file:LINE, or a passage's number"),
    ] = None
    why: Annotated[
        str | None,
        _view(metavar="QUESTION", help="why TARGET (or --text) was found or missed"),
    ] = None
    problems: Annotated[bool, _view("--problems", help="what the index does not cover")] = False
    check: Annotated[bool, _view("--check", help="every part against every other")] = False
    collisions: Annotated[
        bool, _view("--collisions", help="hash: words that share a bucket; else near-equal vectors")
    ] = False
    neighbors: Annotated[bool, _view("--neighbors", help="the passages nearest to TARGET's")] = (
        False
    )
    duplicates: Annotated[
        bool, _view("--duplicates", help="passages that stand in several files, nearly or exactly")
    ] = False
    hubs: Annotated[bool, _view("--hubs", help="passages that are near everything")] = False
    plot: Annotated[
        Path | None,
        _view(parser=Path, metavar="FILE", help="a map of the passages; with --why, its scores"),
    ] = None
    vectors: Annotated[bool, _more("--vectors", help="TARGET: the numbers of each vector too")] = (
        False
    )
    text: Annotated[
        str | None, _more(metavar="TEXT", help="--why: the passage that holds this text")
    ] = None
    fewer: Annotated[
        int | None,
        _more(
            parser=options.whole_number(1), metavar="N",
            help="--collisions: the dimension for fewer than N",
        ),
    ] = None  # fmt: skip
    threshold: Annotated[
        float | None,
        _more(parser=options.share, metavar="0…1", help="--duplicates: the least cosine [0.95]"),
    ] = None
    questions: Annotated[
        Path | None,
        _more(
            parser=Path, metavar="FILE",
            help="--hubs: ask these (JSON lines) instead of the passages themselves",
        ),
    ] = None  # fmt: skip

    def run(self) -> None:
        """Make the report that was asked for, and print it."""
        view = self._view()
        if len(self.targets or []) > 1:
            raise UsageError("more than one TARGET", "name one, in quotes if it has spaces")
        getattr(self, f"_show_{view}")()

    @property
    def target(self) -> str | None:
        """The one TARGET."""
        return self.targets[0] if self.targets else None

    def _view(self) -> str:
        """Which view is asked for. Raises UsageError for two, or options that belong elsewhere."""
        names = ("problems", "check", "collisions", "neighbors", "duplicates", "hubs")
        asked = [name for name in names if getattr(self, name)]
        if self.plot is not None:
            asked.append("plot")
        elif self.why is not None:
            asked.append("why")
        if len(asked) > 1:
            raise UsageError(f"both --{asked[0]} and --{asked[1]}", "ask for one view at a time")
        view = asked[0] if asked else "card" if self.target is None else "passages"
        self._refuse_strays(view)
        return view

    def _refuse_strays(self, view: str) -> None:
        """Raises UsageError for an option that says nothing beside this view."""
        asking = ("why", "plot")
        for name, belongs in (
            ("vectors", ("passages",)),
            ("text", ("why",)),
            ("fewer", ("collisions",)),
            ("threshold", ("duplicates",)),
            ("questions", ("hubs",)),
            ("target", ("passages", "why", "neighbors")),
            *((name, asking) for name in ("mode", "alpha", "rerank", "path", "max_per_file")),
            ("budget", ("why",)),
        ):
            value = getattr(self, name)
            if value is None or value is False or view in belongs:
                continue
            said = "TARGET" if name == "target" else f"--{name.replace('_', '-')}"
            owner = " or ".join("TARGET" if b == "passages" else f"--{b}" for b in belongs)
            beside = "" if view == "card" else f", and says nothing beside --{view}"
            raise UsageError(f"{said} belongs to {owner}{beside}", "ragcli inspect --help")

    def _print(self, view: str, report: object, lines: Callable[..., Sequence[str]]) -> None:
        if self.as_json:
            from ragcli.cli.jsonout import inspection

            print_json(inspection(view, report))
        else:
            told = lines(report)
            if told:
                print_result("\n".join(told))

    @contextmanager
    def _opened(self) -> Iterator["Index"]:
        from ragcli.store.index import Index, locate

        with Index.open(locate(self.index)) as opened:
            yield opened

    def _show_card(self) -> None:
        from ragcli.cli.reports.card import lines
        from ragcli.inspection.card import card

        with self._opened() as index:
            self._print("card", card(index), lines)

    def _show_passages(self) -> None:
        from ragcli.cli.reports.passages import lines, missing
        from ragcli.inspection.passages import show
        from ragcli.inspection.targets import resolve

        with self._opened() as index:
            view = show(index, resolve(index, self._named()), vectors=self.vectors)
            self._print("passages", view, lines)
        if not view.chunks:
            raise NegativeResult(
                missing(view), "ragcli inspect --problems lists what is not covered"
            )

    def _show_problems(self) -> None:
        from ragcli.cli.reports.ledger import lines
        from ragcli.inspection.ledger import ledger

        with self._opened() as index:
            self._print("problems", ledger(index), lines)

    def _show_check(self) -> None:
        from ragcli.cli.reports.checking import lines
        from ragcli.inspection.checking import check

        with self._opened() as index:
            report = check(index)
            self._print("check", report, lines)
        if report.findings:
            hints = dict.fromkeys(finding.hint for finding in report.findings)
            raise NegativeResult(
                f"{counted(len(report.findings), 'finding')} in {index.path}",
                "; then ".join(hints),
            )

    def _show_collisions(self) -> None:
        with self._opened() as index:
            if index.settings.encoder == "hash":
                from ragcli.cli.reports.collisions import lines
                from ragcli.inspection.collisions import collisions

                report = collisions(index, fewer_than=self.fewer)
                self._print("collisions", report, lines)
            else:
                from ragcli.cli.reports.collapse import lines as collapse_lines
                from ragcli.inspection.collapse import collapsed

                self._print("collapse", collapsed(index), collapse_lines)

    def _show_neighbors(self) -> None:
        from ragcli.cli.reports.neighbors import lines
        from ragcli.inspection.neighbors import neighbors
        from ragcli.inspection.targets import resolve

        with self._opened() as index:
            target = resolve(index, self._named())
            if len(target.chunks) != 1:
                many = counted(len(target.chunks), "passage")
                raise UsageError(
                    f"{target.given}: {target.why or f'it means {many}'}",
                    "name one by its number: ragcli inspect FILE lists them",
                )
            self._print("neighbors", neighbors(index, target.chunks[0], self.k), lines)

    def _show_duplicates(self) -> None:
        from ragcli.cli.reports.duplicates import lines
        from ragcli.inspection.duplicates import THRESHOLD, duplicates

        with self._opened() as index:
            report = duplicates(
                index, threshold=THRESHOLD if self.threshold is None else self.threshold
            )
            self._print("duplicates", report, lines)

    def _show_hubs(self) -> None:
        from ragcli.cli.batch import read_batch
        from ragcli.cli.reports.hubs import lines
        from ragcli.inspection.hubs import hubs

        asked = None if self.questions is None else [q for _, q in read_batch(self.questions)]
        with self._opened() as index:
            self._print("hubs", hubs(index, k=self.k, questions=asked), lines)

    def _named(self) -> str:
        """TARGET. Raises UsageError where it is not given."""
        if self.target is None:
            raise UsageError("no TARGET", "name a file, file:LINE, or a passage's number")
        return self.target

    def _show_why(self) -> None:
        from ragcli.cli.reports.why import lines

        self._print("why", self._traced(), lines)

    def _traced(self) -> "WhyReport":
        from ragcli.generation.prompt import assemble

        question = self._question()
        if self.target is None and self.text is None:
            raise UsageError("--why of which passage?", "name it, or --text 'words that it holds'")
        if self.text is not None and not self.text.strip():
            raise UsageError("--text is empty", "give words that the passage holds")
        request = self.request(question)
        with searching(self.index) as (retriever, index):
            from ragcli.inspection.targets import resolve
            from ragcli.inspection.why import why

            return why(
                index,
                retriever,
                request,
                None if self.target is None else resolve(index, self.target),
                None if self.text is None else options.as_given(self.text),
                packed=lambda hits, budget: assemble(question, hits, budget=budget),
                budget=self.budget,
            )

    def _show_plot(self) -> None:
        from ragcli.cli import plot
        from ragcli.inspection.picture import picture, score_curve

        assert self.plot is not None
        plot.require(self.plot)
        if self.why is None:
            with self._opened() as index:
                drawn = picture(index)
        else:
            request = self.request(self._question())
            with searching(self.index) as (retriever, index):
                ranking = retriever.ranking(request)
                hits = retriever.hits(ranking, retriever.chosen(ranking, request))
                scores = [c.score for c in ranking.candidates(ranking.depth(request.k))]
                curve = score_curve(request.question, scores, hits, request.k, ranking.mode)
                drawn = picture(index, curve)
        plot.write(self.plot, plot.inspection(drawn))
        if self.as_json:
            print_json(
                {"schema": "ragcli.inspect/1", "view": "plot", "file": str(self.plot),
                 "chunks": drawn.chunks}
            )  # fmt: skip
        elif not self.quiet:
            print_result(f"{self.plot}: {counted(drawn.chunks, 'passage')}")

    def _question(self) -> str:
        """The question of --why. Raises UsageError where it is empty."""
        question = options.as_given(self.why or "").strip()
        if not question:
            raise UsageError("the question is empty", "ragcli inspect --why 'your question' TARGET")
        if self.k < 1:
            raise UsageError("-k 0 retrieves nothing", "give a larger -k")
        return question
