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


def scale(scores: Scores, lowest: float) -> Scores:
    """Min-max to 0…1: the best is 1, `lowest` (the retriever's DEPTH-th score) and below 0.

    Where all are equal, those above zero are 1.
    """
    if not len(scores):
        return scores
    best = float(scores.max())
    if best <= lowest:
        return (scores > 0).astype(np.float64) if best > 0 else np.zeros(len(scores))
    return np.clip((scores - lowest) / (best - lowest), 0.0, 1.0)


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
