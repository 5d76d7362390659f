"""Why a run of questions missed what it should have found, in one line each.

The traces are `why`'s; here they are shortened and grouped. Knows nothing of files of questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragcli.inspection.targets import Target, resolve
from ragcli.inspection.why import why
from ragcli.records import Hit, Prompt, SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index

GROUPS = {
    "no_shared_word": "no shared word",
    "split": "split across passages",
    "below_k": "just below k",
    "not_a_candidate": "far below k",
    "no_vector": "no vector yet",
    "max_per_file": "cut by --max-per-file",
    "reranked": "put down by the reranker",
    "filtered": "left out by --path",
    "two_hop": "half of it found",
    "text_not_found": "not in the index",
    "no_passage": "not in the index",
    "no_text": "not in the index",
    "left_out": "not in the index",
    "skipped": "not in the index",
    "failed": "not in the index",
    "not_indexed_yet": "not in the index",
}
"""What a cause is called over a list of misses."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Something that should have been found: a document, or lines, a page, characters of it; or
    a text, wherever it stands.
    """

    path: str | None = None
    lines: tuple[int, int] | None = None
    page: str | None = None
    span: tuple[int, int] | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Miss:
    """A question and the item that it missed; `group` is the cause's name over a list."""

    question: str
    text: str
    missed: str
    cause: str
    group: str
    because: str


def cause_of(
    index: Index, retriever: Retriever, request: SearchRequest, wanted: Wanted
) -> tuple[str, str]:
    """(cause, why) that `wanted` is not among the hits of `request`; `split` where a part is."""
    target = None if wanted.path is None else _target(index, wanted.path, wanted)
    report = why(index, retriever, request, target, wanted.text, packed=_everything, remedied=False)
    if report.cause == "in_prompt":
        return "split", "a part of it is a hit: no passage holds it all"
    return report.cause, report.because


def _target(index: Index, path: str, wanted: Wanted) -> Target:
    if wanted.lines:
        return resolve(index, f"{path}:{wanted.lines[0]}-{wanted.lines[1]}")
    if wanted.page:
        return resolve(index, f"{path}#page={wanted.page}")
    target = resolve(index, path)
    if wanted.span is None:
        return target
    start, end = wanted.span
    stored = index.chunks(target.chunks)
    inside = [
        chunk
        for chunk in target.chunks
        if stored[chunk].chunk.start < end and stored[chunk].chunk.end > start
    ]
    return replace(target, chunks=tuple(inside))


def _everything(hits: Sequence[Hit], _budget: int | None) -> Prompt:
    """Every hit is in the prompt: it is retrieval that is looked into."""
    return Prompt("", tuple(hit.rank for hit in hits), (), 0)
