"""The ledger: what the index does not cover, file by file, as it stands in the catalogue.

What the walk leaves out (ignored, hidden, excluded) is not in it: those files were never read.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragcli.store.contents import files, problems
from ragcli.store.index import Index
from ragcli.store.totals import problems_by_kind


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the ledger; `since`: when it was first seen, in seconds of the epoch."""

    path: str
    page: str | None
    kind: str
    message: str
    since: float


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many lines of a kind there are."""

    kind: str
    count: int


@dataclass(frozen=True, slots=True)
class UnindexedFile:
    """A file that was looked at and is not indexed: `state` is `skipped` or `failed`."""

    path: str
    state: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """All lines by path, how many of each kind, and the files that were skipped or failed."""

    problems: tuple[Entry, ...]
    kinds: tuple[KindCount, ...]
    unindexed: tuple[UnindexedFile, ...]


def entries(index: Index, file: int | None = None) -> tuple[Entry, ...]:
    """The lines of one file or of all, by path. Raises IndexUnavailable in its kinds."""
    return tuple(
        Entry(problem.path, problem.page, problem.kind, problem.message, since)
        for problem, since in problems(index, file)
    )


def ledger(index: Index) -> LedgerReport:
    """What the index does not cover. Raises IndexUnavailable in its kinds."""
    return LedgerReport(
        entries(index),
        tuple(KindCount(kind, count) for kind, count in problems_by_kind(index)),
        tuple(
            UnindexedFile(file.path, file.state, file.reason)
            for file in files(index)
            if file.state != "indexed"
        ),
    )
