"""The closing lines of `ragcli index`: what became of the files, and what there is now."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice

from ragcli.cli.output import counted
from ragcli.generation.visible import visible
from ragcli.records import IndexReport, Problem

PROBLEMS_SHOWN = 10


def summary(report: IndexReport) -> list[str]:
    """The closing lines for people. The files seen are the sum of the five counts behind them."""
    counts = report.counts
    seen = counts.indexed + counts.unchanged + counts.moved + counts.skipped + counts.failed
    lines = [
        f"{counted(seen, 'file')} seen: {counts.indexed:,} indexed, "
        f"{counts.unchanged:,} unchanged, {counts.moved:,} moved, {counts.skipped:,} skipped, "
        f"{counts.failed:,} failed"
    ]
    if counts.removed:
        lines.append(f"{counted(counts.removed, 'file')} removed")
    if report.skipped:
        reasons = sorted(report.skipped.items(), key=lambda item: (-item[1], item[0]))
        lines.append("skipped: " + ", ".join(f"{number:,} {why}" for why, number in reasons))
    if report.dry_run:
        return [*lines, *_problems(report.problems), "dry run: nothing was written"]
    lines += _problems(report.problems)
    lines.append(
        f"{visible(_near(report.index))}: {counted(report.chunks, 'passage')} of "
        f"{counted(report.documents, 'document')}, {report.embedded:,} with vectors "
        f"({report.encoder}, {report.chunking}), {report.seconds:.1f} s"
    )
    missing = report.chunks - report.embedded
    if missing and report.encoder != "none":
        lines.append(f"{counted(missing, 'passage')} without a vector: ragcli index makes them")
    return lines


def _problems(problems: Sequence[Problem]) -> list[str]:
    """The first problems by file, a line for each kind in a file, and how many more there are."""
    if not problems:
        return []
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in sorted(problems, key=lambda problem: problem.path):
        alike.setdefault((problem.path, problem.kind), []).append(problem)
    lines = [f"{counted(len(problems), 'problem')}:"]
    for (path, kind), found in islice(alike.items(), PROBLEMS_SHOWN):
        page = "" if found[0].page is None else f" p. {found[0].page}"
        others = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        lines.append(visible(f"  {path}{page}{others}: {found[0].message} ({kind})"))
    left = sum(map(len, islice(alike.values(), PROBLEMS_SHOWN, None)))
    if left:
        lines.append(f"  … and {left:,} more: ragcli inspect --problems")
    return lines


def _near(path: str) -> str:
    """`path` as seen from here, where it lies below."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
