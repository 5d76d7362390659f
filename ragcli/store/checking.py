"""The catalogue held against itself, and the `.rag` folder against the catalogue.

Owns the SQL of a check. What lies in segments is `checking_segments`' business, what to do about
damage `inspection`'s. Writes nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragcli.errors import IndexBusy, IndexDamaged
from ragcli.records import Settings
from ragcli.store.catalog import FILE, Catalog, decode_path
from ragcli.store.columns import REMEMBERED, fits
from ragcli.store.folder import SEGMENTS, strangers
from ragcli.store.index import RANGES, Index
from ragcli.store.languages import FUNCTION_WORDS
from ragcli.store.lock import FILE as LOCK
from ragcli.store.lock import write_lock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NAMED = 5
"""So many rows are named where a rule finds many."""


class Damage(NamedTuple):
    """`kind` is one of those in `inspection.checking`; `part` a table, segment or file.

    `message` is one line that can stand alone.
    """

    kind: str
    part: str
    message: str


class _Rule(NamedTuple):
    """`wrong` selects the keys of rows of `table`; what they are is said by `says`."""

    kind: str
    table: str
    says: str
    wrong: str


_SUMS = (
    "SELECT coalesce(language, ''), count(*), sum(words), sum(pieces) FROM documents"
    " GROUP BY coalesce(language, '')"
)

_KINDS = {
    "files": "path blob, state text, reason text?, size integer, mtime_ns integer,"
    " ctime_ns integer, read_ns integer, digest blob?, reading text",
    "documents": "file integer, record text?, kind text, title text?, language text?,"
    " words integer, pieces integer",
    "chunks": "document integer, start integer, end integer, first_line integer?,"
    " last_line integer?, page text?, heading text, text text",
    "problems": "file integer, kind text, message text, page text?, since real",
    "segments": "name text, checksum text, rows integer",
    "vectors": "name text, checksum text, rows integer",
    "tallies": "language text, documents integer, words integer, pieces integer",
}
"""What SQLite, which takes anything anywhere, must have in each column; `?`: or nothing."""

_RULES = (
    _Rule(
        "reference", "documents", "documents of no file",
        "SELECT id FROM documents WHERE file NOT IN (SELECT id FROM files)",
    ),
    _Rule(
        "reference", "documents", "documents of a file that was not read",
        "SELECT id FROM documents WHERE file IN (SELECT id FROM files WHERE state != 'indexed')",
    ),
    _Rule(
        "reference", "chunks", "passages of no document",
        "SELECT id FROM chunks WHERE document NOT IN (SELECT id FROM documents)",
    ),
    _Rule(
        "reference", "problems", "problems of no file",
        "SELECT rowid FROM problems WHERE file NOT IN (SELECT id FROM files)",
    ),
    _Rule(
        "reference", "tombstones", "tombstones of passages that live",
        "SELECT chunk FROM tombstones WHERE chunk IN (SELECT id FROM chunks)",
    ),
    _Rule(
        "reference", "files", "files in a state that cannot be",
        "SELECT path FROM files WHERE state NOT IN ('indexed', 'skipped', 'failed')"
        " OR (state = 'indexed') != (reason IS NULL) OR (state = 'indexed' AND digest IS NULL)",
    ),
    _Rule(
        "counts", "tallies", "sums that are not those over documents, of language",
        "SELECT language FROM (SELECT * FROM tallies EXCEPT SELECT * FROM sums)"
        " UNION SELECT language FROM (SELECT * FROM sums EXCEPT SELECT * FROM tallies)",
    ),
    _Rule(
        "offsets", "chunks", "passages that start and end where no text can",
        "SELECT id FROM chunks WHERE typeof(start) != 'integer' OR typeof(end) != 'integer'"
        " OR start < 0 OR start >= end",
    ),
    _Rule(
        "offsets", "chunks", "passages with lines that cannot be",
        "SELECT id FROM chunks WHERE (first_line IS NULL) != (last_line IS NULL)"
        " OR typeof(first_line) NOT IN ('integer', 'null') OR first_line < 1"
        " OR typeof(last_line) NOT IN ('integer', 'null') OR first_line > last_line",
    ),
)  # fmt: skip


def check_catalog(index: Index) -> list[Damage]:
    """What is wrong with the catalogue: SQLite's own check, `meta`, the rules, every text.

    After damage of the kind `catalogue` nothing that it says can be relied on.
    """
    found: list[Damage] = []
    try:
        with index.reading() as connection:
            for damage in _damages(connection):
                found.append(damage)
    except IndexDamaged as error:
        found.append(Damage("catalogue", FILE, error.message))
    return found


def _damages(connection: sqlite3.Connection) -> Iterator[Damage]:
    broken = [row[0] for row in connection.execute("PRAGMA integrity_check(1)") if row[0] != "ok"]
    if broken:
        first = " ".join(str(broken[0]).split())
        yield Damage("catalogue", FILE, f"{FILE} is damaged: {first}")
        return
    wrong = list(_check_kinds(connection))
    yield from wrong
    if wrong:
        return
    yield from _check_meta(connection)
    for rule in _RULES:
        keys = [
            decode_path(key) if isinstance(key, bytes) else key
            for (key,) in connection.execute(
                f"WITH sums (language, documents, words, pieces) AS ({_SUMS}) {rule.wrong}"
            )
        ]
        if keys:
            yield Damage(rule.kind, rule.table, f"{rule.says}: {some(keys)}")
    yield from _check_texts(connection)


def _check_kinds(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Whether each value is of the kind that its column is read as, and each path a path.

    `AS found`: a value that is wrong is to be told here, not refused as it is read.
    """
    for table, columns in _KINDS.items():
        for column in columns.split(","):
            name, kind = column.split()
            allowed = f"'{kind.rstrip('?')}'" + (", 'null'" if kind.endswith("?") else "")
            row = connection.execute(
                f"SELECT {name} AS found FROM {table}"
                f" WHERE typeof({name}) NOT IN ({allowed}) LIMIT 1"
            ).fetchone()
            if row is None and kind.startswith(("integer", "real")):
                ends = connection.execute(f"SELECT min({name}), max({name}) FROM {table}")
                row = [end for end in ends.fetchone() if end is not None and not fits(name, end)]
            if row:
                told = f"{FILE} has {row[0]!r:.40} where {table}.{name} belongs"
                yield Damage("catalogue", FILE, told)
    paths = "SELECT path AS found FROM files WHERE typeof(path) = 'blob'"
    for (path,) in connection.execute(paths):
        if b"\0" in path or path.startswith(b"/") or b".." in path.split(b"/"):
            yield Damage("catalogue", FILE, f"{FILE} has {path!r:.60} where a path belongs")
            return
    known = {*FUNCTION_WORDS, None}
    for (language,) in connection.execute("SELECT DISTINCT language AS found FROM documents"):
        if language not in known:
            yield Damage("catalogue", FILE, f"{FILE} has no language {language!r:.40}")


