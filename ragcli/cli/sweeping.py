"""`ragcli eval FILE --sweep …`: variants of the index measured side by side, the best applied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.cli.jsonout import swept
from ragcli.cli.output import counted, print_json, print_result
from ragcli.cli.progress import SweepDisplay
from ragcli.cli.reports.sweep import lines
from ragcli.errors import NegativeResult, UsageError
from ragcli.evaluation import sweep as sweeps
from ragcli.evaluation.relevance import level_of
from ragcli.store.index import Index, locate

if TYPE_CHECKING:
    from ragcli.cli.eval import Eval


def sweep(command: Eval, dimensions: Sequence[str]) -> None:
    """All of it; further words of the command with a `=` are dimensions too. Raises UsageError."""
    words = list(command.words or [])
    more = [word for word in words[1:] if "=" in word]
    variants = sweeps.parse_sweep([*dimensions, *more])
    ways = command.ways()
    if len(ways) > 1 or len(words) - len(more) != 1:
        raise UsageError(
            "a grid beside --sweep, or not one FILE",
            "sweep mode, fusion or alpha: --sweep mode=hybrid,lexical",
        )
    location = locate(command.index)
    if command.apply and not any(variant.settings for variant in variants):
        raise UsageError(
            "--apply has nothing to write: a mode or fusion is no setting of an index",
            "sweep chunk or encoder too, or give query those options",
        )
    questions = command.questions(words[0])
    with SweepDisplay(command.output) as display:
        report = sweeps.sweep(
            location, questions, ways[0], command.ks, command.level or level_of(questions),
            variants, allow_missing=command.allow_missing, progress=display.show,
        )  # fmt: skip
    synthetic = sum(question.synthetic for question in questions)
    if command.as_json:
        print_json(swept(report, len(questions), synthetic))
    elif report.rows or report.failed:
        print_result("\n".join(lines(report, synthetic)))
    if command.plot is not None:
        from ragcli.cli import plot
        from ragcli.cli.plot.runs import swept as page

        plot.write(command.plot, page(report))
    if report.interrupted:
        done = "the rows done are above" if report.rows else "no variant was done yet"
        raise KeyboardInterrupt(done)
    if report.failed:
        raise NegativeResult(
            f"{counted(len(report.failed), 'variant')} could not be measured: "
            f"{report.failed[0].message}",
            report.failed[0].hint,
        )
    if command.apply and report.best is not None:
        _apply(command, location, variants, report)


def _apply(
    command: Eval, location: Path, variants: Sequence[sweeps.Variant], report: sweeps.SweepReport
) -> None:
    """Make the index as the best is, unless it is as good already."""
    with Index.open(location) as index:
        now = {name: getattr(index.settings, name) for name in ("chunk", "encoder")}
    alike = {report.best, *report.alike}
    if any(v.label in alike and {**now, **v.settings} == now for v in variants):
        command.output.warn("the index stays as it is: the best cannot be told from it")
        return
    best = next(variant for variant in variants if variant.label == report.best)
    sweeps.apply(location, best)
    said = " ".join(f"{name}={value}" for name, value in best.settings.items())
    command.output.warn(f"the index is now {said}")
