"""Vectors in FAISS, by chunk, and the two ways in which they score a question.

FAISS holds a row's whole numbers, one byte each where they fit, in a flat index that is
memory-mapped and needs no training; a row never depends on another. It finds the candidates;
their scores are then computed by one formula in float64, row by row, so that they do not depend
on how rows are spread over segments.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ragcli.encoders import Encoded
from ragcli.errors import IndexDamaged
from ragcli.store.rows import OpenRows
from ragcli.store.segments import write_segment

FILE = "vectors.faiss"
_KINDS = (b"IxSQ", b"IxFI")
"""What a file begins with that `write_vectors` wrote."""

_BLOCK = 8192
_FEW = 4
_MORE = 28
"""Fetched beyond k at first, so that one pass is the rule."""

_GROW = 4
_SLACK = 1e-4
"""Candidates this close below the k-th in float32 are scored again in float64."""

_CACHED = 256
"""Rows made into float32 at a time: a core's cache holds them."""

_SIGN = 128
_SIGNED_RANGE = (-_SIGN - 0.5, 255.0)
"""Lowest value and width under which `QT_8bit_uniform` holds each int8 exactly, as code − 128.
`QT_8bit_direct_signed` is not used: where 16 divides the dimension, FAISS' `search` over it (and
over `QT_8bit_direct`) rounds the question to whole numbers, and reads the codes as unsigned."""

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]


def write_vectors(folder: Path, chunks: NDArray[np.int64], encoded: Encoded) -> tuple[str, str]:
    """Write the vectors of `chunks`, in any order, as a segment; returns (name, checksum)."""
    import faiss

    order = np.argsort(chunks)
    rows = encoded.take(order)
    index = _empty_index(rows.codes)
    for start in range(0, len(chunks), _BLOCK):
        index.add(np.ascontiguousarray(rows.codes[start : start + _BLOCK], np.float32))
    beside: dict[str, NDArray[Any]] = (
        {"frequencies": np.count_nonzero(rows.codes, axis=0).astype(np.int64)}
        if rows.factors is None
        else {"factors": rows.factors.astype(np.float32)}
    )
    return write_segment(
        folder,
        "v",
        {"chunks": chunks[order], **beside},
        {FILE: lambda path: path.write_bytes(faiss.serialize_index(index).data)},
    )


