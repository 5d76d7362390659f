"""What of a comparison is taken in while somebody waits for an answer, and what is only told.

Only files of plain kinds, whose readers are safe and quick in this process; and no removal where
the folder may only be away. Owns these bounds: all that is taken in at once is some tenths of a
second of work. Loads the readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ragcli.corpus.readers import is_plain
from ragcli.indexing.comparing import Comparison, folder_of
from ragcli.indexing.plan import Plan, find_moves, may_be_moved, task
from ragcli.store.catalog import Catalog

FILES = 50
BYTES = 96 * 1024
"""Of the files that are read: 0.2 s of prose, half a second where each line is a record."""

PASSAGES = 2000
"""Of the files that are read anew or are gone: 0.2 s."""

MOVED_BYTES = 32 * 1024 * 1024
"""Of the files whose content is looked at, whether it is that of a file that is gone."""


def plan_little(found: Comparison, root: Path, catalog: Catalog) -> tuple[Plan, Comparison]:
    """A plan of what is soon done, and what is left to tell; all of it where it is much.

    A file that went is forgotten where its folder still holds one that was found; else the folder
    may be a place where nothing is mounted. One that has another name now may lie anywhere.
    """
    nothing = Plan(), found
    looked_at = may_be_moved(found.fresh, found.gone)
    if len(looked_at) > FILES or sum(item.size for item in looked_at) > MOVED_BYTES:
        return nothing
    gone = dict(found.gone)
    moves, fresh = find_moves(found.fresh, gone, root)
    plan, rest = Plan(), Comparison(unreadable=found.unreadable)
    plan.moved = [(gone.pop(path).id, state) for path, state in moves]
    dropped = []
    for item, row in found.altered:
        if is_plain(item.path):
            plan.read.append(task(item, root, row))
            dropped.append(row.id)
        else:
            rest.altered.append((item, row))
    for item in fresh:
        if is_plain(item.path):
            plan.read.append(task(item, root))
        else:
            rest.fresh.append(item)
    for path, row in gone.items():
        if folder_of(path) in found.holding:
            plan.removed.append((row.id, path))
            dropped.append(row.id)
        else:
            rest.gone[path] = row
    little = (
        len(plan.read) + len(plan.moved) + len(plan.removed) <= FILES
        and sum(file.size for file in plan.read) <= BYTES
        and _passages(catalog, dropped) <= PASSAGES
    )
    return (plan, rest) if little else nothing


def _passages(catalog: Catalog, files: Sequence[int]) -> int:
    number: int = catalog.connection.execute(
        "SELECT count(*) FROM documents d JOIN chunks c ON c.document = d.id"
        f" WHERE d.file IN ({','.join('?' * len(files))})",
        list(files),
    ).fetchone()[0]
    return number
