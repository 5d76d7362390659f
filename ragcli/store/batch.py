"""What is put into an index: files as they are now, documents with their chunks, rows to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragcli.records import Chunk, Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragcli.store.lexical import Postings


@dataclass(frozen=True, slots=True)
class FileState:
    """A row of `files` without its id."""

    path: str
    state: str
    size: int
    mtime_ns: int
    ctime_ns: int
    read_ns: int
    digest: bytes | None = None
    reason: str | None = None
    reading: str = ""


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document as read: its record, kind, title, language, and its chunks in order."""

    document: Document
    language: str | None
    chunks: Sequence[Chunk]


@dataclass(frozen=True, slots=True)
class SegmentContent:
    """What a segment is written from: `chunks`, `documents` int64 (rows,), `codes` (rows, dim)."""

    postings: Postings
    chunks: NDArray[np.int64]
    documents: NDArray[np.int64]
    codes: NDArray[np.unsignedinteger[Any]] | None


class Batch:
    """The rows that wait for the next commit: their chunk and document ids, and their postings.

    Rows are only gathered here; `Writer.commit` makes a segment of them.
    """

    def __init__(self) -> None:
        self.chunks: list[int] = []
        self.documents: list[int] = []
        self.postings: list[Postings] = []
        self.kept: list[NDArray[np.int64]] = []
        self.codes: list[NDArray[np.unsignedinteger[Any]]] = []

    def add(
        self,
        rows: Sequence[tuple[int, int] | None],
        postings: Postings,
        codes: NDArray[np.unsignedinteger[Any]] | None,
    ) -> None:
        """`rows[i]` is the (chunk, document) of row i of `postings`, None to leave it out."""
        import numpy as np

        kept = np.full(len(rows), -1, np.int64)
        for row, ids in enumerate(rows):
            if ids is not None:
                kept[row] = len(self.chunks)
                self.chunks.append(ids[0])
                self.documents.append(ids[1])
        self.postings.append(postings)
        self.kept.append(kept)
        if codes is not None:
            self.codes.append(codes[kept >= 0])

    def content(self) -> SegmentContent:
        """All of it as one segment."""
        import numpy as np

        from ragcli.store.lexical import combine

        return SegmentContent(
            combine(self.postings, self.kept, len(self.chunks)),
            np.array(self.chunks, np.int64),
            np.array(self.documents, np.int64),
            np.concatenate(self.codes) if self.codes else None,
        )
