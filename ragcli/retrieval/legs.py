"""The two retrievers over an open index: every live chunk's lexical score, the best dense ones.

Each keeps what explains its scores. Fusion and ordering are `retriever`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from ragcli.encoders import Encoded, Encoder
from ragcli.errors import IndexDamaged
from ragcli.records import TermShare
from ragcli.retrieval.question import Word
from ragcli.store.lexical import Found, find, idf, saturation
from ragcli.store.rows import OpenSegment
from ragcli.store.vectors import Plain, Scoring, Vectors, Weighted, idf_weights

Ids = NDArray[np.int64]
"""Chunk ids: by them the two retrievers speak of the same chunk."""

Best = list[tuple[int, float]]
"""Chunks with their scores, best first."""

Allowed = Sequence[NDArray[np.bool_] | None]
"""Per segment of postings which rows may be hits, None for all; dead ones never match."""


class LexicalLeg:
    """BM25 of every live chunk for one question."""

    def __init__(
        self, segments: Sequence[OpenSegment], words: Sequence[Word], allowed: Allowed
    ) -> None:
        self._segments = segments
        self._words = words
        self._found: list[list[Found]] = []
        self._idf: list[float] = []
        self.frequencies: list[int] = []
        chunks = sum(segment.live_rows for segment in segments)
        self._mean = sum(segment.length for segment in segments) / max(chunks, 1)
        self._scores = [np.zeros(segment.rows) for segment in segments]
        for word in words:
            found = [find(s.postings, word.variants, s.live) for s in segments]
            frequency = sum(len(rows.rows) for rows in found)
            self._found.append(found)
            self.frequencies.append(frequency)
            self._idf.append(idf(chunks, frequency))
            for number, rows in enumerate(found):
                self._scores[number][rows.rows] += self._share(number, rows, self._idf[-1])
        self.matching, self._values = self._matches(allowed)

    def _share(self, segment: int, found: Found, weight: float) -> NDArray[np.float64]:
        lengths = self._segments[segment].postings.lengths[found.rows]
        return weight * found.counts / (found.counts + saturation(lengths, self._mean))

    def _matches(self, allowed: Allowed) -> tuple[Ids, NDArray[np.float64]]:
        """The allowed chunks that hold a word of the question, and their scores."""
        chunks, values = [np.empty(0, np.int64)], [np.empty(0)]
        for segment, scores, may in zip(self._segments, self._scores, allowed, strict=True):
            rows = np.flatnonzero(scores > 0 if may is None else (scores > 0) & may)
            chunks.append(segment.chunks[rows])
            values.append(scores[rows])
        return np.concatenate(chunks), np.concatenate(values)

    def best(self, depth: int) -> Best:
        """The best `depth` chunks that match at all, ties at the end included, best first."""
        return _best(self.matching, self._values, depth)

    def scores(self, chunks: Ids) -> NDArray[np.float64]:
        """BM25 of each of `chunks`, 0 where no word matches."""
        found = np.zeros(len(chunks))
        for segment, scores in zip(self._segments, self._scores, strict=True):
            rows = segment.find(chunks)
            found[rows >= 0] = scores[rows[rows >= 0]]
        return found

    def rank(self, score: float) -> int | None:
        """1 + how many allowed chunks score higher; None where no word matches."""
        return 1 + int(np.count_nonzero(self._values > score)) if score > 0 else None

    def of_text(self, counts: Mapping[str, int], length: int) -> float:
        """BM25 of a text that is not in the index: its terms with their counts, and their sum."""
        slow = float(saturation(np.array([length], np.uint32), self._mean)[0])
        score = 0.0
        for word, weight in zip(self._words, self._idf, strict=True):
            count = sum(counts.get(variant, 0) for variant in word.variants)
            score += weight * count / (count + slow)
        return score

    def holding_all(self) -> Ids:
        """The live chunks that hold every word of the question."""
        chunks = [np.empty(0, np.int64)]
        for number, segment in enumerate(self._segments):
            rows = [found[number].rows for found in self._found]
            if rows:
                chunks.append(segment.chunks[reduce(np.intersect1d, rows)])
        return np.concatenate(chunks)

    def terms(self, chunk: int) -> tuple[TermShare, ...]:
        """What each word of the question gave to a chunk, largest first; absent words are 0."""
        places = [int(segment.find(np.array([chunk]))[0]) for segment in self._segments]
        held = [(number, row) for number, row in enumerate(places) if row >= 0]
        if not held:
            raise IndexDamaged(
                f"no segment of the index holds passage {chunk}",
                "ragcli index --full   (checks every part and makes it again)",
            )
        number, row = held[0]
        lengths = self._segments[number].postings.lengths[row : row + 1]
        slow = float(saturation(lengths, self._mean)[0])
        shares = []
        for i, word in enumerate(self._words):
            count = self._found[i][number].count(row)
            share = self._idf[i] * count / (count + slow)
            shares.append(TermShare(word.text, count, self.frequencies[i], share))
        return tuple(sorted(shares, key=lambda share: -share.score))


class DenseLeg:
    """The dot product of a question with the chunks that have vectors, stored or added."""

    def __init__(
        self,
        vectors: Sequence[Vectors],
        encoder: Encoder,
        question: NDArray[np.float64],
        allowed: Ids | None,
    ) -> None:
        """`question`: as the encoder gives it; `allowed`: what may be hits, None for all."""
        self._vectors = vectors
        self._allowed = allowed
        self._least = 0.0 if encoder.weighted else -np.inf
        self._scoring = _scoring(vectors, encoder, question)
        self._added: dict[int, float] = {}
        self._best: Best = []
        self._depth = 0

    def add(self, chunks: Ids, encoded: Encoded) -> None:
        """Score allowed chunks that have no stored vector."""
        scores = self._scoring.score(encoded)
        self._added.update(zip(chunks.tolist(), scores.tolist(), strict=True))
        self._depth = 0

    def best(self, depth: int) -> Best:
        """The best `depth` chunks, ties at the end included, best first.

        Of a weighted encoder's only those above 0.
        """
        if depth > self._depth:
            self._best, self._depth = self._search(depth), depth
        if len(self._best) <= depth:
            return self._best
        least = self._best[depth - 1][1]
        return list(takewhile(lambda item: item[1] >= least, self._best))

    def _search(self, depth: int) -> Best:
        chunks = [np.array(list(self._added), np.int64)]
        scores = [np.array(list(self._added.values()), np.float64)]
        for segment in self._vectors:
            rows, values = self._scoring.search(segment, depth, segment.among(self._allowed))
            chunks.append(segment.chunks[rows])
            scores.append(values)
        return _best(np.concatenate(chunks), np.concatenate(scores), depth)

    def scores(self, chunks: Ids) -> NDArray[np.float64]:
        """The dot product of each of `chunks`, NaN without a vector."""
        found = np.array([self._added.get(chunk, np.nan) for chunk in chunks.tolist()], np.float64)
        for segment in self._vectors:
            rows = segment.find(chunks)
            found[rows >= 0] = segment.score(self._scoring, rows[rows >= 0])
        return found

    def admits(self, chunk: int) -> bool:
        """Whether a chunk may be found."""
        return self._allowed is None or bool(np.isin(chunk, self._allowed))

    def of_text(self, encoded: Encoded) -> float:
        """The dot product of a text that is not in the index, `encoded` as one row."""
        return float(self._scoring.score(encoded)[0])

    def rank(self, score: float | None) -> int | None:
        """1 + how many candidates score higher; None below them all."""
        if score is None or not self._best or score < self._best[-1][1]:
            return None
        return 1 + sum(1 for _, other in self._best if other > score)

    def exact_rank(self, score: float | None) -> int | None:
        """1 + how many allowed chunks score higher, candidates or not.

        None without a vector, and for what shares nothing with the question under a weighted
        encoder.
        """
        if score is None or score <= self._least:
            return None
        above = sum(other > score for other in self._added.values())
        for segment, (near, slack) in zip(self._vectors, self._near, strict=True):
            may = segment.among(self._allowed)
            above += segment.count_above(self._scoring, score, near, slack, may)
        return 1 + above

    @cached_property
    def _near(self) -> list[tuple[NDArray[np.float64], float]]:
        return [self._scoring.near(segment) for segment in self._vectors]


def _scoring(
    vectors: Sequence[Vectors], encoder: Encoder, question: NDArray[np.float64]
) -> Scoring:
    if not encoder.weighted:
        return Plain(question)
    frequencies = sum((segment.frequencies() for segment in vectors), np.zeros(encoder.dim, int))
    chunks = sum(segment.live_rows for segment in vectors)
    return Weighted(question, idf_weights(frequencies, chunks), normalise=encoder.normalise)


def _best(chunks: Ids, scores: NDArray[np.float64], depth: int) -> Best:
    """The best `depth`, ties at the end included, best first and then by chunk."""
    if len(scores) > depth:
        good = scores >= np.partition(scores, -depth)[-depth]
        chunks, scores = chunks[good], scores[good]
    order = np.lexsort((chunks, -scores))
    return list(zip(chunks[order].tolist(), scores[order].tolist(), strict=True))
