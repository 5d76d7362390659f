"""Vectors as whole numbers of one byte. A row depends on its own vector alone.

Knows no texts and no files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragcli.encoders.encoded import Encoded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STEPS = 22.0
"""Root mean square of a quantised row: one byte holds 5.8 times that, and hardly one in
thousands of MiniLM's vectors has an element beyond; so nearly all rows have the same norm, and
FAISS can rank them by their whole numbers."""


def quantise(vectors: NDArray[np.floating[Any]], *, normalise: bool) -> Encoded:
    """`vectors`, (n, dim), as int8 codes and one factor per row.

    With `normalise` the vectors that the codes stand for have length 1; else they keep the
    length they came with. A row of zeros stays one.
    """
    import numpy as np

    rows = np.asarray(vectors, np.float64)
    lengths = np.sqrt(np.square(rows).sum(axis=1))
    largest = np.abs(rows).max(axis=1, initial=0.0)
    there = lengths > 0
    steps = np.zeros(len(rows))
    steps[there] = np.minimum(
        _STEPS * np.sqrt(rows.shape[1]) / lengths[there], 127.0 / largest[there]
    )
    codes = np.rint(rows * steps[:, np.newaxis]).astype(np.int8)
    norms = np.sqrt(np.square(codes.astype(np.float64)).sum(axis=1))
    wanted = np.ones(len(rows)) if normalise else lengths
    factors = np.divide(wanted, norms, out=np.zeros(len(rows)), where=norms > 0)
    return Encoded(codes, factors.astype(np.float32))
