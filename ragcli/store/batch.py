"""What is put into an index: files as they are now, documents with their chunks, rows to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragcli.encoders import Encoded
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
    """A document as read: its record, kind, title, language, and its chunks in order.

    `words` and `pieces` are what the encoder's tokenizer counted in a sample of its text.
    """

    document: Document
    language: str | None
    chunks: Sequence[Chunk]
    words: int = 0
    pieces: int = 0


@dataclass(frozen=True, slots=True)
class SegmentContent:
    """What a segment of postings is written from: `chunks`, `documents` int64 (rows,)."""

    postings: Postings
    chunks: NDArray[np.int64]
    documents: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VectorContent:
    """What a segment of vectors is written from: `chunks` int64 (rows,), and a row for each."""

    chunks: NDArray[np.int64]
    encoded: Encoded

    @classmethod
    def join(cls, parts: Sequence[VectorContent]) -> VectorContent:
        """The rows of all `parts`, of which there is at least one."""
        import numpy as np

        return cls(
            np.concatenate([part.chunks for part in parts]),
            Encoded.join([part.encoded for part in parts]),
        )


class Batch:
    """The rows that wait for the next commit: chunks with their documents and postings; vectors.

    Rows are only gathered here; `Writer.commit` makes segments of them.
    """

    def __init__(self) -> None:
        self.chunks: list[int] = []
        self.documents: list[int] = []
        self.postings: list[Postings] = []
        self.kept: list[NDArray[np.int64]] = []
        self.vectors: list[VectorContent] = []

    def add(
        self,
        rows: Sequence[tuple[int, int] | None],
        postings: Postings,
        encoded: Encoded | None,
    ) -> None:
        """`rows[i]` is the (chunk, document) of row i of `postings`, None to leave it out.

        `encoded`: the vectors of the same rows, where they are there already.
        """
        import numpy as np

        kept = np.full(len(rows), -1, np.int64)
        for row, ids in enumerate(rows):
            if ids is not None:
                kept[row] = len(self.chunks)
                self.chunks.append(ids[0])
                self.documents.append(ids[1])
        self.postings.append(postings)
        self.kept.append(kept)
        if encoded is not None:
            chunks = np.array([ids[0] for ids in rows if ids is not None], np.int64)
            self.vectors.append(VectorContent(chunks, encoded.take(kept >= 0)))

    @property
    def vector_bytes(self) -> int:
        """How much the vectors take."""
        return sum(part.encoded.codes.nbytes for part in self.vectors)

    def content(self) -> SegmentContent:
        """The postings of all of it as one segment."""
        import numpy as np

        from ragcli.store.lexical import combine

        return SegmentContent(
            combine(self.postings, self.kept, len(self.chunks)),
            np.array(self.chunks, np.int64),
            np.array(self.documents, np.int64),
        )
