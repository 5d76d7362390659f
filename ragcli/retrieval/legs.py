"""The two retrievers over an open index: every live chunk's lexical score, the best dense ones.

Each keeps what explains its scores. Fusion and ordering are `retriever`'s.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragcli.encoders import Encoder
from ragcli.records import TermShare
from ragcli.retrieval.question import Word
from ragcli.store.index import OpenSegment
from ragcli.store.lexical import Found, find, idf, saturation
from ragcli.store.vectors import idf_weights

Row = tuple[int, int]
"""(number of the segment, row in it)."""

Allowed = Sequence[NDArray[np.bool_] | None]
"""Per segment which rows may be hits, None for all; dead rows are already left out."""


class LexicalLeg:
    """BM25 of every live chunk for one question."""

    def __init__(self, segments: Sequence[OpenSegment], words: Sequence[Word]) -> None:
        self._segments = segments
        self._words = words
        self._found: list[list[Found]] = []
        self._idf: list[float] = []
        self.frequencies: list[int] = []
        chunks = sum(segment.live_rows for segment in segments)
        self._mean = sum(segment.length for segment in segments) / max(chunks, 1)
        self._matched: list[tuple[NDArray[np.intp], NDArray[np.float64]]] | None = None
        self.scores = [np.zeros(segment.rows) for segment in segments]
        for word in words:
            found = [find(s.postings, word.variants, s.live) for s in segments]
            frequency = sum(len(rows.rows) for rows in found)
            self._found.append(found)
            self.frequencies.append(frequency)
            self._idf.append(idf(chunks, frequency))
            for number, rows in enumerate(found):
                self.scores[number][rows.rows] += self._share(number, rows, self._idf[-1])

    def _share(self, segment: int, found: Found, weight: float) -> NDArray[np.float64]:
        lengths = self._segments[segment].postings.lengths[found.rows]
        return weight * found.counts / (found.counts + saturation(lengths, self._mean))

    def best(self, allowed: Allowed, depth: int) -> list[tuple[Row, float]]:
        """The best `depth` rows that match at all, ties at the end included, best first."""
        matching = self._matching(allowed)
        values = np.concatenate([np.empty(0), *(scores for _, scores in matching)])
        least = np.partition(values, -depth)[-depth] if len(values) > depth else 0.0
        best: list[tuple[Row, float]] = []
        for number, (rows, scores) in enumerate(matching):
            good = scores >= least
            best += zip(
                ((number, row) for row in rows[good].tolist()), scores[good].tolist(), strict=True
            )
        return sorted(best, key=lambda item: -item[1])

    def _matching(self, allowed: Allowed) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """Per segment the allowed rows that hold a word of the question, and their scores.

        Found once: a leg is asked with one `allowed` only.
        """
        if self._matched is None:
            self._matched = []
            for scores, may in zip(self.scores, allowed, strict=True):
                rows = np.flatnonzero(scores > 0 if may is None else (scores > 0) & may)
                self._matched.append((rows, scores[rows]))
        return self._matched

    def matching(self, allowed: Allowed) -> Allowed:
        """Per segment the allowed rows that hold a word of the question."""
        return [_both(scores > 0, may) for scores, may in zip(self.scores, allowed, strict=True)]

    def score(self, row: Row) -> float:
        """BM25 of one row."""
        return float(self.scores[row[0]][row[1]])

    def rank(self, row: Row, allowed: Allowed) -> int | None:
        """1 + how many allowed rows score higher; None where no word matches."""
        mine = self.score(row)
        if mine <= 0:
            return None
        return 1 + sum(
            int(np.count_nonzero(scores > mine)) for _, scores in self._matching(allowed)
        )

    def terms(self, row: Row) -> tuple[TermShare, ...]:
        """What each word of the question gave to a row, largest first; absent words are 0."""
        segment, number = row
        lengths = self._segments[segment].postings.lengths[number : number + 1]
        slow = float(saturation(lengths, self._mean)[0])
        shares = []
        for i, word in enumerate(self._words):
            count = self._found[i][segment].count(number)
            share = self._idf[i] * count / (count + slow)
            shares.append(TermShare(word.text, count, self.frequencies[i], share))
        return tuple(sorted(shares, key=lambda share: -share.score))


class DenseLeg:
    """The dot product of a question with the chunks that have vectors."""

    def __init__(
        self,
        segments: Sequence[OpenSegment],
        encoder: Encoder,
        question: str,
        allowed: Allowed,
        depth: int,
    ) -> None:
        self._segments = segments
        self._encoder = encoder
        self._question = encoder.encode_query(question)
        self._weights = _weights(segments, encoder)
        rows: list[tuple[Row, float]] = []
        for number, segment in enumerate(segments):
            if segment.vectors is None:
                continue
            found, scores = segment.vectors.search(
                self._question,
                self._weights,
                depth,
                normalise=encoder.normalise,
                allowed=_both(segment.live, allowed[number]),
            )
            rows += zip(((number, row) for row in found.tolist()), scores.tolist(), strict=True)
        rows.sort(key=lambda item: -item[1])
        if len(rows) > depth:
            least = rows[depth - 1][1]
            rows = [item for item in rows if item[1] >= least]
        self._rows = rows

    def best(self) -> list[tuple[Row, float]]:
        """The best `depth` rows above 0, ties at the end included, best first."""
        return self._rows

    def scores(self, rows: Sequence[Row]) -> list[float | None]:
        """The dot product of each of `rows`, None without a vector."""
        found: list[float | None] = [None] * len(rows)
        for number, segment in enumerate(self._segments):
            wanted = [i for i, row in enumerate(rows) if row[0] == number]
            if segment.vectors is None or not wanted:
                continue
            values = segment.vectors.score(
                self._question,
                self._weights,
                np.array([rows[i][1] for i in wanted], np.intp),
                normalise=self._encoder.normalise,
            )
            for i, value in zip(wanted, values.tolist(), strict=True):
                found[i] = value
        return found

    def rank(self, score: float | None) -> int | None:
        """1 + how many candidates score higher; None below them all."""
        if score is None or not self._rows or score < self._rows[-1][1]:
            return None
        return 1 + sum(1 for _, other in self._rows if other > score)


def _weights(segments: Sequence[OpenSegment], encoder: Encoder) -> NDArray[np.float64]:
    if not encoder.weighted:
        return np.ones(encoder.dim)
    frequencies = np.zeros(encoder.dim, np.int64)
    chunks = 0
    for segment in segments:
        if segment.vectors is not None:
            frequencies += segment.vectors.frequencies(segment.dead_rows)
            chunks += segment.live_rows
    return idf_weights(frequencies, chunks)


def _both(
    first: NDArray[np.bool_] | None, second: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    if first is None or second is None:
        return first if second is None else second
    return first & second
