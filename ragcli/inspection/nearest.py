"""For each of many questions the rows nearest to it: exact in float32, block by block.

Knows rows alone, no chunks and no texts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
Places = NDArray[np.intp]

_HIGH, _WIDE = 1024, 4096
_FEW = 32
"""So many candidates a question are merged as they are; of more, the block is sorted first."""


@dataclass(frozen=True, slots=True)
class Lists:
    """`places`, (questions, k), nearest first, -1 behind the last of a list that is shorter.

    `other`, (questions,): the first by the measure that is not asked for, -1 for none; None where
    no norms were given.
    """

    places: Places
    other: Places | None


def nearest(
    rows: Rows,
    questions: Rows,
    k: int,
    *,
    own: Places | None = None,
    positive: bool = False,
    norms: NDArray[np.float32] | None = None,
    by_norm: bool = False,
) -> Lists:
    """The `k` of `rows`, (n, dim), with the largest product with each of `questions`, (m, dim).

    `own` are the places of the questions among the rows: nothing is its own neighbour. With
    `positive` only products above 0 count. `norms`, (n,), multiply the products: `by_norm` asks
    for the lists by these, else by the products as they are. Equals go by place.
    """
    found = Lists(
        np.empty((len(questions), k), np.intp),
        None if norms is None else np.empty(len(questions), np.intp),
    )
    room = np.empty(min(_HIGH, len(questions)) * min(_WIDE, len(rows)), np.float32)
    for start in range(0, len(questions), _HIGH):
        some = slice(start, start + _HIGH)
        asked, mine = questions[some], None if own is None else own[some]
        best, other = _Best(len(asked), k, positive), _Best(len(asked), 1, positive)
        for first in range(0, len(rows), _WIDE):
            some_rows = rows[first : first + _WIDE]
            products = room[: len(asked) * len(some_rows)].reshape(len(asked), len(some_rows))
            np.matmul(asked, some_rows.T, out=products)
            if mine is not None:
                here = np.flatnonzero((mine >= first) & (mine < first + _WIDE))
                products[here, mine[here] - first] = -np.inf
            if norms is None:
                best.add(products, first)
            else:
                scaled = products * norms[first : first + _WIDE]
                best.add(scaled if by_norm else products, first)
                other.add(products if by_norm else scaled, first)
        found.places[some] = best.places
        if found.other is not None:
            found.other[some] = other.places[:, 0]
    return found


class _Best:
    """The best so far of each of a block of questions: products and places, (questions, k)."""

    def __init__(self, questions: int, k: int, positive: bool) -> None:
        self._k = k
        self._floor = np.float32(0.0 if positive else -np.inf)
        self._products = np.full((questions, k), self._floor, np.float32)
        self.places = np.full((questions, k), -1, np.intp)

    def add(self, products: Rows, first: int) -> None:
        """Take in the products with the rows from `first` on, behind all that were there."""
        # What only equals the last of a full list stands behind it, for its place is higher.
        above = products > self._products[:, -1:]
        count = np.count_nonzero(above)
        if count > _FEW * len(products):
            columns = np.argsort(-products, axis=1, kind="stable")[:, : self._k]
            question = np.repeat(np.arange(len(products)), columns.shape[1])
            column = columns.ravel()
            kept = above[question, column]
            question, column = question[kept], column[kept]
        elif count:
            question, column = np.divmod(np.flatnonzero(above), products.shape[1])
        else:
            return
        self._merge(question, products[question, column], column + first)

    def _merge(self, question: Places, products: Rows, places: Places) -> None:
        held = self.places >= 0
        question = np.concatenate([np.nonzero(held)[0], question])
        products = np.concatenate([self._products[held], products])
        places = np.concatenate([self.places[held], places])
        order = np.lexsort((places, -products, question))
        question, products, places = question[order], products[order], places[order]
        begins = question.searchsorted(np.arange(len(held)))
        rank = np.arange(len(question)) - begins[question]
        kept = rank < self._k
        self._products[question[kept], rank[kept]] = products[kept]
        self.places[question[kept], rank[kept]] = places[kept]
