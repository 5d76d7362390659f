"""JSON Lines: one document per line, BEIR's corpus.jsonl among them.

A line that is no JSON object is a problem, not the end of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers.plain import paragraphs
from ragcli.corpus.source import Source, lines_of, without_surrogates
from ragcli.errors import UnreadableFile
from ragcli.records import Block, Document

_IDS = ("_id", "id", "key")
_TEXTS = ("text", "contents", "content", "body", "passage")
_SHOWN = 10
"""How many bad lines are named one by one; the rest is counted."""


def read(source: Source) -> Iterator[Document]:
    """Yield a document per line; its record is the line's `_id`, `id` or `key`, or its number.

    Raises UnreadableFile (`corrupt`) if no line is a JSON object.
    """
    seen: set[str] = set()
    bad = 0
    for number, line in enumerate(lines_of(source.text()), 1):
        if line.isspace():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError(f"not an object but {type(row).__name__}")
            record = next((str(row[key]) for key in _IDS if row.get(key) not in (None, "")), "")
            title, text = _title_and_text(row)
        except (ValueError, RecursionError) as error:
            bad += 1
            if bad <= _SHOWN:
                message = f"line {number}: not a JSON object ({error})"
                source.problems.append(("bad_record", message, None))
            continue
        record = without_surrogates(record or str(number))
        if record in seen:
            source.problems.append(("bad_record", f"line {number}: id {record} again", None))
            record = f"{record}#{number}"
        seen.add(record)
        yield record_document(title, text, record, number)
    if bad > _SHOWN:
        message = f"{bad - _SHOWN} more lines that are not JSON objects"
        source.problems.append(("bad_record", message, None))
    if bad and not seen:
        raise UnreadableFile("corrupt", source.problems[0][1])


def record_document(title: str | None, text: str, record: str, line: int) -> Document:
    """Return one record as a document: the title, unless the text begins with it, and the text."""
    blocks: list[Block] = []
    start = 0
    if title and not text.startswith(title):
        start = len(title) + 2
        blocks.append(Block(0, len(title), "heading", (title,)))
        text = f"{title}\n\n{text}"
    blocks += paragraphs(text, start, len(text), (title,) if title else ())
    return Document(text, "record", title, tuple(blocks), line_anchors=((0, line),), record=record)


def _title_and_text(row: dict[str, Any]) -> tuple[str | None, str]:
    title = row.get("title")
    title = without_surrogates(" ".join(title.split())) if isinstance(title, str) else None
    values: list[Any] = [row[key] for key in _TEXTS if row.get(key)][:1]
    values = values or [value for key, value in row.items() if key not in ("title", *_IDS)]
    return title or None, without_surrogates("\n\n".join(_strings(values)))


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings inside a value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for inner in value if isinstance(value, list) else value.values():
            yield from _strings(inner)
