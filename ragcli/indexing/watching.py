"""An index that is kept in step with its folder: a plain run after each change of the folder.

What happens in the folder is only a reason to look: each run compares all stats anew, and nothing
is kept between two runs. So whatever was missed, by the system or while nobody watched, the next
run finds. Owns when a run is due and what it survives; which folders there are is `walk`'s.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Generator, Iterator, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ragcli.corpus.patterns import IGNORE_FILES
from ragcli.corpus.walk import folders, is_left_out
from ragcli.errors import (
    IndexBusy,
    IndexNotFound,
    IndexUnavailable,
    ModelUnavailable,
    RagcliError,
    UsageError,
)
from ragcli.indexing import index_folder
from ragcli.indexing.known import rules_of
from ragcli.indexing.scope import remembered
from ragcli.records import IndexReport, Settings
from ragcli.store.catalog import FILE, Catalog
from ragcli.store.index import read_settings

QUIET = 0.25
"""Seconds without a change after which a run begins."""

LONGEST = 3.0
"""Seconds after which it begins in any case."""

LOOK = 1.0
"""Seconds between looks at what no event tells: the root itself, named files, other writers."""

RETRY = 5.0
"""Seconds after a run that could not be."""

POLL = 5.0
"""Seconds between runs where the system watches no more folders for us."""

ANYWAY = 600.0
"""Seconds after which a run is due whatever is told: shares of other machines tell nothing."""

MOST_REST = 5.0
"""A run is followed by a rest as long as itself, up to so many seconds."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What an index covers: any difference means to watch anew."""

    root: Path
    starts: tuple[str, ...]
    settings: Settings


@dataclass(frozen=True, slots=True)
class _Seen:
    """What no event tells of: the catalogue's stat, which folders the places are, named files."""

    catalogue: tuple[int, int] | None
    folders: tuple[tuple[int, int] | None, ...]
    named: tuple[tuple[int, ...], ...]


_Told = Set[tuple[int, str]]
"""Kinds and paths of what changed."""

_PASSING = (UsageError, IndexUnavailable, IndexBusy)
"""These, and none of their kinds, pass; where the settings are wrong, they can be mended."""


def require_watcher() -> None:
    """Raises ModelUnavailable where watchfiles is not installed, before any work."""
    try:
        import watchfiles  # noqa: F401
    except ImportError as error:
        raise ModelUnavailable(
            "watchfiles is not installed", "pip install 'ragcli[watch]'"
        ) from error


def watch_folder(
    location: Path, *, lazy: bool = False, workers: int | None = None
) -> Iterator[IndexReport | RagcliError]:
    """Run `index_folder` after each change, for ever; the report of each run, or why it failed.

    It begins with a run. What passes (another writer, a root that is away, a full disk) is told
    once and tried again. Ends after a run that was interrupted. Raises IndexUnavailable in its
    kinds for an index that is gone or damaged, and what else a run raises.
    """
    location = Path(os.path.abspath(location))
    root: Path | None = None
    told: str | None = None
    tried = time.monotonic()
    while True:
        try:
            scope = _scope_of(location, root)
            root = scope.root
            with _Changes(location, scope) as changes:
                if changes.limited and told != changes.limited.message:
                    told = changes.limited.message
                    yield changes.limited
                for _ in chain([None], changes.wait()):
                    retry = time.monotonic() - tried >= ANYWAY
                    if retry:
                        tried = time.monotonic()
                    report = index_folder(location, lazy=lazy, retry=retry, workers=workers)
                    yield report
                    if report.interrupted:
                        return
                    told = changes.limited.message if changes.limited else None
                    time.sleep(min(MOST_REST, report.seconds))
        except (UsageError, IndexUnavailable, IndexBusy) as error:
            if type(error) not in _PASSING:
                raise
            if told != error.message:
                told = error.message
                yield error
            time.sleep(RETRY)


def _scope_of(location: Path, root: Path | None) -> _Scope:
    """Raises IndexNotFound where the index is gone though its `root` is there, UsageError."""
    if not (location / FILE).is_file():
        if root is not None and not root.is_dir():
            raise UsageError(f"the indexed folder {root} is not there", "bring it back")
        raise IndexNotFound(
            f"{location} is gone: it was removed while its folder was watched",
            f"ragcli index {root or 'FOLDER'} --watch",
        )
    catalog = Catalog.open_read(location)
    try:
        found, starts = remembered(catalog, location)
        return _Scope(found, tuple(starts), read_settings(catalog))
    finally:
        catalog.close()


