"""A file of questions asked of one index in one way: the run, judged and measured.

Owns which figures there are and how they are named. What is relevant is `gold`'s, what a hit holds
`relevance`'s, the formulas are `metrics`'.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ragcli.evaluation import metrics
from ragcli.evaluation.gold import Item
from ragcli.evaluation.questions import Question
from ragcli.evaluation.relevance import held
from ragcli.evaluation.statistics import interval, quantile
from ragcli.records import Hit, SearchRequest, SearchResult
from ragcli.retrieval.retriever import Retriever

Items = Mapping[str, Sequence[Item]]
"""The relevant items of each question, by its id."""


@dataclass(frozen=True, slots=True)
class Way:
    """How questions are asked: one cell of the grid. None means the index's default."""

    mode: str | None = None
    fusion: str = "mix"
    alpha: float | None = None
    rerank: str | None = None
    paths: tuple[str, ...] = ()
    max_per_file: int | None = None

    def request(self, question: str, k: int) -> SearchRequest:
        """The search for one question."""
        return SearchRequest(
            question, k, self.mode, self.fusion, self.alpha, self.paths, self.max_per_file,
            self.rerank,
        )  # fmt: skip

    @property
    def label(self) -> str:
        """As it is said on the command line; what is not said is left out."""
        said = {
            "mode": self.mode,
            "fusion": None if self.fusion == "mix" else self.fusion,
            "alpha": self.alpha,
            "rerank": self.rerank,
        }
        return " ".join(f"{name}={value}" for name, value in said.items() if value is not None)


