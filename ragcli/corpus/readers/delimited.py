"""CSV and TSV: one document per row, as lines of `column: value`.

The first row names the columns. The delimiter is the one that the first lines have most alike;
csv.Sniffer is slow and often wrong.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

from ragcli.corpus.source import Source, lines_of
from ragcli.records import Block, Document

_DELIMITERS = ",\t;|"
_IDS = ("_id", "id", "key")
_COLUMNS = 1000
_NAMES = 5000
"""How long the names of the columns may be together; longer ones are not repeated in each row."""

_ROWS = 1_000_000


def read(source: Source) -> Iterator[Document]:
    """Yield a document per row; its record is that of a unique id column, or the row's number.

    Rows are numbered from 1 without the row of names, and `line_anchors` has the line on which
    a row begins. What is left out of a table too wide or too long is recorded as a problem.
    """
    rows = _rows(source)
    _, names = next(rows, (0, []))
    body = list(rows)
    names = [" ".join(name.split()) for name in names]
    lower = [name.lower() for name in names]
    column = next((lower.index(name) for name in _IDS if name in lower), None)
    ids = [_cell(row, column) for _, row in body]
    unique = "" not in ids and len(set(ids)) == len(ids)
    labels = [f"{name}: " if name else "" for name in names]
    if sum(map(len, labels)) > _NAMES:
        labels = []
    title = lower.index("title") if "title" in lower else None
    for number, (line, row) in enumerate(body, 1):
        record = ids[number - 1] if unique else str(number)
        yield _document(labels, row, record, line, title)


def _document(
    labels: list[str], row: list[str], record: str, line: int, title: int | None
) -> Document:
    """Return one row as a document with a block per cell; empty cells are left out."""
    parts: list[str] = []
    blocks: list[Block] = []
    length = 0
    for column, cell in enumerate(row):
        value = cell.strip()
        if value:
            part = labels[column] + value if column < len(labels) else value
            blocks.append(Block(length, length + len(part), "item"))
            parts.append(part)
            length += len(part) + 1
    return Document(
        *("\n".join(parts), "record", _cell(row, title) or None, tuple(blocks)),
        line_anchors=((0, line),),
        record=record,
    )


def _cell(row: list[str], column: int | None) -> str:
    """Return the cell of a column, "" if there is no such column or the row is shorter."""
    return row[column].strip() if column is not None and column < len(row) else ""


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank, with the line on which it begins."""
    lines = lines_of(source.text())
    if csv.field_size_limit() < len(source.data):
        csv.field_size_limit(len(source.data))
    reader = csv.reader(lines, delimiter=_delimiter(lines))
    wide = count = 0
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            source.problems.append(("bad_record", f"line {line}: {error}", None))
            continue
        if row is None:
            break
        if len(row) > _COLUMNS:
            wide = max(wide, len(row))
            row = row[:_COLUMNS]
        if any(cell and not cell.isspace() for cell in row):
            count += 1
            if count > _ROWS:
                source.problems.append(("truncated", f"only {_ROWS} rows were read", None))
                break
            yield line, row
    if wide:
        message = f"{wide} columns, only {_COLUMNS} of each row were read"
        source.problems.append(("truncated", message, None))


def _delimiter(lines: list[str]) -> str:
    """Return the delimiter that is in most of the first lines, and often."""
    sample = [line for line in lines[:20] if not line.isspace()]
    counts = {mark: sorted(line.count(mark) for line in sample) for mark in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda mark: (counts[mark] or [0])[len(sample) // 4])
    return best if any(counts[best]) else max(_DELIMITERS, key=lambda mark: sum(counts[mark]))
