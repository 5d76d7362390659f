"""Every live vector at once, as questions meet it: for looking at an index as a whole.

Questions themselves never need this: they score from the mapped codes (`vectors`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragcli.store.index import Index
from ragcli.store.vectors import Vectors, idf_weights

_BLOCK = 8192


def column_weights(vectors: Sequence[Vectors]) -> NDArray[np.float64] | None:
    """What the corpus weights each column by, float64 (dim,); None where it does not."""
    if not vectors or vectors[0].factors is not None:
        return None
    frequencies = np.sum([segment.frequencies() for segment in vectors], axis=0)
    return idf_weights(frequencies, sum(segment.live_rows for segment in vectors))


def matrix(
    index: Index, *, normalise: bool | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """(chunks ascending, int64 (n,); their vectors, float32 (n, dim)).

    Where the corpus weights the columns, a row is weighted, and of length 1 where `normalise`
    (None: as the index has it) says so; else it is as the encoder gave it. Takes 4 · n · dim
    bytes. Raises IndexUnavailable in its kinds.
    """
    vectors = index.view(scoring=True).vectors
    kept = [segment.kept() for segment in vectors]
    chunks = np.concatenate(
        [np.empty(0, np.int64), *(s.chunks[rows] for s, rows in zip(vectors, kept, strict=True))]
    )
    order = np.argsort(chunks)
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    weights = column_weights(vectors)
    unit = index.settings.normalise if normalise is None else normalise
    rows_of_all = np.empty((len(chunks), vectors[0].index.d if vectors else 0), np.float32)
    done = 0
    for segment, rows in zip(vectors, kept, strict=True):
        for start in range(0, len(rows), _BLOCK):
            encoded = segment.encoded(rows[start : start + _BLOCK])
            block = encoded.codes.astype(np.float32)
            if weights is None:
                assert encoded.factors is not None
                block *= encoded.factors[:, np.newaxis]
            else:
                block *= weights.astype(np.float32)
                if unit:
                    norms = np.sqrt(np.square(block).sum(axis=1, keepdims=True))
                    block /= np.where(norms > 0, norms, 1.0)
            rows_of_all[place[done : done + len(block)]] = block
            done += len(block)
    return chunks[order], rows_of_all
