"""Where one passage stands in a ranking, hit or not: its ranks among all chunks, and its scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragcli.records import Leg, TermShare
from ragcli.retrieval.ranking import Candidate, Ranking
from ragcli.store.index import Index


@dataclass(frozen=True, slots=True)
class Standing:
    """The passage in the ranking: what a hit has, with ranks among all chunks.

    `rank` counts all candidates, before `--max-per-file`, reranking and the cut; None where the
    passage is no candidate. `candidates`: how many there are.
    """

    score: float
    rank: int | None
    candidates: int
    lexical: Leg | None
    dense: Leg | None
    parts: tuple[float, float] | None
    neighbour: float
    rerank: float | None
    terms: tuple[TermShare, ...]


def standing_of(
    ranking: Ranking, ordered: Sequence[Candidate], chunk: int, chosen: Sequence[Candidate]
) -> Standing:
    """The standing of `chunk` among `ordered`, the candidates; `chosen` became hits."""
    ids = np.array([chunk], np.int64)
    lexical, dense = ranking.lexical, ranking.dense
    by_word = float(lexical.scores(ids)[0]) if lexical else 0.0
    vector = float(dense.scores(ids)[0]) if dense else float("nan")
    by_vector = None if np.isnan(vector) else vector
    both = lexical is not None and dense is not None
    found = next(((i, c) for i, c in enumerate(ordered, 1) if c.chunk == chunk), None)
    if found:
        rank, candidate = found
    else:  # of both retrievers' tails the fusion makes 0
        alone = by_word if lexical else by_vector or 0.0
        rank = None
        candidate = Candidate(chunk, 0.0 if both else alone, by_word, vector, 0.0, (0.0, 0.0), 0)
    return Standing(
        score=candidate.score,
        rank=rank,
        candidates=len(ordered),
        lexical=Leg(lexical.rank(by_word), by_word) if lexical else None,
        dense=Leg(dense.exact_rank(by_vector) if dense.admits(chunk) else None, by_vector)
        if dense
        else None,
        parts=candidate.parts if both else None,
        neighbour=candidate.neighbour,
        rerank=next((c.rerank for c in chosen if c.chunk == chunk), None),
        terms=lexical.terms(chunk) if lexical else (),
    )


def best_placed(ranking: Ranking, ordered: Sequence[Candidate], chunks: Sequence[int]) -> int:
    """Of `chunks` the first in `ordered`, else the one nearest to being a candidate."""
    wanted = set(chunks)
    found = next((c.chunk for c in ordered if c.chunk in wanted), None)
    if found is not None:
        return found
    ids = np.array(chunks, np.int64)
    scores = [leg.scores(ids) for leg in (ranking.dense, ranking.lexical) if leg]
    return chunks[int(np.lexsort([np.nan_to_num(s, nan=-np.inf) for s in scores])[-1])]


def place_in_file(index: Index, ordered: Sequence[Candidate], chunk: int) -> int:
    """1 + how many candidates of the same file or record stand before `chunk`, one of them."""
    places = index.places(candidate.chunk for candidate in ordered)
    before = Counter[bytes]()
    for candidate in ordered:
        path = places[candidate.chunk].path
        if candidate.chunk == chunk:
            return 1 + before[path]
        before[path] += 1
    raise AssertionError("the passage is a candidate")
