"""The report of `inspect --hubs`."""

from __future__ import annotations

from ragcli.cli.output import counted
from ragcli.cli.reports.tables import aligned, glimpse, place
from ragcli.inspection.hubs import HubReport, NormReport


def lines(report: HubReport) -> list[str]:
    """The report as plain lines."""
    told = [
        f"{_asked(report)}; the {report.k:,} nearest of {counted(report.chunks, 'passage')} each "
        f"({report.encoder})"
    ]
    if not report.asked:
        return [*told, "No question has a vector other than zeros, so no list was made."]
    seen, chance = report.observed, report.chance
    told += [
        "",
        *aligned(
            ["", "seen", "by chance", ""],
            [
                ("skewness of N", seen.skewness, chance.skewness,
                 f"N: in how many lists a passage stands, {report.mean:.3g} on average"),
                ("orphans", _percent(seen.orphans), _percent(chance.orphans),
                 f"passages in no list, {report.orphans:,} here"),
                ("taken by the top 1 %", _percent(seen.top), _percent(chance.top),
                 "places in lists that the most frequent passages have"),
                ("overlap", _percent(seen.overlap), _percent(chance.overlap),
                 "of a question's list, what is in another question's too"),
            ],
            left=(0,),
        ),
        "",
        _collapse(report),
    ]  # fmt: skip
    if report.hubs:
        told += ["", "In the most lists:", ""]
        table = aligned(
            ["N", "of all", "first", "passage"],
            [
                (each.occurrences, _percent(each.share), each.first, place(each.passage))
                for each in report.hubs
            ],
        )
        told += _with_texts(table, [each.passage.text for each in report.hubs])
    return [*told, "", *_norms(report)]


def _asked(report: HubReport) -> str:
    if not report.own:
        without = report.population - report.asked
        more = f" ({without:,} without a vector left out)" if without else ""
        return counted(report.asked, "question") + more
    if report.asked < report.population:
        return (
            f"{report.asked:,} of {counted(report.population, 'passage')}, drawn at random, "
            "as questions"
        )
    return f"{counted(report.asked, 'passage')} as questions"


def _collapse(report: HubReport) -> str:
    firsts = (
        f"Of {counted(report.asked, 'question')} the first passages are {report.firsts:,} "
        "different ones."
    )
    if report.observed.overlap is None or report.collapsed_from is None:
        return firsts
    mark = f"{report.collapsed_from:.1%} or more"
    if report.collapsed:
        return f"Retrieval has collapsed, for the overlap is {mark}. {firsts}"
    return f"Retrieval has not collapsed; that would be an overlap of {mark}. {firsts}"


def _norms(report: HubReport) -> list[str]:
    norms = report.norms
    if norms is None:
        return [f"What would win without normalising cannot be told: {report.norms_reason}."]
    return [
        f"{_effect(norms)} for {norms.changed:,} of {counted(report.asked, 'question')}",
        f"Length of a vector before that: median {norms.median_norm:.3g}, "
        f"largest {norms.largest_norm:.3g}. Most often first by the raw dot product:",
        "",
        *_with_texts(
            aligned(
                ["raw", "cosine", "length", "passage"],
                [(each.raw, each.cosine, each.norm, place(each.passage)) for each in norms.winners],
            ),
            [each.passage.text for each in norms.winners],
        ),
    ]


def _effect(norms: NormReport) -> str:
    if norms.normalised:
        return "Without normalising, another passage would come first"
    return "The index does not normalise; if it did, another passage would come first"


def _with_texts(table: list[str], texts: list[str]) -> list[str]:
    indent = " " * table[0].index("passage")
    told = table[:1]
    for line, text in zip(table[1:], texts, strict=True):
        told += [line, indent + glimpse(text)]
    return told


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"