def _empty_index(codes: NDArray[Any]) -> Any:
    import faiss

    dim = codes.shape[1]
    if codes.dtype == np.int8:
        kind = faiss.ScalarQuantizer.QT_8bit_uniform
        index: Any = faiss.IndexScalarQuantizer(dim, kind, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(np.array(_SIGNED_RANGE, np.float32), index.sq.trained)
        index.is_trained = True
        return index
    if int(codes.max(initial=0)) <= np.iinfo(np.uint8).max:
        kind = faiss.ScalarQuantizer.QT_8bit_direct
        return faiss.IndexScalarQuantizer(dim, kind, faiss.METRIC_INNER_PRODUCT)
    return faiss.IndexFlatIP(dim)


class Scoring(Protocol):
    """How one question scores vectors."""

    def score(self, encoded: Encoded) -> Vector:
        """The dot product of the question with each row, float64 (n,)."""
        ...

    def search(self, vectors: Vectors, k: int, may: Mask | None) -> tuple[Rows, Vector]:
        """Rows that may be among the best k, with their scores; more than k on near ties.

        `may`, bool (rows,), says which rows count, None for all.
        """
        ...

    def near(self, vectors: Vectors) -> tuple[Vector, float]:
        """(the score of every row, float64 (rows,), as float32 has it; how far it may be off)."""
        ...


class Vectors(OpenRows):
    """A segment of vectors. Opening maps the chunks alone; FAISS is loaded when it is needed."""

    @cached_property
    def index(self) -> Any:
        """The FAISS index. Raises IndexDamaged where FAISS cannot read the file."""
        import faiss

        # FAISS scans for one question in one thread; waking others takes as long as the scan.
        faiss.omp_set_num_threads(1)
        broken = IndexDamaged(
            f"{self.segment.name}/{FILE} of the index cannot be read",
            "ragcli index --full   (checks every part and makes it again)",
        )
        # FAISS can read kinds that open further files, which a stranger's may name.
        path = self.segment.path / FILE
        try:
            if FILE not in self.segment.files or _kind(path) not in _KINDS:
                raise broken
            index: Any = faiss.read_index(
                str(path), faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_READ_ONLY
            )
        except (RuntimeError, MemoryError, OSError) as error:  # OSError: a writer swept it
            raise broken from error
        wide = np.dtype(np.float32 if isinstance(index, faiss.IndexFlat) else np.uint8).itemsize
        if index.ntotal != self.rows or index.codes.size() != self.rows * index.d * wide:
            raise broken
        return index

    @cached_property
    def _codes(self) -> NDArray[Any]:
        """FAISS' own bytes or floats, (rows, dim)."""
        import faiss

        kind = np.float32 if isinstance(self.index, faiss.IndexFlat) else np.uint8
        size = self.rows * self.index.d * np.dtype(kind).itemsize
        raw: Any = faiss.rev_swig_ptr(self.index.codes.data(), size)
        array: NDArray[Any] = raw.view(kind).reshape(self.rows, self.index.d)
        return array

    @cached_property
    def factors(self) -> NDArray[np.float32] | None:
        """The factor of each row, float32 (rows,), None where the corpus weights the columns."""
        if "factors" not in self.segment:
            return None
        return np.asarray(self.segment.array("factors"), np.float32)

    @cached_property
    def _columns(self) -> NDArray[np.int64]:
        return np.asarray(self.segment.array("frequencies"), np.int64)

    def load(self) -> None:
        """Open all that scoring needs, so that a later sweep takes nothing away."""
        _ = (self._codes, self._columns if self.factors is None else self.factors)

    def encoded(self, rows: Rows) -> Encoded:
        """The rows as they were encoded."""
        codes = self._codes[rows]
        if self.factors is not None:
            return Encoded((codes ^ _SIGN).view(np.int8), self.factors[rows])
        return Encoded(codes.astype(np.uint16) if codes.dtype == np.float32 else codes, None)

    def frequencies(self) -> NDArray[np.int64]:
        """How many live rows have a non-zero in each column: int64 (dim,)."""
        dead = np.count_nonzero(self._codes[self.dead_rows], axis=0)
        return np.asarray(self._columns - dead)

    def score(self, scoring: Scoring, rows: Rows) -> Vector:
        """The score of each of `rows`, float64 (len(rows),)."""
        blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
        return np.concatenate(
            [np.empty(0), *(scoring.score(self.encoded(block)) for block in blocks)]
        )

    def nearest(self, question: Vector, k: int, may: Mask | None) -> tuple[Rows, Vector]:
        """The k rows with the largest codes · question, in float32, best first."""
        import faiss

        library: Any = faiss  # its stubs have the C++ signatures
        chosen = None
        if may is not None:
            bits = np.packbits(may, bitorder="little")
            chosen = library.SearchParameters(sel=library.IDSelectorBitmap(bits))
        wanted = np.ascontiguousarray(question[np.newaxis], np.float32)
        dots, rows = self.index.search(wanted, k, params=chosen)
        return rows[0].astype(np.intp), dots[0].astype(np.float64)

    def beyond(self, question: Vector, least: float) -> tuple[Rows, NDArray[np.float32]]:
        """Every row with codes · question above `least`, in float32, and that product."""
        wanted = np.ascontiguousarray(question[np.newaxis], np.float32)
        _, dots, rows = self.index.range_search(wanted, least)
        return rows.astype(np.intp), dots

    def products(self, question: Vector) -> NDArray[np.float32]:
        """codes · question of every row, float32 (rows,)."""
        wanted = question.astype(np.float32)
        zero = np.float32(_SIGN) * wanted.sum() if self._codes.dtype == np.uint8 else np.float32(0)
        products = np.empty(self.rows, np.float32)
        block = np.empty((_CACHED, self._codes.shape[1]), np.float32)
        for start in range(0, self.rows, _CACHED):
            codes = self._codes[start : start + _CACHED]
            np.copyto(block[: len(codes)], codes)
            products[start : start + _CACHED] = block[: len(codes)] @ wanted
        return np.asarray(products - zero)

    def count_above(
        self, scoring: Scoring, score: float, near: Vector, slack: float, may: Mask | None
    ) -> int:
        """How many rows that count score higher than `score`; `near`, `slack`: Scoring.near's."""
        if may is not None:
            near = np.where(may, near, -np.inf)
        exact = self.score(scoring, np.flatnonzero(np.abs(near - score) <= slack))
        return int(np.count_nonzero(near > score + slack) + np.count_nonzero(exact > score))

    def norms(self, weights: Vector, rows: Rows) -> NDArray[np.float32]:
        """The L2 norm of each of `rows`, weighted, near enough to choose candidates by.

        Where many are asked for, all are worked out, and kept for the next question.
        """
        if len(rows) < self.rows // _FEW:
            return _row_norms(self._codes[rows], weights)
        known: tuple[Vector, NDArray[np.float32]] | None = self.__dict__.get("_known_norms")
        if known is None or not np.array_equal(known[0], weights):
            known = self.__dict__["_known_norms"] = (weights, _row_norms(self._codes, weights))
        return known[1][rows]


class Plain:
    """(codes · question) · factor: what a neural encoder's vectors score."""

    def __init__(self, question: Vector) -> None:
        self._question = question
        # float32 is off by a share of what the product of such a question could be at most.
        self._slack = _SLACK * _SIGN * float(np.sqrt(len(question) * np.square(question).sum()))

    def score(self, encoded: Encoded) -> Vector:
        """The dot product of the question with each row, float64 (n,)."""
        codes = np.ascontiguousarray(encoded.codes)  # NumPy sums another layout in another order
        return np.asarray((codes * self._question).sum(axis=1) * encoded.factors)

    def search(self, vectors: Vectors, k: int, may: Mask | None) -> tuple[Rows, Vector]:
        """Rows that may be among the best k, with their scores.

        FAISS orders by the product without the factor. A row that it did not fetch has a product
        of at most the last fetched one, and so a score of at most that times a factor; more are
        fetched until the k-th score is above it.
        """
        count = vectors.rows if may is None else int(np.count_nonzero(may))
        factors = vectors.factors
        assert factors is not None
        wanted = k + _MORE
        while wanted < count:
            rows, dots = vectors.nearest(self._question, wanted, may)
            scores = vectors.score(self, rows)
            most = dots[-1] + self._slack
            bound = max(most * float(factors.min()), most * float(factors.max()))
            if np.partition(scores, -k)[-k] > bound:
                return rows, scores
            wanted *= _GROW
        rows = np.arange(vectors.rows) if may is None else np.flatnonzero(may)
        return rows, vectors.score(self, rows)

    def near(self, vectors: Vectors) -> tuple[Vector, float]:
        """(the score of every row, float64 (rows,), as float32 has it; how far it may be off)."""
        factors = vectors.factors
        assert factors is not None
        near = np.asarray(vectors.products(self._question), np.float64) * factors
        return near, self._slack * float(factors.max(initial=0.0))


class Weighted:
    """The columns weighted by the corpus as it is now; the cosine of that, if normalised.

    Rows that share no column with the question are never candidates.
    """

    def __init__(self, question: Vector, weights: Vector, *, normalise: bool) -> None:
        """`question` is unweighted, (dim,); `weights` (dim,)."""
        self._weights = weights
        self._normalise = normalise
        self._question = question * weights
        # The norm of the weighted question, 1 where nothing is normalised or nothing is there.
        norm = float(np.sqrt(np.square(self._question).sum())) if normalise else 1.0
        self._scale = norm or 1.0

    def score(self, encoded: Encoded) -> Vector:
        """The dot product of the question with each row, float64 (n,)."""
        vectors = encoded.codes * self._weights
        scores = (vectors * self._question).sum(axis=1)
        if self._normalise:
            norms = np.sqrt(np.square(vectors).sum(axis=1))
            scores = scores / np.where(norms > 0, norms, 1.0)
        return np.asarray(scores / self._scale)

    def search(self, vectors: Vectors, k: int, may: Mask | None) -> tuple[Rows, Vector]:
        """Rows that may be among the best k, with their scores."""
        rows, near = self._near(vectors, may)
        if len(rows) > k:
            least = np.partition(near, len(near) - k)[len(near) - k]
            rows = rows[near >= least - _SLACK * abs(float(least))]
        rows = np.sort(rows)
        return rows, vectors.score(self, rows)

    def near(self, vectors: Vectors) -> tuple[Vector, float]:
        """(the score of every row, float64 (rows,), as float32 has it; how far it may be off)."""
        near = np.zeros(vectors.rows)
        rows, scores = self._near(vectors, None)
        near[rows] = scores
        return near, _SLACK * float(near.max(initial=0.0))

    def _near(self, vectors: Vectors, may: Mask | None) -> tuple[Rows, Vector]:
        """Every row that counts and scores above 0, with its score as float32 has it."""
        rows, dots = vectors.beyond(self._question * self._weights / self._scale, 0.0)
        if may is not None:
            kept = may[rows]
            rows, dots = rows[kept], dots[kept]
        if self._normalise:
            dots = dots / np.maximum(vectors.norms(self._weights, rows), np.finfo(np.float32).tiny)
        return rows, np.asarray(dots, np.float64)


def _row_norms(codes: NDArray[Any], weights: Vector) -> NDArray[np.float32]:
    squared = np.square(weights).astype(np.float32)
    norms = np.empty(len(codes), np.float32)
    for start in range(0, len(codes), _BLOCK):
        block = codes[start : start + _BLOCK].astype(np.float32)
        np.square(block, out=block)
        norms[start : start + _BLOCK] = np.sqrt(block @ squared)
    return norms


def _kind(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def idf_weights(frequencies: NDArray[np.int64], chunks: int) -> Vector:
    """ln((N + 1) / (df + 1)) + 1 per column, float64 (dim,)."""
    return np.log((chunks + 1) / (frequencies + 1)) + 1.0