@dataclass(frozen=True, slots=True)
class RunHit:
    """A hit as a run keeps it; `items` are the numbers of the relevant items that it holds."""

    rank: int
    chunk: int
    path: str
    start: int
    end: int
    lines: tuple[int, int] | None
    page: str | None
    score: float
    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question asked: its hits, its figures, how long it took.

    `relevant` are the items as written; `metrics` is empty for a question without an answer.
    """

    id: str
    question: str
    kind: str | None
    answerable: bool
    synthetic: bool
    relevant: tuple[str, ...]
    metrics: dict[str, float]
    hits: tuple[RunHit, ...]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over `questions` questions with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float
    questions: int


@dataclass(frozen=True, slots=True)
class Run:
    """All questions asked in one way; figures count those that have a relevant item.

    `words` is what the hits of a question cost: the mean number of words in the first k, for the
    largest k. `milliseconds_50` and `milliseconds_95` are quantiles over the questions.
    """

    way: Way
    level: str
    ks: tuple[int, ...]
    outcomes: tuple[Outcome, ...]
    figures: dict[str, Figure]
    kinds: dict[str, dict[str, Figure]]
    words: float
    milliseconds_50: float
    milliseconds_95: float
    seconds: float


def grid(
    modes: Sequence[str | None],
    fusions: Sequence[str],
    alphas: Sequence[float | None],
    reranks: Sequence[str | None],
    paths: tuple[str, ...] = (),
    max_per_file: int | None = None,
) -> list[Way]:
    """Every combination that means something, each once, in order.

    A fusion or an alpha says nothing without two retrievers, an alpha nothing to rank fusion.
    """
    ways: dict[Way, None] = {}
    for mode, fusion, alpha, rerank in product(modes, fusions, alphas, reranks):
        both = mode in (None, "hybrid")
        ways[
            Way(
                mode,
                fusion if both else "mix",
                alpha if both and fusion == "mix" else None,
                rerank,
                paths,
                max_per_file,
            )
        ] = None
    return list(ways)


def ask(
    retriever: Retriever,
    questions: Sequence[Question],
    items: Items,
    way: Way,
    ks: Sequence[int],
    level: str,
    *,
    looked: Callable[[Question, SearchResult], None] = lambda _question, _result: None,
    progress: Callable[[int], None] = lambda _done: None,
) -> Run:
    """Ask every question, and measure what comes back.

    At the level of documents a document ranks by its best passage, and k counts documents. `looked`
    is given each result while it is at hand. Raises as a search does.
    """
    if level == "document":
        way = replace(way, max_per_file=1)
    began = time.perf_counter()
    outcomes, words = [], 0
    for number, (question, result, spent) in enumerate(
        _asked(retriever, questions, way, max(ks)), 1
    ):
        found = items.get(question.id, ())
        outcomes.append(_outcome(question, result, found, ks, level, spent))
        words += sum(len(hit.text.split()) for hit in result.hits)
        looked(question, result)
        progress(number)
    spent_ms = sorted(outcome.milliseconds for outcome in outcomes)
    return Run(
        way=way,
        level=level,
        ks=tuple(ks),
        outcomes=tuple(outcomes),
        figures=figures(outcomes),
        kinds=_by_kind(outcomes),
        words=words / max(len(outcomes), 1),
        milliseconds_50=quantile(spent_ms, 0.5),
        milliseconds_95=quantile(spent_ms, 0.95),
        seconds=time.perf_counter() - began,
    )


def _asked(
    retriever: Retriever, questions: Sequence[Question], way: Way, k: int
) -> Iterator[tuple[Question, SearchResult, float]]:
    for question in questions:
        began = time.perf_counter()
        result = retriever.search(way.request(question.text, k))
        yield question, result, (time.perf_counter() - began) * 1000


def _outcome(
    question: Question,
    result: SearchResult,
    items: Sequence[Item],
    ks: Sequence[int],
    level: str,
    spent: float,
) -> Outcome:
    holds = held(result.hits, items, question.answers, level)
    return Outcome(
        id=question.id,
        question=question.text,
        kind=question.kind,
        answerable=question.answerable,
        synthetic=question.synthetic,
        relevant=tuple(item.label for item in items) or question.answers,
        metrics=_measured(result.hits, holds, items, ks, level) if question.answerable else {},
        hits=tuple(
            RunHit(
                hit.rank, hit.chunk, hit.path, hit.start, hit.end, hit.lines, hit.page, hit.score,
                tuple(sorted(holding)),
            )
            for hit, holding in zip(result.hits, holds, strict=True)
        ),
        milliseconds=spent,
    )  # fmt: skip


def _measured(
    hits: Sequence[Hit],
    holds: Sequence[frozenset[int]],
    items: Sequence[Item],
    ks: Sequence[int],
    level: str,
) -> dict[str, float]:
    """The figures of one question, by name."""
    grades = [1] if level == "answer" else [item.grade for item in items]
    found: dict[str, float] = {}
    for name, measure in MEASURES.items():
        for k in ks:
            found[f"{name}@{k}"] = measure(holds, grades, k)
    if level != "answer" and items and all(item.span for item in items):
        for k in ks:
            recall, precision, iou = metrics.characters(hits, items, k)
            for name, value in zip(CHARACTERS, (recall, precision, iou), strict=True):
                found[f"{name}@{k}"] = value
    return found


CHARACTERS = ("characters_recall", "characters_precision", "characters_iou")
"""Figures of gold in characters."""

MEASURES = {
    "recall": metrics.recall,
    "hit": metrics.hit,
    "precision": metrics.precision,
    "mrr": metrics.reciprocal_rank,
    "ndcg": metrics.ndcg,
    "map": metrics.average_precision,
}


def figures(outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    """The mean of each figure over the questions that have it."""
    values: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, value in outcome.metrics.items():
            values.setdefault(name, []).append(value)
    return {
        name: Figure(sum(each) / len(each), *interval(each), len(each))
        for name, each in values.items()
    }


def _by_kind(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Figure]]:
    kinds: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.kind is not None and outcome.answerable:
            kinds.setdefault(outcome.kind, []).append(outcome)
    return {kind: figures(of) for kind, of in kinds.items()}
