"""What stands for a chunk in the index: its vector as it scores, and its terms as indexed.

Reads the segments themselves, so that it shows what questions meet and not what the text would
give today. Knows no files and no places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcli.encoders import Encoded, HashingEncoder
from ragcli.encoders.hashing import tokens
from ragcli.inspection.spread import Spread, spread
from ragcli.store.index import Index
from ragcli.store.lexical import find, idf
from ragcli.store.rows import OpenSegment
from ragcli.store.vectors import Vectors, idf_weights

_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the hash encoder: `count` times in the chunk, in column `bucket` of its vector.

    `frequency` is how many chunks have any token of the bucket, `idf` what that makes of it, and
    `weight` the vector's entry there, which all tokens of the bucket share: `shares` are those of
    them that stand in the same chunk.
    """

    token: str
    bucket: int
    count: int
    frequency: int
    idf: float
    weight: float
    shares: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector as it scores: of the encoder's columns, `nonzero` are other than 0.

    `tokens`, of the hash encoder alone, are in the order in which they first stand in the text.
    """

    dimensions: int
    norm: float
    nonzero: int
    entries: Spread
    values: tuple[float, ...]
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the lexical index: `count` times in the chunk, in `frequency` live chunks."""

    term: str
    count: int
    frequency: int
    idf: float


@dataclass(frozen=True, slots=True)
class _Columns:
    """What the corpus makes of the columns of a weighted encoder, (dim,) each."""

    frequencies: NDArray[np.int64]
    weights: NDArray[np.float64]
    normalise: bool


def vectors_of(index: Index, texts: Mapping[int, str]) -> dict[int, Vector]:
    """The vectors of those chunks that have one, by id; `texts` are the chunks' texts by id.

    Raises IndexUnavailable in its kinds.
    """
    segments = index.view(scoring=True).vectors
    columns = _columns(index, segments)
    wanted = np.array(sorted(texts), np.int64)
    found: dict[int, Vector] = {}
    for segment in segments:
        rows = segment.find(wanted)
        held = np.flatnonzero(rows >= 0)
        for start in range(0, len(held), _BLOCK):
            some = held[start : start + _BLOCK]
            block = _scoring(segment.encoded(rows[some]), columns)
            for chunk, row in zip(wanted[some].tolist(), block, strict=True):
                table = () if columns is None else _tokens(texts[chunk], row, columns)
                found[chunk] = _vector(row, table)
    return found


def _columns(index: Index, segments: Sequence[Vectors]) -> _Columns | None:
    if not segments or segments[0].factors is not None:
        return None
    frequencies = np.sum([segment.frequencies() for segment in segments], axis=0)
    weights = idf_weights(frequencies, sum(segment.live_rows for segment in segments))
    return _Columns(frequencies, weights, index.settings.normalise)


def _scoring(encoded: Encoded, columns: _Columns | None) -> NDArray[np.float64]:
    """The rows as they score, float64 (n, dim)."""
    rows = encoded.codes.astype(np.float64)
    if columns is None:
        assert encoded.factors is not None
        return np.asarray(rows * encoded.factors[:, np.newaxis])
    rows *= columns.weights
    if columns.normalise:
        norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
        rows /= np.where(norms > 0, norms, 1.0)
    return rows


def _vector(row: NDArray[np.float64], table: tuple[Token, ...]) -> Vector:
    entries = spread(row)
    assert entries is not None
    return Vector(
        dimensions=len(row),
        norm=float(np.sqrt(np.square(row).sum())),
        nonzero=int(np.count_nonzero(row)),
        entries=entries,
        values=tuple(row.tolist()),
        tokens=table,
    )


def _tokens(text: str, row: NDArray[np.float64], columns: _Columns) -> tuple[Token, ...]:
    encoder = HashingEncoder(len(row))
    counts = Counter(tokens(text))
    place = {token: encoder.bucket(token) for token in counts}
    together: dict[int, list[str]] = {}
    for token, bucket in place.items():
        together.setdefault(bucket, []).append(token)
    return tuple(
        Token(
            token=token,
            bucket=bucket,
            count=counts[token],
            frequency=int(columns.frequencies[bucket]),
            idf=float(columns.weights[bucket]),
            weight=float(row[bucket]),
            shares=tuple(other for other in together[bucket] if other != token),
        )
        for token, bucket in place.items()
    )


def terms_of(index: Index, chunks: Sequence[int]) -> dict[int, tuple[Term, ...]]:
    """The terms of each of `chunks`, rarest in the index first, those as rare by name.

    Raises IndexUnavailable in its kinds.
    """
    segments = index.view().postings
    live = sum(segment.live_rows for segment in segments)
    counts: dict[int, list[tuple[str, int]]] = {chunk: [] for chunk in chunks}
    for segment in segments:
        for chunk, term, count in _held(segment, np.array(sorted(counts), np.int64)):
            counts[chunk].append((term, count))
    frequencies = {
        term: sum(len(find(segment.postings, [term], segment.live).rows) for segment in segments)
        for term in {term for held in counts.values() for term, _ in held}
    }
    return {
        chunk: tuple(
            Term(term, count, frequencies[term], idf(live, frequencies[term]))
            for term, count in sorted(held, key=lambda pair: (frequencies[pair[0]], pair[0]))
        )
        for chunk, held in counts.items()
    }


def _held(segment: OpenSegment, chunks: NDArray[np.int64]) -> list[tuple[int, str, int]]:
    """(chunk, term, count) of those of `chunks` that the segment holds, by one look at it all."""
    postings = segment.postings
    rows = segment.find(chunks)
    wanted = np.zeros(segment.rows, bool)
    wanted[rows[rows >= 0]] = True
    places = np.flatnonzero(wanted[postings.rows])
    numbers = np.searchsorted(postings.starts, places, side="right") - 1
    return [
        (chunk, postings.names[number], count)
        for chunk, number, count in zip(
            segment.chunks[postings.rows[places]].tolist(),
            numbers.tolist(),
            postings.counts[places].tolist(),
            strict=True,
        )
    ]
