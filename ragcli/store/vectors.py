"""Vectors of one segment's rows in FAISS, and the dot product with a question.

FAISS holds a row's whole numbers (counts per bucket for `hash`), one byte each where they fit,
in a flat index that is memory-mapped and needs no training; a row never depends on another.
The vector of a row is those numbers times the column weights (idf for `hash`, which follows
the corpus as it is now), divided by its L2 norm where the encoder normalises. FAISS finds the
candidates; their scores are then computed by one formula in float64, so that they do not
depend on how rows are spread over segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcli.errors import IndexDamaged
from ragcli.store.segments import Segment, write_segment

FILE = "vectors.faiss"
_BLOCK = 8192
_FEW = 4
_WORTH_THREADS = 1 << 26
_SLACK = 1e-4
"""Candidates this close below the k-th in float32 are scored again in float64."""

Vector = NDArray[np.float64]


def write_vectors(folder: Path, codes: NDArray[np.unsignedinteger[Any]]) -> tuple[str, str]:
    """Write `codes`, (rows, dim) whole numbers, as a segment; returns (name, checksum)."""
    import faiss

    rows, dim = codes.shape
    if int(codes.max(initial=0)) <= np.iinfo(np.uint8).max:
        index: Any = faiss.IndexScalarQuantizer(
            dim, faiss.ScalarQuantizer.QT_8bit_direct, faiss.METRIC_INNER_PRODUCT
        )
    else:
        index = faiss.IndexFlatIP(dim)
    for start in range(0, rows, _BLOCK):
        index.add(np.ascontiguousarray(codes[start : start + _BLOCK], np.float32))
    return write_segment(
        folder,
        "v",
        {"frequencies": np.count_nonzero(codes, axis=0).astype(np.int64)},
        {FILE: lambda path: path.write_bytes(faiss.serialize_index(index).data)},
    )


class Vectors:
    """The vectors of `rows` rows, opened by memory map."""

    def __init__(self, segment: Segment) -> None:
        """Raises IndexDamaged where FAISS cannot read the file."""
        import faiss

        self.segment = segment
        try:
            index: Any = faiss.read_index(
                str(segment.path / FILE), faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_READ_ONLY
            )
        except RuntimeError as error:
            raise IndexDamaged(
                f"{segment.name}/{FILE} of the index cannot be read", "ragcli index"
            ) from error
        self._index = index
        self._known_norms: tuple[Vector, NDArray[np.float32]] | None = None
        self.rows: int = index.ntotal
        self.dim: int = index.d
        kind = np.float32 if isinstance(index, faiss.IndexFlat) else np.uint8
        raw: Any = faiss.rev_swig_ptr(
            index.codes.data(), self.rows * self.dim * np.dtype(kind).itemsize
        )
        self._codes = raw.view(kind).reshape(self.rows, self.dim)

    def codes(self, rows: NDArray[np.intp]) -> NDArray[np.unsignedinteger[Any]]:
        """The whole numbers of `rows`, (len(rows), dim)."""
        kind = np.uint8 if self._codes.dtype == np.uint8 else np.uint16
        return np.asarray(self._codes[rows], kind)

    def frequencies(self, dead: NDArray[np.intp]) -> NDArray[np.int64]:
        """How many rows, `dead` ones left out, have a non-zero in each column: int64 (dim,)."""
        every = np.asarray(self.segment.array("frequencies"), np.int64)
        return np.asarray(every - np.count_nonzero(self._codes[dead], axis=0))

    def _norms(self, weights: Vector, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """The L2 norm of each of `rows`, weighted, near enough to choose candidates by.

        Where many are asked for, all are worked out, and kept for the next question.
        """
        if len(rows) < self.rows // _FEW:
            return _row_norms(self._codes[rows], weights)
        known = self._known_norms
        if known is None or not np.array_equal(known[0], weights):
            known = self._known_norms = (weights, _row_norms(self._codes, weights))
        return known[1][rows]

    def search(
        self,
        question: Vector,
        weights: Vector,
        k: int,
        *,
        normalise: bool,
        allowed: NDArray[np.bool_] | None,
    ) -> tuple[NDArray[np.intp], Vector]:
        """Rows that may be among the best k, with their exact scores; more than k on near ties.

        `question` is unweighted (dim,); `allowed` (rows,) says which rows count, None for all.
        Rows that share no column with the question are never candidates.
        """
        weighted = np.ascontiguousarray(
            question * np.square(weights) / _scale(question, weights, normalise), np.float32
        )
        with _threads(self.rows * self.dim):
            _, scores, rows = self._index.range_search(weighted[np.newaxis], 0.0)
        rows = rows.astype(np.intp)
        if allowed is not None:
            kept = allowed[rows]
            rows, scores = rows[kept], scores[kept]
        if normalise:
            scores = scores / np.maximum(self._norms(weights, rows), np.finfo(np.float32).tiny)
        if len(rows) > k:
            least = np.partition(scores, len(scores) - k)[len(scores) - k]
            rows = rows[scores >= least - _SLACK * abs(float(least))]
        rows = np.sort(rows)
        return rows, self.score(question, weights, rows, normalise=normalise)

    def score(
        self, question: Vector, weights: Vector, rows: NDArray[np.intp], *, normalise: bool
    ) -> Vector:
        """The dot product of the question with each of `rows`, float64 (len(rows),)."""
        vectors = self.codes(rows) * weights
        scores = (vectors * (question * weights)).sum(axis=1)
        if normalise:
            norms = np.sqrt(np.square(vectors).sum(axis=1))
            scores = scores / np.where(norms > 0, norms, 1.0)
        return np.asarray(scores / _scale(question, weights, normalise))


@contextmanager
def _threads(size: int) -> Iterator[None]:
    """One thread for a scan that is over before a second has started."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1 if size < _WORTH_THREADS else before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _row_norms(codes: NDArray[Any], weights: Vector) -> NDArray[np.float32]:
    squared = np.square(weights).astype(np.float32)
    norms = np.empty(len(codes), np.float32)
    for start in range(0, len(codes), _BLOCK):
        block = codes[start : start + _BLOCK].astype(np.float32)
        np.square(block, out=block)
        norms[start : start + _BLOCK] = np.sqrt(block @ squared)
    return norms


def _scale(question: Vector, weights: Vector, normalise: bool) -> float:
    """The norm of the weighted question, 1 where nothing is normalised or nothing is there."""
    norm = float(np.sqrt(np.square(question * weights).sum())) if normalise else 1.0
    return norm or 1.0


def idf_weights(frequencies: NDArray[np.int64], chunks: int) -> Vector:
    """ln((N + 1) / (df + 1)) + 1 per column, float64 (dim,)."""
    return np.log((chunks + 1) / (frequencies + 1)) + 1.0
