"""Why a passage came back for a question, or did not: its way from the file to the prompt.

Owns the trace and its verdict. Looks with the retriever's own eyes: the ranks told here are those
by which `query` orders. What would have helped is `remedies`'; the words to show are `cli`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ragcli.inspection.find_text import find_text
from ragcli.inspection.remedies import Remedy, Trials
from ragcli.inspection.standing import Standing, best_placed, place_in_file, standing_of
from ragcli.inspection.targets import Target
from ragcli.records import Hit, Passage, Prompt, SearchRequest
from ragcli.retrieval.on_demand import ON_DEMAND
from ragcli.retrieval.ranking import Candidate, Ranking
from ragcli.retrieval.retriever import RERANKED, Retriever, is_stale
from ragcli.store.contents import passages, problems
from ragcli.store.index import Index

_SINCE = {
    True: "it has changed or gone since (ragcli index makes the index true again)",
    False: "unchanged since",
    None: "the sources are not here",
}
_WORDS_ONLY = "its encoder knows nothing but words"
_TRIED = {
    "below_k", "no_shared_word", "not_a_candidate", "no_vector", "reranked", "max_per_file",
    "filtered", "split",
}  # fmt: skip
"""Causes that another request may undo."""


@dataclass(frozen=True, slots=True)
class Step:
    """One station of the way; `passed` is None where it was not reached or says nothing."""

    name: str
    passed: bool | None
    told: str


@dataclass(frozen=True, slots=True)
class Rival:
    """A hit that stands where the passage might have."""

    rank: int
    score: float
    passage: Passage


@dataclass(frozen=True, slots=True)
class WhyReport:
    """`cause` is one of `in_prompt`, `over_budget`, `below_k`, `not_a_candidate`,
    `no_shared_word`, `reranked`, `max_per_file`, `filtered`, `no_vector`, `split`,
    `text_not_found`, `no_text`, `no_passage`, `not_indexed_yet`, `left_out`, `skipped`, `failed`;
    `because` says it in a sentence.

    `passages`: how many the target means, of which the best placed is traced.
    """

    question: str
    target: str | None
    text: str | None
    cause: str
    because: str
    steps: tuple[Step, ...]
    passage: Passage | None
    passages: int
    standing: Standing | None
    k: int
    hits: tuple[Rival, ...]
    remedies: tuple[Remedy, ...]


Packed = Callable[[Sequence[Hit], "int | None"], Prompt]
"""The prompt of some hits within a budget of tokens, None for no limit."""


def why(
    index: Index,
    retriever: Retriever,
    request: SearchRequest,
    target: Target | None,
    text: str | None,
    *,
    packed: Packed,
    budget: int | None = None,
    remedied: bool = True,
) -> WhyReport:
    """Trace the passage that `target` means, or the one, of it or of all, that holds `text`.

    Remedies are looked for where `remedied`: that takes longer than the rest. Raises UsageError
    and IndexUnavailable in its kinds, as a search does.
    """
    packed((), budget)  # raises where not even a prompt without passages fits
    trace = _Trace(index, retriever, request, packed, budget)
    cause, because = trace.go(target, text)
    remedies = trace.remedies
    if remedied and trace.passage and cause in _TRIED:
        trials = Trials(index, retriever, request, trace.passage.chunk)
        remedies += trials.remedies(trace.passage.text)
    return WhyReport(
        question=request.question,
        target=target.given if target else None,
        text=text,
        cause=cause,
        because=because,
        steps=tuple(trace.steps),
        passage=trace.passage,
        passages=trace.passages,
        standing=trace.standing,
        k=request.k,
        hits=tuple(map(_rival, trace.hits)),
        remedies=tuple(remedies),
    )


Verdict = tuple[str, str]
"""(cause, the sentence that says it)."""


class _Trace:
    """The way as far as it was gone."""

    def __init__(
        self,
        index: Index,
        retriever: Retriever,
        request: SearchRequest,
        packed: Packed,
        budget: int | None,
    ) -> None:
        self._index = index
        self._retriever = retriever
        self._request = request
        self._packed = packed
        self._budget = budget
        self.steps: list[Step] = []
        self.passages = 0
        self.passage: Passage | None = None
        self.standing: Standing | None = None
        self.hits: tuple[Hit, ...] = ()
        self.remedies: list[Remedy] = []

    def _step(self, name: str, passed: bool | None, told: str) -> None:
        self.steps.append(Step(name, passed, told))

    def _stop(self, name: str, cause: str, told: str) -> Verdict:
        self._step(name, False, told)
        return cause, told

    def go(self, target: Target | None, text: str | None) -> Verdict:
        """From the file to the prompt, or to where the way ends."""
        chunks: Sequence[int] = target.chunks if target else ()
        if target is not None and (ended := self._see(target)):
            return ended
        split: tuple[int, ...] = ()
        if text is not None:
            found = find_text(self._index, text, chunks if target else None)
            chunks, split = found.chunks or found.split, found.split
            if not chunks:
                where = target.given if target else "the index"
                other = f"; passage {found.elsewhere} does" if found.elsewhere else ""
                return self._stop(
                    "passage", "text_not_found", f"no passage of {where} holds “{text}”{other}"
                )
        ended = self._stand(chunks)
        if split and not self._in_prompt(split):
            told = f"the text is split: it begins in passage {split[0]} and ends in {split[-1]}"
            return self._stop("passage", "split", told)
        return ended

    def _in_prompt(self, chunks: Sequence[int]) -> bool:
        """Whether all of `chunks` are in the prompt."""
        included = self._packed(self.hits, self._budget).included
        return {hit.chunk for hit in self.hits if hit.rank in included}.issuperset(chunks)

    def _see(self, target: Target) -> Verdict | None:
        """Was the file seen, and read, and does a passage hold what is meant?"""
        path, file = target.path or target.given, target.file
        told = target.detail or target.why or ""
        if file is None:
            if target.why == "no such chunk":
                return self._stop("file", "no_passage", f"no passage has the number {path}")
            new = told.startswith("ragcli index has not run")
            cause = "not_indexed_yet" if new else "left_out"
            return self._stop("file", cause, f"{path} is not in the index: {told}")
        ledger = [problem for problem, _ in problems(self._index, file.id)]
        if file.state != "indexed":
            word = "could not be read" if file.state == "failed" else "was left out"
            why = "; ".join(problem.message for problem in ledger) or told
            return self._stop("file", file.state, f"{path} {word}: {why}")
        stale = is_stale(self._index, file.path, file.size, file.mtime_ns)
        self._step("file", True, f"{path} was read, {file.size:,} bytes; {_SINCE[stale]}")
        if target.chunks:
            return None
        lost = [problem for problem in ledger if target.page and problem.page == target.page]
        if lost:
            told = f"{path}, page {target.page}: {lost[0].message}"
            return self._stop("passage", lost[0].kind, told)
        if target.near:
            told += f"; around it: {_listed(target.near)}"
        elif ledger and target.why == "file has no passage":
            told += f" ({'; '.join(problem.message for problem in ledger)})"
        return self._stop("passage", "no_passage", f"{target.given}: {told}")

    def _stand(self, chunks: Sequence[int]) -> Verdict:
        """The best placed of `chunks`: its standing, and what filters and cuts make of it."""
        request = self._request
        ranking = self._retriever.ranking(request)
        chosen = self._retriever.chosen(ranking, request)
        self.hits = self._retriever.hits(ranking, chosen)
        admitted = [chunk for chunk in chunks if ranking.asked.admits(chunk)]
        if not admitted:
            ranking = self._retriever.ranking(replace(request, paths=()))
        ordered = ranking.ordered(ranking.candidates(ranking.depth(request.k)))
        self.passages = len(chunks)
        chunk = best_placed(ranking, ordered, admitted or chunks)
        self.passage = passages(self._index, [chunk])[chunk]
        many = f"{len(chunks):,} passages are meant; the best placed is " if chunks[1:] else ""
        self._step(
            "passage", True, f"{many}number {chunk}, {len(self.passage.text.split()):,} words"
        )
        self.standing = standing_of(ranking, ordered, chunk, chosen)
        self._tell_standing(ranking, self.standing)
        if request.paths:
            globs = " ".join(f"--path '{glob}'" for glob in request.paths)
            if not admitted:
                return self._stop("filter", "filtered", f"{globs} leaves {self.passage.path} out")
            self._step("filter", True, f"{globs} lets it through")
        return self._cut(ranking, self.standing, ordered, chosen)

    def _tell_standing(self, ranking: Ranking, standing: Standing) -> None:
        if standing.lexical is not None:
            rank = standing.lexical.rank
            has = ", ".join(share.term for share in standing.terms if share.count)
            lacks = ", ".join(share.term for share in standing.terms if not share.count)
            told = f"rank {rank:,}; it has {has}" if rank else "it has no word of the question"
            self._step("words", rank is not None, told + (f"; it lacks {lacks}" if lacks else ""))
        if standing.dense is not None:
            rank, score = standing.dense.rank, standing.dense.score
            if rank:
                told = f"rank {rank:,} of {ranking.asked.population:,}"
            else:
                told = "no vector yet" if score is None else _WORDS_ONLY
            self._step("meaning", rank is not None, told)
        if standing.parts is not None:
            told = (
                f"rank {standing.rank:,} of {standing.candidates:,} candidates"
                if standing.rank
                else "no candidate"
            )
            self._step("fusion", standing.rank is not None, told)

    def _cut(
        self,
        ranking: Ranking,
        standing: Standing,
        ordered: Sequence[Candidate],
        chosen: Sequence[Candidate],
    ) -> Verdict:
        """From the candidates to the hits."""
        assert self.passage is not None
        request, chunk = self._request, self.passage.chunk
        rank = next((i for i, c in enumerate(chosen, 1) if c.chunk == chunk), None)
        if rank is not None:
            self._step("cut", True, f"hit {rank} of -k {request.k}")
            return self._pack(rank)
        if standing.rank is None:
            return self._stop("cut", *self._no_candidate(ranking, standing))
        if request.max_per_file is not None:
            place = place_in_file(self._index, ordered, chunk)
            if place > request.max_per_file:
                most = request.max_per_file
                told = f"{place - 1} of its file stand before it: --max-per-file {most}"
                return self._stop("per file", "max_per_file", told)
            self._step("per file", True, f"number {place} of its file")
        if request.rerank is not None and standing.rank <= max(RERANKED, request.k):
            told = f"the reranker puts it below -k {request.k}; it was {standing.rank} before"
            return self._stop("rerank", "reranked", told)
        last = f"; the last hit has {chosen[-1].score:.3f}" if chosen else ""
        told = f"rank {standing.rank:,} is below -k {request.k}{last}"
        wordless = standing.lexical is not None and standing.lexical.rank is None
        if wordless:
            told = f"no word of the question stands in it; {told}"
        return self._stop("cut", "no_shared_word" if wordless else "below_k", told)

    def _no_candidate(self, ranking: Ranking, standing: Standing) -> Verdict:
        """Why a passage was not even looked at by the fusion."""
        depth = ranking.depth(self._request.k)
        wordless = standing.lexical is not None and standing.lexical.rank is None
        meaning = standing.dense
        if meaning is not None and meaning.score is None:
            told = (
                f"it has no vector yet, and is not among the lexical best {ON_DEMAND} that get one"
            )
            return "no_vector", told
        if wordless:
            told = "no word of the question stands in it"
            if meaning is not None:
                far = (
                    f"by meaning it is only number {meaning.rank:,}"
                    if meaning.rank
                    else _WORDS_ONLY
                )
                told += f", and {far}"
            return "no_shared_word", told
        legs = (("words", standing.lexical), ("meaning", meaning))
        ranks = [f"{leg.rank:,} by {name}" for name, leg in legs if leg and leg.rank]
        return "not_a_candidate", f"rank {' and '.join(ranks)}: beyond the best {depth:,}"

    def _pack(self, rank: int) -> Verdict:
        """From the hits into the prompt."""
        prompt = self._packed(self.hits, self._budget)
        if rank in prompt.included:
            self._step("prompt", True, f"[{rank}] in the prompt of about {prompt.tokens:,} tokens")
            return "in_prompt", f"it is hit {rank} and in the prompt"
        needed = self._packed(self.hits[:rank], None).tokens
        if rank in self._packed(self.hits, needed).included:
            self.remedies.append(Remedy("budget", f"--budget {needed}", rank))
        told = f"--budget {self._budget} leaves no room for hit {rank}"
        return self._stop("prompt", "over_budget", told)


def _rival(hit: Hit) -> Rival:
    passage = Passage(
        hit.chunk, hit.path, hit.start, hit.end, hit.text, hit.lines, hit.page, hit.heading
    )
    return Rival(hit.rank, hit.score, passage)


def _listed(chunks: Sequence[int]) -> str:
    return " and ".join(map(str, chunks))
