"""A file, a line, a page or a chunk: what the index holds of it, with each chunk's bounds.

`targets` says what is meant, `representation` what vectors and terms are; here they are put
together with what the catalogue says of the file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragcli.inspection.ledger import Entry, entries
from ragcli.inspection.measure import Measure
from ragcli.inspection.representation import Term, Vector, terms_of, vectors_of
from ragcli.inspection.targets import Target
from ragcli.retrieval.retriever import is_stale
from ragcli.store.contents import PlacedChunk, StoredFile, chunks_of, documents_of, placed
from ragcli.store.index import Index


@dataclass(frozen=True, slots=True)
class ChunkView:
    """A chunk in its place: its number, its bounds in the document's text, and what it holds.

    `overlap` is how many of its first characters the chunk before holds too, `gap` how many
    characters lie between the two (before the first: from the document's start) and in neither.
    `tokens` is None where the encoder's tokenizer is not there; `vector` and `terms` are None
    where they were not asked for, `vector` also where the chunk has none.
    """

    chunk: int
    path: str
    record: str | None
    title: str | None
    start: int
    end: int
    lines: tuple[int, int] | None
    page: str | None
    heading: tuple[str, ...]
    words: int
    tokens: int | None
    overlap: int
    gap: int
    text: str
    has_vector: bool
    vector: Vector | None
    terms: tuple[Term, ...] | None


@dataclass(frozen=True, slots=True)
class FileView:
    """A file as the index has it, and those of its chunks that `target` means.

    `state` is `indexed`, `skipped` or `failed` (`reason` says why), or `not indexed`, None where
    no file is meant; `why` and `detail` are the target's, where it means no chunk. `read` is in
    seconds of the epoch. `stale`: whether the file has changed or gone since; None when unknown.
    `kind`, `title` and `language` are None where its documents differ in them.
    """

    target: str
    path: str | None
    state: str | None
    reason: str | None
    kind: str | None
    title: str | None
    language: str | None
    size: int | None
    read: float | None
    stale: bool | None
    documents: int
    chunks_in_file: int
    why: str | None
    detail: str | None
    near: tuple[int, ...]
    tokens_missing: str | None
    problems: tuple[Entry, ...]
    chunks: tuple[ChunkView, ...]


def show(index: Index, target: Target, *, vectors: bool = False) -> FileView:
    """What the index has of `target`; with `vectors` also its vectors and terms.

    Raises IndexUnavailable in its kinds.
    """
    file = target.file
    documents = documents_of(index, file.id) if file else []
    measure = Measure(index) if target.chunks else None
    return FileView(
        target=target.given,
        path=target.path,
        state=file.state if file else target.path and "not indexed",
        reason=file.reason if file else target.detail,
        kind=_only({document.kind for document in documents}),
        title=_only({document.title for document in documents}),
        language=_only({document.language for document in documents}),
        size=file.size if file else None,
        read=file.read_ns / 1e9 if file and file.read_ns else None,
        stale=_stale(index, file),
        documents=len(documents),
        chunks_in_file=len(chunks_of(index, file.id)) if file else 0,
        why=target.why,
        detail=target.detail,
        near=target.near,
        tokens_missing=measure.missing if measure else None,
        problems=entries(index, file.id) if file else (),
        chunks=_chunks(index, target.chunks, measure, vectors=vectors) if measure else (),
    )


def _only(values: set[str | None]) -> str | None:
    return next(iter(values)) if len(values) == 1 else None


def _stale(index: Index, file: StoredFile | None) -> bool | None:
    if file is None or not file.mtime_ns:  # a file that could not be opened has no time
        return None
    return is_stale(index, file.path, file.size, file.mtime_ns)


def _chunks(
    index: Index, numbers: tuple[int, ...], measure: Measure, *, vectors: bool
) -> tuple[ChunkView, ...]:
    every = placed(index, numbers)
    texts = {each.passage.chunk: each.passage.text for each in every}
    held = index.view().has_vector(np.array(list(texts), np.int64)).tolist()
    with_vector = {chunk for chunk, has in zip(texts, held, strict=True) if has}
    rows = vectors_of(index, texts) if vectors else {}
    terms = terms_of(index, list(texts)) if vectors else {}
    return tuple(
        _chunk(
            each,
            measure,
            has_vector=each.passage.chunk in with_vector,
            vector=rows.get(each.passage.chunk),
            terms=terms.get(each.passage.chunk),
        )
        for each in every
    )


def _chunk(
    each: PlacedChunk,
    measure: Measure,
    *,
    has_vector: bool,
    vector: Vector | None,
    terms: tuple[Term, ...] | None,
) -> ChunkView:
    passage = each.passage
    before = each.before or 0
    return ChunkView(
        chunk=passage.chunk,
        path=passage.path,
        record=each.record,
        title=each.title,
        start=passage.start,
        end=passage.end,
        lines=passage.lines,
        page=passage.page,
        heading=passage.heading,
        words=measure.words(passage.text),
        tokens=measure.tokens(passage.text),
        overlap=max(0, before - passage.start),
        gap=max(0, passage.start - before),
        text=passage.text,
        has_vector=has_vector,
        vector=vector,
        terms=terms,
    )
