"""The catalogue's rows made consistent again, as far as that needs no file to be read."""

from __future__ import annotations

from ragcli.store.writer import Writer

_MENDS = (
    "DELETE FROM tombstones WHERE chunk IN (SELECT id FROM chunks)",
    "DELETE FROM documents WHERE file NOT IN (SELECT id FROM files)",
    "INSERT OR IGNORE INTO tombstones"
    " SELECT id FROM chunks WHERE document NOT IN (SELECT id FROM documents)",
    "DELETE FROM chunks WHERE document NOT IN (SELECT id FROM documents)",
    "DELETE FROM problems WHERE file NOT IN (SELECT id FROM files)",
    "DELETE FROM tallies",
    "INSERT INTO tallies SELECT coalesce(language, ''), count(*), sum(words), sum(pieces)"
    " FROM documents GROUP BY coalesce(language, '')",
)
"""In this order: a document without its file takes its chunks with it."""


def mend_catalog(writer: Writer) -> None:
    """Drop the rows that belong to nothing and work the sums out anew, with the next commit."""
    connection = writer.connection()
    for statement in _MENDS:
        connection.execute(statement)
