"""The write side of an index: files in, files out, batches committed, segments merged.

Owns the order of things on disk: a segment is whole in its place before the transaction that
names it, and swept only after the transaction that forgets it. The caller holds the lock.
Does not read files or choose what to index (`indexing` does).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ragcli.encoders import Encoded
from ragcli.records import Settings
from ragcli.store.batch import Batch, FileState, SegmentContent, VectorContent
from ragcli.store.catalog import Catalog, encode_path, spoilt
from ragcli.store.folder import segments_of
from ragcli.store.merging import choose_merge, merge_postings, merge_vectors
from ragcli.store.openfile import OpenFile
from ragcli.store.origin import ORIGIN, origin

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

    from ragcli.store.rows import OpenRows
    from ragcli.store.view import View

Opened = TypeVar("Opened", bound="OpenRows")


class Writer:
    """One writer over an open catalogue. `begin` … `put_file`, `remove_file` … `commit`."""

    def __init__(self, folder: Path, catalog: Catalog) -> None:
        self.folder = folder
        self.catalog = catalog
        self.batch = Batch()
        self._open: AbstractContextManager[sqlite3.Connection] | None = None
        self._rows_before = 0
        self._last_chunk: int | None = None

    @property
    def segments(self) -> Path:
        """The folder that segments lie in."""
        return segments_of(self.folder)

    def connection(self) -> sqlite3.Connection:
        """Inside the batch's transaction, begun at the first write."""
        if self._open is None:
            self._open = self.catalog.transaction()
            self._open.__enter__()
            self._rows_before = self.catalog.connection.total_changes
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
        """Settings and root, from the next commit on; of a new index also that it begins.

        Nothing is written where all but `made_by` is remembered already.
        """
        wanted = {
            "settings": _as_stored(asdict(settings)),
            "root": root,
            "starts": list(starts),
            ORIGIN: origin(self.folder),
        }
        have = {key: self.catalog.get(key) for key in wanted}
        if have == wanted:
            return
        self.connection()
        if have["settings"] is None:
            self.catalog.put("generation", 0)
        for key, value in (*wanted.items(), ("made_by", made_by)):
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
        """Make what was put since the last commit visible, whole, and note that and when."""
        batch, self.batch = self.batch, Batch()
        if batch.chunks:
            self._write_postings(batch.content())
        if batch.vectors:
            self._write_vectors(VectorContent.join(batch.vectors))
        if self._open is not None:
            if self.catalog.connection.total_changes > self._rows_before:
                self._count_commit()
            opened, self._open = self._open, None
            opened.__exit__(None, None, None)

    def _count_commit(self) -> None:
        """`changed`, and where commits were counted from the first one `generation` and `made`."""
        now = time.time()
        generation = self.catalog.get("generation")
        if isinstance(generation, int):
            if generation == 0:
                self.catalog.put("made", now)
            self.catalog.put("generation", generation + 1)
        self.catalog.put("changed", now)

    def _write_postings(self, content: SegmentContent) -> None:
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
            "INSERT INTO segments VALUES (?, ?, ?)", (name, checksum, len(content.chunks))
        )

    def _write_vectors(self, content: VectorContent) -> None:
        from ragcli.store.vectors import write_vectors

        name, checksum = write_vectors(self.segments, content.chunks, content.encoded)
        self.connection().execute(
            "INSERT INTO vectors VALUES (?, ?, ?)", (name, checksum, len(content.chunks))
        )

    def add_vectors(self, chunks: NDArray[np.int64], encoded: Encoded) -> None:
        """Vectors of chunks that have none, with the next commit."""
        self.batch.vectors.append(VectorContent(chunks, encoded))

    def drop_vectors(self) -> None:
        """Forget every vector: another encoder is coming."""
        self.connection().execute("DELETE FROM vectors")
        self._forget_tombstones()

    def forget_segment(self, name: str) -> None:
        """A segment of postings that was lost; `missing` then names its chunks."""
        self.connection().execute("DELETE FROM segments WHERE name = ?", (name,))

    def forget_vectors(self, name: str) -> None:
        """A segment of vectors that was lost; its chunks are then `pending`."""
        self.connection().execute("DELETE FROM vectors WHERE name = ?", (name,))

    def view(self) -> View:
        """The live segments. Raises IndexDamaged."""
        from ragcli.store.view import open_view

        return open_view(self.catalog)

    def missing(self) -> NDArray[np.int64]:
        """Ids of live chunks that no segment of postings holds, ascending: one was lost."""
        return self._unheld(self.view().postings)

    def pending(self) -> NDArray[np.int64]:
        """Ids of live chunks that no segment of vectors holds, ascending."""
        return self._unheld(self.view().vectors)

    def _unheld(self, opened: Sequence[OpenRows]) -> NDArray[np.int64]:
        import numpy as np

        # In no order, SQLite reads the ids from an index and not from among the texts.
        live = np.array(self.catalog.column("SELECT id FROM chunks"), np.int64)
        held = [segment.chunks for segment in opened]
        return np.setdiff1d(live, np.concatenate(held)) if held else np.sort(live)

    def embedded(self) -> int:
        """Live chunks that have a vector."""
        if self.catalog.count("tombstones"):
            return self.view().embedded
        rows: int = self.catalog.connection.execute(
            "SELECT coalesce(sum(rows), 0) FROM vectors"
        ).fetchone()[0]
        return rows

    def merge_postings(self, most: int | None = None) -> bool:
        """Merge segments of like size when there are many, and drop dead rows where it pays.

        Of segments of up to `most` rows alone where that is given. Returns whether anything was
        merged; commits it.
        """
        if not self._may_merge("segments"):
            return False
        chosen = _chosen([p for p in self.view().postings if most is None or p.rows <= most])
        if chosen:
            merged = merge_postings(chosen)
            self._forget("segments", chosen)
            if len(merged.chunks):
                self._write_postings(merged)
            self._forget_tombstones()
            self.commit()
        return bool(chosen)

    def merge_vectors(self, most: int | None = None) -> bool:
        """As `merge_postings`: of segments of up to `most` rows alone where that is given."""
        if not self._may_merge("vectors"):
            return False
        chosen = _chosen([v for v in self.view().vectors if most is None or v.rows <= most])
        if chosen:
            merged = merge_vectors(chosen)
            self._forget("vectors", chosen)
            if len(merged.chunks):
                self._write_vectors(merged)
            self._forget_tombstones()
            self.commit()
        return bool(chosen)

    def _may_merge(self, table: str) -> bool:
        """Whether it is worth opening the segments: there are dead rows, or enough of a size.

        Raises IndexDamaged for a count that is none.
        """
        rows = self.catalog.connection.execute(f"SELECT rows, rows FROM {table}").fetchall()
        if wrong := [count for count, _ in rows if not isinstance(count, int)]:
            raise spoilt(self.folder, f"a segment of {wrong[0]!r:.40} rows")
        return bool(self.catalog.count("tombstones") or choose_merge(rows))

    def _forget(self, table: str, opened: Sequence[OpenRows]) -> None:
        self.connection().executemany(
            f"DELETE FROM {table} WHERE name = ?", [(rows.segment.name,) for rows in opened]
        )

    def _forget_tombstones(self) -> None:
        """Drop the tombstones whose chunk no live segment holds any more."""
        import numpy as np

        dead = self.catalog.column("SELECT chunk FROM tombstones")
        if dead:
            view = self.view()
            held = [rows.chunks[rows.dead_rows] for rows in (*view.postings, *view.vectors)]
            gone = np.setdiff1d(np.array(dead, np.int64), np.concatenate([[], *held]))
            self.connection().executemany(
                "DELETE FROM tombstones WHERE chunk = ?", [(chunk,) for chunk in gone.tolist()]
            )

    def sweep(self) -> None:
        """Remove the folders that no live row names; only with nothing uncommitted."""
        from ragcli.store.segments import sweep

        assert self._open is None
        names = self.catalog.column("SELECT name FROM segments UNION ALL SELECT name FROM vectors")
        sweep(self.segments, set(map(str, names)))


def _as_stored(values: Mapping[str, object]) -> Mapping[str, object]:
    """As JSON gives them back: tuples become lists."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in values.items()
    }


def _chosen(opened: Sequence[Opened]) -> list[Opened]:
    return [opened[i] for i in choose_merge([(rows.rows, rows.live_rows) for rows in opened])]
