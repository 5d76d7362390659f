"""What a run has to do: the folder as it is against the catalogue as it was.

Owns the comparison (unchanged, to read, moved, removed); reads the stat of files and, for
moves, the content of files of a size that went missing. Writes nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from ragcli.corpus.readers import BINARY_SUFFIXES, effective_suffix
from ragcli.corpus.walk import Found, LeftOut
from ragcli.errors import UnreadableFile
from ragcli.indexing.analysis import FileTask, read_bytes
from ragcli.store.batch import FileState
from ragcli.store.catalog import Catalog, decode_path

_UNREADABLE = ("permission denied", "vanished", "path too long", "cannot be read")
_TICK_NS = 100_000_000
_COARSE_TICK_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Known:
    """A row of `files`."""

    id: int
    state: str
    reason: str | None
    size: int
    mtime_ns: int
    ctime_ns: int
    read_ns: int
    digest: bytes | None
    reading: str


@dataclass(slots=True)
class Plan:
    """`left_out` counts what the walk and earlier reads left out, by reason."""

    read: list[FileTask] = field(default_factory=list)
    moved: list[tuple[int, FileState]] = field(default_factory=list)
    removed: list[tuple[int, str]] = field(default_factory=list)
    unchanged: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    unreadable: list[LeftOut] = field(default_factory=list)


def known_files(catalog: Catalog) -> dict[str, Known]:
    """Every file that the catalogue has, by path."""
    return {
        decode_path(path): Known(*rest)
        for path, *rest in catalog.connection.execute(
            "SELECT path, id, state, reason, size, mtime_ns, ctime_ns, read_ns, digest,"
            " reading FROM files"
        )
    }


def is_unchanged(found: Found, known: Known) -> bool:
    """Whether the stat proves that the content is what was read.

    A file written within the clock's tick of its reading could have changed again with the
    same time (git calls it racy), so that its content is looked at; whole seconds mean a file
    system with a coarse clock.
    """
    if (found.size, found.mtime_ns, found.ctime_ns) != (
        known.size,
        known.mtime_ns,
        known.ctime_ns,
    ):
        return False
    tick = _TICK_NS if found.mtime_ns % _SECOND_NS else _COARSE_TICK_NS
    return found.mtime_ns < known.read_ns - tick


def make_plan(
    items: Iterable[Found | LeftOut],
    known: dict[str, Known],
    root: Path,
    *,
    reading: str,
    full: bool,
    seen: Callable[[int], None],
) -> Plan:
    """Compare a walk with `known` (which is emptied).

    A file whose chunks were shaped by another `reading` is read again, with `full` every file.
    """
    plan = Plan()
    fresh: list[Found] = []
    for number, item in enumerate(items, 1):
        if isinstance(item, LeftOut):
            if item.reason in _UNREADABLE:
                plan.unreadable.append(item)
                known.pop(item.path, None)
            else:
                plan.left_out[item.reason] += 1
            continue
        if number % 1000 == 0:
            seen(number)
        if effective_suffix(item.path) in BINARY_SUFFIXES:
            plan.left_out["binary"] += 1
            continue
        row = known.pop(item.path, None)
        if row is None:
            fresh.append(item)
        elif full or row.reading != reading or row.state == "failed":
            plan.read.append(_task(item, root, None))
        elif not is_unchanged(item, row):
            plan.read.append(_task(item, root, row.digest))
        elif row.state == "skipped":
            plan.left_out[row.reason or "skipped"] += 1
        else:
            plan.unchanged += 1
    _find_moves(plan, fresh, known, root)
    plan.removed += [(row.id, path) for path, row in known.items()]
    return plan


def _task(item: Found, root: Path, digest: bytes | None) -> FileTask:
    return FileTask(item.path, os.path.join(root, item.path), item.size, digest)


def _find_moves(plan: Plan, fresh: list[Found], gone: dict[str, Known], root: Path) -> None:
    """A new path with the content of one that is gone is a move, if its reader is the same."""
    sizes = {row.size for row in gone.values() if row.state == "indexed"}
    by_content = {
        (row.size, row.digest, effective_suffix(path)): path
        for path, row in sorted(gone.items(), reverse=True)
        if row.state == "indexed"
    }
    for item in fresh:
        state = _same_content(item, root) if item.size in sizes else None
        old = state and by_content.get((state.size, state.digest, effective_suffix(item.path)))
        if state is None or old is None or old not in gone:
            plan.read.append(_task(item, root, None))
        else:
            plan.moved.append((gone.pop(old).id, state))


def _same_content(item: Found, root: Path) -> FileState | None:
    """The file's state with its digest; None where it cannot be read (the reading will say)."""
    try:
        data, facts, now = read_bytes(os.path.join(root, item.path), item.size)
    except UnreadableFile:
        return None
    return FileState(item.path, "indexed", *facts, now, blake2b(data, digest_size=16).digest())
