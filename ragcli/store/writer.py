"""The write side of an index: files in, files out, batches committed, segments merged.

Owns the order of things on disk: a segment is whole in its place before the transaction that
names it, and swept only after the transaction that forgets it. The caller holds the lock.
Does not read files or choose what to index (`indexing` does).
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcli.errors import IndexForeign
from ragcli.records import Chunk, Document, Settings
from ragcli.store.catalog import FILE, Catalog, encode_path
from ragcli.store.index import FOLDER, SEGMENTS, OpenSegment, open_segment
from ragcli.store.lock import FILE as LOCK

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

    from ragcli.store.lexical import Postings

_CACHE_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is an index made by ragcli.\n"
)
_OURS = {FILE, f"{FILE}-wal", f"{FILE}-shm", LOCK, SEGMENTS, ".gitignore", "CACHEDIR.TAG"}

MERGE_AT = 8
"""So many segments of like size become one."""

SMALL = 60_000
"""Rows up to which a segment with dead rows is written anew at once, so that deleted words
leave the disk with the run that saw them go; a larger one waits until a tenth is dead."""


def prepare(folder: Path) -> None:
    """Make the `.rag` folder, or see that it is ours.

    Raises IndexForeign where something else lies there, OSError where it cannot be made.
    """
    if folder.exists() and not (folder / FILE).exists():
        strangers = (
            sorted(entry.name for entry in folder.iterdir() if entry.name not in _OURS)
            if folder.is_dir()
            else [folder.name]
        )
        if strangers:
            raise IndexForeign(
                f"{folder} is not a ragcli index: it holds {strangers[0]}",
                f"name another place: --index DIR (say --index {folder / FOLDER})",
            )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SEGMENTS).mkdir(exist_ok=True)
    for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _CACHE_TAG)):
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="ascii")


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


class OpenFile:
    """A file that is being written; made by `Writer.put_file`."""

    def __init__(
        self, writer: Writer, file: int, known: dict[tuple[str | None, str | None], int]
    ) -> None:
        self._writer = writer
        self._file = file
        self._known = known
        self._seen: dict[tuple[str | None, str | None], int] = {}
        self._old: dict[int, dict[str, list[int]]] = {}

    def add(self, new: NewDocument) -> list[tuple[int, int] | None]:
        """Write a document or a further piece of it; per chunk its (chunk, document) ids.

        None: the same text stood in the same document before, and its row is kept.
        """
        connection = self._writer.connection()
        document = self._document(new)
        old = self._old[document]
        rows: list[tuple[int, int] | None] = []
        made = []
        for chunk in new.chunks:
            place = (
                chunk.start, chunk.end, *(chunk.lines or (None, None)), chunk.page,
                _heading(chunk.heading),
            )  # fmt: skip
            if same := old.get(chunk.text):
                connection.execute(
                    "UPDATE chunks SET start = ?, end = ?, first_line = ?, last_line = ?,"
                    " page = ?, heading = ? WHERE id = ?",
                    (*place, same.pop()),
                )
                rows.append(None)
            else:
                number = self._writer.next_chunk()
                made.append((number, document, *place, chunk.text))
                rows.append((number, document))
        connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", made)
        return rows

    def _document(self, new: NewDocument) -> int:
        """The id of the document, a known one where record and language are the same."""
        connection = self._writer.connection()
        key = (new.document.record, new.language)
        if key in self._seen:
            return self._seen[key]
        document = self._known.get(key)
        old: dict[str, list[int]] = {}
        if document is None:
            document = connection.execute(
                "INSERT INTO documents (file, record, kind, title, language) VALUES (?,?,?,?,?)",
                (
                    self._file, new.document.record, new.document.kind, new.document.title,
                    new.language,
                ),
            ).lastrowid  # fmt: skip
            assert document is not None
        else:
            connection.execute(
                "UPDATE documents SET kind = ?, title = ? WHERE id = ?",
                (new.document.kind, new.document.title, document),
            )
            for chunk, text in connection.execute(
                "SELECT id, text FROM chunks WHERE document = ? ORDER BY id DESC", (document,)
            ):
                old.setdefault(text, []).append(chunk)
        self._seen[key] = document
        self._old[document] = old
        return document

    def finish(self, problems: Sequence[tuple[str, str, str | None]]) -> None:
        """What was not written again is gone; the ledger is as `problems` say."""
        connection = self._writer.connection()
        gone = [(chunk,) for old in self._old.values() for left in old.values() for chunk in left]
        connection.executemany("INSERT INTO tombstones VALUES (?)", gone)
        connection.executemany("DELETE FROM chunks WHERE id = ?", gone)
        self._writer.close_file(self._file, set(self._seen.values()), problems)


@lru_cache(maxsize=64)
def _heading(heading: tuple[str, ...]) -> str:
    return json.dumps(heading, ensure_ascii=False)


class Writer:
    """One writer over an open catalogue. `begin` … `put_file`, `remove_file` … `commit`."""

    def __init__(self, folder: Path, catalog: Catalog) -> None:
        self.folder = folder
        self.catalog = catalog
        self.batch = Batch()
        self._open: AbstractContextManager[sqlite3.Connection] | None = None
        self._last_chunk: int | None = None

    @property
    def segments(self) -> Path:
        """The folder that segments lie in."""
        return self.folder / SEGMENTS

    def connection(self) -> sqlite3.Connection:
        """Inside the batch's transaction, begun at the first write."""
        if self._open is None:
            self._open = self.catalog.transaction()
            self._open.__enter__()
        return self.catalog.connection

    def next_chunk(self) -> int:
        """An id above every chunk there is and every tombstone: a dead row's id is not reused."""
        if self._last_chunk is None:
            (self._last_chunk,) = (
                self.connection()
                .execute(
                    "SELECT max(coalesce((SELECT max(id) FROM chunks), 0),"
                    " coalesce((SELECT max(chunk) FROM tombstones), 0))"
                )
                .fetchone()
            )
        self._last_chunk += 1
        return self._last_chunk

    def abandon(self) -> None:
        """Undo what was put since the last commit."""
        if self._open is not None:
            self._open = None
            self.catalog.roll_back()
        self.batch = Batch()

    def remember(self, settings: Settings, root: str, starts: Sequence[str], made_by: str) -> None:
        """Settings and root, from the next commit on."""
        self.connection()
        for key, value in (
            ("settings", asdict(settings)),
            ("root", root),
            ("starts", list(starts)),
            ("made_by", made_by),
        ):
            self.catalog.put(key, value)

    def touch(self, file: int, state: FileState) -> None:
        """A file whose content is as it was: its new path and stat, nothing else."""
        self.connection().execute(
            "UPDATE files SET path = ?, size = ?, mtime_ns = ?, ctime_ns = ?, read_ns = ?"
            " WHERE id = ?",
            (
                encode_path(state.path), state.size, state.mtime_ns, state.ctime_ns,
                state.read_ns, file,
            ),
        )  # fmt: skip

    def remove_file(self, file: int) -> None:
        """The file, its documents, chunks and problems; its rows become tombstones."""
        self._drop_documents(file, keep=set())
        connection = self.connection()
        connection.execute("DELETE FROM problems WHERE file = ?", (file,))
        connection.execute("DELETE FROM files WHERE id = ?", (file,))

    def _drop_documents(self, file: int, keep: set[int]) -> None:
        connection = self.connection()
        for document in self.catalog.column("SELECT id FROM documents WHERE file = ?", (file,)):
            if document not in keep:
                connection.execute(
                    "INSERT INTO tombstones SELECT id FROM chunks WHERE document = ?", (document,)
                )
                connection.execute("DELETE FROM chunks WHERE document = ?", (document,))
                connection.execute("DELETE FROM documents WHERE id = ?", (document,))

    def put_file(self, state: FileState, *, reuse: bool = True) -> OpenFile:
        """Begin to write a file as it is now: `add` its documents, then `finish`.

        With `reuse`, a chunk whose text stood in the same document before keeps its row.
        """
        connection = self.connection()
        row = connection.execute(
            "SELECT id FROM files WHERE path = ?", (encode_path(state.path),)
        ).fetchone()
        values = (
            state.state, state.reason, state.size, state.mtime_ns, state.ctime_ns,
            state.read_ns, state.digest, state.reading, encode_path(state.path),
        )  # fmt: skip
        if row is None:
            file = connection.execute(
                "INSERT INTO files (state, reason, size, mtime_ns, ctime_ns, read_ns, digest,"
                " reading, path) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            ).lastrowid
            assert file is not None
            return OpenFile(self, file, {})
        connection.execute(
            "UPDATE files SET state = ?, reason = ?, size = ?, mtime_ns = ?, ctime_ns = ?,"
            " read_ns = ?, digest = ?, reading = ? WHERE path = ?",
            values,
        )
        if not reuse:
            self._drop_documents(row[0], keep=set())
        known = {
            (record, language): document
            for document, record, language in connection.execute(
                "SELECT id, record, language FROM documents WHERE file = ?", (row[0],)
            )
        }
        return OpenFile(self, row[0], known)

    def close_file(
        self, file: int, keep: set[int], problems: Sequence[tuple[str, str, str | None]]
    ) -> None:
        """Drop the documents not in `keep`, and replace the file's lines in the ledger.

        A line that was there before keeps its date.
        """
        self._drop_documents(file, keep)
        connection = self.connection()
        before = {
            (kind, message, page): since
            for kind, message, page, since in connection.execute(
                "SELECT kind, message, page, since FROM problems WHERE file = ?", (file,)
            )
        }
        connection.execute("DELETE FROM problems WHERE file = ?", (file,))
        now = time.time()
        connection.executemany(
            "INSERT INTO problems VALUES (?, ?, ?, ?, ?)",
            [(file, *problem, before.get(problem, now)) for problem in problems],
        )

    def commit(self) -> None:
        """Make what was put since the last commit visible, whole."""
        batch, self.batch = self.batch, Batch()
        if batch.chunks:
            self._add_segment(batch)
        if self._open is not None:
            opened, self._open = self._open, None
            opened.__exit__(None, None, None)

    def _add_segment(self, batch: Batch) -> None:
        import numpy as np

        from ragcli.store.lexical import combine

        size = len(batch.chunks)
        self._write_segment(
            combine(batch.postings, batch.kept, size),
            np.array(batch.chunks, np.int64),
            np.array(batch.documents, np.int64),
            np.concatenate(batch.codes) if batch.codes else None,
        )

    def _write_segment(
        self,
        postings: Postings,
        chunks: NDArray[np.int64],
        documents: NDArray[np.int64],
        codes: NDArray[np.unsignedinteger[Any]] | None,
    ) -> None:
        from ragcli.store.lexical import PackedNames
        from ragcli.store.segments import write_segment

        names = PackedNames.pack(postings.names)
        name, checksum = write_segment(
            self.segments,
            "p",
            {
                "chunks": chunks,
                "documents": documents,
                "names": names.blob,
                "name_ends": names.offsets,
                "starts": postings.starts,
                "rows": postings.rows,
                "counts": postings.counts,
                "lengths": postings.lengths,
            },
        )
        self.connection().execute(
            "INSERT INTO segments (name, checksum, rows) VALUES (?, ?, ?)",
            (name, checksum, len(chunks)),
        )
        if codes is not None:
            self.set_vectors(name, codes)

    def set_vectors(self, segment: str, codes: NDArray[np.unsignedinteger[Any]]) -> None:
        """Give the segment its vectors, (rows, dim)."""
        from ragcli.store.vectors import write_vectors

        name, checksum = write_vectors(self.segments, codes)
        self.connection().execute(
            "UPDATE segments SET vectors = ?, vectors_checksum = ? WHERE name = ?",
            (name, checksum, segment),
        )

    def drop_vectors(self) -> None:
        """Forget every vector: another encoder is coming."""
        self.connection().execute("UPDATE segments SET vectors = NULL, vectors_checksum = NULL")

    def forget_segment(self, name: str) -> None:
        """A segment that was lost; `missing_chunks` then names its chunks."""
        self.connection().execute("DELETE FROM segments WHERE name = ?", (name,))

    def forget_vectors(self, segment: str) -> None:
        """The segment's vectors were lost; they are encoded anew."""
        self.connection().execute(
            "UPDATE segments SET vectors = NULL, vectors_checksum = NULL WHERE name = ?",
            (segment,),
        )

    def open_segments(self) -> list[OpenSegment]:
        """The live segments, oldest first. Raises IndexDamaged."""
        import numpy as np

        dead = np.array(
            self.catalog.column("SELECT chunk FROM tombstones ORDER BY chunk"), np.int64
        )
        return [
            open_segment(self.folder, row, dead)
            for row in self.catalog.connection.execute(
                "SELECT name, checksum, vectors, vectors_checksum FROM segments ORDER BY rowid"
            ).fetchall()
        ]

    def missing_chunks(self, opened: Sequence[OpenSegment]) -> NDArray[np.int64]:
        """Ids of live chunks that no segment holds, ascending: a segment was lost."""
        import numpy as np

        live = np.array(self.catalog.column("SELECT id FROM chunks ORDER BY id"), np.int64)
        held = [segment.chunks for segment in opened]
        return np.setdiff1d(live, np.concatenate(held)) if held else live

    def merge(self) -> bool:
        """Merge segments of like size when there are many, and drop dead rows where it pays.

        Returns whether anything was merged; commits it.
        """
        rows = self.catalog.connection.execute(
            "SELECT rows, rows, vectors IS NOT NULL FROM segments ORDER BY rowid"
        ).fetchall()
        dead = self.catalog.count("tombstones")
        if not dead and not choose_merge(rows):
            return False
        opened = self.open_segments()
        chosen = choose_merge(
            [(segment.rows, segment.live_rows, segment.vectors is not None) for segment in opened]
        )
        if not chosen:
            return False
        self._merge([opened[i] for i in chosen])
        self.commit()
        return True

    def _merge(self, opened: Sequence[OpenSegment]) -> None:
        import numpy as np

        from ragcli.store.lexical import combine, drop_rows

        kept = [
            np.arange(segment.rows) if segment.live is None else np.flatnonzero(segment.live)
            for segment in opened
        ]
        chunks = np.concatenate([s.chunks[rows] for s, rows in zip(opened, kept, strict=True)])
        order = np.argsort(chunks)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        targets, start = [], 0
        for segment, rows in zip(opened, kept, strict=True):
            target = np.full(segment.rows, -1, np.int64)
            target[rows] = place[start : start + len(rows)]
            start += len(rows)
            targets.append(target)
        documents = [s.documents[rows] for s, rows in zip(opened, kept, strict=True)]
        codes = [
            segment.vectors.codes(rows)
            for segment, rows in zip(opened, kept, strict=True)
            if segment.vectors is not None
        ]
        connection = self.connection()
        connection.executemany(
            "DELETE FROM segments WHERE name = ?", [(s.segment.name,) for s in opened]
        )
        connection.executemany(
            "DELETE FROM tombstones WHERE chunk = ?",
            [(chunk,) for s in opened for chunk in s.chunks[s.dead_rows].tolist()],
        )
        if len(chunks):
            self._write_segment(
                drop_rows(opened[0].postings, kept[0])
                if len(opened) == 1
                else combine([segment.postings for segment in opened], targets, len(chunks)),
                chunks[order],
                np.concatenate(documents)[order],
                np.concatenate(codes)[order] if codes else None,
            )

    def sweep(self) -> None:
        """Remove the folders that no live row names; only with nothing uncommitted."""
        from ragcli.store.segments import sweep

        assert self._open is None
        live = {
            str(name)
            for row in self.catalog.connection.execute("SELECT name, vectors FROM segments")
            for name in row
            if name
        }
        sweep(self.segments, live)


def choose_merge(segments: Sequence[tuple[int, int, bool]]) -> list[int]:
    """Which of `segments`, each (rows, live rows, has vectors), to make into one; [] for none.

    Segments with vectors and without are never mixed, nor are sizes: a level is a power of
    `MERGE_AT` rows, and a full level becomes one segment of the next.
    """
    for i, (rows, live, _) in enumerate(segments):
        if live < rows and (rows <= SMALL or live < 0.9 * rows):
            return [i]
    levels: dict[tuple[int, bool], list[int]] = {}
    for i, (rows, _, encoded) in enumerate(segments):
        level, bound = 0, 512
        while rows > bound:
            level, bound = level + 1, bound * MERGE_AT
        levels.setdefault((level, encoded), []).append(i)
    return next((group for group in levels.values() if len(group) >= MERGE_AT), [])
