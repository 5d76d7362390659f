"""The report of `inspect --duplicates`."""

from __future__ import annotations

from ragcli.cli.output import counted
from ragcli.cli.reports.tables import glimpse, place
from ragcli.inspection.duplicates import DuplicateGroup, DuplicateReport


def lines(report: DuplicateReport) -> list[str]:
    """The report as plain lines."""
    told = [
        f"{counted(report.chunks, 'passage')}: {_groups(report.text_groups)} of equal text, "
        f"{counted(report.text_redundant, 'passage')} redundant"
    ]
    if report.encoder == "none":
        told.append("The index has no vectors (--encoder none), so only equal texts are found.")
    else:
        told.append(
            f"With cosines of {report.threshold:g} and more: {_groups(report.all_groups)}, "
            f"{counted(report.all_redundant, 'passage')} redundant"
        )
    if report.encoder != "none" and report.compared < report.chunks:
        told.append(f"{counted(report.chunks - report.compared, 'passage')} without a vector")
    if report.across and report.within_one:
        told.append(f"{_groups(report.within_one)} within one document, not listed")
    return told + groups(report)


def groups(report: DuplicateReport) -> list[str]:
    """The listed groups, a blank line before each."""
    told = [line for group in report.groups for line in ("", *_group(group))]
    if report.left_out:
        told += ["", f"and {_groups(report.left_out)} more"]
    return told


def _group(group: DuplicateGroup) -> list[str]:
    """What they have in common; the first one's text, and that of others where it is another."""
    kind = "equal text" if group.same_text else "near"
    least = group.least_cosine
    cosine = "" if least is None else f", cosine to the first {least:.3f} or more"
    where = counted(group.documents, "document")
    told = [f"{counted(group.size, 'passage')} in {where}, {kind}{cosine}"]
    shown: str | None = None
    for passage in group.passages:
        told.append(f"  {place(passage)}")
        if passage.text != shown:
            told.append(f"    {glimpse(passage.text)}")
        shown = passage.text
    if group.left_out:
        told.append(f"  and {group.left_out:,} more")
    return told


def _groups(number: int) -> str:
    return counted(number, "group")