class _Changes:
    """What happens in the folders of a scope, from the moment on at which it is entered.

    Linux watches folder by folder, and would follow links anywhere: there only the folders that
    the walk enters are watched, and nothing is heard of the index itself or what is ignored.
    """

    def __init__(self, location: Path, scope: _Scope) -> None:
        self._location = os.path.realpath(location)
        self._catalogue = location / FILE
        self._scope = scope
        self._places = [os.path.realpath(scope.root / start) for start in scope.starts]
        self._own = [status for status in map(_stat, (1, 2)) if status]
        self._folders: frozenset[str] = frozenset()
        self._events: Iterator[_Told] = iter(())
        self.limited: RagcliError | None = None

    def __enter__(self) -> _Changes:
        self._until = time.monotonic() + ANYWAY
        self._seen = self._look()
        self._events = self._watched()
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._events, Generator):
            self._events.close()

    def _watched(self) -> Iterator[_Told]:
        """Sets of changes, also empty ones; what comes from now on is in them."""
        import watchfiles

        by_folder = sys.platform.startswith("linux")
        if by_folder:
            scope = self._scope
            found = folders(scope.root, scope.starts, rules_of(scope.settings))
            self._folders = frozenset(found)
        else:
            found = [place for place in self._places if Path(place).is_dir()]
        if not found:
            return _ticks(QUIET)
        events = watchfiles.watch(
            *found, watch_filter=None, recursive=not by_folder, ignore_permission_denied=True,
            step=round(1000 * QUIET), debounce=round(1000 * LONGEST),
            rust_timeout=1, yield_on_timeout=True,
        )  # fmt: skip
        try:
            next(events)  # the system is asked with the first
        except FileNotFoundError:  # one of them is gone again
            return iter(())
        except (OSError, RuntimeError) as error:
            self.limited = RagcliError(
                f"no more folders can be watched ({error}): looking every {POLL:.0f} s instead",
                "sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=1024",
            )
            return _ticks(POLL)
        return events

    def wait(self) -> Iterator[None]:
        """Yields when a run is due; ends when it is, and the folders may be others by now."""
        looked = time.monotonic()
        for changes in self._events:
            paths = [path for _, path in changes if self._matters(path)]
            if any(map(self._alters, paths)):
                return
            due = bool(paths) or self.limited is not None
            if time.monotonic() >= looked + LOOK:
                seen, looked = self._look(), time.monotonic()
                if seen != self._seen and self._is_another(seen):
                    return
                due = due or seen.named != self._seen.named
                self._seen = seen
            if looked >= self._until:
                return
            if due:
                yield

    def _look(self) -> _Seen:
        stats = [_stat(place) for place in self._places]
        catalogue = _stat(self._catalogue)
        return _Seen(
            catalogue and (catalogue.st_size, catalogue.st_mtime_ns),
            tuple(s and (s.st_dev, s.st_ino) for s in (_stat(self._scope.root), *stats)
                  if s is None or stat.S_ISDIR(s.st_mode)),
            tuple((s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in stats
                  if s and not stat.S_ISDIR(s.st_mode)),
        )  # fmt: skip

    def _is_another(self, seen: _Seen) -> bool:
        """Whether places are others, or another process has settled what the index covers."""
        if seen.folders != self._seen.folders:
            return True
        if seen.catalogue == self._seen.catalogue:
            return False
        return _scope_of(self._catalogue.parent, self._scope.root) != self._scope

    def _matters(self, path: str) -> bool:
        """Whether a run could find anything new there."""
        if Path(path).is_relative_to(self._location):  # what a run writes is no reason for the next
            return False
        place = next((p for p in self._places if path.startswith(p.rstrip("/") + "/")), None)
        *above, name = (path if place is None else path[len(place) :]).strip("/").split("/")
        hidden = self._scope.settings.hidden
        inside = above if place is not None else ()
        if any(is_left_out(part, is_dir=True, hidden=hidden) for part in inside):
            return False
        if path not in self._places and is_left_out(name, is_dir=False, hidden=hidden):
            return False
        # Nor is what this process writes of a run.
        status = _stat(path) if self._own else None
        return status is None or not any(os.path.samestat(status, own) for own in self._own)

    def _alters(self, path: str) -> bool:
        """Whether other folders may have to be watched after a change there."""
        if path in self._places or Path(path).name in IGNORE_FILES:
            return True
        return bool(self._folders) and (path in self._folders or Path(path).is_dir())


def _ticks(seconds: float) -> Iterator[_Told]:
    while True:
        time.sleep(seconds)
        yield set()


def _stat(path: str | Path | int) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None
