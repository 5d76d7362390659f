"""The read path: a question to ranked, explained hits.

Owns candidates, fusion, the cut at k and the order: score down; where fused scores are equal
(both retrievers' tails are 0) lexical score down; then path and offset up. Scores come
from `legs`, text and places from `store.index`. Prints nothing; writes only what `keep` keeps.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragcli.encoders import Encoder, open_encoder
from ragcli.errors import ModelUnavailable, UsageError
from ragcli.records import Hit, Leg, SearchRequest, SearchResult
from ragcli.retrieval.fusion import (
    DEPTH,
    RRF_DEPTH,
    Scores,
    beside,
    mix,
    reciprocal_rank,
    scale,
    softmax,
    weight_of,
)
from ragcli.retrieval.legs import Allowed, Best, DenseLeg, Ids, LexicalLeg
from ragcli.retrieval.on_demand import ON_DEMAND, OnDemand
from ragcli.retrieval.question import parse_question
from ragcli.store.folder import ENCODER
from ragcli.store.index import Index, StoredChunk
from ragcli.store.rows import OpenSegment
from ragcli.store.vectors import Vector

if TYPE_CHECKING:
    from ragcli.retrieval.rerank import Reranker

MODES = ("hybrid", "dense", "lexical")
FUSIONS = ("mix", "rrf")
RERANKED = 50
"""The best so many are read again by `--rerank`; more where more are asked for."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A chunk with all that orders it."""

    chunk: int
    score: float
    lexical: float
    dense: float
    neighbour: float
    rerank: float | None = None


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
        self._on_demand: OnDemand | None = None
        self._languages = index.languages()
        self._beside = ThreadPoolExecutor(1)
        self._reranker: Reranker | None = None

    @cached_property
    def _encoder(self) -> Encoder | None:
        """Opened when a question needs it: the lexical retriever works without the model."""
        encoder = open_encoder(self._index.settings, self._index.path / ENCODER)
        if encoder and not encoder.inline:
            self._on_demand = OnDemand(self._index, encoder)
        return encoder

    def _encode(self, encoder: Encoder, known: str | None, question: str) -> Vector:
        """The question's vector. Raises ModelUnavailable where the model is not the index's."""
        if known is not None and known != encoder.fingerprint:
            raise ModelUnavailable(
                f"{encoder.name} has changed since the index was made with it",
                "ragcli index   (or ask with --mode lexical)",
            )
        return encoder.encode_query(question)

    def search(self, request: SearchRequest) -> SearchResult:
        """The best `request.k` chunks for the question.

        Raises UsageError for a mode, fusion or alpha that means nothing here, and
        IndexUnavailable in its kinds.
        """
        clock = _Clock()
        mode = self._mode(request)
        alpha = self._alpha(request, mode)
        index = self._index
        question = None
        if mode != "lexical" and self._encoder:
            # Beside the lexical retriever: the first question waits for the model to be loaded.
            question = self._beside.submit(
                self._encode, self._encoder, index.encoder, request.question
            )
        view = index.view(scoring=mode != "lexical")
        words = parse_question(request.question, self._languages)
        allowed = self._allowed(view.postings, request.paths)
        clock.mark("open")
        on_demand = self._on_demand if mode != "lexical" else None
        lexical: LexicalLeg | None = None
        embedded_now = 0
        if mode != "dense" or on_demand:
            lexical = LexicalLeg(view.postings, words, allowed)
            clock.mark("lexical")
        if lexical and on_demand and question:
            question.result()  # the model is loaded once, and is the index's
            best = [chunk for chunk, _ in lexical.best(ON_DEMAND)[:ON_DEMAND]]
            embedded_now = on_demand.make(np.array(best, np.int64))
            clock.mark("embed")
        lexical = None if mode == "dense" else lexical
        reach = self._reach(view.postings, lexical, allowed) if question else None
        population = _population(view.postings, allowed)
        depth = max(DEPTH if request.fusion == "mix" else RRF_DEPTH, request.k)
        ranked: list[_Candidate] = []
        dense: DenseLeg | None = None
        while True:
            if question:
                assert self._encoder is not None
                dense = DenseLeg(view.vectors, self._encoder, question.result(), reach, depth)
                if on_demand:
                    on_demand.add_to(dense, reach)
                clock.mark("dense")
            ranked = self._rank(lexical, dense, population, request.fusion, alpha, depth)
            wanted = request.k if request.rerank is None else max(RERANKED, request.k)
            chosen = self._cut(ranked, wanted, request.max_per_file)
            enough = len(chosen) >= wanted or len(ranked) < depth
            if enough or request.max_per_file is None:
                break
            depth *= 4
        clock.mark("fuse")
        if request.rerank is not None:
            chosen = self._reranked(chosen, request.rerank, request.question)[: request.k]
            clock.mark("rerank")
        hits = self._hits(chosen, lexical, dense)
        clock.mark("fetch")
        return SearchResult(
            question=request.question,
            hits=hits,
            mode=mode,
            fusion=request.fusion,
            alpha=alpha,
            terms=tuple(word.text for word in words),
            chunks=view.chunks,
            embedded=view.embedded,
            problems=index.problem_count,
            timings_ms=clock.steps,
            cut=self._reranker.cut if request.rerank and self._reranker else 0,
            embedded_now=embedded_now,
        )

    def keep(self) -> bool:
        """Store the vectors that questions had to be given; False where that cannot be now.

        It needs the index no longer to be open, and is quickest when it is not.
        """
        return self._on_demand is None or self._on_demand.keep()

    def _mode(self, request: SearchRequest) -> str:
        without = self._index.settings.encoder == "none"
        mode = request.mode or ("lexical" if without else "hybrid")
        if mode not in MODES:
            raise UsageError(f"no mode is named {mode}", f"use one of {', '.join(MODES)}")
        if request.fusion not in FUSIONS:
            raise UsageError(
                f"no fusion is named {request.fusion}", f"use one of {', '.join(FUSIONS)}"
            )
        if mode != "lexical" and without:
            raise UsageError(
                f"--mode {mode} needs vectors, and this index was made with --encoder none",
                "ragcli index --encoder minilm",
            )
        return mode

    def _alpha(self, request: SearchRequest, mode: str) -> float | None:
        if request.alpha is not None and not 0.0 <= request.alpha <= 1.0:
            raise UsageError(f"--alpha {request.alpha} is not between 0 and 1")
        if mode != "hybrid" or request.fusion != "mix":
            return None
        assert self._encoder is not None
        if request.alpha is not None:
            return request.alpha
        return weight_of(self._encoder.dense_weight, self._index.pieces_per_word)

    def _allowed(self, segments: Sequence[OpenSegment], globs: Sequence[str]) -> Allowed:
        if not globs:
            return [None] * len(segments)
        if not all(glob.strip() for glob in globs):
            raise UsageError("--path is empty", "leave it out, or name files: --path 'docs/*.md'")
        documents = self._index.documents_at(globs)
        return [np.isin(segment.documents, documents) for segment in segments]

    def _reach(
        self, segments: Sequence[OpenSegment], lexical: LexicalLeg | None, allowed: Allowed
    ) -> Ids | None:
        """The chunks that the dense leg may find, None for all.

        Beside the lexical leg, an encoder that knows words alone keeps to what has such a word.
        """
        if lexical and self._encoder and self._encoder.words_only:
            return lexical.matching
        masks = [mask for mask in allowed if mask is not None]
        if len(masks) < len(segments) or not segments:
            return None
        return np.concatenate([s.chunks[may] for s, may in zip(segments, masks, strict=True)])

    def _rank(
        self,
        lexical: LexicalLeg | None,
        dense: DenseLeg | None,
        population: int,
        fusion: str,
        alpha: float | None,
        depth: int,
    ) -> list[_Candidate]:
        """Every candidate of either retriever, best first, ties in no order yet."""
        words = lexical.best(depth) if lexical else []
        vectors = dense.best() if dense else []
        chunks = np.array(list(dict.fromkeys(c for c, _ in (*words, *vectors))), np.int64)
        by_word = lexical.scores(chunks) if lexical else np.zeros(len(chunks))
        by_vector = dense.scores(chunks) if dense else np.full(len(chunks), np.nan)
        by_neighbour = np.zeros(len(chunks))
        if not (lexical and dense):
            scores = by_word if lexical else by_vector
        elif fusion == "rrf":
            scores = reciprocal_rank([_ranks(best, chunks) for best in (words, vectors)])
        else:
            assert alpha is not None
            assert self._encoder is not None
            # Of a weighted encoder what shares nothing with the question scores 0 and is no
            # candidate. Of any other every chunk with a vector is one, and its score may be
            # below 0: where fewer than DEPTH have a vector, the last of them is the 0 of the
            # scale, and what has none stands beside it.
            whole = population if self._encoder.weighted else len(vectors)
            scores = mix(
                scale(by_word, _lowest(words, population)),
                scale(by_vector, _lowest(vectors, whole)),
                alpha,
            )
            by_neighbour = beside(scores, self._adjacent(chunks))
            scores = scores + by_neighbour
        order = np.lexsort((-np.nan_to_num(by_vector, nan=-np.inf), -by_word, -scores))
        columns = (chunks, scores, by_word, by_vector, by_neighbour)
        return [
            _Candidate(*values)
            for values in zip(*(column[order].tolist() for column in columns), strict=True)
        ]

    def _adjacent(self, chunks: Ids) -> list[tuple[int, int]]:
        """Places in `chunks` of those that stand one behind the other in a document."""
        place = {chunk: i for i, chunk in enumerate(chunks.tolist())}
        pairs = self._index.followers(list(place))
        return [(place[a], place[b]) for a, b in pairs.items() if b in place]

    def _reranked(
        self, chosen: Sequence[_Candidate], model: str, question: str
    ) -> list[_Candidate]:
        """`chosen` with the cross-encoder's scores and in their order; equals stay as they were."""
        from ragcli.retrieval.rerank import Reranker

        if self._reranker is None or self._reranker.name != model:
            self._reranker = Reranker(model, self._index.settings.device)
        stored = self._index.chunks(candidate.chunk for candidate in chosen)
        texts = [stored[candidate.chunk].chunk.text for candidate in chosen]
        scores = self._reranker.score(question, texts)
        again = [
            replace(candidate, score=score, rerank=score)
            for candidate, score in zip(chosen, scores, strict=True)
        ]
        return sorted(again, key=lambda candidate: -candidate.score)

    def _ordered(self, ranked: Sequence[_Candidate]) -> list[_Candidate]:
        """By score, then lexical score, then path and offset."""
        places = self._index.places(candidate.chunk for candidate in ranked)
        return sorted(ranked, key=lambda c: (-c.score, -c.lexical, places[c.chunk]))

    def _cut(self, ranked: list[_Candidate], k: int, max_per_file: int | None) -> list[_Candidate]:
        """The first k in order, at most so many of one file or record."""
        if max_per_file is None and len(ranked) > k > 0:
            least = ranked[k - 1].score
            ranked = [candidate for candidate in ranked if candidate.score >= least]
        ordered = self._ordered(ranked)
        if max_per_file is not None:
            seen: Counter[bytes] = Counter()
            kept = []
            places = self._index.places(candidate.chunk for candidate in ordered)
            for candidate in ordered:
                document = places[candidate.chunk].path
                seen[document] += 1
                if seen[document] <= max_per_file:
                    kept.append(candidate)
            ordered = kept
        return ordered[:k]

    def _hits(
        self,
        chosen: Sequence[_Candidate],
        lexical: LexicalLeg | None,
        dense: DenseLeg | None,
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
                    lexical=Leg(lexical.rank(candidate.lexical), candidate.lexical)
                    if lexical
                    else None,
                    dense=Leg(dense.rank(vector), vector) if dense else None,
                    neighbour=candidate.neighbour,
                    rerank=candidate.rerank,
                    terms=lexical.terms(candidate.chunk) if lexical else (),
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
    """Rank from 1 to RRF_DEPTH of each of `chunks` in one retriever, shared by equals; 0 below."""
    ranks: dict[int, int] = {}
    for place, (chunk, score) in enumerate(best, 1):
        tied = place > 1 and best[place - 2][1] == score
        ranks[chunk] = ranks[best[place - 2][0]] if tied else place
        if ranks[chunk] > RRF_DEPTH:
            del ranks[chunk]
            break
    return np.array([ranks.get(chunk, 0) for chunk in chunks.tolist()], np.int64)
