"""The read path: a question to ranked, explained hits.

Owns candidates, fusion, the cut at k and the order: score down; where fused scores are equal
(both retrievers' tails are 0) lexical score down; then path and offset up. Scores come
from `legs`, text and places from `store.index`. Prints nothing, writes nothing.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragcli.encoders import Encoder, open_encoder
from ragcli.errors import UsageError
from ragcli.records import Hit, Leg, SearchRequest, SearchResult
from ragcli.retrieval.fusion import DEPTH, RRF_DEPTH, Scores, mix, reciprocal_rank, scale, softmax
from ragcli.retrieval.legs import Allowed, DenseLeg, LexicalLeg, Row
from ragcli.retrieval.question import parse_question
from ragcli.store.index import Index, OpenSegment, StoredChunk

MODES = ("hybrid", "dense", "lexical")
FUSIONS = ("mix", "rrf")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A row with all that orders it."""

    row: Row
    chunk: int
    score: float
    lexical: float
    dense: float


class _Clock:
    """Milliseconds per step."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}
        self._began = self._last = time.perf_counter()

    def mark(self, step: str) -> None:
        now = time.perf_counter()
        self.steps[step] = (now - self._last) * 1000
        self.steps["total"] = (now - self._began) * 1000
        self._last = now


class Retriever:
    """Answers questions over one open index; keeps what questions share."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._encoder: Encoder | None = open_encoder(index.settings)
        self._words_only = self._encoder is not None and self._encoder.words_only
        self._languages = index.languages()

    def search(self, request: SearchRequest) -> SearchResult:
        """The best `request.k` chunks for the question.

        Raises UsageError for a mode, fusion or alpha that means nothing here, and
        IndexUnavailable in its kinds.
        """
        clock = _Clock()
        mode = self._mode(request)
        alpha = self._alpha(request, mode)
        index = self._index
        segments = index.segments(vectors=mode != "lexical")
        words = parse_question(request.question, self._languages)
        allowed = self._allowed(segments, request.paths)
        clock.mark("open")
        lexical = None if mode == "dense" else LexicalLeg(segments, words)
        if lexical:
            clock.mark("lexical")
        depth = max(DEPTH if request.fusion == "mix" else RRF_DEPTH, request.k)
        ranked: list[_Candidate] = []
        dense: DenseLeg | None = None
        while True:
            if mode != "lexical":
                assert self._encoder is not None
                reach = lexical.matching(allowed) if lexical and self._words_only else allowed
                dense = DenseLeg(segments, self._encoder, request.question, reach, depth)
                clock.mark("dense")
            ranked = self._rank(segments, lexical, dense, allowed, request.fusion, alpha, depth)
            chosen = self._cut(ranked, request)
            enough = len(chosen) >= request.k or len(ranked) < depth
            if enough or request.max_per_file is None:
                break
            depth *= 4
        clock.mark("fuse")
        hits = self._hits(chosen, lexical, dense, allowed)
        chunks, embedded = index.counts()
        clock.mark("fetch")
        return SearchResult(
            question=request.question,
            hits=hits,
            mode=mode,
            fusion=request.fusion,
            alpha=alpha,
            terms=tuple(word.text for word in words),
            chunks=chunks,
            embedded=embedded,
            problems=index.problem_count,
            timings_ms=clock.steps,
        )

    def _mode(self, request: SearchRequest) -> str:
        mode = request.mode or ("hybrid" if self._encoder else "lexical")
        if mode not in MODES:
            raise UsageError(f"no mode is named {mode}", f"use one of {', '.join(MODES)}")
        if request.fusion not in FUSIONS:
            raise UsageError(
                f"no fusion is named {request.fusion}", f"use one of {', '.join(FUSIONS)}"
            )
        if mode != "lexical" and self._encoder is None:
            raise UsageError(
                f"--mode {mode} needs vectors, and this index was made with --encoder none",
                "ragcli index --encoder hash",
            )
        return mode

    def _alpha(self, request: SearchRequest, mode: str) -> float | None:
        if request.alpha is not None and not 0.0 <= request.alpha <= 1.0:
            raise UsageError(f"--alpha {request.alpha} is not between 0 and 1")
        if mode != "hybrid" or request.fusion != "mix":
            return None
        assert self._encoder is not None
        return self._encoder.dense_weight if request.alpha is None else request.alpha

    def _allowed(self, segments: Sequence[OpenSegment], globs: Sequence[str]) -> Allowed:
        if not globs:
            return [None] * len(segments)
        if not all(glob.strip() for glob in globs):
            raise UsageError("--path is empty", "leave it out, or name files: --path 'docs/*.md'")
        documents = self._index.documents_at(globs)
        return [np.isin(segment.documents, documents) for segment in segments]

    def _rank(
        self,
        segments: Sequence[OpenSegment],
        lexical: LexicalLeg | None,
        dense: DenseLeg | None,
        allowed: Allowed,
        fusion: str,
        alpha: float | None,
        depth: int,
    ) -> list[_Candidate]:
        """Every candidate of either retriever, best first, ties in no order yet."""
        legs = [leg.best(allowed, depth) for leg in (lexical,) if leg]
        legs += [leg.best() for leg in (dense,) if leg]
        rows = list(dict.fromkeys(row for best in legs for row, _ in best))
        if not rows:
            return []
        by_word = np.array([lexical.score(row) if lexical else 0.0 for row in rows])
        by_vector = np.array(dense.scores(rows) if dense else [0.0] * len(rows), np.float64)
        if not (lexical and dense):
            scores = by_word if lexical else by_vector
        elif fusion == "rrf":
            scores = reciprocal_rank([_ranks(best, rows) for best in legs])
        else:
            population = _population(segments, allowed)
            scaled = [
                scale(np.nan_to_num(values), _lowest(best, population))
                for values, best in zip((by_word, by_vector), legs, strict=True)
            ]
            assert alpha is not None
            scores = mix(scaled[0], scaled[1], alpha)
        order = np.lexsort((-np.nan_to_num(by_vector), -by_word, -scores))
        return [
            _Candidate(
                rows[i],
                int(segments[rows[i][0]].chunks[rows[i][1]]),
                float(scores[i]),
                float(by_word[i]),
                float(by_vector[i]),
            )
            for i in order.tolist()
        ]

    def _cut(self, ranked: list[_Candidate], request: SearchRequest) -> list[_Candidate]:
        """The first k in order, at most so many of one file or record."""
        if request.max_per_file is None and len(ranked) > request.k > 0:
            least = ranked[request.k - 1].score
            ranked = [candidate for candidate in ranked if candidate.score >= least]
        places = self._index.places(candidate.chunk for candidate in ranked)
        ordered = sorted(ranked, key=lambda c: (-c.score, -c.lexical, places[c.chunk]))
        if request.max_per_file is not None:
            seen: Counter[bytes] = Counter()
            kept = []
            for candidate in ordered:
                document = places[candidate.chunk].path
                seen[document] += 1
                if seen[document] <= request.max_per_file:
                    kept.append(candidate)
            ordered = kept
        return ordered[: request.k]

    def _hits(
        self,
        chosen: Sequence[_Candidate],
        lexical: LexicalLeg | None,
        dense: DenseLeg | None,
        allowed: Allowed,
    ) -> tuple[Hit, ...]:
        stored = self._index.chunks(candidate.chunk for candidate in chosen)
        weights: Scores = softmax(np.array([candidate.score for candidate in chosen]))
        root = self._index.root
        hits = []
        for rank, candidate in enumerate(chosen, 1):
            found = stored[candidate.chunk]
            vector = None if np.isnan(candidate.dense) else candidate.dense
            hits.append(
                Hit(
                    rank=rank,
                    chunk=candidate.chunk,
                    path=found.path,
                    start=found.chunk.start,
                    end=found.chunk.end,
                    text=found.chunk.text,
                    score=candidate.score,
                    weight=float(weights[rank - 1]),
                    lines=found.chunk.lines,
                    page=found.chunk.page,
                    heading=found.chunk.heading,
                    title=found.title,
                    record=found.record,
                    lexical=Leg(lexical.rank(candidate.row, allowed), candidate.lexical)
                    if lexical
                    else None,
                    dense=Leg(dense.rank(vector), vector) if dense else None,
                    terms=lexical.terms(candidate.row) if lexical else (),
                    stale=is_stale(root, found),
                )
            )
        return tuple(hits)


