"""Whether what lies in a `.rag` folder is a catalogue that ragcli made, asked before it is used.

An index may come from a stranger. Owns what tells a catalogue from another file and what must not
lie beside it; opens no database.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
from hashlib import blake2b
from pathlib import Path

from ragcli.errors import IndexForeign, IndexNotFound, IndexUnavailable

APPLICATION_ID = 0x52414743
FORMAT = 1

SCHEMA_DIGEST = "b5620d183a0417f0"
"""`schema_digest` of a catalogue; a change of it is another FORMAT."""

_MAGIC = b"SQLite format 3\0"
_HEADER = struct.Struct(">60xi4xi31xH3x")
"""Of a database file: its user_version and application_id, and how much its schema's page holds."""

_ATTACHED = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""What a rollback journal ends with that names a journal of several databases."""


def check_files(path: Path) -> None:
    """Raises IndexForeign where a catalogue, or what SQLite opens beside it, is no plain file.

    A pipe would be waited for without end, a link would be written where it leads. Raises
    IndexUnavailable where one cannot look.
    """
    for name in (path.name, *(f"{path.name}-{what}" for what in ("journal", "wal", "shm"))):
        place = path.with_name(name)
        try:
            mode = place.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise IndexUnavailable(
                f"{place} cannot be looked at: {error.strerror}",
                "name an index that can be read: --index DIR",
            ) from error
        if not stat.S_ISREG(mode):
            raise IndexForeign(
                f"{place} is no plain file, and ragcli makes nothing else there",
                "remove it, or name another index: --index DIR",
            )


def check_journal(path: Path) -> None:
    """Raises IndexForeign for a journal that no ragcli wrote.

    SQLite plays a journal back that lies beside the file, and removes the file that such a one
    names as that of several databases, wherever it is. ragcli opens one database at a time.
    """
    journal = path.with_name(f"{path.name}-journal")
    try:
        with journal.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - len(_ATTACHED)))
            planted = file.read() == _ATTACHED
    except FileNotFoundError:
        return
    if planted:
        raise IndexForeign(
            f"{journal} was not made by ragcli", "remove it, or name another index: --index DIR"
        )


def check_header(path: Path) -> None:
    """Raises IndexForeign where the catalogue file `path` is not ours; touches nothing.

    Reads the first bytes alone: until its log is folded in, the rest need not hold together.
    """
    check_files(path)
    with path.open("rb") as file:
        header = file.read(_HEADER.size)
    if not header:
        return
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        raise not_ours(path, "it is no SQLite database")
    version, application, cells = _HEADER.unpack(header)
    # Without a table: a first run was killed over it, or its commit still waits in the log.
    if application or cells:
        _check_format(application, version, path.parent)


def check_schema(connection: sqlite3.Connection, folder: Path) -> None:
    """Raises IndexForeign unless the open file is a catalogue of this format, IndexNotFound."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == 0 and is_bare(connection):
        raise IndexNotFound(f"the index in {folder} was never begun", "ragcli index FOLDER")
    _check_format(application, version, folder)
    # A view or trigger of a stranger's would run whenever a table of that name is used.
    if schema_digest(connection) != SCHEMA_DIGEST:
        raise IndexForeign(
            f"{folder} has tables that this ragcli does not make",
            f"remove the folder {folder} and run ragcli index again",
        )


def schema_digest(connection: sqlite3.Connection) -> str:
    """A digest of type, name and text of all that a database holds, white space apart."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name")
    every = [(kind, name, " ".join((sql or "").split())) for kind, name, sql in rows]
    return blake2b(repr(every).encode(), digest_size=8).hexdigest()


def is_bare(connection: sqlite3.Connection) -> bool:
    """A file that a first run made and was killed over before its first commit."""
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def not_ours(path: Path, error: BaseException | str) -> IndexForeign:
    """What is told of a file that lies where a catalogue belongs."""
    return IndexForeign(
        f"{path} is not a ragcli catalogue, or a broken one: {error}",
        f"if it was yours, remove the folder {path.parent} and index again; else --index DIR",
    )


def _check_format(application: int, version: int, folder: Path) -> None:
    if application != APPLICATION_ID:
        raise IndexForeign(f"{folder} was not made by ragcli", "name another folder: --index DIR")
    if version != FORMAT:
        raise IndexForeign(
            f"{folder} has format {version}, this ragcli reads format {FORMAT}",
            f"remove the folder {folder} and run ragcli index again",
        )
