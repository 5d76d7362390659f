"""The report of `inspect --collisions` on an index with dense vectors."""

from __future__ import annotations

from ragcli.cli.output import counted
from ragcli.cli.reports.duplicates import groups
from ragcli.cli.reports.tables import aligned
from ragcli.inspection.collapse import (
    LEAST_DIMENSIONS,
    MOST_COSINE,
    MOST_REDUNDANT,
    CollapseReport,
)


def lines(report: CollapseReport) -> list[str]:
    """The report as plain lines."""
    told = [
        f"Dense vectors ({report.encoder}) have no buckets; in place of collisions, whether they "
        "have collapsed.",
        _verdict(report),
        "",
        *aligned(
            ["", "", ""],
            [
                ("mean cosine of two passages", report.mean_cosine,
                 f"collapsed from {MOST_COSINE} on"),
                ("effective dimensions", report.effective_dimensions,
                 f"of {report.possible_dimensions:,} that "
                 f"{counted(report.vectors - report.zero_vectors, 'vector')} can take; collapsed "
                 f"below {LEAST_DIMENSIONS * report.possible_dimensions:.1f}"),
                ("share of the first direction", report.first_direction, "of all variance"),
                ("passages that have another's vector", report.redundant,
                 f"other text, cosine {report.near.threshold} or more; collapsed from "
                 f"{MOST_REDUNDANT} on"),
                ("vectors of zeros", report.zero_vectors, f"of {report.vectors:,}"),
            ],
            left=(0,),
        ),
    ]  # fmt: skip
    if report.near.groups:
        told += ["", "Different texts with nearly the same vector:", *groups(report.near)]
    return told


_REASONS = {
    "direction": "they all point one way",
    "dimensions": "they lie in few dimensions",
    "redundant": "passages of different text have the same one",
}


def _verdict(report: CollapseReport) -> str:
    if report.mean_cosine is None:
        return "There are too few vectors to tell."
    if not report.collapsed:
        return "They have not collapsed."
    return f"They have collapsed: {', and '.join(_REASONS[each] for each in report.reasons)}."
