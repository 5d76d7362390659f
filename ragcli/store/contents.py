"""What the catalogue says of files, documents, chunks and problems, for looking into an index.

Owns the reading queries of `inspection`. Retrieval's own are in `index`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ragcli.records import Passage, Problem
from ragcli.store.catalog import decode_path, encode_path
from ragcli.store.index import Index


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A row of `files`: `state` is `indexed`, `skipped` or `failed`, `reason` says why."""

    id: int
    path: str
    state: str
    reason: str | None
    size: int
    mtime_ns: int
    read_ns: int


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A row of `documents` with the number of its chunks."""

    id: int
    file: int
    record: str | None
    kind: str
    title: str | None
    language: str | None
    chunks: int


def files(index: Index, path: str | None = None) -> list[StoredFile]:
    """The files that the catalogue knows, by path; with `path` that one, if it is there."""
    where, values = ("", ()) if path is None else (" WHERE path = ?", (encode_path(path),))
    with index.reading() as connection:
        rows = connection.execute(
            "SELECT id, path, state, reason, size, mtime_ns, read_ns FROM files"
            f"{where} ORDER BY path",
            values,
        ).fetchall()
    return [StoredFile(row[0], decode_path(row[1]), *row[2:]) for row in rows]


def documents_of(index: Index, file: int) -> list[StoredDocument]:
    """The documents of a file, in the order in which they were read."""
    with index.reading() as connection:
        rows = connection.execute(
            "SELECT d.id, d.file, d.record, d.kind, d.title, d.language,"
            " (SELECT count(*) FROM chunks c WHERE c.document = d.id)"
            " FROM documents d WHERE d.file = ? ORDER BY d.id",
            (file,),
        ).fetchall()
    return [StoredDocument(*row) for row in rows]


def chunks_of(index: Index, file: int) -> list[int]:
    """The ids of a file's chunks, document by document, each in the order of its text."""
    with index.reading() as connection:
        rows = connection.execute(
            "SELECT c.id FROM documents d JOIN chunks c ON c.document = d.id"
            " WHERE d.file = ? ORDER BY d.id, c.start, c.id",
            (file,),
        ).fetchall()
    return [row[0] for row in rows]


def texts(index: Index, chunks: Iterable[int] | None = None) -> Iterator[tuple[int, str]]:
    """(chunk, text) by id, of all live chunks or of those of `chunks` that are live."""
    with index.reading() as connection:
        if chunks is None:
            yield from connection.execute("SELECT id, text FROM chunks ORDER BY id")
            return
        wanted = sorted(chunks)
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            yield from connection.execute(
                f"SELECT id, text FROM chunks WHERE id IN ({','.join('?' * len(some))})"
                " ORDER BY id",
                some,
            )


def problems(index: Index, file: int | None = None) -> list[tuple[Problem, float]]:
    """(line of the ledger, since when in seconds of the epoch), by path; of one file or of all."""
    where, values = ("", ()) if file is None else (" WHERE p.file = ?", (file,))
    with index.reading() as connection:
        rows = connection.execute(
            "SELECT f.path, p.kind, p.message, p.page, p.since FROM problems p"
            f" JOIN files f ON f.id = p.file{where} ORDER BY f.path, p.rowid",
            values,
        ).fetchall()
    return [
        (Problem(decode_path(path), kind, message, page), since)
        for path, kind, message, page, since in rows
    ]


def passages(index: Index, chunks: Iterable[int]) -> dict[int, Passage]:
    """The chunks with these ids, as reports name them. Raises IndexDamaged for one not there."""
    return {
        number: Passage(
            number, stored.path, stored.chunk.start, stored.chunk.end, stored.chunk.text,
            stored.chunk.lines, stored.chunk.page, stored.chunk.heading,
        )
        for number, stored in index.chunks(chunks).items()
    }  # fmt: skip
