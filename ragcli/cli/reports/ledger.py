"""The ledger as lines: problems by kind, then what was skipped or failed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ragcli.cli.output import counted
from ragcli.cli.reports.tables import aligned, cell
from ragcli.inspection.ledger import Entry, LedgerReport, UnindexedFile


def lines(report: LedgerReport) -> list[str]:
    """A block for each kind of problem, the commonest first, and one for each reason to skip.

    A file that failed is in the ledger itself, with the reason.
    """
    blocks = [
        [
            f"{cell(kind.kind)}: {kind.count:,}",
            *rows([entry for entry in report.problems if entry.kind == kind.kind]),
        ]
        for kind in report.kinds
    ]
    skipped: dict[str, list[UnindexedFile]] = {}
    for file in report.unindexed:
        if file.state == "skipped":
            skipped.setdefault(file.reason or "skipped", []).append(file)
    blocks += [
        [f"skipped, {cell(reason)}: {len(files):,}", *(f"  {cell(file.path)}" for file in files)]
        for reason, files in sorted(skipped.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    if not blocks:
        return ["no problems: every file that was read is covered"]
    parts = [counted(len(report.problems), "problem")]
    for state in ("failed", "skipped"):
        number = sum(file.state == state for file in report.unindexed)
        parts += [f"{counted(number, 'file')} {state}"] if number else []
    return [line for block in blocks for line in (*block, "")] + [", ".join(parts)]


def rows(entries: Sequence[Entry], *, paths: bool = True) -> list[str]:
    """A line for each entry: file and page, since when, and what is wrong."""
    cells = [
        (
            "",
            (cell(entry.path) if paths else "")
            + ("" if entry.page is None else f"{' ' if paths else ''}p. {cell(entry.page)}"),
            moment(entry.since),
            entry.message if paths else f"{entry.kind}: {entry.message}",
        )
        for entry in entries
    ]
    return aligned(["", "", "", ""], cells, left=(1, 2))


def moment(seconds: float) -> str:
    """`2025-11-29 20:53`, in the time zone of this machine."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
