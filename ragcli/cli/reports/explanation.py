"""Where one passage's score comes from: each retriever's part, and what each word gave.

The same lines under `query --explain` and `inspect --why`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragcli.cli.reports.tables import aligned

if TYPE_CHECKING:
    from ragcli.inspection.standing import Standing
    from ragcli.records import Hit

_INDENT = "    "


def explanation(of: Hit | Standing) -> list[str]:
    """A table of the parts of the score, and one of the question's words."""
    lines = []
    rows: list[tuple[str, float | None, float | None, str]] = []
    parts = of.parts or (None, None)
    for name, leg, part in (("lexical", of.lexical, parts[0]), ("dense", of.dense, parts[1])):
        if leg is not None:
            rank = "not among its candidates" if leg.rank is None else f"rank {leg.rank:,}"
            rows.append((name, leg.score, part, rank))
    if of.neighbour:
        rows.append(("beside", None, of.neighbour, "of the better passage beside it"))
    if of.rerank is not None:
        rows.append(("rerank", of.rerank, None, "the order"))
    given = any(row[2] is not None for row in rows)
    if given:
        lines += aligned(["", "own score", "gives", ""], rows, left=(0,))
    else:
        lines += aligned(["", "", ""], [(*row[:2], row[3]) for row in rows], left=(0,))
    total = sum(share.score for share in of.terms) or 1.0
    if of.terms:
        lines += aligned(
            ["term", "in passage", "in index", "score", "share"],
            [
                (t.term, t.count, t.frequency, t.score, f"{t.score / total:>5.0%}")
                for t in of.terms
            ],
            left=(0,),
        )  # fmt: skip
    return [_INDENT + line for line in lines]
