"""What an index amounts to: its history, counts of what it holds, bytes on disk.

Owns the sums of the index card; what they are sums of is in `contents`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragcli.store.catalog import FILE, spoilt
from ragcli.store.columns import REMEMBERED
from ragcli.store.folder import ENCODER, SEGMENTS
from ragcli.store.index import Index


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """When an index was made and last changed (seconds of the epoch), how often, and by whom.

    None where the ragcli that made it did not write that down.
    """

    made: float | None
    changed: float | None
    generation: int | None
    made_by: str | None


def bookkeeping(index: Index) -> Bookkeeping:
    """When the index was made and changed, how often, and by whom. Raises IndexDamaged."""
    kept: dict[str, Any] = {}
    with index.reading():
        for key, kind in REMEMBERED.items():
            value = kept[key] = index.catalog.get(key)
            if value is not None and not kind(value):
                raise spoilt(index.path, f"its {key} cannot be {value!r:.40}")
    return Bookkeeping(**kept)


def files_by_state(index: Index) -> list[tuple[str, str | None, int]]:
    """(state, reason, number of files), most files first."""
    with index.reading() as connection:
        return connection.execute(
            "SELECT state, reason, count(*) FROM files GROUP BY state, reason"
            " ORDER BY count(*) DESC, state, reason"
        ).fetchall()


def counts_by_kind(index: Index) -> list[tuple[str, int, int, int]]:
    """(kind, files, documents, chunks) of the documents, most chunks first."""
    with index.reading() as connection:
        return connection.execute(
            "SELECT d.kind, count(DISTINCT d.file), count(*), coalesce(sum(n.chunks), 0) AS total"
            " FROM documents d LEFT JOIN"
            " (SELECT document, count(*) AS chunks FROM chunks GROUP BY document) n"
            " ON n.document = d.id GROUP BY d.kind ORDER BY total DESC, d.kind"
        ).fetchall()


def documents_by_language(index: Index) -> list[tuple[str | None, int]]:
    """(language, number of documents), most first; None for those of no told language."""
    with index.reading() as connection:
        return connection.execute(
            "SELECT nullif(language, '') AS language, documents FROM tallies"
            " ORDER BY documents DESC, tallies.language"
        ).fetchall()


def problems_by_kind(index: Index) -> list[tuple[str, int]]:
    """(kind, number of lines in the ledger), most first."""
    with index.reading() as connection:
        return connection.execute(
            "SELECT kind, count(*) FROM problems GROUP BY kind ORDER BY count(*) DESC, kind"
        ).fetchall()


def bytes_by_part(index: Index) -> dict[str, int]:
    """What lies on disk: catalogue with its log, postings, vectors, encoder, and what is else."""
    view = index.view()
    parts = dict.fromkeys(("catalogue", "postings", "vectors", "encoder", "other"), 0)
    kinds = {
        **{opened.segment.name: "postings" for opened in view.postings},
        **{opened.segment.name: "vectors" for opened in view.vectors},
    }
    for path in index.path.rglob("*"):
        inner = path.relative_to(index.path).parts
        if inner[0].startswith(FILE):
            part = "catalogue"
        elif inner[0] == ENCODER:
            part = "encoder"
        else:
            part = kinds.get(inner[1], "other") if inner[0] == SEGMENTS and inner[1:] else "other"
        parts[part] += _size(path)
    return parts


def _size(path: Path) -> int:
    """Bytes of a file; 0 for a folder, and for what a writer has just swept."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0
