"""`inspect --check` as text: what was found, each hint once, and what was looked at."""

from __future__ import annotations

from collections.abc import Sequence

from ragcli.cli.output import counted
from ragcli.cli.reports.tables import aligned, file_size
from ragcli.generation.visible import visible
from ragcli.inspection.checking import CheckReport, Finding

MOST = 20
"""So many findings under one hint are told, and then how many more: JSON has them all."""


def lines(report: CheckReport) -> list[str]:
    """The findings, those with one hint together and above it; then what was looked at."""
    told: list[str] = []
    for hint in dict.fromkeys(finding.hint for finding in report.findings):
        told += _group([each for each in report.findings if each.hint == hint], hint)
    if report.waiting:
        told.append(f"{counted(report.waiting, 'passage')} without a vector yet: ragcli index")
    if report.changed:
        told.append(f"{counted(report.changed, 'file')} changed since it was read: ragcli index")
    if not report.sources:
        told.append("the sources are not here: nothing was held against them")
    return [*told, _summary(report)]


def _group(findings: Sequence[Finding], hint: str) -> list[str]:
    rows = [(finding.kind, finding.message) for finding in findings]
    more = len(rows) - MOST
    rest = [f"… and {more:,} more"] if more > 0 else []
    return [*aligned(["", ""], rows[:MOST], left=(0,)), *rest, f"hint: {visible(hint)}", ""]


def _summary(report: CheckReport) -> str:
    found, checked = len(report.findings), report.checked
    what = counted(found, "finding") if found else "nothing wrong"
    return (
        f"{what} in {counted(checked.segments, 'segment')}, {counted(checked.chunks, 'passage')},"
        f" {file_size(checked.bytes)}: {report.seconds:.1f} s"
    )
