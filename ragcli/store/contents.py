"""What an index says of its files, documents, chunks and problems, for looking into it.

Owns the reading queries of `inspection` and `evaluation`. Retrieval's own are in `index`, sums in
`totals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ragcli.records import Passage, Problem
from ragcli.store.catalog import decode_path, encode_path
from ragcli.store.index import Index, display_path, heading_path, line_span


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


@dataclass(frozen=True, slots=True)
class Outlined:
    """Where a chunk stands in its file; `page` is the one that it begins on."""

    chunk: int
    record: str | None
    start: int
    end: int
    lines: tuple[int, int] | None
    page: str | None


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """A chunk with its document's record and title, and where the chunk before it ends.

    `before` is None for the first of its document.
    """

    passage: Passage
    record: str | None
    title: str | None
    before: int | None


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


def file_of(index: Index, chunk: int) -> StoredFile | None:
    """The file that a chunk stands in; None where there is no such chunk."""
    with index.reading() as connection:
        row = connection.execute(
            "SELECT f.id, f.path, f.state, f.reason, f.size, f.mtime_ns, f.read_ns FROM chunks c"
            " JOIN documents d ON d.id = c.document JOIN files f ON f.id = d.file WHERE c.id = ?",
            (chunk,),
        ).fetchone()
    return None if row is None else StoredFile(row[0], decode_path(row[1]), *row[2:])


def has_record(index: Index, file: int, record: str) -> bool:
    """Whether a file has a document of that name."""
    with index.reading():
        return bool(
            index.catalog.column(
                "SELECT 1 FROM documents WHERE file = ? AND record = ? LIMIT 1", (file, record)
            )
        )


def outline(index: Index, file: int) -> list[Outlined]:
    """A file's chunks without their texts, document by document, each in the order of its text."""
    with index.reading() as connection:
        rows = connection.execute(
            "SELECT c.id, d.record, c.start, c.end, c.first_line, c.last_line, c.page"
            " FROM documents d JOIN chunks c ON c.document = d.id"
            " WHERE d.file = ? ORDER BY d.id, c.start, c.id",
            (file,),
        ).fetchall()
    return [
        Outlined(chunk, record, start, end, line_span(index, chunk, first, last), page)
        for chunk, record, start, end, first, last, page in rows
    ]


def documents(index: Index) -> Iterator[tuple[int, int, str | None]]:
    """(document, file, record) of every document, in no order."""
    with index.reading() as connection:
        yield from connection.execute("SELECT id, file, record FROM documents")


def outlines(index: Index, documents: Iterable[int]) -> dict[int, list[Outlined]]:
    """The chunks of each of `documents` that has any, in the order of their text."""
    found: dict[int, list[Outlined]] = {}
    wanted = sorted(documents)
    with index.reading() as connection:
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            rows = connection.execute(
                "SELECT c.document, c.id, d.record, c.start, c.end, c.first_line, c.last_line,"
                " c.page FROM chunks c JOIN documents d ON d.id = c.document"
                f" WHERE c.document IN ({','.join('?' * len(some))})"
                " ORDER BY c.document, c.start, c.id",
                some,
            )
            for document, chunk, record, begins, ends, first, last, page in rows:
                lines = line_span(index, chunk, first, last)
                outlined = Outlined(chunk, record, begins, ends, lines, page)
                found.setdefault(document, []).append(outlined)
    return found


def placed(index: Index, chunks: Iterable[int]) -> list[PlacedChunk]:
    """The chunks with these ids, in the order given; those that are not there are left out."""
    wanted = list(chunks)
    found: dict[int, PlacedChunk] = {}
    with index.reading() as connection:
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            rows = connection.execute(
                "SELECT c.id, f.path, d.record, d.title, c.start, c.end, c.text, c.first_line,"
                " c.last_line, c.page, c.heading, (SELECT b.end FROM chunks b"
                " WHERE b.document = c.document AND (b.start, b.id) < (c.start, c.id)"
                " ORDER BY b.start DESC, b.id DESC LIMIT 1)"
                " FROM chunks c JOIN documents d ON d.id = c.document JOIN files f ON f.id = d.file"
                f" WHERE c.id IN ({','.join('?' * len(some))})",
                some,
            )
            for chunk, path, record, title, begins, ends, text, first, last, *rest in rows:
                page, heading, before = rest
                found[chunk] = PlacedChunk(
                    Passage(
                        chunk, display_path(path, record), begins, ends, text,
                        line_span(index, chunk, first, last), page,
                        heading_path(index, chunk, heading),
                    ),
                    record, title, before,
                )  # fmt: skip
    return [found[chunk] for chunk in wanted if chunk in found]


def starts(index: Index) -> tuple[str, ...]:
    """What is indexed, relative to the root; `""` is the root itself."""
    with index.reading():
        stored = index.catalog.get("starts", [""])
    return tuple(map(str, stored)) if isinstance(stored, list) else ("",)


def chunk_numbers(index: Index) -> list[int]:
    """The ids of all live chunks, ascending."""
    with index.reading() as connection:
        # In no order, SQLite reads the ids from an index and not from among the texts.
        return sorted(row[0] for row in connection.execute("SELECT id FROM chunks"))


def language_of(index: Index, chunk: int) -> str | None:
    """The language of a chunk's document, None where none was told."""
    with index.reading() as connection:
        row = connection.execute(
            "SELECT d.language FROM chunks c JOIN documents d ON d.id = c.document WHERE c.id = ?",
            (chunk,),
        ).fetchone()
    return row[0] if row else None
