"""Compound files, the container of Office's formats before 2007: what lies at their top.

Owns their recognition without a library, and their opening through olefile, which is of the
office extra. Knows no format that lies in one.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.source import COMPOUND, Source
from ragcli.errors import UnreadableFile

_NO_SECTOR = 0xFFFFFFFA
"""From here on numbers of sectors are marks: an end, a free place, the tables themselves."""

_ENTRY = 128
_NO_ENTRY = 0xFFFFFFFF


def is_compound(data: bytes) -> bool:
    """Tell whether this is a compound file."""
    return data.startswith(COMPOUND)


def root_entries(data: bytes) -> frozenset[str]:
    """Return the names of what lies at the top of a compound file, in lower case.

    What is embedded in it lies further down and is not among them. Of a file that is damaged or
    cut off it is what can be found, or nothing.
    """
    try:
        directory = _directory(data)
        return frozenset(_siblings(directory, _at(directory, 76)))
    except struct.error:
        return frozenset()


def open_compound(source: Source) -> Any:
    """Open a compound file: olefile's `OleFileIO`. Raises UnreadableFile (`missing_extra`)."""
    try:
        import olefile
    except ImportError:
        raise missing_extra() from None
    return olefile.OleFileIO(io.BytesIO(source.data))


def missing_extra() -> UnreadableFile:
    """Return the error for a format whose library is not installed."""
    return UnreadableFile("missing_extra", 'needs the office extra: pip install "ragcli[office]"')


def _directory(data: bytes) -> bytes:
    """Return the entries of all that is in the file, 128 bytes each (MS-CFB, 2.6)."""
    size = 1 << struct.unpack_from("<H", data, 30)[0] % 32
    if size not in (512, 4096):
        return b""
    numbers = struct.Struct(f"<{size // 4}I")
    tables = list(struct.unpack_from("<109I", data, 76))  # the sectors that hold the table
    more = _at(data, 68)
    seen: set[int] = set()
    while more < _NO_SECTOR and more not in seen:
        seen.add(more)
        *further, more = numbers.unpack_from(data, (more + 1) * size)
        tables += further
    sector = _at(data, 48)
    parts: dict[int, bytes] = {}
    while sector < _NO_SECTOR and sector not in parts and sector // (size // 4) < len(tables):
        parts[sector] = data[(sector + 1) * size : (sector + 2) * size]
        table = tables[sector // (size // 4)]
        sector = _at(data, (table + 1) * size + 4 * (sector % (size // 4)))
    return b"".join(parts.values())


def _siblings(directory: bytes, first: int) -> Iterator[str]:
    """Yield the name of an entry and of all beside it, which are a tree."""
    waiting, seen = [first], {_NO_ENTRY}
    while waiting:
        number = waiting.pop()
        start = number * _ENTRY
        if number in seen or start + _ENTRY > len(directory):
            continue
        seen.add(number)
        length = struct.unpack_from("<H", directory, start + 64)[0]
        name = directory[start : start + min(max(length - 2, 0), 62)]
        yield name.decode("utf-16-le", "replace").lower()
        waiting += struct.unpack_from("<2I", directory, start + 68)


def _at(data: bytes, offset: int) -> int:
    """Return the number of four bytes at a place."""
    number: int = struct.unpack_from("<I", data, offset)[0]
    return number
