"""The JSON that others build on: one object per command, numbers unrounded.

Owns the shapes; `output` writes them. A field that is there is there always, null where it
has no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING

from ragcli.records import Hit, IndexReport, Leg, Prompt, SearchResult

if TYPE_CHECKING:
    from ragcli.cli.answering import Answered
    from ragcli.cli.mixing import Mixed
    from ragcli.evaluation.report import EvalReport
    from ragcli.evaluation.sweep import SweepReport
    from ragcli.inspection.misses import Miss


def index_report(report: IndexReport) -> dict[str, object]:
    """`ragcli.index/1`."""
    return {"schema": "ragcli.index/1", **asdict(report)}


def answer(
    result: SearchResult,
    prompt: Prompt,
    answerable: float | None,
    answered: Answered | None,
    closed: Answered | None = None,
    *,
    explain: bool,
    identity: Mapping[str, object],
) -> dict[str, object]:
    """`ragcli.query/1`. `identity` is what a batch adds: the question's id.

    `answerable` is P(answerable) where the index was calibrated, else None. `check` is what was
    found of the answer; its `measure` says by what. `closed_book`: the answer without passages.

    `dropped` are the ranks that the budget left out of the prompt.
    """
    return {
        "schema": "ragcli.query/1",
        **identity,
        "question": result.question,
        "hits": [_hit(hit, explain=explain) for hit in result.hits],
        "prompt": prompt.text,
        "dropped": prompt.dropped,
        "answerable": answerable,
        "answer": None if answered is None else answered.text,
        "citations": [] if answered is None else [asdict(c) for c in answered.check.citations],
        "check": None if answered is None else _check(answered),
        "closed_book": None if answered is None or closed is None else _closed(answered, closed),
        "index": {
            "chunks": result.chunks,
            "embedded": result.embedded,
            "embedded_now": result.embedded_now,
            "problems": result.problems,
        },
        "timings_ms": result.timings_ms,
    }


def mixture(
    result: SearchResult, mixed: Mixed, generator: str, *, explain: bool
) -> dict[str, object]:
    """`ragcli.query/1` of an answer of the mixture, or of an answer that it scored."""
    return {
        "schema": "ragcli.query/1",
        "question": result.question,
        "hits": [_hit(hit, explain=explain) for hit in result.hits],
        "answer": mixed.answers[0].text,
        "mixture": {"generator": generator, **asdict(mixed)},
        "timings_ms": result.timings_ms,
    }


def _closed(answered: Answered, closed: Answered) -> dict[str, object]:
    from ragcli.cli.answering import same

    return {"answer": closed.text, "changed": not same(answered.text, closed.text)}


def _check(answered: Answered) -> dict[str, object]:
    found = asdict(answered.check)
    del found["citations"]
    return {"generator": answered.generator, "usage": asdict(answered.usage), **found}


def inspection(view: str, report: object) -> dict[str, object]:
    """`ragcli.inspect/1`: a report of `ragcli.inspection` under the name of its view."""
    assert is_dataclass(report) and not isinstance(report, type)
    return {"schema": "ragcli.inspect/1", "view": view, **asdict(report)}


def evaluation(report: EvalReport, misses: Sequence[Miss]) -> dict[str, object]:
    """`ragcli.eval/1`; `metrics`, `kinds` and `per_question` are of the first way to ask."""
    first = report.runs[0]
    return {
        "schema": "ragcli.eval/1",
        "file": report.file,
        "questions": report.questions,
        "answerable": report.answerable,
        "synthetic": report.synthetic,
        "left_out": report.left_out,
        "level": report.level,
        "ks": report.ks,
        "chunks": report.chunks,
        "metrics": {name: asdict(figure) for name, figure in first.figures.items()},
        "kinds": {
            kind: {name: asdict(figure) for name, figure in figures.items()}
            for kind, figures in first.kinds.items()
        },
        "words": first.words,
        "latency_ms": {"p50": first.milliseconds_50, "p95": first.milliseconds_95},
        "seconds": first.seconds,
        "per_question": [asdict(outcome) for outcome in first.outcomes],
        "grid": [
            {
                "settings": asdict(run.way),
                "metrics": {name: asdict(figure) for name, figure in run.figures.items()},
                "words": run.words,
                "latency_ms": {"p50": run.milliseconds_50, "p95": run.milliseconds_95},
            }
            for run in report.runs
        ],
        "missing": [asdict(missing) for missing in report.missing],
        "baseline": report.baseline,
        "comparisons": [asdict(each) for each in report.comparisons],
        "unanswerable": None if report.refusal is None else asdict(report.refusal),
        "calibration": None if report.calibration is None else asdict(report.calibration),
        "misses": [asdict(miss) for miss in misses],
    }


def swept(report: SweepReport, questions: int, synthetic: int) -> dict[str, object]:
    """`ragcli.eval/1` of a sweep."""
    said = asdict(report)
    rows = [
        {"metrics": row.pop("figures"), "prompt_words": row.pop("words"), **row}
        for row in said.pop("rows")
    ]
    return {
        "schema": "ragcli.eval/1",
        "questions": questions,
        "synthetic": synthetic,
        "sweep": rows,
        **said,
    }


def _hit(hit: Hit, *, explain: bool) -> dict[str, object]:
    shown: dict[str, object] = {
        "rank": hit.rank,
        "path": hit.path,
        "record": hit.record,
        "start": hit.start,
        "end": hit.end,
        "lines": hit.lines,
        "page": hit.page,
        "heading": hit.heading,
        "score": hit.score,
        "scores": {
            "lexical": None if hit.lexical is None else hit.lexical.score,
            "dense": None if hit.dense is None else hit.dense.score,
            "neighbour": hit.neighbour,
            "rerank": hit.rerank,
        },
        "weight": hit.weight,
        "text": hit.text,
        "stale": hit.stale,
    }
    if explain:
        shown["explain"] = {
            "lexical": _leg(hit.lexical),
            "dense": _leg(hit.dense),
            "parts": hit.parts,
            "terms": [asdict(term) for term in hit.terms],
        }
    return shown


def _leg(leg: Leg | None) -> dict[str, object] | None:
    return None if leg is None else asdict(leg)
