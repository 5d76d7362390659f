"""Every pair of rows whose cosine reaches a threshold, joined into groups: exact, and quick.

Pairs by the thousand million are told apart by a bound. Turned so that a few columns hold most of
the length, and with the length of the rest as one more column, rows have a product that is never
below their cosine (Cauchy–Schwarz); only pairs that pass it are worked out in full. Knows rows
alone, no chunks and no texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
Places = NDArray[np.intp]
Exact = Callable[[Places, Places], NDArray[np.float64]]

TIE = 1e-12
"""Cosines this close below the threshold reach it: float64 says no more."""

_HIGH, _WIDE = 1024, 4096
_SLICE = 8192
_MANY = 1 << 16
"""Of a block's pairs; with more, those already in one group are dropped before they are listed."""

_FULL = 0.01
"""From this share of a block's pairs on, one product of the whole block is quicker."""

_SAMPLE = 8192
"""Rows from which the bound is worth making, and so many are looked at to make it."""

_TRIED = 1024
_WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)


class Groups:
    """Which of `count` things belong together; `labels` has the least of each one's group."""

    def __init__(self, count: int) -> None:
        self.labels = np.arange(count)

    def join(self, first: Places, second: Places) -> None:
        """Put each of `first` and that of `second` into one group, with all of both groups."""
        while True:
            first, second = self.labels[first], self.labels[second]
            apart = first != second
            if not apart.any():
                return
            first, second = first[apart], second[apart]
            self.labels[np.maximum(first, second)] = np.minimum(first, second)
            while True:
                above = self.labels[self.labels]
                if np.array_equal(above, self.labels):
                    break
                self.labels = above


def join_near(rows: Rows, places: Places, groups: Groups, threshold: float, exact: Exact) -> None:
    """Join every two of `places` whose rows have a cosine of at least `threshold`.

    `rows` are of length 1, float32 (n, dim), and `groups` is of n things. `exact` gives the
    cosines of rows, pair by pair, in float64: it decides what float32 leaves open.
    """
    if len(places) < 2:
        return
    search = _Search(rows, places, groups, threshold, exact)
    for start in range(0, len(places), _HIGH):
        for other in range(start, len(places), _WIDE):
            search.block(slice(start, start + _HIGH), slice(other, other + _WIDE))


class _Search:
    def __init__(
        self, rows: Rows, places: Places, groups: Groups, threshold: float, exact: Exact
    ) -> None:
        self._rows = rows
        self._places = places
        self._groups = groups
        self._threshold = threshold
        self._exact = exact
        # By so much a float32 product of rows of length 1 can be off, whatever the order of its
        # sum: (columns + a few for how the rows were rounded) · 2^-24, and the same again.
        self._slack = (rows.shape[1] + 32) * 2.0**-23
        self._least = np.float32(threshold - self._slack)
        self._bounds = _bounds(rows, places, float(self._least))
        self._room = np.empty(_HIGH * _WIDE, np.float32)

    def block(self, high: slice, wide: slice) -> None:
        """Join what belongs together among the places `high` and `wide`."""
        labels = self._groups.labels
        ours, theirs = labels[self._places[high]], labels[self._places[wide]]
        if (ours == theirs[0]).all() and (theirs == theirs[0]).all():
            return
        product = self._product(high, wide, bound=self._bounds is not None)
        if product.max() < self._least:  # nearly always, and quicker than to compare each
            return
        near = product >= self._least
        count = np.count_nonzero(near)
        if count > _MANY:
            near &= ours[:, np.newaxis] != theirs
            count = np.count_nonzero(near)
        if self._bounds is not None and count > _FULL * near.size:
            near &= self._product(high, wide, bound=False) >= self._least
        first, second = np.divmod(np.flatnonzero(near), near.shape[1])
        for start in range(0, len(first), _SLICE):
            some = slice(start, start + _SLICE)
            self._settle(self._places[high][first[some]], self._places[wide][second[some]])

    def _product(self, high: slice, wide: slice, *, bound: bool) -> Rows:
        """Of the rows or of what bounds them; the next one takes its place."""
        if bound:
            assert self._bounds is not None
            first, second = self._bounds[high], self._bounds[wide]
        else:
            first, second = self._rows[self._places[high]], self._rows[self._places[wide]]
        room = self._room[: len(first) * len(second)].reshape(len(first), len(second))
        return np.matmul(first, second.T, out=room)

    def _settle(self, first: Places, second: Places) -> None:
        """Join those of the pairs that reach the threshold."""
        labels = self._groups.labels
        apart = labels[first] != labels[second]
        first, second = first[apart], second[apart]
        values = np.einsum("ij,ij->i", self._rows[first], self._rows[second])
        above = values > self._threshold + self._slack
        self._groups.join(first[above], second[above])
        # What is close is worked out again, unless it belongs together by now.
        close = np.flatnonzero(~above & (values >= self._least))
        labels = self._groups.labels
        close = close[labels[first[close]] != labels[second[close]]]
        if len(close):
            reached = self._exact(first[close], second[close]) >= self._threshold - TIE
            self._groups.join(first[close[reached]], second[close[reached]])


def _bounds(rows: Rows, places: Places, least: float) -> Rows | None:
    """What to multiply in place of the rows, (len(places), columns + 1); None for the rows.

    The number of columns is the one that promises the least work, as pairs of a sample tell.
    """
    if len(places) < _SAMPLE:
        return None
    rng = np.random.default_rng(0)
    sample = rows[np.sort(rng.permutation(places)[:_SAMPLE])].astype(np.float64)
    _, axes = np.linalg.eigh(sample.T @ sample)
    axes = axes[:, ::-1]  # the longest first
    tried = sample[rng.permutation(len(sample))[:_TRIED]] @ axes
    width = _width(tried, least)
    if width is None:
        return None
    found = np.empty((len(places), width + 1), np.float32)
    for start in range(0, len(places), _SAMPLE):
        block = rows[places[start : start + _SAMPLE]].astype(np.float64)
        found[start : start + len(block)] = _bounding(
            block @ axes[:, :width], np.square(block).sum(axis=1)
        )
    return found


def _bounding(leading: NDArray[np.float64], squares: NDArray[np.float64]) -> NDArray[Any]:
    """`leading` columns and the length of what is left of rows whose squares sum to `squares`."""
    rest = np.sqrt(np.maximum(squares - np.square(leading).sum(axis=1), 0.0))
    return np.column_stack([leading, rest])


def _width(tried: NDArray[np.float64], least: float) -> int | None:
    """How many leading columns of the turned rows to take; None where all is quickest.

    Counted in products of two numbers for each pair; one in full costs `1 / _FULL` times what
    its share of a whole block does.
    """
    dim = tried.shape[1]
    squares = np.square(tried).sum(axis=1)
    pairs: Sequence[NDArray[np.intp]] = np.triu_indices(len(tried), 1)
    best: tuple[float, int | None] = (float(dim), None)
    for width in _WIDTHS:
        if width >= dim:
            break
        table = _bounding(tried[:, :width], squares)
        passing = float(np.mean((table @ table.T)[pairs] >= least))
        best = min(best, (width + min(1.0, passing / _FULL) * dim, width), key=lambda b: b[0])
    return best[1]
