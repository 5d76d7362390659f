"""Two rankings into one: the convex mix, and reciprocal rank fusion.

Works on arrays of scores over the same candidates; knows no index.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DEPTH = 100
"""Each retriever is scaled over its own best so many."""

RRF_DEPTH = 1000
"""Reciprocal ranks count to here, whatever k is, so that k never changes the order."""

RRF_K = 60
"""Cormack, Clarke & Büttcher 2009."""

Scores = NDArray[np.float64]


def scale(scores: Scores, lowest: float | None) -> Scores:
    """Min-max to 0…1: the best is 1, `lowest` (the retriever's DEPTH-th score) and below 0.

    NaN stands for a chunk that the retriever cannot score, and is 0. Where the best is no better
    than the lowest, it is 1 all the same. `lowest` is None where the retriever found nothing.
    """
    if lowest is None:
        return np.zeros(len(scores))
    best = float(np.nanmax(scores))
    if best <= lowest:
        return (scores >= best).astype(np.float64)
    return np.nan_to_num(np.clip((scores - lowest) / (best - lowest), 0.0, 1.0))


def mix(lexical: Scores, dense: Scores, alpha: float) -> Scores:
    """(1 − alpha) · lexical + alpha · dense, both already scaled."""
    return (1.0 - alpha) * lexical + alpha * dense


def reciprocal_rank(ranks: list[NDArray[np.int64]]) -> Scores:
    """Σ 1 / (60 + rank) over the retrievers; rank 0 stands for unranked."""
    total = np.zeros(len(ranks[0]))
    for rank in ranks:
        total += np.where(rank > 0, 1.0 / (RRF_K + rank), 0.0)
    return total


def softmax(scores: Scores) -> Scores:
    """exp(s) / Σ exp(s): p(z|x) over the hits (Lewis et al. 2020, §2)."""
    if not len(scores):
        return scores
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())
