"""What would have brought a passage in: changes that were tried, each with the rank it gives.

Every remedy is the outcome of a search with the change made, but for smaller passages, which are
scored as if they stood beside the rest of the index. Tells nothing that it did not try.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ragcli.records import SearchRequest
from ragcli.retrieval.asked import allowed_rows
from ragcli.retrieval.legs import LexicalLeg
from ragcli.retrieval.question import Word, parse_question
from ragcli.retrieval.ranking import Ranking
from ragcli.retrieval.retriever import RERANKED, Retriever
from ragcli.store.contents import language_of
from ragcli.store.index import Index
from ragcli.store.languages import DEFAULT
from ragcli.store.terms import Analyzer, surfaces

MOST = 1000
"""A k beyond this is no remedy."""

_WORDS_TRIED = 3
_WAYS = (("hybrid", "mix"), ("lexical", "mix"), ("dense", "mix"), ("hybrid", "rrf"))
_PARTS = (2, 3)
_SHORTEST = 20
"""Words of a passage below which smaller ones are not tried."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that brings the passage to `rank`, within k.

    `kind` is `k`, `mode`, `path`, `max_per_file`, `budget`, `word` or `chunk`; `change` says it as
    it would be typed. `estimate`: not tried in the index, which would have to be made anew.
    """

    kind: str
    change: str
    rank: int
    estimate: bool = False


class Trials:
    """Searches for one passage under changed requests."""

    def __init__(
        self, index: Index, retriever: Retriever, request: SearchRequest, chunk: int
    ) -> None:
        self._index = index
        self._retriever = retriever
        self._request = request
        self._chunk = chunk

    def remedies(self, text: str) -> Iterator[Remedy]:
        """The changes that help, cheapest first; `text` is the passage's."""
        if self._request.paths and not self._admitted():
            yield from self._without_paths()
            return
        if k := self.smallest_k():
            yield Remedy("k", f"-k {k}", k)
        yield from self._per_file()
        if self._request.rerank is None:
            yield from self._modes()
            yield from self._smaller(text)
            yield from self._words(text)

    def rank(self, request: SearchRequest) -> int | None:
        """Where the passage stands among the hits of `request`, None where it is none."""
        ranking = self._retriever.ranking(request)
        chosen = self._retriever.chosen(ranking, request)
        return next((i for i, c in enumerate(chosen, 1) if c.chunk == self._chunk), None)

    def smallest_k(self) -> int | None:
        """The least k up to MOST that makes the passage a hit."""
        request = self._request
        if request.rerank is not None:
            return self.rank(replace(request, k=max(request.k, RERANKED)))
        return self.rank(replace(request, k=MOST))  # k never changes the order

    def _admitted(self) -> bool:
        return self._retriever.ranking(self._request).asked.admits(self._chunk)

    def _without_paths(self) -> Iterator[Remedy]:
        self._request = replace(self._request, paths=())
        if rank := self.rank(self._request):
            yield Remedy("path", "without --path", rank)
        elif k := self.smallest_k():
            yield Remedy("path", f"without --path, and -k {k}", k)

    def _per_file(self) -> Iterator[Remedy]:
        request = self._request
        if request.max_per_file is None:
            return
        for most in range(request.max_per_file + 1, request.k + 1):
            if rank := self.rank(replace(request, max_per_file=most)):
                yield Remedy("max_per_file", f"--max-per-file {most}", rank)
                return

    def _modes(self) -> Iterator[Remedy]:
        if self._index.settings.encoder == "none":
            return
        request = self._request
        now = request.mode or "hybrid", request.fusion
        for mode, fusion in _WAYS:
            if (mode, fusion) == now or (mode == now[0] and mode != "hybrid"):
                continue  # the fusion says nothing to one retriever
            if rank := self.rank(replace(request, mode=mode, fusion=fusion, alpha=None)):
                changes = [f"--mode {mode}"] if mode != now[0] else []
                changes += [f"--fusion {fusion}"] if mode == "hybrid" and fusion != now[1] else []
                without = ", without --alpha" if request.alpha is not None else ""
                yield Remedy("mode", " ".join(changes) + without, rank)

    def _smaller(self, text: str) -> Iterator[Remedy]:
        """Were the passage cut into halves or thirds, would one of them be a hit?"""
        words = text.split()
        ranking = self._retriever.ranking(self._request)
        language = language_of(self._index, self._chunk) or DEFAULT
        for parts in _PARTS:
            size = -(-len(words) // parts)
            if size < _SHORTEST:
                return
            texts = [
                self._scores(ranking, " ".join(words[start : start + size]), language)
                for start in range(0, len(words) - size // 2, max(1, size // 2))
            ]
            ranks = ranking.would_rank(self._request.k, texts)
            best = min((rank for rank in ranks if rank), default=MOST)
            if best <= self._request.k:
                yield Remedy("chunk", f"ragcli index --chunk auto:{size}", best, estimate=True)
                return

    def _scores(self, ranking: Ranking, text: str, language: str) -> tuple[float, float | None]:
        by_word, by_vector = 0.0, None
        if ranking.lexical:
            postings = Analyzer().postings([text], [language])
            counts = dict(zip(postings.names, postings.counts.tolist(), strict=True))
            by_word = ranking.lexical.of_text(counts, int(postings.lengths[0]))
        if ranking.dense and ranking.asked.encoder:
            by_vector = ranking.dense.of_text(ranking.asked.encoder.encode_documents([text]))
        return by_word, by_vector

    def _words(self, text: str) -> Iterator[Remedy]:
        """The first of the passage's weightiest words that, added to the question, brings it in."""
        question = self._request.question
        asked = {variant for word in self._parsed(question) for variant in word.variants}
        there = [
            word
            for word in self._parsed(" ".join(surfaces(text)))
            if asked.isdisjoint(word.variants) and word.text.isalpha()
        ]
        segments = self._index.view().postings
        leg = LexicalLeg(segments, there, allowed_rows(segments, None))
        for share in leg.terms(self._chunk)[:_WORDS_TRIED]:
            rank = self.rank(replace(self._request, question=f"{question} {share.term}"))
            if rank:
                yield Remedy("word", f"with the word “{share.term}” in the question", rank)
                return

    def _parsed(self, text: str) -> tuple[Word, ...]:
        return parse_question(text, self._index.languages())
