"""Postings as NumPy arrays, and BM25 over them.

Owns the shape of a postings segment, how segments are counted, cut and merged, and the
formula. Does not know files (`segments`), words (`terms`) or the catalogue: rows are numbers.

BM25 with Lucene's idf (Robertson & Zaragoza 2009; Kamphuis et al. 2020, "Lucene"):
    idf(t)   = ln(1 + (N − df + ½) / (df + ½))
    share(t) = idf(t) · tf / (tf + k1 · (1 − b + b · length / mean length))
N, df and the mean length count live chunks only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75

Rows = NDArray[np.uint32]
Counts = NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Postings:
    """Who holds what: term i stands in rows[starts[i]:starts[i + 1]], counts alongside.

    `names`: T terms ascending by code point (and so by UTF-8 byte). `starts`: int64 (T + 1,).
    `rows`: uint32 (P,), ascending within a term. `counts`: uint16 (P,), capped at 65,535.
    `lengths`: uint32 (R,), the number of term occurrences of each row.
    """

    names: Sequence[str]
    starts: NDArray[np.int64]
    rows: Rows
    counts: Counts
    lengths: NDArray[np.uint32]

    @classmethod
    def count(
        cls, names: Sequence[str], terms: NDArray[np.int64], rows: NDArray[np.int64], size: int
    ) -> Postings:
        """From occurrences: `terms` (indices into `names`, every name used) and `rows`."""
        lengths = np.bincount(rows, minlength=size).astype(np.uint32)
        keys, counts = np.unique(terms * max(size, 1) + rows, return_counts=True)
        terms, rows = np.divmod(keys, max(size, 1))
        starts = np.zeros(len(names) + 1, np.int64)
        np.cumsum(np.bincount(terms, minlength=len(names)), out=starts[1:])
        capped = np.minimum(counts, np.iinfo(np.uint16).max).astype(np.uint16)
        return cls(names, starts, rows.astype(np.uint32), capped, lengths)

    @classmethod
    def empty(cls) -> Postings:
        """No rows, no terms."""
        nothing = np.empty(0, np.int64)
        return cls.count([], nothing, nothing, 0)


def combine(parts: Sequence[Postings], rows: Sequence[NDArray[np.int64]], size: int) -> Postings:
    """One Postings of `size` rows out of several.

    `rows[i]` maps each row of `parts[i]` to its new row, or to -1 where it is dropped; new
    rows are distinct. A term that no kept row holds is gone from the names.
    """
    every = [
        part.names.all() if isinstance(part.names, PackedNames) else part.names for part in parts
    ]
    vocabulary = sorted(set().union(*every))
    place = {name: number for number, name in enumerate(vocabulary)}
    terms = [np.fromiter(map(place.__getitem__, names), np.int64, len(names)) for names in every]
    lengths = np.zeros(size, np.uint32)
    held = np.zeros(len(vocabulary), np.int64)
    widths = []
    for part, numbers, target in zip(parts, terms, rows, strict=True):
        kept = target >= 0
        lengths[target[kept]] = part.lengths[kept]
        widths.append(np.diff(np.concatenate([[0], np.cumsum(kept[part.rows])])[part.starts]))
        held[numbers] += widths[-1]
    starts = np.concatenate([[0], np.cumsum(held)]).astype(np.int64)
    free = starts[:-1].copy()
    placed = np.empty(starts[-1], np.uint32)
    counts = np.empty(starts[-1], np.uint16)
    for part, numbers, target, width in zip(parts, terms, rows, widths, strict=True):
        row = target[part.rows]
        live = row >= 0
        at = np.arange(width.sum()) + np.repeat(free[numbers] - np.cumsum(width) + width, width)
        placed[at], counts[at] = row[live], part.counts[live]
        free[numbers] += width
    descents = np.flatnonzero(placed[1:] < placed[:-1]) + 1
    if not np.isin(descents, starts).all():  # the rows of a term came from its parts in turns
        order = np.lexsort((placed, np.repeat(np.arange(len(held)), held)))
        placed, counts = placed[order], counts[order]
    names = [name for name, number in zip(vocabulary, held.tolist(), strict=True) if number]
    return Postings(names, np.concatenate([[0], starts[1:][held > 0]]), placed, counts, lengths)


def drop_rows(postings: Postings, kept: NDArray[np.intp]) -> Postings:
    """`postings` (its names packed) with only the rows `kept`, ascending, numbered anew.

    What `combine` would give, without a vocabulary to sort: for taking a little away.
    """
    place = np.full(len(postings.lengths), -1, np.int64)
    place[kept] = np.arange(len(kept))
    rows = place[postings.rows]
    live = rows >= 0
    ends = np.concatenate([[0], np.cumsum(live)])[postings.starts]
    present = np.diff(ends) > 0
    names = postings.names
    assert isinstance(names, PackedNames)
    return Postings(
        names.select(present),
        np.concatenate([[0], ends[1:][present]]).astype(np.int64),
        rows[live].astype(np.uint32),
        postings.counts[live],
        postings.lengths[kept],
    )


class PackedNames(Sequence[str]):
    """Names as one run of UTF-8 bytes, `blob` uint8, and the T + 1 `offsets` into it, int64.

    Read in place, found by binary search.
    """

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.blob = blob
        self.offsets = offsets
        # Views, for single reads: NumPy takes several times as long to hand out one element.
        self._bytes_of_all = memoryview(blob)  # type: ignore[arg-type]
        self._ends = memoryview(offsets)  # type: ignore[arg-type]

    @classmethod
    def pack(cls, names: Sequence[str]) -> PackedNames:
        """From names, ascending."""
        if isinstance(names, PackedNames):
            return names
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def select(self, mask: NDArray[np.bool_]) -> PackedNames:
        """The names where `mask`, bool (T,), is true."""
        width = np.diff(self.offsets)
        offsets = np.concatenate([[0], np.cumsum(width[mask])]).astype(np.int64)
        return PackedNames(self.blob[np.repeat(mask, width)], offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def _bytes(self, i: int) -> bytes:
        return bytes(self._bytes_of_all[self._ends[i] : self._ends[i + 1]])

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if not 0 <= i < len(self):
            raise IndexError(i)
        return self._bytes(i).decode("utf-8", "surrogatepass")

    def all(self) -> list[str]:
        """Every name at once, for a merge."""
        blob, ends = bytes(self._bytes_of_all), self.offsets.tolist()
        return [blob[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]

    def find(self, name: str) -> int | None:
        """The number of `name`, or None."""
        wanted = name.encode("utf-8", "surrogatepass")
        number = bisect_left(range(len(self)), wanted, key=self._bytes)
        return number if number < len(self) and self._bytes(number) == wanted else None


@dataclass(frozen=True, slots=True)
class Found:
    """Where one word of the question stands in one segment: rows ascending, counts alongside."""

    rows: NDArray[np.intp]
    counts: NDArray[np.int64]

    def count(self, row: int) -> int:
        """How often the word stands in `row`."""
        at = int(self.rows.searchsorted(row))
        return int(self.counts[at]) if at < len(self.rows) and self.rows[at] == row else 0


def find(postings: Postings, variants: Sequence[str], live: NDArray[np.bool_] | None) -> Found:
    """The live rows that hold any of `variants` (one word in its stems), their counts added."""
    names = postings.names
    assert isinstance(names, PackedNames)
    numbers = [number for name in variants if (number := names.find(name)) is not None]
    pieces = [slice(postings.starts[i], postings.starts[i + 1]) for i in numbers]
    if len(pieces) == 1:
        rows = postings.rows[pieces[0]].astype(np.intp)
        counts = postings.counts[pieces[0]].astype(np.int64)
    elif pieces:
        every = np.concatenate([postings.rows[piece] for piece in pieces])
        rows, inverse = np.unique(every.astype(np.intp), return_inverse=True)
        counts = np.zeros(len(rows), np.int64)
        np.add.at(counts, inverse, np.concatenate([postings.counts[piece] for piece in pieces]))
    else:
        rows, counts = np.empty(0, np.intp), np.empty(0, np.int64)
    if live is not None:
        kept = live[rows]
        rows, counts = rows[kept], counts[kept]
    return Found(rows, counts)


def idf(chunks: int, frequency: int) -> float:
    """Lucene's idf of a term that `frequency` of `chunks` live chunks hold."""
    return float(np.log1p((chunks - frequency + 0.5) / (frequency + 0.5)))


def saturation(lengths: NDArray[np.uint32], mean: float) -> NDArray[np.float64]:
    """k1 · (1 − b + b · length / mean length) of each row, float64 (R,)."""
    return np.asarray(K1 * (1.0 - B + B * lengths / (mean or 1.0)), np.float64)
