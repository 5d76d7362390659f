"""Hubs: chunks that stand in many questions' lists of nearest, and those that stand in none.

N_k of a chunk is in how many of the questions' k-nearest lists it stands (Radovanović, Nanopoulos
and Ivanović 2010). Beside it what the vectors' lengths do. Finding the lists is `nearest`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcli.errors import ModelUnavailable, UsageError
from ragcli.inspection.cosine import Ids, check_vectors
from ragcli.inspection.nearest import Lists, Places, Rows, nearest
from ragcli.inspection.occurrences import Occurrences, by_chance, observed
from ragcli.records import Passage
from ragcli.store import contents
from ragcli.store.folder import ENCODER
from ragcli.store.index import Index
from ragcli.store.matrix import column_weights, matrix

_COLLAPSED = 0.5
"""Retrieval has collapsed where the lists of two questions have so much in common: this part of
the way from what they have by chance to all."""

_UNIT = 0.01
"""Vectors whose lengths are this near to 1 were normalised by their encoder."""

_REASON = "the encoder makes vectors of length 1, and the lengths that its model gave are not kept"

_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class Hub:
    """A passage in `occurrences` lists, the `share` of all of them; at the head of `first`."""

    occurrences: int
    share: float
    first: int
    passage: Passage


@dataclass(frozen=True, slots=True)
class NormWinner:
    """A passage that is first for `raw` questions by the dot product, for `cosine` by the cosine.

    `norm` is the length of its vector before it is normalised.
    """

    raw: int
    cosine: int
    norm: float
    passage: Passage


@dataclass(frozen=True, slots=True)
class NormReport:
    """What lengths do: for `changed` questions the dot product puts another passage first.

    `normalised` says whether the index normalises. `winners` are the passages that are most often
    first by the dot product.
    """

    normalised: bool
    changed: int
    median_norm: float
    largest_norm: float
    winners: tuple[NormWinner, ...]


@dataclass(frozen=True, slots=True)
class HubReport:
    """N_k over `asked` questions, among `chunks` with a vector; `mean` is its mean.

    The questions are the index's own passages where `own`, `asked` of a `population` of those
    whose vector is not zeros; else those that were given, of which `population` − `asked` have a
    vector of zeros. `orphans` chunks are in no list, `firsts` different ones come first for some
    question. `chance` is what blindly drawn lists would give. Retrieval has `collapsed` from an
    overlap of `collapsed_from` on. `norms` is None where `norms_reason` says why.
    """

    encoder: str
    chunks: int
    own: bool
    population: int
    asked: int
    k: int
    mean: float
    orphans: int
    firsts: int
    observed: Occurrences
    chance: Occurrences
    collapsed: bool
    collapsed_from: float | None
    hubs: tuple[Hub, ...]
    norms: NormReport | None
    norms_reason: str | None


def hubs(
    index: Index,
    *,
    k: int = 10,
    questions: Sequence[str] | None = None,
    sample: int = 10_000,
    limit: int = 10,
) -> HubReport:
    """Which chunks stand in the lists of the `k` nearest, of `questions` or of the index's own.

    Own ones are a seeded `sample` where there are more, and are not their own neighbours. Lists
    are as questions find them, in float32; with `hash`, what shares no bucket with a question is
    in no list of it. Takes 4 · n · dim bytes and some. Raises UsageError where there are no
    vectors or questions, ModelUnavailable where the questions' model cannot be had,
    IndexUnavailable in its kinds.
    """
    if k < 1:
        raise UsageError(f"lists of {k} are none", "ask for 1 or more: -k 10")
    if questions is not None and not questions:
        raise UsageError("there are no questions", "give a file with one question or more")
    check_vectors(index, "hubs")
    space = _Space(index)
    if questions is None:
        population, own = space.drawn(sample)
        lists = space.lists(space.rows[own], k, own)
    else:
        encoded = space.encoded(index, questions)
        population = len(encoded)
        lists = space.lists(encoded[encoded.any(axis=1)], k, None)
    asked = len(lists.places)
    counts = _count(lists.places, len(space.chunks))
    firsts = _count(lists.places[:, :1], len(space.chunks))
    seen, chance = observed(counts, asked), by_chance(len(counts), asked, int(counts.sum()))
    common, from_on = seen.overlap, _collapsed_from(chance.overlap)
    norms = space.norm_report(index, lists, limit)
    return HubReport(
        encoder=index.settings.encoder,
        chunks=len(counts),
        own=questions is None,
        population=population,
        asked=asked,
        k=k,
        mean=float(counts.mean()),
        orphans=int(np.count_nonzero(counts == 0)),
        firsts=int(np.count_nonzero(firsts)),
        observed=seen,
        chance=chance,
        collapsed=common is not None and from_on is not None and common >= from_on,
        collapsed_from=from_on,
        hubs=_hubs(index, space.chunks, counts, firsts, asked, limit),
        norms=norms,
        norms_reason=None if norms else _REASON,
    )


def _collapsed_from(chance: float | None) -> float | None:
    return None if chance is None else chance + _COLLAPSED * (1.0 - chance)


class _Space:
    """The index's vectors as rows of length 1, and the `norms` that they had."""

    def __init__(self, index: Index) -> None:
        self.chunks, self.rows = matrix(index, normalise=False)
        self._weights = column_weights(index.view(scoring=True).vectors)
        self.norms = _normalise(self.rows)
        self._unit = self._weights is None and bool(
            (np.abs(self.norms[self.norms > 0] - 1.0) <= _UNIT).all()
        )
        self._normalised = self._weights is not None and index.settings.normalise

    def drawn(self, sample: int) -> tuple[int, Places]:
        """(how many vectors are not zeros; the places of at most `sample` of them, ascending)."""
        there = np.flatnonzero(self.norms)
        if len(there) <= sample:
            return len(there), there
        return len(there), np.sort(np.random.default_rng(0).choice(there, sample, replace=False))

    def encoded(self, index: Index, questions: Sequence[str]) -> Rows:
        """The questions' vectors, float32 (len(questions), dim)."""
        from ragcli.encoders import open_encoder

        encoder = open_encoder(index.settings, index.path / ENCODER)
        assert encoder is not None
        if index.encoder != encoder.fingerprint:
            raise ModelUnavailable(
                f"{encoder.name} has changed since the index was made with it", "ragcli index"
            )
        rows = np.array([encoder.encode_query(question) for question in questions])
        return np.asarray(rows if self._weights is None else rows * self._weights, np.float32)

    def lists(self, asked: Rows, k: int, own: Places | None) -> Lists:
        """The lists of k as the index has them, and who is first by the other measure."""
        return nearest(
            self.rows, asked, k, own=own, positive=self._weights is not None,
            norms=None if self._unit else self.norms, by_norm=not self._normalised,
        )  # fmt: skip

    def norm_report(self, index: Index, lists: Lists, limit: int) -> NormReport | None:
        """What the lengths do, None where there are none."""
        if lists.other is None:
            return None
        here = lists.places[:, 0]
        raw, cosine = (lists.other, here) if self._normalised else (here, lists.other)
        wins, by_cosine = _count(raw, len(self.chunks)), _count(cosine, len(self.chunks))
        best = _largest(wins, limit)
        passages = contents.passages(index, self.chunks[best].tolist())
        return NormReport(
            normalised=self._normalised,
            changed=int(np.count_nonzero(raw != cosine)),
            median_norm=float(np.median(self.norms)),
            largest_norm=float(self.norms.max()),
            winners=tuple(
                NormWinner(int(wins[i]), int(by_cosine[i]), float(self.norms[i]), passages[chunk])
                for i, chunk in zip(best.tolist(), self.chunks[best].tolist(), strict=True)
            ),
        )


