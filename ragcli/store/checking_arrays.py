"""What the arrays of one segment must be, whatever the catalogue says: type, order, range, sums,
and for vectors finite numbers of the right length.

Knows the shapes that `lexical.Postings` and `vectors.write_vectors` state; reads a block at a
time. Each check raises IndexDamaged at the first thing that cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragcli.errors import IndexDamaged
from ragcli.store.segments import Segment
from ragcli.store.vectors import FILE, Vectors

_BLOCK = 1 << 20
_VECTORS = 4096
_MOST = np.iinfo(np.uint16).max
"""Where counts are capped."""

_OFF = 0.01
"""How far from 1 the norm of a unit vector may be: an encoder need not allow in its factors for
the rounding of its codes. Ragcli's own do, to a millionth."""

_WHOLE = 1e-3
"""How far from a whole number FAISS may give a code back."""

Chunks = NDArray[np.int64]


class Shape(NamedTuple):
    """What the vectors of one index share: columns, and whether the corpus weights them."""

    dim: int
    weighted: bool


def check_postings(segment: Segment, rows: int) -> tuple[Chunks, Chunks]:
    """(chunks, documents) of the `rows` rows of a segment of postings."""
    chunks = _check_chunks(segment, rows)
    documents = _array(segment, "documents", np.int64, rows)
    _check_names(segment)
    _check_occurrences(segment, rows)
    return chunks, documents


def _array(
    segment: Segment, key: str, kind: type[np.generic], size: int | None = None
) -> NDArray[Any]:
    if key not in segment:
        raise IndexDamaged(f"{segment.name}/{key}.npy is no part of its segment")
    array = segment.array(key)
    if array.ndim != 1 or array.dtype != kind:
        raise IndexDamaged(
            f"{segment.name}/{key}.npy holds {array.dtype} in {array.ndim} dimensions,"
            f" not {np.dtype(kind)} in one"
        )
    if size is not None and len(array) != size:
        raise IndexDamaged(f"{segment.name}/{key}.npy holds {len(array):,} numbers, not {size:,}")
    return array


def _check_chunks(segment: Segment, rows: int) -> Chunks:
    chunks = _array(segment, "chunks", np.int64, rows)
    if not (chunks[1:] > chunks[:-1]).all():
        raise IndexDamaged(f"{segment.name}/chunks.npy is not in ascending order")
    return chunks


def _check_ends(segment: Segment, key: str, last: int, what: str) -> NDArray[np.int64]:
    """An array that begins at 0, ascends, none equal, and ends at `last`: where each thing ends."""
    ends = _array(segment, key, np.int64)
    if not len(ends) or ends[0] != 0 or ends[-1] != last or not (ends[1:] > ends[:-1]).all():
        raise IndexDamaged(f"{segment.name}/{key}.npy does not divide {what}")
    return ends


def _check_names(segment: Segment) -> None:
    blob = _array(segment, "names", np.uint8)
    ends = _check_ends(segment, "name_ends", len(blob), "the names of terms")
    every, before = memoryview(blob), b""  # type: ignore[arg-type]
    for start in range(0, len(ends) - 1, _BLOCK):
        for a, b in pairwise(ends[start : start + _BLOCK + 1].tolist()):
            name = bytes(every[a:b])
            try:
                name.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError as error:
                raise IndexDamaged(f"{segment.name}/names.npy holds what is no UTF-8") from error
            if name <= before:
                raise IndexDamaged(f"{segment.name}/names.npy is not in ascending order")
            before = name


def _check_occurrences(segment: Segment, size: int) -> None:
    """Which rows hold each term, how often, and the lengths of the rows that this adds up to."""
    terms = len(segment.array("name_ends")) - 1
    rows = _array(segment, "rows", np.uint32)
    counts = _array(segment, "counts", np.uint16, len(rows))
    lengths = _array(segment, "lengths", np.uint32, size)
    starts = _check_ends(segment, "starts", len(rows), "the rows of terms")
    if len(starts) != terms + 1:
        raise IndexDamaged(f"{segment.name}/starts.npy is not for the {terms:,} terms there are")
    total = np.zeros(size, np.int64)
    capped = np.zeros(size, bool)
    for start in range(0, len(rows), _BLOCK):
        some, often = rows[start : start + _BLOCK], counts[start : start + _BLOCK]
        if int(some.max()) >= size:
            raise IndexDamaged(f"{segment.name}/rows.npy names a row beyond the last, {size - 1}")
        if not often.all():
            raise IndexDamaged(f"{segment.name}/counts.npy counts a term that does not stand there")
        total += np.bincount(some, often, size).astype(np.int64)
        capped[some[often == _MOST]] = True
        # The last row of the block before belongs to this comparison.
        at = max(start - 1, 0)
        near = rows[at : start + _BLOCK]
        descents = np.flatnonzero(near[1:] <= near[:-1]) + at + 1
        if (starts[starts.searchsorted(descents)] != descents).any():
            raise IndexDamaged(f"{segment.name}/rows.npy is not in ascending order within a term")
    if (np.where(capped, total > lengths, total != lengths)).any():
        raise IndexDamaged(f"{segment.name}/lengths.npy is not the sum of the counts of each row")


