"""The catalogue: one SQLite file that is the truth about an index.

Owns the schema and how the file is opened; a transaction here is the commit. Knows no arrays: which
segments are live is a row, what lies in them is `segments`' business. Whether a file is a catalogue
of ours is `identity`'s.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ragcli.errors import IndexBusy, IndexDamaged, IndexForeign, IndexUnavailable
from ragcli.store.identity import (
    APPLICATION_ID,
    FORMAT,
    check_files,
    check_journal,
    check_schema,
    is_bare,
    not_ours,
)

FILE = "catalog.sqlite"

_WAIT_MS = 30_000
_CHECKPOINT_WAIT_MS = 100
_RETRY_SECONDS = 0.02

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- path: os.fsencode of the path below the root. state: indexed, skipped or failed; reason says
-- why for the last two. read_ns: the clock just before the file was read. reading: what shaped
-- its chunks (readers, chunking, tokenizer), so that a change of those is seen file by file.
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, state TEXT NOT NULL, reason TEXT,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
    read_ns INTEGER NOT NULL, digest BLOB, reading TEXT NOT NULL
);
-- words, pieces: of a sample of its text, how many words the encoder's tokenizer cuts into how
-- many pieces; 0 where the encoder has none.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL, record TEXT,
    kind TEXT NOT NULL, title TEXT, language TEXT,
    words INTEGER NOT NULL DEFAULT 0, pieces INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX documents_of_file ON documents (file);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY, document INTEGER NOT NULL,
    start INTEGER NOT NULL, end INTEGER NOT NULL, first_line INTEGER, last_line INTEGER,
    page TEXT, heading TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX chunks_of_document ON chunks (document, start);
CREATE TABLE problems (
    file INTEGER NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL, page TEXT,
    since REAL NOT NULL
);
CREATE INDEX problems_of_file ON problems (file);

-- Postings and vectors have segments of their own; a chunk stands in at most one of each kind.
-- A tombstone covers both, and goes when no live segment holds its chunk any more.
CREATE TABLE segments (name TEXT PRIMARY KEY, checksum TEXT NOT NULL, rows INTEGER NOT NULL);
CREATE TABLE vectors (name TEXT PRIMARY KEY, checksum TEXT NOT NULL, rows INTEGER NOT NULL);
CREATE TABLE tombstones (chunk INTEGER PRIMARY KEY);

-- Sums over documents by language ('' for none), so that a query need not read them all.
CREATE TABLE tallies (
    language TEXT PRIMARY KEY, documents INTEGER NOT NULL, words INTEGER NOT NULL,
    pieces INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER document_comes AFTER INSERT ON documents BEGIN
    INSERT INTO tallies VALUES (coalesce(new.language, ''), 1, new.words, new.pieces)
    ON CONFLICT (language) DO UPDATE SET documents = documents + 1,
        words = words + excluded.words, pieces = pieces + excluded.pieces;
END;
CREATE TRIGGER document_goes AFTER DELETE ON documents BEGIN
    UPDATE tallies SET documents = documents - 1, words = words - old.words,
        pieces = pieces - old.pieces WHERE language = coalesce(old.language, '');
    DELETE FROM tallies WHERE documents = 0;
END;
CREATE TRIGGER document_changes AFTER UPDATE OF language, words, pieces ON documents BEGIN
    UPDATE tallies SET documents = documents - 1, words = words - old.words,
        pieces = pieces - old.pieces WHERE language = coalesce(old.language, '');
    INSERT INTO tallies VALUES (coalesce(new.language, ''), 1, new.words, new.pieces)
    ON CONFLICT (language) DO UPDATE SET documents = documents + 1,
        words = words + excluded.words, pieces = pieces + excluded.pieces;
    DELETE FROM tallies WHERE documents = 0;
END;
"""


