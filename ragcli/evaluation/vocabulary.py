"""The words of an index: how rare each is, and where several of them stand together.

Reads postings, no texts and no scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ragcli.store.index import Index
from ragcli.store.lexical import find, idf

_KEPT = 512
"""Words whose chunks are remembered."""

_AT_ONCE = 500


class Vocabulary:
    """The words of one open index; a word is named by its term, see `store.terms`."""

    def __init__(self, index: Index) -> None:
        self._index = index
        view = index.view()
        self._segments = view.postings
        self.chunks = view.chunks
        """Live chunks."""
        self._holding = lru_cache(_KEPT)(self._find)
        self._frequencies: dict[str, int] = {}

    def frequency(self, term: str) -> int:
        """How many live chunks hold `term`."""
        if term not in self._frequencies:
            self._frequencies[term] = len(self._holding(term))
        return self._frequencies[term]

    def _find(self, term: str) -> NDArray[np.int64]:
        """The live chunks that hold `term`, int64, ascending."""
        found = [s.chunks[find(s.postings, [term], s.live).rows] for s in self._segments]
        return np.sort(np.concatenate([np.empty(0, np.int64), *found]))

    def elsewhere(self, terms: Iterable[str], own: frozenset[int], share: float) -> bool:
        """Whether two neighbours or one chunk, none of `own`, hold `share` of the terms.

        The terms are weighted by their idf in BM25, so that common ones count for little.
        """
        ordered = sorted(set(terms), key=lambda term: (self.frequency(term), term))
        if not ordered:
            return False
        weights = np.array([idf(self.chunks, self.frequency(term)) for term in ordered])
        wanted = share * float(weights.sum()) - 1e-9
        # Whoever holds the share holds one of the rarest terms: the others weigh too little.
        rare = 1 + int(np.searchsorted(np.cumsum(weights), weights.sum() - wanted, "right"))
        likely = np.unique(np.concatenate([self._holding(term) for term in ordered[:rare]]))
        likely = likely[~np.isin(likely, list(own))]
        held = self._held(ordered, likely)
        covered = held @ weights
        if (covered >= wanted).any():
            return True
        half = covered >= wanted / 2
        return self._in_two(ordered, weights, wanted, likely[half].tolist(), held[half], own)

    def _held(self, terms: Sequence[str], chunks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of `terms` each of `chunks` holds, bool (chunks, terms)."""
        held = np.zeros((len(chunks), len(terms)), bool)
        for number, term in enumerate(terms):
            having = self._holding(term)
            if len(having):
                at = np.minimum(having.searchsorted(chunks), len(having) - 1)
                held[:, number] = having[at] == chunks
        return held

    def _in_two(
        self,
        terms: Sequence[str],
        weights: NDArray[np.float64],
        wanted: float,
        chunks: list[int],
        held: NDArray[np.bool_],
        own: frozenset[int],
    ) -> bool:
        """Whether one of `chunks`, which hold a good part, has the rest in a neighbour."""
        row = {chunk: number for number, chunk in enumerate(chunks)}
        pairs = [
            (chunk, other)
            for beside in (self._index.followers, self._index.preceders)
            for first in range(0, len(chunks), _AT_ONCE)
            for chunk, other in beside(chunks[first : first + _AT_ONCE]).items()
            if other not in own
        ]
        if not pairs:
            return False
        mine = held[[row[chunk] for chunk, _ in pairs]]
        theirs = self._held(terms, np.array([other for _, other in pairs], np.int64))
        return bool(((mine | theirs) @ weights >= wanted).any())