def check_vectors(
    segment: Segment, rows: int, shape: Shape | None, *, unit: bool
) -> tuple[Chunks, Shape]:
    """(chunks, shape) of a segment of vectors with `rows` rows.

    `shape`: what it must be, None for any. `unit`: rows that are not 0 throughout have length 1.
    """
    chunks = _check_chunks(segment, rows)
    vectors = Vectors(segment, np.empty(0, np.int64))
    index = vectors.index
    found = Shape(index.d, "factors" not in segment)
    if shape and shape != found:
        raise IndexDamaged(f"{segment.name} has {_told(found)} where {_told(shape)} should be")
    if not _is_ours(index, found):
        raise IndexDamaged(f"{segment.name}/{FILE} is of a kind that ragcli does not write")
    if found.weighted:
        _check_counts(segment, index)
    else:
        _check_scaled(segment, index, unit=unit)
    return chunks, found


def _is_ours(index: Any, shape: Shape) -> bool:
    """Whether `write_vectors` makes such an index of such vectors."""
    import faiss

    if index.metric_type != faiss.METRIC_INNER_PRODUCT:
        return False
    if isinstance(index, faiss.IndexFlat):
        return shape.weighted
    quantizer = faiss.ScalarQuantizer
    kind = quantizer.QT_8bit_direct if shape.weighted else quantizer.QT_8bit_uniform
    return isinstance(index, faiss.IndexScalarQuantizer) and index.sq.qtype == kind


def _told(shape: Shape) -> str:
    return f"{'counts' if shape.weighted else 'vectors'} of {shape.dim:,} columns"


def _blocks(segment: Segment, index: Any) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """The codes, as float32 (n, dim), and which rows they are."""
    for start in range(0, index.ntotal, _VECTORS):
        size = min(_VECTORS, index.ntotal - start)
        codes = index.reconstruct_n(start, size)
        if not np.isfinite(codes).all():
            raise IndexDamaged(f"{segment.name}/{FILE} holds what is no number")
        if np.abs(codes - np.rint(codes)).max(initial=0.0) > _WHOLE:
            raise IndexDamaged(f"{segment.name}/{FILE} holds what is no whole number")
        yield slice(start, start + size), codes


def _check_counts(segment: Segment, index: Any) -> None:
    """Rows of counts, and how many rows have each column."""
    frequencies = _array(segment, "frequencies", np.int64, index.d)
    found = np.zeros(index.d, np.int64)
    for _, codes in _blocks(segment, index):
        if codes.min(initial=0.0) < 0:
            raise IndexDamaged(f"{segment.name}/{FILE} holds counts below 0")
        found += np.count_nonzero(codes, axis=0)
    if (found != frequencies).any():
        raise IndexDamaged(f"{segment.name}/frequencies.npy is not what a count of the rows gives")


def _check_scaled(segment: Segment, index: Any, *, unit: bool) -> None:
    """Rows with a factor each."""
    factors = _array(segment, "factors", np.float32, index.ntotal)
    if not np.isfinite(factors).all():
        raise IndexDamaged(f"{segment.name}/factors.npy holds what is no number")
    for rows, codes in _blocks(segment, index):
        norms = np.sqrt(np.einsum("ij,ij->i", codes, codes))
        something = norms > 0.5
        some, lengths = factors[rows][something], norms[something]
        if (factors[rows] < 0).any() or not some.all():
            raise IndexDamaged(f"{segment.name}/factors.npy holds a factor that is not above 0")
        if unit and (np.abs(some * lengths - 1.0) > _OFF).any():
            raise IndexDamaged(f"{segment.name} holds a vector whose length is not 1")
