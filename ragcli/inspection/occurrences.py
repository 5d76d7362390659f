"""How unevenly the places in many questions' lists fall to the chunks, in fact and by chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TOP = 100
"""One chunk of so many, rounded up, is among the most frequent."""


@dataclass(frozen=True, slots=True)
class Occurrences:
    """How N_k, the number of lists in which a chunk stands, is spread over the chunks.

    `skewness` is its third standardised moment, None where all are equal; `orphans` the share of
    chunks that are in no list; `top` the share of all places in lists that the most frequent 1 %
    of the chunks take; `overlap` the share of a question's list that is on average in another
    question's too, None of a single question. They are None where all lists are empty.
    """

    skewness: float | None
    orphans: float | None
    top: float | None
    overlap: float | None


def observed(counts: NDArray[np.int64], asked: int) -> Occurrences:
    """What `counts`, N_k of each chunk over `asked` questions, tells."""
    places = int(counts.sum())
    if not places:
        return Occurrences(None, None, None, None)
    centred = counts - counts.mean()
    variance = float(np.square(centred).mean())
    most = np.sort(counts)[-_top(len(counts)) :]
    return Occurrences(
        skewness=float((centred**3).mean()) / variance**1.5 if variance else None,
        orphans=float((counts == 0).mean()),
        top=float(most.sum()) / places,
        # Summed over the chunks, N (N − 1) counts what every ordered pair of lists has in common.
        overlap=float((counts * (counts - 1)).sum()) / places / (asked - 1) if asked > 1 else None,
    )


def by_chance(chunks: int, asked: int, places: int) -> Occurrences:
    """What to expect of lists with as many `places` in all, drawn blindly from the chunks.

    N_k then is binomial: `asked` draws, each with the chance p = places / (asked · chunks).
    """
    if not places:
        return Occurrences(None, None, None, None)
    p = places / (asked * chunks)
    if p >= 1.0:
        return Occurrences(None, 0.0, _top(chunks) / chunks, 1.0 if asked > 1 else None)
    times = np.arange(1, asked + 1)
    steps = np.log((asked - times + 1) / times) + np.log(p) - np.log1p(-p)
    chances = np.exp(asked * np.log1p(-p) + np.concatenate([[0.0], np.cumsum(steps)]))
    # From the most frequent down, until there are as many chunks as count as the top.
    most = np.minimum(np.cumsum(chances[::-1]), _top(chunks) / chunks)
    shares = np.diff(most, prepend=0.0)
    return Occurrences(
        skewness=(1 - 2 * p) / float(np.sqrt(asked * p * (1 - p))),
        orphans=float(chances[0]),
        top=float(shares @ np.arange(asked, -1, -1)) / (asked * p),
        overlap=p if asked > 1 else None,
    )


def _top(chunks: int) -> int:
    return -(-chunks // _TOP)
