"""A file on its way into the catalogue, document by document, keeping the chunks that stayed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ragcli.store.batch import NewDocument

if TYPE_CHECKING:
    from ragcli.store.writer import Writer


class OpenFile:
    """A file that is being written; made by `Writer.put_file`."""

    def __init__(
        self, writer: Writer, file: int, known: dict[tuple[str | None, str | None], int]
    ) -> None:
        self._writer = writer
        self._file = file
        self._known = known
        self._seen: dict[tuple[str | None, str | None], int] = {}
        self._old: dict[int, dict[str, list[int]]] = {}

    def add(self, new: NewDocument) -> list[tuple[int, int] | None]:
        """Write a document or a further piece of it; per chunk its (chunk, document) ids.

        None: the same text stood in the same document before, and its row is kept.
        """
        connection = self._writer.connection()
        document = self._document(new)
        old = self._old[document]
        rows: list[tuple[int, int] | None] = []
        made = []
        for chunk in new.chunks:
            place = (
                chunk.start, chunk.end, *(chunk.lines or (None, None)), chunk.page,
                _heading(chunk.heading),
            )  # fmt: skip
            if same := old.get(chunk.text):
                connection.execute(
                    "UPDATE chunks SET start = ?, end = ?, first_line = ?, last_line = ?,"
                    " page = ?, heading = ? WHERE id = ?",
                    (*place, same.pop()),
                )
                rows.append(None)
            else:
                number = self._writer.next_chunk()
                made.append((number, document, *place, chunk.text))
                rows.append((number, document))
        connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", made)
        return rows

    def _document(self, new: NewDocument) -> int:
        """The id of the document, a known one where record and language are the same.

        Its words and pieces are those of all that is added of it.
        """
        connection = self._writer.connection()
        key = (new.document.record, new.language)
        if key in self._seen:
            if new.words:
                connection.execute(
                    "UPDATE documents SET words = words + ?, pieces = pieces + ? WHERE id = ?",
                    (new.words, new.pieces, self._seen[key]),
                )
            return self._seen[key]
        document = self._known.get(key)
        old: dict[str, list[int]] = {}
        if document is None:
            document = connection.execute(
                "INSERT INTO documents (file, record, kind, title, language, words, pieces)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    self._file, new.document.record, new.document.kind, new.document.title,
                    new.language, new.words, new.pieces,
                ),
            ).lastrowid  # fmt: skip
            assert document is not None
        else:
            connection.execute(
                "UPDATE documents SET kind = ?, title = ?, words = ?, pieces = ? WHERE id = ?",
                (new.document.kind, new.document.title, new.words, new.pieces, document),
            )
            for chunk, text in connection.execute(
                "SELECT id, text FROM chunks WHERE document = ? ORDER BY id DESC", (document,)
            ):
                old.setdefault(text, []).append(chunk)
        self._seen[key] = document
        self._old[document] = old
        return document

    def finish(self, problems: Sequence[tuple[str, str, str | None]]) -> None:
        """What was not written again is gone; the ledger is as `problems` say."""
        connection = self._writer.connection()
        gone = [(chunk,) for old in self._old.values() for left in old.values() for chunk in left]
        connection.executemany("INSERT INTO tombstones VALUES (?)", gone)
        connection.executemany("DELETE FROM chunks WHERE id = ?", gone)
        self._writer.close_file(self._file, set(self._seen.values()), problems)


@lru_cache(maxsize=64)
def _heading(heading: tuple[str, ...]) -> str:
    return json.dumps(heading, ensure_ascii=False)
