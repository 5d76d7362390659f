"""The files that an index knows, whether the stat of one proves that it is as it was read, and
the rules of its walk.

Loaded by each question that looks whether the folder has changed: no reader, no encoder.
"""

from __future__ import annotations

from typing import NamedTuple

from ragcli.corpus.walk import Found, WalkRules
from ragcli.records import Settings
from ragcli.store.catalog import Catalog, decode_path

UNREADABLE = ("permission denied", "path too long", "cannot be read")
"""The reasons of the walk for which a file has failed, and is not only left out."""

_TICK_NS = 100_000_000
_COARSE_TICK_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000


class Known(NamedTuple):
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


def known_files(catalog: Catalog) -> dict[str, Known]:
    """Every file that the catalogue has, by path."""
    return {
        decode_path(path): Known(*rest)
        for path, *rest in catalog.connection.execute(
            "SELECT path, id, state, reason, size, mtime_ns, ctime_ns, read_ns, digest,"
            " reading FROM files"
        )
    }


def has_stat(found: Found, known: Known) -> bool:
    """Whether size and times are those of the file that was read."""
    return (found.size, found.mtime_ns, found.ctime_ns) == (
        known.size,
        known.mtime_ns,
        known.ctime_ns,
    )


def is_unchanged(found: Found, known: Known) -> bool:
    """Whether the stat proves that the content is what was read.

    A file written within the clock's tick of its reading could have changed again with the
    same time (git calls it racy), so that its content is looked at; whole seconds mean a file
    system with a coarse clock. Of a time that was set to come, the inode's own time tells when
    the file was written; a clock that is itself ahead is believed.
    """
    tick = _TICK_NS if found.mtime_ns % _SECOND_NS else _COARSE_TICK_NS
    is_to_come = found.mtime_ns > known.read_ns + tick
    written = found.ctime_ns if is_to_come else found.mtime_ns
    return has_stat(found, known) and abs(known.read_ns - written) > tick


def rules_of(settings: Settings) -> WalkRules:
    """What the walk needs of the settings."""
    return WalkRules(
        glob=settings.glob,
        exclude=settings.exclude,
        hidden=settings.hidden,
        ignore=settings.ignore,
        follow=settings.follow,
        max_file_size=settings.max_file_size,
    )
