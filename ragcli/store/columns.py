"""What each column of the catalogue may hold: SQLite takes anything anywhere.

Owns the judgement of one value, by its type and range, and of every row that a reader gets, by
the names of its columns. What the rows say of each other is `checking`'s.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragcli.store.catalog import spoilt

_LATEST = 32_503_680_000
"""Seconds of the epoch: the year 3000, up to which every system can tell the date."""

_LARGEST = 2**63
_LONGEST = 2**32
"""Characters of a text: more than fit into memory beside what is made of them."""

Kind = Callable[[object], bool]


def is_number(value: object) -> bool:
    """Whether it is an integer that SQLite and numpy can hold."""
    return type(value) is int and -_LARGEST <= value < _LARGEST


def is_amount(value: object) -> bool:
    """Whether it can count something."""
    return type(value) is int and 0 <= value < _LARGEST


def is_offset(value: object) -> bool:
    """Whether it can be a place in a text, in characters or lines."""
    return type(value) is int and 0 <= value < _LONGEST


def is_moment(value: object) -> bool:
    """Whether it is a time in seconds of the epoch that can be told as a date."""
    return type(value) is float and 0 <= value < _LATEST


def is_text(value: object) -> bool:
    """Whether it is text."""
    return type(value) is str


def is_bytes(value: object) -> bool:
    """Whether it is a blob."""
    return type(value) is bytes


def _or_nothing(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("file", "document"), is_number),
    **dict.fromkeys(("mtime_ns", "ctime_ns", "read_ns"), is_number),
    **dict.fromkeys(("size", "rows", "words", "pieces", "documents"), is_amount),
    **dict.fromkeys(("start", "end"), is_offset),
    **dict.fromkeys(("first_line", "last_line"), _or_nothing(is_offset)),
    **dict.fromkeys(("state", "reading", "kind", "message", "heading", "text"), is_text),
    **dict.fromkeys(("name", "checksum"), is_text),
    **dict.fromkeys(("reason", "record", "title", "language", "page"), _or_nothing(is_text)),
    "path": is_bytes,
    "digest": _or_nothing(is_bytes),
    "since": is_moment,
}
"""By the name that a column has in every table, and an expression by `AS`.

Without the primary keys `id` and `chunk`, which SQLite itself holds to be integers.
"""

REMEMBERED: dict[str, Kind] = {
    "made": is_moment,
    "changed": is_moment,
    "generation": is_amount,
    "made_by": is_text,
}
"""What `meta` may hold under these keys, if anything."""


def fits(name: str, value: object) -> bool:
    """Whether a column of this name may hold `value`; of what is no column, all fits."""
    return name not in _KINDS or _KINDS[name](value)


def check_rows(connection: sqlite3.Connection, folder: Path) -> None:
    """Have every row that `connection` reads checked: IndexDamaged instead of one that is wrong."""
    columns: object = None
    kinds: list[tuple[int, str, Kind]] = []

    def checked(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        nonlocal columns, kinds
        if cursor.description is not columns:  # the first row of a query
            columns = cursor.description
            names = [name for name, *_ in cursor.description]
            kinds = [(at, name, _KINDS[name]) for at, name in enumerate(names) if name in _KINDS]
        for at, name, fitting in kinds:
            if not fitting(row[at]):
                raise spoilt(folder, f"its {name} cannot be {row[at]!r:.40}")
        return row

    connection.row_factory = checked
