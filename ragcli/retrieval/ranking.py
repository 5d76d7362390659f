"""Candidates of a question in order: both retrievers fused, ties broken, cut at k.

The order: score down; of what the fusion gives 0 (both retrievers' tails), by the better of its two
ranks; then lexical score down; then path and offset up. So how far the retrievers are looked into
changes nothing of what stands above, and k never changes the order. Scores come from `legs`; text
and hits are `retriever`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcli.retrieval.asked import Asked
from ragcli.retrieval.fusion import (
    DEPTH,
    RRF_DEPTH,
    beside,
    mix,
    reciprocal_rank,
    scale,
)
from ragcli.retrieval.legs import Best, DenseLeg, Ids, LexicalLeg
from ragcli.store.index import Index


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk with all that orders it; `dense` is NaN without a vector.

    `score` is the sum of `parts`, what the lexical and the dense retriever gave to it, and of
    `neighbour`; the reranker's where there is one. Of one retriever alone it is its raw score.
    `reach` is the better of its two ranks where the fusion gives it 0, else 0.
    """

    chunk: int
    score: float
    lexical: float
    dense: float
    neighbour: float
    parts: tuple[float, float]
    reach: int
    rerank: float | None = None


class Ranking:
    """One way to rank a question's chunks."""

    def __init__(
        self,
        index: Index,
        asked: Asked,
        mode: str,
        fusion: str,
        alpha: float | None,
        embedded_now: int = 0,
    ) -> None:
        """`alpha`: the dense share where both are mixed; `embedded_now`: vectors made for it."""
        self.asked = asked
        self.mode = mode
        self.fusion = fusion
        self.alpha = alpha
        self.embedded_now = embedded_now
        self._index = index
        self.lexical: LexicalLeg | None = None if mode == "dense" else asked.lexical
        self.dense: DenseLeg | None = (
            None if mode == "lexical" else asked.dense(with_words=mode == "hybrid")
        )

    def depth(self, k: int) -> int:
        """How far down each retriever is looked into for the best `k`."""
        return max(DEPTH if self.fusion == "mix" else RRF_DEPTH, k)

    def best(self, k: int, max_per_file: int | None = None) -> list[Candidate]:
        """The first k in order, at most so many of one file or record."""
        depth = self.depth(k)
        while True:
            ranked = self.candidates(depth)
            chosen = self._cut(ranked, k, max_per_file)
            enough = len(chosen) >= k or len(ranked) < depth
            if enough or max_per_file is None:
                return chosen
            depth *= 4

    def candidates(self, depth: int) -> list[Candidate]:
        """Every candidate of either retriever, best first, ties in no order yet."""
        words = self.lexical.best(depth) if self.lexical else []
        vectors = self.dense.best(depth) if self.dense else []
        chunks = np.array(list(dict.fromkeys(c for c, _ in (*words, *vectors))), np.int64)
        by_word = self.lexical.scores(chunks) if self.lexical else np.zeros(len(chunks))
        by_vector = self.dense.scores(chunks) if self.dense else np.full(len(chunks), np.nan)
        none = np.zeros(len(chunks))
        reach, by_neighbour = none, none
        if not (self.lexical and self.dense):
            parts = (by_word, none) if self.lexical else (none, by_vector)
            scores = parts[0] + parts[1]
        else:
            ranks = _ranks(words, chunks), _ranks(vectors, chunks)
            better = np.minimum(*(np.where(rank > 0, rank, np.inf) for rank in ranks))
            if self.fusion == "rrf":
                parts = reciprocal_rank(ranks[0]), reciprocal_rank(ranks[1])
                scores = parts[0] + parts[1]
            else:
                parts = self._mixed(by_word, by_vector, words, vectors)
                scores = parts[0] + parts[1]
                near = chunks[better <= DEPTH]
                by_neighbour = beside(scores, self._adjacent(chunks, near))
                scores = scores + by_neighbour
            reach = np.where(scores > 0, 0, better)
        order = np.lexsort((-np.nan_to_num(by_vector, nan=-np.inf), -by_word, reach, -scores))
        columns = (chunks, scores, by_word, by_vector, by_neighbour, *parts, reach)
        return [
            Candidate(chunk, score, word, vector, near, (first, second), int(deep))
            for chunk, score, word, vector, near, first, second, deep in zip(
                *(column[order].tolist() for column in columns), strict=True
            )
        ]

    def _mixed(
        self,
        by_word: NDArray[np.float64],
        by_vector: NDArray[np.float64],
        words: Best,
        vectors: Best,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of a weighted encoder what shares nothing with the question scores 0 and is no
        candidate. Of any other every chunk with a vector is one, and its score may be below 0:
        where fewer than DEPTH have a vector, the last of them is the 0 of the scale, and what
        has none stands beside it.
        """
        assert self.alpha is not None
        assert self.asked.encoder is not None
        population = self.asked.population
        whole = population if self.asked.encoder.weighted else len(vectors)
        return mix(
            scale(by_word, _lowest(words, population)),
            scale(by_vector, _lowest(vectors, whole)),
            self.alpha,
        )

    def would_rank(self, k: int, texts: Sequence[tuple[float, float | None]]) -> list[int | None]:
        """Where texts with these scores by words and by vector would stand among the candidates.

        Each as if it alone came to the index; None where it would be no candidate for `k`.
        """
        if self.dense is None:
            return [self.lexical.rank(by_word) if self.lexical else None for by_word, _ in texts]
        if self.lexical is None:
            return [self.dense.exact_rank(by_vector) for _, by_vector in texts]
        depth = self.depth(k)
        words, vectors = self.lexical.best(depth), self.dense.best(depth)
        scores = np.array([candidate.score for candidate in self.candidates(depth)])
        return [
            self._would_rank(by_word, by_vector, words, vectors, scores, depth)
            for by_word, by_vector in texts
        ]

    def _would_rank(
        self,
        by_word: float,
        by_vector: float | None,
        words: Best,
        vectors: Best,
        scores: NDArray[np.float64],
        depth: int,
    ) -> int | None:
        assert self.lexical
        assert self.dense
        ranks = np.array([self.lexical.rank(by_word) or 0, self.dense.exact_rank(by_vector) or 0])
        ranks[ranks > depth] = 0
        if not ranks.any():
            return None
        if self.fusion == "rrf":
            score = float(reciprocal_rank(ranks).sum())
        else:
            parts = self._mixed(
                np.array([by_word, *(best for _, best in words[:1])]),
                np.array([by_vector, *(best for _, best in vectors[:1])], np.float64),
                words,
                vectors,
            )
            score = float(parts[0][0] + parts[1][0])
        return 1 + int(np.count_nonzero(scores > score))

    def _adjacent(self, chunks: Ids, near: Ids) -> list[tuple[int, int]]:
        """Places in `chunks` of those of `near` that stand one behind the other in a document."""
        place = dict(zip(chunks.tolist(), range(len(chunks)), strict=True))
        pairs = self._index.followers(near.tolist())
        among = set(near.tolist())
        return [(place[a], place[b]) for a, b in pairs.items() if b in among]

    def ordered(self, ranked: Sequence[Candidate]) -> list[Candidate]:
        """By score, then reach, then lexical score, then path and offset."""
        places = self._index.places(candidate.chunk for candidate in ranked)
        return sorted(ranked, key=lambda c: (-c.score, c.reach, -c.lexical, places[c.chunk]))

    def _cut(self, ranked: list[Candidate], k: int, max_per_file: int | None) -> list[Candidate]:
        if max_per_file is None:
            if len(ranked) > k > 0:
                least = ranked[k - 1].score
                ranked = [candidate for candidate in ranked if candidate.score >= least]
            return self.ordered(ranked)[:k]
        ordered = self.ordered(ranked)
        places = self._index.places(candidate.chunk for candidate in ordered)
        seen: Counter[bytes] = Counter()
        kept = []
        for candidate in ordered:
            document = places[candidate.chunk].path
            seen[document] += 1
            if seen[document] <= max_per_file:
                kept.append(candidate)
        return kept[:k]


def _lowest(best: Best, population: int) -> float | None:
    """The score of the DEPTH-th chunk: 0 where fewer match, for the others score nothing.

    None where none does.
    """
    if len(best) >= DEPTH:
        return best[DEPTH - 1][1]
    if not best:
        return None
    return best[-1][1] if len(best) == population else 0.0


def _ranks(best: Best, chunks: Ids) -> NDArray[np.int64]:
    """Rank from 1 of each of `chunks` in one retriever, shared by equals; 0 where it is not."""
    ranks: dict[int, int] = {}
    for place, (chunk, score) in enumerate(best, 1):
        tied = place > 1 and best[place - 2][1] == score
        ranks[chunk] = ranks[best[place - 2][0]] if tied else place
    return np.array([ranks.get(chunk, 0) for chunk in chunks.tolist()], np.int64)
