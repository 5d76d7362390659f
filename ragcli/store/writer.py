"""The write side of an index: files in, files out, batches committed, segments merged.

Owns the order of things on disk: a segment is whole in its place before the transaction that
names it, and swept only after the transaction that forgets it. The caller holds the lock.
Does not read files or choose what to index (`indexing` does).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcli.records import Settings
from ragcli.store.batch import Batch, FileState, SegmentContent
from ragcli.store.catalog import Catalog, encode_path
from ragcli.store.folder import SEGMENTS
from ragcli.store.index import OpenSegment, open_segment
from ragcli.store.merging import choose_merge, merge
from ragcli.store.openfile import OpenFile

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray


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
            self._write_segment(batch.content())
        if self._open is not None:
            opened, self._open = self._open, None
            opened.__exit__(None, None, None)

    def _write_segment(self, content: SegmentContent) -> None:
        from ragcli.store.lexical import PackedNames
        from ragcli.store.segments import write_segment

        postings = content.postings
        names = PackedNames.pack(postings.names)
        name, checksum = write_segment(
            self.segments,
            "p",
            {
                "chunks": content.chunks,
                "documents": content.documents,
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
            (name, checksum, len(content.chunks)),
        )
        if content.codes is not None:
            self.set_vectors(name, content.codes)

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
        self._replace([opened[i] for i in chosen])
        self.commit()
        return True

    def _replace(self, opened: Sequence[OpenSegment]) -> None:
        """One segment in the place of `opened`, without their dead rows."""
        merged = merge(opened)
        connection = self.connection()
        connection.executemany(
            "DELETE FROM segments WHERE name = ?", [(s.segment.name,) for s in opened]
        )
        connection.executemany(
            "DELETE FROM tombstones WHERE chunk = ?",
            [(chunk,) for s in opened for chunk in s.chunks[s.dead_rows].tolist()],
        )
        if len(merged.chunks):
            self._write_segment(merged)

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
