"""The JSON that others build on: one object per command, numbers unrounded.

Owns the shapes; `output` writes them. A field that is there is there always, null where it
has no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from ragcli.generation.visible import visible
from ragcli.records import Hit, IndexReport, Leg

if TYPE_CHECKING:
    from ragcli.cli.answering import Answered
    from ragcli.cli.wanted import Reply
    from ragcli.errors import RagcliError
    from ragcli.evaluation.report import EvalReport
    from ragcli.evaluation.sweep import SweepReport
    from ragcli.indexing.refresh import Refresh
    from ragcli.inspection.misses import Miss


def index_report(report: IndexReport) -> dict[str, object]:
    """`ragcli.index/1`."""
    return {"schema": "ragcli.index/1", **asdict(report)}


def answer(
    reply: Reply, *, explain: bool, refresh: Refresh | None, identity: Mapping[str, object]
) -> dict[str, object]:
    """`ragcli.query/1`. `identity` is what a batch adds: the question's id.

    `answerable` is P(answerable) where the index was calibrated, else None. `check` is what was
    found of the answer; its `measure` says by what. `closed_book`: the answer without passages.
    `mixture`: what was decoded or scored over a prompt for each passage, and then `prompt` is None;
    the logarithm of 0 is None. `error`: why a question of a batch has no answer.

    `dropped` are the ranks that the budget left out of the prompt; `refresh` is None where nobody
    looked whether the folder has changed.
    """
    result, prompt, answered = reply.result, reply.prompt, reply.answered
    return {
        "schema": "ragcli.query/1",
        **identity,
        "question": result.question,
        "hits": [_hit(hit, explain=explain) for hit in result.hits],
        "prompt": None if prompt is None else prompt.text,
        "dropped": () if prompt is None else prompt.dropped,
        "answerable": reply.chance,
        "answer": _text(reply),
        "citations": [] if answered is None else [asdict(c) for c in answered.check.citations],
        "check": None if answered is None else _check(answered),
        "closed_book": None if answered is None else _closed(answered, reply.closed),
        "mixture": None if reply.mixed is None else _finite(asdict(reply.mixed)),
        "error": None if reply.failed is None else _error(reply.failed),
        "index": {
            "chunks": result.chunks,
            "embedded": result.embedded,
            "embedded_now": result.embedded_now,
            "problems": result.problems,
            "refresh": None if refresh is None else asdict(refresh),
        },
        "timings_ms": result.timings_ms,
    }


def _text(reply: Reply) -> str | None:
    """The answer; None where nothing was generated, as where an answer was scored."""
    if reply.answered is not None:
        return reply.answered.text
    if reply.mixed is not None and reply.mixed.scored is None:
        return reply.mixed.answers[0].text
    return None


def _finite(value: Any) -> Any:
    """`value` without numbers that JSON has not: None for the logarithm of 0."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _error(error: RagcliError) -> dict[str, object]:
    return {
        "message": visible(error.message), "hint": error.hint, "exit_code": error.exit_code
    }  # fmt: skip


def _closed(answered: Answered, closed: Answered | None) -> dict[str, object] | None:
    from ragcli.cli.answering import same

    if closed is None:
        return None
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
