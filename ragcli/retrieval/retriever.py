"""The read path: a question to ranked, explained hits.

Owns what a request means here, the model that questions need, reranking, and hits with their
text and places. Candidates and their order are `ranking`'s, scores `legs`'. Prints nothing;
writes only what `keep` keeps.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ragcli.encoders import Encoder, open_encoder
from ragcli.errors import ModelUnavailable, UsageError
from ragcli.records import Hit, Leg, SearchRequest, SearchResult
from ragcli.retrieval.asked import Asked, allowed_rows
from ragcli.retrieval.fusion import softmax, weight_of
from ragcli.retrieval.legs import Ids
from ragcli.retrieval.on_demand import OnDemand
from ragcli.retrieval.question import parse_question
from ragcli.retrieval.ranking import Candidate, Ranking
from ragcli.store.folder import ENCODER
from ragcli.store.index import Index, StoredChunk
from ragcli.store.vectors import Vector

if TYPE_CHECKING:
    from ragcli.retrieval.rerank import Reranker

MODES = ("hybrid", "dense", "lexical")
FUSIONS = ("mix", "rrf")
RERANKED = 50
"""The best so many are read again by `--rerank`; more where more are asked for."""


class Clock:
    """Milliseconds per step."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}
        self._began = self._last = time.perf_counter()

    def mark(self, step: str) -> None:
        """The step that ends now."""
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
        self._asked: Asked | None = None
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
        clock = Clock()
        ranking = self.ranking(request, clock)
        chosen = self.chosen(ranking, request)
        clock.mark("fuse" if request.rerank is None else "rerank")
        hits = self.hits(ranking, chosen)
        clock.mark("fetch")
        asked = ranking.asked
        return SearchResult(
            question=request.question,
            hits=hits,
            mode=ranking.mode,
            fusion=request.fusion,
            alpha=ranking.alpha,
            terms=tuple(word.text for word in asked.words),
            chunks=asked.view.chunks,
            embedded=asked.view.embedded,
            problems=self._index.problem_count,
            timings_ms=clock.steps,
            cut=self._reranker.cut if request.rerank and self._reranker else 0,
            embedded_now=ranking.embedded_now,
        )

    def ranking(self, request: SearchRequest, clock: Clock | None = None) -> Ranking:
        """How the question's chunks are ranked, before the cut at k.

        What the last question had made for it is used again where this is the same question
        over the same paths. Raises as `search` does.
        """
        clock = clock or Clock()
        mode = self._mode(request)
        alpha = self._alpha(request, mode)
        asked = self._ask(request, scoring=mode != "lexical")
        clock.mark("open")
        if mode != "dense" or asked.on_demand:
            _ = asked.lexical
            clock.mark("lexical")
        made = asked.embed() if mode != "lexical" else 0
        if asked.on_demand:
            clock.mark("embed")
        ranking = Ranking(self._index, asked, mode, request.fusion, alpha, embedded_now=made)
        if ranking.dense:
            ranking.dense.best(ranking.depth(request.k))
            clock.mark("dense")
        return ranking

    def _ask(self, request: SearchRequest, *, scoring: bool) -> Asked:
        last = self._asked
        same = last and (last.question, last.paths) == (request.question, request.paths)
        if last and same and (last.vector or not scoring):
            return last
        vector = None
        encoder = self._encoder if scoring else None
        if encoder:
            # Beside the lexical retriever: the first question waits for the model to be loaded.
            vector = self._beside.submit(
                self._encode, encoder, self._index.encoder, request.question
            )
        view = self._index.view(scoring=scoring)
        self._asked = Asked(
            request.question,
            request.paths,
            view,
            parse_question(request.question, self._languages),
            allowed_rows(view.postings, self._documents(request.paths)),
            encoder,
            vector,
            self._on_demand if scoring else None,
        )
        return self._asked

    def _documents(self, globs: Sequence[str]) -> Ids | None:
        if not globs:
            return None
        if not all(glob.strip() for glob in globs):
            raise UsageError("--path is empty", "leave it out, or name files: --path 'docs/*.md'")
        return self._index.documents_at(globs)

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

    def chosen(self, ranking: Ranking, request: SearchRequest) -> list[Candidate]:
        """The candidates that become hits: the first k, in the reranker's order if asked."""
        if request.rerank is None:
            return ranking.best(request.k, request.max_per_file)
        best = ranking.best(max(RERANKED, request.k), request.max_per_file)
        return self._reranked(best, request.rerank, request.question)[: request.k]

    def _reranked(self, chosen: Sequence[Candidate], model: str, question: str) -> list[Candidate]:
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

    def hits(self, ranking: Ranking, chosen: Sequence[Candidate]) -> tuple[Hit, ...]:
        """`chosen`, in their order, as hits: with text, place, and where each score is from."""
        stored = self._index.chunks(candidate.chunk for candidate in chosen)
        weights = softmax(np.array([candidate.score for candidate in chosen])).tolist()
        return tuple(
            _hit(ranking, candidate, rank, weight, stored[candidate.chunk], self._index)
            for rank, (candidate, weight) in enumerate(zip(chosen, weights, strict=True), 1)
        )


def _hit(
    ranking: Ranking,
    candidate: Candidate,
    rank: int,
    weight: float,
    found: StoredChunk,
    index: Index,
) -> Hit:
    lexical, dense = ranking.lexical, ranking.dense
    vector = None if np.isnan(candidate.dense) else candidate.dense
    return Hit(
        rank=rank,
        chunk=candidate.chunk,
        path=found.path,
        start=found.chunk.start,
        end=found.chunk.end,
        text=found.chunk.text,
        score=candidate.score,
        weight=weight,
        lines=found.chunk.lines,
        page=found.chunk.page,
        heading=found.chunk.heading,
        title=found.title,
        record=found.record,
        lexical=Leg(lexical.rank(candidate.lexical), candidate.lexical) if lexical else None,
        dense=Leg(dense.rank(vector), vector) if dense else None,
        parts=candidate.parts if lexical and dense else None,
        neighbour=candidate.neighbour,
        rerank=candidate.rerank,
        terms=lexical.terms(candidate.chunk) if lexical else (),
        stale=is_stale(index, found.file, found.size, found.mtime_ns),
    )


def is_stale(index: Index, path: str, size: int, mtime_ns: int) -> bool | None:
    """Whether the file is not as it was read; None where the sources are not here."""
    if index.root is None:
        return None
    where = index.source(path)
    if where is None:
        return True
    try:
        now = where.stat()
    except OSError:
        return True
    return (now.st_size, now.st_mtime_ns) != (size, mtime_ns)
