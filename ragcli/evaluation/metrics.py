"""The figures of one question: what its hits hold of what its gold names.

`held[r]` is the set of numbers of the relevant items that the hit at rank r + 1 holds, and
`grades[i]` is the grade of item i (1 or more; a question's gold has at least one item). An item
counts at the first hit that holds it. Where each hit holds at most one item and no item comes
twice, as with documents, the figures are those of trec_eval; a longer hit may hold several
items, and several hits the same one: what that means is said at each figure.

What a hit holds is decided in `relevance`; means and intervals are in `statistics`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragcli.evaluation.gold import Item
    from ragcli.records import Hit

Held = Sequence[frozenset[int]]
Grades = Sequence[int]
Span = tuple[int, int]


def recall(held: Held, grades: Grades, k: int) -> float:
    """The share of the relevant items that the first k hits hold."""
    return len(frozenset().union(*held[:k])) / len(grades)


def hit(held: Held, grades: Grades, k: int) -> float:
    """1 if one of the first k hits holds a relevant item, else 0."""
    return float(any(held[:k]))


def precision(held: Held, grades: Grades, k: int) -> float:
    """The share of the k places whose hit holds a relevant item.

    A place without a hit counts as a miss; a second hit that holds an item again is as relevant
    as the first.
    """
    return sum(map(bool, held[:k])) / k


def reciprocal_rank(held: Held, grades: Grades, k: int) -> float:
    """1 / the rank of the first hit that holds a relevant item; 0 where none of k does."""
    return next((1 / rank for rank, items in enumerate(held[:k], 1) if items), 0.0)


def ndcg(held: Held, grades: Grades, k: int) -> float:
    """The gain of the first k hits, discounted by log2(rank + 1), over the best possible one.

    A hit's gain is the sum of the grades of the items that it is the first to hold. The best
    possible order has one item at each rank, best grade first; a hit that holds two items can
    exceed it, so the figure stops at 1.
    """
    gained = sum(grades[item] / math.log2(rank + 1) for rank, item in _first_held(held[:k]))
    ideal = sum(
        grade / math.log2(rank + 1)
        for rank, grade in enumerate(sorted(grades, reverse=True)[:k], 1)
    )
    return min(1.0, gained / ideal)


def average_precision(held: Held, grades: Grades, k: int) -> float:
    """The mean over all relevant items of the precision at the rank where each is first held.

    An item that the first k hits do not hold adds 0.
    """
    return sum(precision(held, grades, rank) for rank, _ in _first_held(held[:k])) / len(grades)


def _first_held(held: Held) -> list[tuple[int, int]]:
    """(rank, item) for each item held at all, at the first hit that holds it."""
    first: dict[int, int] = {}
    for rank, items in enumerate(held, 1):
        for item in sorted(items):
            first.setdefault(item, rank)
    return [(rank, item) for item, rank in first.items()]


def characters(hits: Sequence[Hit], items: Sequence[Item], k: int) -> tuple[float, float, float]:
    """Recall, precision and intersection over union, in characters, of the first k hits.

    Counted over the items that have a span, at least one, overlapping spans merged. What is found
    counts once, however many hits hold it, but the length of the hits is summed with
    their overlaps, as in Chroma's evaluation of chunking (Smith & Troynikov 2024): overlap costs.
    """
    wanted = _merged_by_path((item.path, item.span) for item in items if item.span is not None)
    reference = sum(_length(spans) for spans in wanted.values())
    shown = _merged_by_path((each.path, (each.start, each.end)) for each in hits[:k])
    found = sum(_overlap(spans, shown.get(path, [])) for path, spans in wanted.items())
    total = sum(each.end - each.start for each in hits[:k])
    return (
        found / reference,
        found / total if total else 0.0,
        found / (total + reference - found),
    )


def _merged_by_path(spans: Iterable[tuple[str, Span]]) -> dict[str, list[Span]]:
    merged: dict[str, list[Span]] = {}
    for path, (start, end) in sorted(spans):
        joined = merged.setdefault(path, [])
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return merged


def _length(spans: list[Span]) -> int:
    return sum(end - start for start, end in spans)


def _overlap(left: list[Span], right: list[Span]) -> int:
    """Characters in both; neither list overlaps itself."""
    return sum(
        max(0, min(end, other_end) - max(start, other_start))
        for start, end in left
        for other_start, other_end in right
    )
