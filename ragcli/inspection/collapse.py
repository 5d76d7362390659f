"""Whether dense vectors still tell passages apart: what bucket collisions are to `hash`.

Three ways to fail, each with its threshold: all vectors point one way, they lie in few
dimensions, or many passages of different text have nearly the same one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragcli.inspection.cosine import StoredVectors, check_vectors
from ragcli.inspection.duplicates import DuplicateReport, duplicates
from ragcli.store.index import Index

NEAR = 0.99
"""The cosine from which two passages have nearly the same vector."""

MOST_COSINE = 0.8
LEAST_DIMENSIONS = 0.02
MOST_REDUNDANT = 0.5
"""From these on the vectors have collapsed: the mean cosine of two passages, the share of the
dimensions that they could spread over, the share of passages that have another's vector."""


@dataclass(frozen=True, slots=True)
class CollapseReport:
    """How the vectors of an index lie; numbers are None where fewer than two are not zeros.

    `mean_cosine` is that of all pairs of passages. `first_direction` is the share of the variance
    (of vectors of length 1) along the first principal direction; `effective_dimensions` the
    participation ratio of the covariance's eigenvalues, (Σλ)² / Σλ², at most `possible_dimensions`.
    `redundant` is the share of passages that are within a cosine of .99 of another one with another
    text; `near` lists those. `reasons` are `direction`, `dimensions`, `redundant`: those of the
    thresholds that are passed, none where the vectors have not collapsed.
    """

    encoder: str
    vectors: int
    zero_vectors: int
    dimensions: int
    possible_dimensions: int
    mean_cosine: float | None
    first_direction: float | None
    effective_dimensions: float | None
    redundant: float | None
    near: DuplicateReport
    collapsed: bool
    reasons: tuple[str, ...]


def collapsed(index: Index, *, limit: int = 20) -> CollapseReport:
    """Whether the vectors of the index have collapsed, and the `limit` largest near groups.

    Raises UsageError where there are no vectors; IndexUnavailable in its kinds.
    """
    check_vectors(index, "collisions")
    near = duplicates(index, threshold=NEAR, limit=limit, across=False, same_text=False)
    stored = StoredVectors(index)
    vectors = count = 0
    total, squares = np.zeros(stored.dim), np.zeros((stored.dim, stored.dim))
    for chunks, rows in stored.blocks():
        lengths = np.sqrt(np.square(rows).sum(axis=1))
        units = rows[lengths > 0] / lengths[lengths > 0, np.newaxis]
        vectors, count = vectors + len(chunks), count + len(units)
        total += units.sum(axis=0)
        squares += units.T @ units
    possible = min(max(count - 1, 0), stored.dim)
    mean_cosine = first = effective = redundant = None
    if count > 1:
        mean_cosine = float((total @ total - count) / (count * (count - 1)))
        redundant = (near.all_redundant - near.text_redundant) / count
        spread = np.linalg.eigvalsh(squares / count - np.outer(total, total) / count**2)
        spread = np.maximum(spread, 0.0)
        if spread[-1] > stored.dim * np.finfo(np.float64).eps:  # else all are one vector
            first = float(spread[-1] / spread.sum())
            effective = float(spread.sum() ** 2 / np.square(spread).sum())
    reasons = {
        "direction": mean_cosine is not None and mean_cosine >= MOST_COSINE,
        "dimensions": effective is not None and effective < LEAST_DIMENSIONS * possible,
        "redundant": redundant is not None and redundant >= MOST_REDUNDANT,
    }
    return CollapseReport(
        encoder=index.settings.encoder,
        vectors=vectors,
        zero_vectors=vectors - count,
        dimensions=stored.dim,
        possible_dimensions=possible,
        mean_cosine=mean_cosine,
        first_direction=first,
        effective_dimensions=effective,
        redundant=redundant,
        near=near,
        collapsed=any(reasons.values()),
        reasons=tuple(reason for reason, holds in reasons.items() if holds),
    )
