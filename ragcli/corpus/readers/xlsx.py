"""Excel workbooks (.xlsx): a page per sheet, a line of `column: value` per row.

Needs the office extra. Values are those last calculated; formulas are not.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers.archive import missing_extra, open_archive
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.source import Source
from ragcli.records import Document

_CELLS = 1_000_000
"""How many filled cells of a workbook are read."""

_COLUMNS = 1000


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document. Raises UnreadableFile (`missing_extra` and others)."""
    open_archive(source).close()
    try:
        import openpyxl
    except ImportError:
        raise missing_extra() from None
    workbook = openpyxl.load_workbook(io.BytesIO(source.data), read_only=True, data_only=True)
    assembly = Assembly()
    left = _CELLS
    for sheet in workbook.worksheets:
        assembly.page(sheet.title)
        assembly.heading(1, sheet.title)
        sheet.reset_dimensions()  # programs that write wrong ones are common
        names: list[str] | None = None
        for row in sheet.iter_rows(max_col=_COLUMNS, values_only=True):
            values = [_shown(value) for value in row]
            filled = sum(map(bool, values))
            left -= filled
            if left < 0:
                break
            if names is None and filled > 1:
                names = [" ".join(value.split()) for value in values]
                assembly.add(" | ".join(filter(None, names)), "table")
            else:
                assembly.add(_line(names or [], values), "table")
    if left < 0:
        message = f"only {_CELLS} filled cells were read"
        source.problems.append(("truncated", message, None))
    workbook.close()
    yield assembly.document("xlsx", workbook.properties.title)


def _line(names: list[str], values: list[str]) -> str:
    """Return a row as one line; names are those of the first row with several cells."""
    parts = []
    for column, value in enumerate(values):
        if value:
            name = names[column] if column < len(names) else ""
            parts.append(f"{name}: {value}" if name else value)
    return " | ".join(parts)


def _shown(value: Any) -> str:
    """Return a value as a person would write it."""
    from datetime import datetime, time

    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return str(value).strip()
