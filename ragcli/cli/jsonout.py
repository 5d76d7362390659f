"""The JSON that others build on: one object per command, numbers unrounded.

Owns the shapes; `output` writes them. A field that is there is there always, null where it
has no value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass

from ragcli.records import Hit, IndexReport, Leg, Prompt, SearchResult


def index_report(report: IndexReport) -> dict[str, object]:
    """`ragcli.index/1`."""
    return {"schema": "ragcli.index/1", **asdict(report)}


def answer(
    result: SearchResult, prompt: Prompt, *, explain: bool, identity: Mapping[str, object]
) -> dict[str, object]:
    """`ragcli.query/1`. `identity` is what a batch adds: the question's id.

    `dropped` are the ranks that the budget left out of the prompt.
    """
    return {
        "schema": "ragcli.query/1",
        **identity,
        "question": result.question,
        "hits": [_hit(hit, explain=explain) for hit in result.hits],
        "prompt": prompt.text,
        "dropped": prompt.dropped,
        "answer": None,
        "citations": [],
        "index": {
            "chunks": result.chunks,
            "embedded": result.embedded,
            "embedded_now": result.embedded_now,
            "problems": result.problems,
        },
        "timings_ms": result.timings_ms,
    }


def inspection(view: str, report: object) -> dict[str, object]:
    """`ragcli.inspect/1`: a report of `ragcli.inspection` under the name of its view."""
    assert is_dataclass(report) and not isinstance(report, type)
    return {"schema": "ragcli.inspect/1", "view": view, **asdict(report)}


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