def _connect(
    path: Path, *, read_only: bool, immutable: bool = False, wait_ms: int = _WAIT_MS
) -> sqlite3.Connection:
    check_files(path)
    if not read_only:
        check_journal(path)
    query = "?mode=ro" if read_only else "?mode=rwc"
    connection = sqlite3.connect(
        path.absolute().as_uri() + query + ("&immutable=1" if immutable else ""),
        uri=True,
        timeout=wait_ms / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    return connection


@contextmanager
def _closed_on_error(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Close the connection where opening fails; a file that is no database is not ours."""
    try:
        yield
    except BaseException as error:
        connection.close()
        broken = isinstance(error, sqlite3.DatabaseError)
        if broken and not isinstance(error, sqlite3.OperationalError):
            raise not_ours(path, error) from error
        raise


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return "locked" in str(error) or "busy" in str(error)


class Catalog:
    """An open catalogue; `open_read` for looking, `open_write` for the one writer."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self.connection = connection
        self.folder = folder

    @classmethod
    def open_read(cls, folder: Path) -> Catalog:
        """Open read-only, also on a read-only medium; begins one consistent view.

        Raises IndexForeign, IndexDamaged, IndexUnavailable or IndexBusy.
        """
        path = folder / FILE
        check_files(path)
        if not path.exists():
            raise IndexForeign(
                f"{folder} holds no ragcli catalogue", "ragcli index FOLDER   (in a new place)"
            )
        end = time.monotonic() + _WAIT_MS / 1000
        while True:
            try:
                return cls._try_read(path, folder, immutable=False)
            except sqlite3.OperationalError as error:
                if not _is_busy(error):
                    return cls._read_in_place(path, folder, error)
                if time.monotonic() >= end:
                    raise IndexBusy(f"{path} is locked by another process", "try again") from error
            # A writer that ends folds the log in; SQLite does not always wait for that itself.
            time.sleep(_RETRY_SECONDS)

    @classmethod
    def _read_in_place(cls, path: Path, folder: Path, error: sqlite3.OperationalError) -> Catalog:
        """Read a catalogue beside which no -shm file may be made: the file alone, if it is whole.

        It is whole as long as no log waits to be folded in.
        """
        if file_size(path.with_name(f"{FILE}-wal")):
            raise IndexUnavailable(
                f"{path} cannot be read here: {error}, and its log is not folded in",
                "copy the index to a place where you can write, and run ragcli index",
            ) from error
        try:
            return cls._try_read(path, folder, immutable=True)
        except sqlite3.Error as second:
            raise IndexUnavailable(
                f"{path} cannot be read: {second}", "name an index that can be read: --index DIR"
            ) from second

    @classmethod
    def _try_read(cls, path: Path, folder: Path, *, immutable: bool) -> Catalog:
        connection = _connect(path, read_only=True, immutable=immutable)
        with _closed_on_error(connection, path):
            check_schema(connection, folder)
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM meta LIMIT 1").fetchone()
        return cls(connection, folder)

    @classmethod
    def open_write(cls, folder: Path, *, wait_ms: int = _WAIT_MS) -> Catalog:
        """Open for the one writer, making the file where there is none.

        The caller holds the lock. `wait_ms`: for another program that holds the file. Raises
        IndexForeign where a file is there and not ours.
        """
        path = folder / FILE
        connection = _connect(path, read_only=False, wait_ms=wait_ms)
        with _closed_on_error(connection, path):
            if is_bare(connection):
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(
                    f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID};"
                    f"PRAGMA user_version = {FORMAT}; {_SCHEMA} COMMIT;"
                )
            check_schema(connection, folder)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            # Deleted text is overwritten, not left lying in free pages.
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA cache_size = -16384")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
        return cls(connection, folder)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing; what is done inside is the commit."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
            self.connection.execute("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """Undo the open transaction; SQLite has done so by itself when the disk was full."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def checkpoint(self) -> None:
        """Fold the log into the file, so that the file alone is whole and old text is gone.

        Where a reader still looks at an older state it is left for the next run.
        """
        self.connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT_MS}").fetchall()
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self.connection.execute(f"PRAGMA busy_timeout = {_WAIT_MS}").fetchall()

    def get(self, key: str, default: object = None) -> object:
        """A value of `meta`. Raises IndexDamaged where it cannot be read."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        try:
            return default if row is None else json.loads(row[0])
        except (ValueError, TypeError, RecursionError) as error:
            raise spoilt(self.folder, f"its {key} cannot be read") from error

    def put(self, key: str, value: object) -> None:
        """Set a value of `meta`."""
        self.connection.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, json.dumps(value)),
        )

    def count(self, what: str) -> int:
        """Rows of the table `what`."""
        count: int = self.connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0]
        return count

    def column(self, sql: str, parameters: Iterable[object] = ()) -> list[object]:
        """The first column of a query."""
        return [row[0] for row in self.connection.execute(sql, tuple(parameters))]

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()


def encode_path(path: str) -> bytes:
    """A path as stored: the file system's own bytes."""
    return os.fsencode(path)


def decode_path(path: bytes) -> str:
    """A stored path, with surrogates for bytes that are not UTF-8. Raises IndexDamaged."""
    if not isinstance(path, bytes) or b"\0" in path:
        raise IndexDamaged(
            f"the catalogue of the index has {path!r:.40} where a path belongs",
            "ragcli inspect --check",
        )
    return os.fsdecode(path)


def file_size(path: Path) -> int:
    """Its bytes; 0 where it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def spoilt(folder: Path, what: str) -> IndexDamaged:
    """What a reader is told of rows that no ragcli wrote."""
    return IndexDamaged(
        f"{folder / FILE} is damaged: {what}",
        f"ragcli inspect --check; remove the folder {folder} and run ragcli index again",
    )


def damaged(error: sqlite3.DatabaseError, folder: Path) -> IndexDamaged:
    """What a reader is told when SQLite finds the file broken in the middle of reading."""
    return IndexDamaged(
        f"{folder / FILE} is damaged: {error}",
        f"remove the folder {folder} and run ragcli index again",
    )
