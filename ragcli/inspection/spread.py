"""How numbers are spread: the few that tell the most, and how many fall where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BINS = 10
_STEPS = (1, 2, 5)
_QUANTILES = (0, 0.1, 0.5, 0.9, 1)


@dataclass(frozen=True, slots=True)
class Spread:
    """Least, quantiles and largest of some numbers, between two of them by proportion."""

    least: float
    tenth: float
    median: float
    ninetieth: float
    largest: float
    mean: float


@dataclass(frozen=True, slots=True)
class Bin:
    """How many numbers are at least `low` and less than `high`, None for any."""

    low: int
    high: int | None
    count: int


def spread(values: Sequence[int] | NDArray[np.float64]) -> Spread | None:
    """The spread of `values`, None of none."""
    numbers = np.asarray(values, np.float64)
    if not len(numbers):
        return None
    least, tenth, median, ninetieth, largest = np.quantile(numbers, _QUANTILES).tolist()
    return Spread(least, tenth, median, ninetieth, largest, float(numbers.mean()))


def bins(values: Sequence[int]) -> tuple[Bin, ...]:
    """`values`, none negative, in at most 11 bins of a round width.

    The last one takes the few that are far above the rest: they would squeeze it into one bar.
    """
    numbers = np.asarray(values, np.int64)
    if not len(numbers):
        return ()
    usual = float(np.quantile(numbers, 0.98))
    width = next(
        step * 10**power
        for power in range(20)
        for step in _STEPS
        if usual < _BINS * step * 10**power
    )
    counts = np.bincount(np.minimum(numbers // width, _BINS)).tolist()
    first = next(i for i, count in enumerate(counts) if count)
    return tuple(
        Bin(i * width, None if i == _BINS else (i + 1) * width, counts[i])
        for i in range(first, len(counts))
    )
