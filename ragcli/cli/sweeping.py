"""`ragcli eval FILE --sweep …`: variants of the index measured side by side, the best applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragcli.cli.jsonout import swept
from ragcli.cli.output import print_json, print_result
from ragcli.cli.progress import SweepDisplay
from ragcli.cli.reports.sweep import lines
from ragcli.errors import UsageError
from ragcli.evaluation import sweep as sweeps
from ragcli.evaluation.relevance import level_of
from ragcli.store.index import locate

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
    questions = command.questions(words[0])
    with SweepDisplay(command.output) as display:
        report = sweeps.sweep(
            location, questions, ways[0], command.ks, command.level or level_of(questions),
            variants, allow_missing=command.allow_missing, progress=display.show,
        )  # fmt: skip
    if command.as_json:
        print_json(swept(report, len(questions)))
    else:
        print_result("\n".join(lines(report)))
    if command.plot is not None:
        from ragcli.cli import plot
        from ragcli.cli.plot.runs import swept as page

        plot.write(command.plot, page(report))
    if report.interrupted:
        raise KeyboardInterrupt("the rows done are above")
    if command.apply and report.best is not None:
        best = next(variant for variant in variants if variant.label == report.best)
        if not best.settings:
            raise UsageError(
                f"{best.label} is no setting of an index: --apply has nothing to write",
                "it says how to ask: give query those options",
            )
        sweeps.apply(location, best)
        said = " ".join(f"{name}={value}" for name, value in best.settings.items())
        command.output.warn(f"the index is now {said}")
