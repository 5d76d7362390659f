"""What a run has to do: the folder as it is against the catalogue as it was.

Owns the comparison (unchanged, to read, moved, removed); reads the stat of files and, for
moves, the content of files of a size that went missing. Writes nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from ragcli.corpus.suffixes import BINARY_SUFFIXES, suffix_by_name
from ragcli.corpus.walk import Found, LeftOut
from ragcli.errors import UnreadableFile, UsageError
from ragcli.indexing import BRIEF_BYTES, BRIEF_FILES
from ragcli.indexing.analysis import FileTask, read_bytes
from ragcli.indexing.known import UNREADABLE, Known, is_unchanged
from ragcli.store.batch import FileState


@dataclass(slots=True)
class Plan:
    """`left_out` counts what the walk and earlier reads left out, by reason; `failed` what failed
    before and is not read again.
    """

    read: list[FileTask] = field(default_factory=list)
    moved: list[tuple[int, FileState]] = field(default_factory=list)
    removed: list[tuple[int, str]] = field(default_factory=list)
    unchanged: int = 0
    failed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    unreadable: list[LeftOut] = field(default_factory=list)

    @property
    def is_brief(self) -> bool:
        """Whether all of it is done while somebody waits: some tenths of a second."""
        return (
            len(self.read) + len(self.moved) + len(self.removed) <= BRIEF_FILES
            and sum(task.size for task in self.read) <= BRIEF_BYTES
        )


class TooMuch(Exception):
    """There is more to do than is soon done."""


def make_plan(
    items: Iterable[Found | LeftOut],
    known: dict[str, Known],
    root: Path,
    *,
    reading: str,
    full: bool,
    retry: bool = True,
    seen: Callable[[int], None],
) -> Plan:
    """Compare a walk with `known` (which is emptied).

    Raises UsageError where files were and nothing at all is now, unless `full`.

    A file whose chunks were shaped by another `reading` is read again, with `full` every file,
    with `retry` those that failed.
    """
    plan = Plan()
    fresh: list[Found] = []
    for number, item in enumerate(items, 1):
        if number % 1000 == 0:
            seen(number)
        if isinstance(item, LeftOut):
            _leave_out(plan, item, known)
        elif suffix_by_name(item.path) in BINARY_SUFFIXES:
            plan.left_out["binary"] += 1
        elif (row := known.pop(item.path, None)) is None:
            fresh.append(item)
        else:
            again = full or row.reading != reading
            _compare(plan, item, row, root, again=again, retry=retry)
    stayed = {path: row for path, row in known.items() if row.reading == reading and not full}
    for path, state in _moves(plan, fresh, stayed, root):
        plan.moved.append((known.pop(path).id, state))
    if not full:
        _refuse_an_empty_root(plan, known, root)
    plan.removed += [(row.id, path) for path, row in known.items()]
    return plan


def _leave_out(plan: Plan, item: LeftOut, known: dict[str, Known]) -> None:
    if item.reason in UNREADABLE:
        plan.unreadable.append(item)
        known.pop(item.path, None)
    else:
        plan.left_out[item.reason] += 1


def _compare(plan: Plan, item: Found, row: Known, root: Path, *, again: bool, retry: bool) -> None:
    """A file that the catalogue has: `again` reads it whatever its stat says."""
    failed = row.state == "failed"
    if again or (failed and retry):
        plan.read.append(_task(item, root, None))
    elif not is_unchanged(item, row):
        plan.read.append(_task(item, root, None if failed else row.digest))
    elif failed:
        plan.failed += 1
    elif row.state == "skipped":
        plan.left_out[row.reason or "skipped"] += 1
    else:
        plan.unchanged += 1


def _refuse_an_empty_root(plan: Plan, gone: dict[str, Known], root: Path) -> None:
    indexed = sum(row.state == "indexed" for row in gone.values())
    if indexed and not (plan.read or plan.moved or plan.unchanged or plan.failed or plan.left_out):
        raise UsageError(
            f"{root} is empty, and the index has {indexed} files of it",
            "if it is not mounted, mount it; to forget the files: ragcli index --full",
        )


def _task(item: Found, root: Path, digest: bytes | None) -> FileTask:
    where = os.path.join(root, item.path)
    return FileTask(item.path, where, item.size, digest, item.mtime_ns, item.ctime_ns)


def _moves(
    plan: Plan, fresh: list[Found], known: dict[str, Known], root: Path
) -> Iterator[tuple[str, FileState]]:
    """(old path, state under the new one) of files that have only another name; the rest of
    `fresh` is to be read.
    """
    gone = _by_size_and_kind(item for item in known.items() if item[1].state == "indexed")
    for item in fresh:
        moved = _move(item, gone, root)
        if moved is None:
            plan.read.append(_task(item, root, None))
        else:
            yield moved


_Gone = dict[tuple[int, str], dict[str, Known]]


def _by_size_and_kind(rows: Iterable[tuple[str, Known]]) -> _Gone:
    gone: _Gone = {}
    for path, row in sorted(rows, key=lambda item: item[0]):
        gone.setdefault((row.size, suffix_by_name(path)), {})[path] = row
    return gone


def _move(item: Found, gone: _Gone, root: Path) -> tuple[str, FileState] | None:
    """The path of which `item` is the new name: same content, same reader. Taken out of `gone`."""
    alike = gone.get((item.size, suffix_by_name(item.path)))
    state = _same_content(item, root) if alike else None
    if not alike or state is None:
        return None
    for path, row in alike.items():
        if row.digest == state.digest:
            del alike[path]
            return path, state
    return None


def _same_content(item: Found, root: Path) -> FileState | None:
    """The file's state with its digest; None where it cannot be read (the reading will say)."""
    try:
        data, facts, now = read_bytes(os.path.join(root, item.path), item.size)
    except UnreadableFile:
        return None
    return FileState(item.path, "indexed", *facts, now, blake2b(data, digest_size=16).digest())
