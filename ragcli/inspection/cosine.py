"""The stored vectors in float64, and the cosine of any two of them.

What `neighbors`, `duplicates` and `hubs` share. Questions are scored by `store.vectors`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ragcli.errors import UsageError
from ragcli.store.index import Index
from ragcli.store.matrix import column_weights

_BLOCK = 8192

Ids = NDArray[np.int64]
Rows = NDArray[np.float64]


def check_vectors(index: Index, wanted: str) -> None:
    """Raises UsageError where no chunk of the index has a vector; `wanted` needs them."""
    if index.settings.encoder == "none":
        raise UsageError(
            f"{wanted} need vectors, and this index was made with --encoder none",
            "ragcli index --encoder minilm",
        )
    chunks, embedded = index.counts()
    if not embedded:
        raise UsageError(
            f"{wanted} need vectors, and none of the {chunks:,} passages has one yet"
            if chunks
            else f"{wanted} need passages, and the index has none",
            "ragcli index   (makes the vectors that are missing)"
            if chunks
            else "ragcli inspect --problems   (which files were left out, and why)",
        )


class StoredVectors:
    """The live vectors of an open index, weighted as questions meet them, of any length.

    A neural encoder's are its whole numbers alone, without the row's factor, so that the
    products of two of them are exact. Raises IndexUnavailable in its kinds.
    """

    def __init__(self, index: Index) -> None:
        self._segments = index.view(scoring=True).vectors
        self._weights = column_weights(self._segments)

    @property
    def dim(self) -> int:
        """Columns of a row, 0 where there is none."""
        return int(self._segments[0].index.d) if self._segments else 0

    def blocks(self) -> Iterator[tuple[Ids, Rows]]:
        """(chunks, int64 (n,); their rows, float64 (n, dim)) of all live chunks, in no order."""
        for segment in self._segments:
            rows = segment.kept()
            for start in range(0, len(rows), _BLOCK):
                some = rows[start : start + _BLOCK]
                yield segment.chunks[some], self._scaled(segment.encoded(some).codes)

    def rows(self, chunks: Ids) -> Rows:
        """The rows of `chunks`, float64 (len(chunks), dim); zeros for one without a vector."""
        found = np.zeros((len(chunks), self.dim))
        for segment in self._segments:
            at = segment.find(chunks)
            here = np.flatnonzero(at >= 0)
            if len(here):
                found[here] = self._scaled(segment.encoded(at[here]).codes)
        return found

    def _scaled(self, codes: NDArray[np.generic]) -> Rows:
        rows = codes.astype(np.float64)
        return rows if self._weights is None else rows * self._weights


def cosines(first: Rows, second: Rows) -> NDArray[np.float64]:
    """The cosine of each row of `first` with that of `second`: float64 (n,).

    0 where one of them is zeros; exactly 1 of equal rows. Either may be a single row.
    """
    dots = (first * second).sum(axis=-1)
    # One root of the product: of x · x it is x to the last digit.
    lengths = np.sqrt(np.square(first).sum(axis=-1) * np.square(second).sum(axis=-1))
    return np.asarray(np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0))
