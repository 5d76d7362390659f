"""What a run has to do: the comparison of the folder with the catalogue, and what was moved.

For moves, reads the content of files of a size that went missing. Writes nothing. How little a
question takes in is `brief`'s.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from ragcli.corpus.suffixes import suffix_by_name
from ragcli.corpus.walk import Found, LeftOut
from ragcli.errors import UnreadableFile, UsageError
from ragcli.indexing.analysis import FileTask, read_bytes
from ragcli.indexing.comparing import compare
from ragcli.indexing.known import Known
from ragcli.records import Problem
from ragcli.store.batch import FileState


@dataclass(slots=True)
class Plan:
    """`left_out` counts what the walk and earlier reads left out, by reason; `failed` what failed
    before and is not read again. `removed` are (id, path), `moved` (id, state under the new path);
    `named` (path, reason) are left out unread, and to be named in the catalogue.
    """

    read: list[FileTask] = field(default_factory=list)
    moved: list[tuple[int, FileState]] = field(default_factory=list)
    removed: list[tuple[int, str]] = field(default_factory=list)
    unchanged: int = 0
    failed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    unreadable: list[LeftOut] = field(default_factory=list)
    named: list[tuple[str, str]] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """What is told of the files that need no reading, by the names of `Counts`."""
        return Counter(
            unchanged=self.unchanged,
            moved=len(self.moved),
            removed=len(self.removed),
            skipped=self.left_out.total(),
            failed=self.failed + len(self.unreadable),
        )


def make_plan(
    items: Iterable[Found | LeftOut],
    known: dict[str, Known],
    root: Path,
    *,
    reading: Callable[[str], str],
    full: bool,
    retry: bool = True,
    seen: Callable[[int], None],
) -> Plan:
    """Compare a walk with `known` (which is emptied).

    Raises UsageError where files were and nothing at all is now, unless `full`.

    A file whose chunks were shaped by another `reading` than that of its path is read again, with
    `full` every file, with `retry` those that failed. `seen` is called for each item, and for
    each file whose content is looked at; what it raises ends the comparison.
    """

    def stays(path: str, row: Known) -> bool:
        return not full and row.reading == reading(path)

    def again(path: str, row: Known) -> bool:
        return not stays(path, row) or (retry and row.state == "failed")

    told = compare(items, known, again=again, seen=seen)
    plan = Plan(unchanged=told.unchanged, failed=told.failed, left_out=told.left_out)
    plan.unreadable = [item for item, _ in told.unreadable]
    plan.named = [(path, reason) for path, reason, _ in told.named]
    plan.read = [task(item, root) for item in told.again]
    plan.read += [task(item, root, row) for item, row in told.altered]
    gone = {path: row for path, row in told.gone.items() if stays(path, row)}
    moved, fresh = find_moves(told.fresh, gone, root, seen=seen)
    plan.moved = [(told.gone.pop(path).id, state) for path, state in moved]
    plan.read += [task(item, root) for item in fresh]
    if not full:
        _refuse_an_empty_root(plan, told.gone, root)
    plan.removed = [(row.id, path) for path, row in told.gone.items()]
    return plan


def problem_of(item: LeftOut) -> Problem:
    """The line of the ledger for what the walk could not look at."""
    kind = "permission" if item.reason == "permission denied" else "unreadable"
    return Problem(item.path, kind, item.reason)


def task(item: Found, root: Path, row: Known | None = None) -> FileTask:
    """The reading of a file; one that has the content of `row`, which did not fail, is the same."""
    digest = None if row is None or row.state == "failed" else row.digest
    where = os.path.join(root, item.path)
    return FileTask(item.path, where, item.size, digest, item.mtime_ns, item.ctime_ns)


def _refuse_an_empty_root(plan: Plan, gone: dict[str, Known], root: Path) -> None:
    indexed = sum(row.state == "indexed" for row in gone.values())
    if indexed and not (plan.read or plan.moved or plan.unchanged or plan.failed or plan.left_out):
        raise UsageError(
            f"{root} is empty, and the index has {indexed} files of it",
            "if it is not mounted, mount it; to forget the files: ragcli index --full",
        )


def find_moves(
    fresh: Sequence[Found],
    gone: dict[str, Known],
    root: Path,
    *,
    seen: Callable[[int], None] = lambda _: None,
) -> tuple[list[tuple[str, FileState]], list[Found]]:
    """(old path, state under the new one) of files that have only another name, and the rest of
    `fresh`. `seen` is called before each file that is opened.
    """
    alike = _by_size_and_kind(gone)
    moved: list[tuple[str, FileState]] = []
    rest: list[Found] = []
    for number, item in enumerate(fresh, 1):
        rows = alike.get((item.size, suffix_by_name(item.path)))
        if rows:
            seen(number)
        state = _same_content(item, root) if rows else None
        old = next((p for p, r in (rows or {}).items() if state and r.digest == state.digest), None)
        if rows is None or state is None or old is None:
            rest.append(item)
        else:
            del rows[old]
            moved.append((old, state))
    return moved, rest


def may_be_moved(fresh: Sequence[Found], gone: dict[str, Known]) -> list[Found]:
    """Those of `fresh` whose content `find_moves` would look at."""
    alike = _by_size_and_kind(gone)
    return [item for item in fresh if (item.size, suffix_by_name(item.path)) in alike]


def _by_size_and_kind(rows: dict[str, Known]) -> dict[tuple[int, str], dict[str, Known]]:
    alike: dict[tuple[int, str], dict[str, Known]] = {}
    for path, row in sorted(rows.items(), key=lambda item: item[0]):
        if row.state == "indexed":
            alike.setdefault((row.size, suffix_by_name(path)), {})[path] = row
    return alike


def _same_content(item: Found, root: Path) -> FileState | None:
    """The file's state with its digest; None where it cannot be read (the reading will say)."""
    try:
        data, facts, now = read_bytes(os.path.join(root, item.path), item.size)
    except UnreadableFile:
        return None
    return FileState(item.path, "indexed", *facts, now, blake2b(data, digest_size=16).digest())
