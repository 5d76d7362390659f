"""The report of `inspect --neighbors`."""

from __future__ import annotations

from ragcli.cli.output import counted
from ragcli.cli.reports.tables import BETWEEN, aligned, glimpse, place
from ragcli.inspection.neighbors import Neighbor, NeighborReport


def lines(report: NeighborReport) -> list[str]:
    """The report as plain lines."""
    told = [
        place(report.passage),
        glimpse(report.passage.text),
        "",
        f"Nearest by cosine ({report.encoder}) of {counted(report.compared, 'other passage')} "
        "with a vector:",
    ]
    if not report.neighbors:
        return [*told[:-1], f"None of {counted(report.compared, 'other passage')} is near it."]
    table = aligned(
        ["rank", "cosine", "passage"],
        [(each.rank, each.cosine, place(each.passage)) for each in report.neighbors],
    )
    indent = " " * table[0].index("passage")
    told += ["", table[0]]
    for line, each in zip(table[1:], report.neighbors, strict=True):
        told += [line, *(indent + more for more in _more(each))]
    return told


def _more(neighbor: Neighbor) -> list[str]:
    told = ["(the same text)" if neighbor.same_text else glimpse(neighbor.passage.text)]
    if neighbor.shared and not neighbor.same_text:
        told.append(f"shared:{BETWEEN}{' '.join(neighbor.shared)}")
    if neighbor.collided:
        pairs = ", ".join(f"{there} = {here}" for there, here in neighbor.collided)
        told.append(f"one bucket, other words:{BETWEEN}{pairs}")
    return told
