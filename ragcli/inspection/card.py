"""The index card: what an index is made of, how large its parts are, what has changed since.

Counts come from the catalogue; the sizes of chunks from a sample where there are many; what
`ragcli index` would do now from `indexing`'s own comparison. No model is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from hashlib import blake2b

import numpy as np

from ragcli.corpus.walk import walk
from ragcli.errors import ModelUnavailable, UnreadableFile, UsageError
from ragcli.indexing.analysis import FileTask, read_bytes
from ragcli.indexing.known import known_files, rules_of
from ragcli.indexing.plan import Plan, make_plan
from ragcli.indexing.scope import Reading, reading_of, remembered
from ragcli.inspection.ledger import KindCount
from ragcli.inspection.measure import Measure
from ragcli.inspection.spread import Bin, Spread, bins, spread
from ragcli.records import Settings
from ragcli.store.contents import chunk_numbers, texts
from ragcli.store.folder import ENCODER
from ragcli.store.index import Index
from ragcli.store.totals import (
    bookkeeping,
    bytes_by_part,
    counts_by_kind,
    documents_by_language,
    files_by_state,
    problems_by_kind,
)

SAMPLE = 2000
_COMPARED = 32 * 1024 * 1024
_SHOWN_APART = ("encoder", "chunk", "dim")


@dataclass(frozen=True, slots=True)
class State:
    """How many files are `indexed`, `skipped` or `failed`, for one reason."""

    state: str
    reason: str | None
    files: int


@dataclass(frozen=True, slots=True)
class Kind:
    """What there is of one kind of document."""

    kind: str
    files: int
    documents: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Language:
    """How many documents are in a language, None for those of no told one."""

    language: str | None
    documents: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that is not the default."""

    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes on disk by part: `catalogue` has the texts, `other` is what no part names."""

    total: int
    catalogue: int
    postings: int
    vectors: int
    encoder: int
    other: int


@dataclass(frozen=True, slots=True)
class Pending:
    """What `ragcli index` would do now, in files; `retried` are those that failed before."""

    new: int
    changed: int
    retried: int
    moved: int
    gone: int


@dataclass(frozen=True, slots=True)
class Card:
    """An index in figures. Times are in seconds of the epoch; what is None is not known.

    `embedded` is how many of the `chunks` have a vector. `words` and `tokens` are of every chunk,
    or of `sampled` of them, evenly spread, where that is not None; `tokens_missing` and
    `pending_missing` say why there is none.
    """

    index: str
    root: str | None
    made: float | None
    changed: float | None
    generation: int | None
    made_by: str | None
    files: dict[str, int]
    states: tuple[State, ...]
    kinds: tuple[Kind, ...]
    documents: int
    languages: tuple[Language, ...]
    chunks: int
    embedded: int
    embedded_share: float
    encoder: str
    fingerprint: str | None
    dimensions: int | None
    chunking: str
    settings: tuple[Setting, ...]
    sampled: int | None
    words: Spread | None
    words_histogram: tuple[Bin, ...]
    tokens: Spread | None
    tokens_missing: str | None
    bytes: Bytes
    pending: Pending | None
    pending_missing: str | None
    problems: int
    problems_by_kind: tuple[KindCount, ...]


def card(index: Index) -> Card:
    """The figures of `index`. Raises IndexUnavailable in its kinds."""
    kept, settings = bookkeeping(index), index.settings
    chunks, embedded = index.counts()
    states = tuple(State(*row) for row in files_by_state(index))
    kinds = tuple(Kind(*row) for row in counts_by_kind(index))
    parts = bytes_by_part(index)
    sampled, words, tokens, missing = _sizes(index)
    try:
        pending, away = _pending(index), None
    except UsageError as error:
        pending, away = None, error.message
    return Card(
        index=str(index.path),
        root=None if index.root is None else str(index.root),
        made=kept.made,
        changed=kept.changed,
        generation=kept.generation,
        made_by=kept.made_by,
        files={
            state: sum(row.files for row in states if row.state == state)
            for state in ("indexed", "skipped", "failed")
        },
        states=states,
        kinds=kinds,
        documents=sum(kind.documents for kind in kinds),
        languages=tuple(Language(*row) for row in documents_by_language(index)),
        chunks=chunks,
        embedded=embedded,
        embedded_share=embedded / chunks if chunks else 0.0,
        encoder=settings.encoder,
        fingerprint=index.encoder,
        dimensions=_dimensions(index),
        chunking=settings.chunk,
        settings=_changed_settings(settings),
        sampled=sampled,
        words=spread(words),
        words_histogram=bins(words),
        tokens=spread(tokens),
        tokens_missing=missing,
        bytes=Bytes(total=sum(parts.values()), **parts),
        pending=pending,
        pending_missing=away,
        problems=index.problem_count,
        problems_by_kind=tuple(KindCount(*row) for row in problems_by_kind(index)),
    )


def _dimensions(index: Index) -> int | None:
    """Columns of the vectors, asked of the vectors: the model is not loaded for it."""
    vectors = index.view().vectors
    if vectors:
        return int(vectors[0].index.d)
    return index.settings.dim if index.settings.encoder == "hash" else None


def _changed_settings(settings: Settings) -> tuple[Setting, ...]:
    usual = Settings()
    return tuple(
        Setting(field.name, getattr(settings, field.name))
        for field in fields(Settings)
        if field.name not in _SHOWN_APART
        and getattr(settings, field.name) != getattr(usual, field.name)
    )


def _sizes(index: Index) -> tuple[int | None, list[int], list[int], str | None]:
    """(size of the sample, None for all; words; tokens; why there are no tokens)."""
    numbers = chunk_numbers(index)
    sampled = None
    if len(numbers) > SAMPLE:
        places = np.linspace(0, len(numbers) - 1, SAMPLE).astype(np.intp).tolist()
        numbers, sampled = [numbers[place] for place in places], SAMPLE
    measure = Measure(index)
    words: list[int] = []
    tokens: list[int] = []
    for _, text in texts(index, numbers):
        words.append(measure.words(text))
        count = measure.tokens(text)
        if count is not None:
            tokens.append(count)
    return sampled, words, tokens, measure.missing


def _pending(index: Index) -> Pending:
    """The comparison that a run begins with. Raises UsageError where the sources are not there."""
    with index.reading():
        root, starts = remembered(index.catalog, index.path)
        known = known_files(index.catalog)
    try:
        reading = reading_of(index.settings, index.path / ENCODER)
    except ModelUnavailable:  # what shapes chunks cannot be told; whether files changed can
        reading = Reading("", None)
        known = {path: row._replace(reading="") for path, row in known.items()}
    before = {path: row.state for path, row in known.items()}
    items = walk(root, starts, rules_of(index.settings))
    plan = make_plan(items, known, root, reading=reading.of, full=False, seen=lambda _: None)
    again = [before.get(task.path) for task in plan.read if task.path in before]
    failed = again.count("failed")
    return Pending(
        new=len(plan.read) - len(again),
        changed=len(again) - failed - _same(plan),
        retried=failed + len(plan.unreadable),
        moved=len(plan.moved),
        gone=len(plan.removed),
    )


def _same(plan: Plan) -> int:
    """How many files a run would look into and find as they were: written as they were read.

    Looks into so many megabytes; what is beyond them counts as changed.
    """
    same, room = 0, _COMPARED
    for task in sorted(plan.read, key=lambda task: task.size):
        room -= task.size
        if task.digest is not None and room >= 0:
            same += _has_digest(task)
    return same


def _has_digest(task: FileTask) -> bool:
    try:
        data, _, _ = read_bytes(task.absolute, task.size)
    except UnreadableFile:
        return False
    return blake2b(data, digest_size=16).digest() == task.digest