def is_stale(root: Path | None, found: StoredChunk) -> bool | None:
    """Whether the file differs from what was indexed; None where the sources are not here."""
    if root is None:
        return None
    try:
        now = os.stat(root / found.file)
    except OSError:
        return True
    return (now.st_size, now.st_mtime_ns) != (found.size, found.mtime_ns)


def _population(segments: Sequence[OpenSegment], allowed: Allowed) -> int:
    """How many live chunks may be hits."""
    return sum(
        segment.live_rows
        if may is None
        else int(np.count_nonzero(may if segment.live is None else may & segment.live))
        for segment, may in zip(segments, allowed, strict=True)
    )


def _lowest(best: Sequence[tuple[Row, float]], population: int) -> float:
    """The score of the DEPTH-th chunk: 0 where fewer match, for the others score nothing."""
    if len(best) >= DEPTH:
        return best[DEPTH - 1][1]
    return best[-1][1] if best and len(best) == population else 0.0


def _ranks(best: Sequence[tuple[Row, float]], rows: Sequence[Row]) -> NDArray[np.int64]:
    """Rank from 1 to RRF_DEPTH of each of `rows` in one retriever, shared by equals; 0 below."""
    ranks: dict[Row, int] = {}
    for place, (row, score) in enumerate(best, 1):
        tied = place > 1 and best[place - 2][1] == score
        ranks[row] = ranks[best[place - 2][0]] if tied else place
        if ranks[row] > RRF_DEPTH:
            del ranks[row]
            break
    return np.array([ranks.get(row, 0) for row in rows], np.int64)
