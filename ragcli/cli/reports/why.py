"""The trace of one passage as lines: the verdict, the way, the numbers, the rivals, remedies."""

from __future__ import annotations

from ragcli.cli.reports.explanation import explanation
from ragcli.cli.reports.tables import aligned, cell, glimpse, place
from ragcli.inspection.why import WhyReport

_MARKS = {True: "yes", False: "NO", None: ""}


def lines(report: WhyReport) -> list[str]:
    """Blocks with an empty line between them; the verdict comes first."""
    outcome = "found" if report.cause == "in_prompt" else f"missed ({report.cause})"
    blocks = [[f"{outcome}: {cell(report.because)}"]]
    if report.passage is not None:
        blocks[0] += [place(report.passage), f"    {glimpse(report.passage.text)}"]
    blocks.append(
        aligned(
            ["", "", ""],
            [(step.name, _MARKS[step.passed], step.told) for step in report.steps],
            left=(0, 1),
        )
    )
    if report.standing is not None:
        blocks.append(explanation(report.standing))
    if report.hits and report.cause not in ("in_prompt", "over_budget"):
        rows = [(hit.rank, hit.score, place(hit.passage)) for hit in report.hits]
        blocks.append(["what came instead:", *aligned(["#", "score", "passage"], rows)])
    if report.remedies:
        changes = [
            (f"rank {remedy.rank:,}", remedy.change, "(an estimate)" if remedy.estimate else "")
            for remedy in report.remedies
        ]
        blocks.append(
            ["what would have brought it in:", *aligned(["", "", ""], changes, left=(0, 1))]
        )
    return [line for block in blocks for line in (*block, "")][:-1]
