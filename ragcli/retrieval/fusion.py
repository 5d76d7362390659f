"""Two rankings into one: the convex mix, and reciprocal rank fusion.

Works on arrays of scores over the same candidates; knows no index.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

DEPTH = 100
"""Each retriever is scaled over its own best so many."""

RRF_DEPTH = 1000
"""Reciprocal ranks count to here, whatever k is, so that k never changes the order."""

RRF_K = 60
"""Cormack, Clarke & Büttcher 2009."""

NEIGHBOUR = 0.1
"""What a passage gets of the score of the better passage beside it."""

WHOLE = 1.6
"""Pieces per word up to which the encoder's tokenizer knows the language."""

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


def mix(lexical: Scores, dense: Scores, alpha: float) -> tuple[Scores, Scores]:
    """(1 − alpha) · lexical and alpha · dense, both already scaled: what each gives to the sum."""
    return (1.0 - alpha) * lexical, alpha * dense


def beside(scores: Scores, pairs: Iterable[tuple[int, int]]) -> Scores:
    """NEIGHBOUR · the better score of the two neighbours; `pairs` are places in `scores`."""
    best = np.zeros(len(scores))
    for first, second in pairs:
        best[first] = max(best[first], scores[second])
        best[second] = max(best[second], scores[first])
    return NEIGHBOUR * best


def weight_of(share: float, pieces_per_word: float | None) -> float:
    """The dense share, less where the tokenizer shatters the text: share · min(1, 1.6 / pieces).

    An encoder that cuts words into crumbs was not made for them. English is 1.1 to 1.4 pieces
    per word, German 2.8 and Chinese 9.8 to MiniLM.
    """
    return share if pieces_per_word is None else share * min(1.0, WHOLE / pieces_per_word)


def reciprocal_rank(ranks: NDArray[np.int64]) -> Scores:
    """1 / (60 + rank), what one retriever gives to the sum; 0 for rank 0 and beyond RRF_DEPTH."""
    return np.where((ranks > 0) & (ranks <= RRF_DEPTH), 1.0 / (RRF_K + ranks), 0.0)


def softmax(scores: Scores) -> Scores:
    """exp(s) / Σ exp(s): p(z|x) over the hits (Lewis et al. 2020, §2)."""
    if not len(scores):
        return scores
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())