def _normalise(rows: Rows) -> NDArray[np.float32]:
    """Make the rows of length 1 where they are; returns the lengths that they had."""
    norms = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        lengths = np.sqrt(np.square(block, dtype=np.float64).sum(axis=1)).astype(np.float32)
        block /= np.where(lengths > 0, lengths, 1.0).astype(np.float32)[:, np.newaxis]
        norms[start : start + len(block)] = lengths
    return norms


def _count(places: Places, chunks: int) -> NDArray[np.int64]:
    """How often each place stands in `places`, int64 (chunks,)."""
    return np.bincount(places[places >= 0], minlength=chunks).astype(np.int64)


def _largest(counts: NDArray[np.int64], limit: int) -> Places:
    """The places of the largest `limit` that are not 0, largest first, equals by place."""
    order = np.argsort(-counts, kind="stable")[:limit]
    return np.asarray(order[counts[order] > 0])


def _hubs(
    index: Index,
    chunks: Ids,
    counts: NDArray[np.int64],
    firsts: NDArray[np.int64],
    asked: int,
    limit: int,
) -> tuple[Hub, ...]:
    best = _largest(counts, limit)
    passages = contents.passages(index, chunks[best].tolist())
    return tuple(
        Hub(int(counts[i]), int(counts[i]) / asked, int(firsts[i]), passages[chunk])
        for i, chunk in zip(best.tolist(), chunks[best].tolist(), strict=True)
    )