def _check_meta(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Whether what the index remembers can be read."""
    known: dict[str, object] = {}
    for key, value in connection.execute("SELECT key, value FROM meta"):
        try:
            known[key] = json.loads(value)
        except (ValueError, TypeError, RecursionError):
            yield Damage("catalogue", "meta", f"what is remembered as {key} cannot be read")
    for key, fitting in REMEMBERED.items():
        if known.get(key) is not None and not fitting(known[key]):
            told = f"what is remembered as {key} cannot be {known[key]!r:.40}"
            yield Damage("catalogue", "meta", told)
    settings, usual = known.get("settings", {}), Settings()
    if not isinstance(settings, dict):
        yield Damage("catalogue", "meta", "the settings cannot be read")
        return
    for name in (field.name for field in fields(Settings)):
        default = getattr(usual, name)
        value = settings.get(name, default)
        kind = list if isinstance(default, tuple) else str if default is None else type(default)
        wrong = type(value) is not kind or (name in RANGES and value not in RANGES[name])
        if value != default and wrong:
            yield Damage("catalogue", "meta", f"the setting {name} cannot be {value!r}")


def _check_texts(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Every text against its offsets, and the heading paths; one row in memory at a time.

    In Python, for SQLite's `length` ends at a NUL and takes what is no UTF-8 for text.
    """
    wrong_texts, wrong_headings = [], []
    for chunk, size, heading, text in connection.execute(
        "SELECT id, end - start, CAST(heading AS BLOB), CAST(text AS BLOB) FROM chunks"
    ):
        if _length(text) != size:
            wrong_texts.append(chunk)
        if not _is_heading_path(heading):
            wrong_headings.append(chunk)
    if wrong_texts:
        message = f"passages whose text is not as long as their place: {some(wrong_texts)}"
        yield Damage("offsets", "chunks", message)
    if wrong_headings:
        message = f"passages whose heading path cannot be read: {some(wrong_headings)}"
        yield Damage("offsets", "chunks", message)


def _length(text: bytes) -> int | None:
    """In characters; None where it is no UTF-8."""
    try:
        return len(text.decode())
    except UnicodeDecodeError:
        return None


def _is_heading_path(stored: bytes) -> bool:
    if stored == b"[]":
        return True
    try:
        path = json.loads(stored)
    except (ValueError, RecursionError):
        return False
    return isinstance(path, list) and all(isinstance(part, str) for part in path)


def some(keys: Sequence[object] | NDArray[np.int64]) -> str:
    """The first few of `keys`, and how many more."""
    named = ", ".join(str(key) for key in keys[:_NAMED])
    more = len(keys) - _NAMED
    return f"{named} and {more:,} more" if more > 0 else named


def counts(index: Index) -> tuple[int, int, int]:
    """(files, documents, chunks) that the catalogue has."""
    with index.reading():
        files, documents, chunks = map(index.catalog.count, ("files", "documents", "chunks"))
    return files, documents, chunks


def is_current(index: Index) -> bool:
    """Whether no later commit than that of `index` has come: else its segments may be swept."""
    now = Catalog.open_read(index.path)
    try:
        with index.reading():
            return _commit(now) == _commit(index.catalog)
    finally:
        now.close()


def _commit(catalog: Catalog) -> list[tuple[object, ...]]:
    return catalog.connection.execute(
        "SELECT key, value FROM meta UNION ALL SELECT name, checksum FROM segments"
        " UNION ALL SELECT name, checksum FROM vectors ORDER BY 1, 2"
    ).fetchall()


def check_folder(folder: Path) -> list[Damage]:
    """What lies in `.rag` and belongs to nothing; [] while another process writes there."""
    if not (folder / LOCK).exists():
        return _strays(folder)
    try:
        with write_lock(folder, 0.0):
            return _strays(folder)
    except IndexBusy:
        return []
    except OSError:  # a lock that cannot be opened for writing: nobody writes here
        return _strays(folder)


def _strays(folder: Path) -> list[Damage]:
    # Not the catalogue as it was read before: a writer may have come and gone since.
    catalog = Catalog.open_read(folder)
    try:
        live = catalog.column("SELECT name FROM segments UNION ALL SELECT name FROM vectors")
    finally:
        catalog.close()
    segments = folder / SEGMENTS
    found = sorted(entry.name for entry in segments.iterdir()) if segments.is_dir() else []
    return [
        Damage("orphan", f"{SEGMENTS}/{name}", f"{SEGMENTS}/{name} belongs to no commit")
        for name in found
        if name not in live
    ] + [
        Damage("stranger", name, f"{name} is nothing that ragcli keeps in {folder.name}")
        for name in strangers(folder)
    ]
