"""How far a mean over questions can be trusted, and whether two runs really differ.

Percentile bootstrap intervals (Efron 1979) and the paired randomisation test (Fisher; Smucker,
Allan & Carterette 2007 on why for retrieval). Everything is seeded: same values, same figures.
The values are one per question; what they are is not this module's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RESAMPLES = 10_000
LEVEL = 0.95
BLOCK = 1 << 22
"""Random numbers drawn at a time: some 50 MB, whatever the number of questions."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Run a less run b over the same questions.

    `mean` with its 95 % bootstrap interval; `p` is the randomisation test's, two-sided: how often
    chance alone, a and b swapped at random question by question, gives a mean as far from 0;
    the questions that a `won`, `lost` and `tied`.
    """

    mean: float
    low: float
    high: float
    p: float
    won: int
    lost: int
    tied: int


def interval(values: Sequence[float] | Array, seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the mean of values.

    Where all values are equal, so are its ends: a resample cannot show what was never seen.
    Raises ValueError where there is no value.
    """
    if not len(values):
        raise ValueError("no values to resample")
    return bounds(_resampled_means(np.asarray(values, dtype=np.float64), seed))


def difference(a: Sequence[float] | Array, b: Sequence[float] | Array, seed: int = 0) -> Difference:
    """Compare a and b, the values of two runs for the same questions in the same order.

    A difference below 1e-12 is a tie. Raises ValueError where they are not of one length.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values against {len(b)}: not the same questions")
    gaps = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    gaps[np.abs(gaps) < 1e-12] = 0.0
    low, high = interval(gaps, seed)
    return Difference(
        mean=float(gaps.mean()),
        low=low,
        high=high,
        p=_randomisation(gaps[gaps != 0], seed),
        won=int((gaps > 0).sum()),
        lost=int((gaps < 0).sum()),
        tied=int((gaps == 0).sum()),
    )


def quantile(values: Sequence[float] | Array, share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie, interpolated linearly."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), share))


def bounds(figures: Array) -> tuple[float, float]:
    """The ends of the middle 95 % of the figures of resamples."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(figures, [tail, 1 - tail])
    return float(low), float(high)


def stratified_folds(labels: NDArray[np.bool_], number: int, seed: int = 0) -> NDArray[np.int64]:
    """A fold from 0 for each question, so that each has its share of either class."""
    generator = np.random.default_rng(seed)
    folds = np.empty(len(labels), dtype=np.int64)
    for of in (True, False):
        places = generator.permutation(np.flatnonzero(labels == of))
        folds[places] = np.arange(len(places)) % number
    return folds


def stratified_counts(
    labels: NDArray[np.bool_], resamples: int, seed: int = 0
) -> Iterator[NDArray[np.int64]]:
    """How often each resample drew each question: blocks of rows, one column a question.

    As many of either class are drawn as there are, so that no resample lacks one.
    """
    generator = np.random.default_rng(seed)
    size = len(labels)
    for rows in _blocks(size, resamples):
        number = rows.stop - rows.start
        counts = np.zeros((number, size), dtype=np.int64)
        for of in (True, False):
            places = np.flatnonzero(labels == of)
            drawn = generator.integers(0, max(len(places), 1), (number, len(places)))
            drawn += np.arange(number)[:, None] * len(places)
            times = np.bincount(drawn.ravel(), minlength=number * len(places))
            counts[:, places] = times.reshape(number, len(places))
        yield counts


def _resampled_means(values: Array, seed: int) -> Array:
    """The means of RESAMPLES draws of as many values, with replacement.

    Most metrics take few distinct values, and then it is the same to draw how often each of
    them comes: 10,000 questions take milliseconds instead of a second.
    """
    generator = np.random.default_rng(seed)
    size = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    means = np.empty(RESAMPLES)
    by_counts = len(distinct) * 16 < size
    for rows in _blocks(len(distinct) if by_counts else size):
        if by_counts:
            drawn = generator.multinomial(size, counts / size, rows.stop - rows.start)
            means[rows] = drawn @ distinct / size
        else:
            picks = generator.integers(0, size, (rows.stop - rows.start, size), dtype=np.uint32)
            means[rows] = values[picks].mean(axis=1)
    return means


def _randomisation(gaps: Array, seed: int) -> float:
    """p of the sign-flip test over gaps that are not 0.

    Exact, over all patterns of signs, where they are no more than the draws would be; a tie is
    the same under either sign, so it is in neither sum.
    """
    size = len(gaps)
    seen = abs(float(gaps.sum())) - 1e-12 * float(np.abs(gaps).sum())
    if 2**size <= RESAMPLES:
        every = np.arange(2**size)[:, None] >> np.arange(size) & 1
        return float((_flipped(gaps, every) >= seen).mean())
    generator = np.random.default_rng(seed)
    extreme = 0
    for rows in _blocks(size):
        number = rows.stop - rows.start
        drawn = np.frombuffer(generator.bytes(number * -(-size // 8)), dtype=np.uint8)
        patterns = np.unpackbits(drawn.reshape(number, -1), axis=1, count=size)
        extreme += int((_flipped(gaps, patterns) >= seen).sum())
    return (1 + extreme) / (1 + RESAMPLES)


def _flipped(gaps: Array, patterns: NDArray[Any]) -> Array:
    """|sum| of the gaps under each row of patterns, where 1 turns a sign."""
    sums: Array = np.abs(gaps.sum() - 2 * (patterns @ gaps))
    return sums


def _blocks(width: int, number: int = RESAMPLES) -> Iterator[slice]:
    """`number` rows in runs of at most BLOCK numbers."""
    step = max(1, BLOCK // width)
    return (slice(at, min(at + step, number)) for at in range(0, number, step))
