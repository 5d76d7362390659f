"""The chunks nearest to a chunk by their stored vectors.

Compares with every vector, in float64: an answer for one chunk takes a pass over the index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragcli.encoders import HashingEncoder
from ragcli.encoders.hashing import tokens
from ragcli.errors import UsageError
from ragcli.inspection.cosine import StoredVectors, check_vectors, cosines
from ragcli.records import Passage
from ragcli.store import contents
from ragcli.store.index import Index


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A chunk near the one asked about.

    Of the encoder `hash`, `shared` are the tokens that both have, and `collided` the pairs
    (token there, token here) that differ and yet fall into one bucket; else both are None.
    """

    rank: int
    cosine: float
    same_text: bool
    passage: Passage
    shared: tuple[str, ...] | None
    collided: tuple[tuple[str, str], ...] | None


@dataclass(frozen=True, slots=True)
class NeighborReport:
    """The `neighbors` of a passage, nearest first, among `compared` others with a vector.

    With `hash`, a chunk that shares no bucket is no neighbour, so there may be fewer than asked.
    """

    encoder: str
    passage: Passage
    compared: int
    neighbors: tuple[Neighbor, ...]


def neighbors(index: Index, chunk: int, k: int) -> NeighborReport:
    """The `k` chunks whose vectors have the largest cosine to that of `chunk`.

    Ties go by path and offset. A vector of zeros is near nothing. Raises UsageError where `chunk`
    is not in the index, has no vector, or has one of zeros; IndexUnavailable in its kinds.
    """
    if k < 1:
        raise UsageError(f"{k} neighbours are none", "ask for 1 or more: -k 5")
    check_vectors(index, "neighbours")
    vectors = StoredVectors(index)
    question = vectors.rows(np.array([chunk], np.int64))[0]
    _check(index, chunk, question.any())
    blocks = [(ids, cosines(rows, question), rows.any(axis=1)) for ids, rows in vectors.blocks()]
    ids, values, there = map(np.concatenate, zip(*blocks, strict=True))
    by_words = index.settings.encoder == "hash"
    others = ids != chunk
    may = others & (values > 0 if by_words else there)
    ids, values = ids[may], values[may]
    if len(ids) > k:
        good = values >= np.partition(values, -k)[-k]
        ids, values = ids[good], values[good]
    places = index.places(ids.tolist())
    best = sorted(
        zip(ids.tolist(), values.tolist(), strict=True),
        key=lambda pair: (-pair[1], places[pair[0]]),
    )[:k]
    passages = contents.passages(index, [chunk, *(other for other, _ in best)])
    here = passages[chunk]
    hashing = HashingEncoder(index.settings.dim) if by_words else None
    return NeighborReport(
        index.settings.encoder,
        here,
        int(np.count_nonzero(others)),
        tuple(
            _neighbor(rank, value, passages[other], here, hashing)
            for rank, (other, value) in enumerate(best, 1)
        ),
    )


def _check(index: Index, chunk: int, there: bool) -> None:
    if there:
        return
    look = f"ragcli inspect {chunk} --vectors"
    if not list(contents.texts(index, [chunk])):
        raise UsageError(
            f"the index has no passage {chunk}",
            "ragcli inspect PATH   (shows the passages of a file with their numbers)",
        )
    if not index.view().has_vector(np.array([chunk], np.int64))[0]:
        raise UsageError(
            f"passage {chunk} has no vector yet",
            "ragcli index   (makes the vectors that are missing)",
        )
    raise UsageError(
        f"the vector of passage {chunk} is all zeros, and so is near nothing",
        f"{look}   (shows what it was made from)",
    )


def _neighbor(
    rank: int, cosine: float, there: Passage, here: Passage, hashing: HashingEncoder | None
) -> Neighbor:
    shared: tuple[str, ...] | None = None
    collided: tuple[tuple[str, str], ...] | None = None
    if hashing:
        ours, theirs = (dict.fromkeys(tokens(passage.text)) for passage in (here, there))
        shared = tuple(token for token in theirs if token in ours)
        collided = tuple(
            (token, other)
            for token in theirs
            for other in ours
            if token != other and hashing.bucket(token) == hashing.bucket(other)
        )
    return Neighbor(rank, cosine, there.text == here.text, there, shared, collided)
