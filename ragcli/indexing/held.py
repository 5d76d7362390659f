"""An index that one run writes: its lock, its catalogue, its writer, and what their failures mean.

Owns the order in which they are taken and given back, and which error of the system is the
index's. Does not know what a run does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragcli.errors import (
    IndexForeign,
    IndexNotFound,
    IndexUnavailable,
    ModelUnavailable,
    RagcliError,
)
from ragcli.store.catalog import Catalog, damaged
from ragcli.store.folder import prepare
from ragcli.store.index import is_begun
from ragcli.store.lock import write_lock
from ragcli.store.writer import Writer

LOCK_WAIT = 10.0
"""Seconds that a second writer waits before it is told."""

_ROOM = 1 << 20
"""Bytes below which a disk is full: SQLite needs some for files of its own."""

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_MACHINE = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""What the system says without a path where it starts no process and opens nothing more."""


@contextmanager
def held(location: Path, *, new: bool = False, wait: float = LOCK_WAIT) -> Iterator[Writer]:
    """Hold the `.rag` folder `location` for writing; `new`: make it where it is not there.

    What is not committed when an error ends it is undone. Raises IndexNotFound, IndexForeign,
    IndexBusy, IndexUnavailable (disk full, read-only), IndexDamaged (what SQLite finds broken),
    ModelUnavailable where the machine or a file elsewhere failed.
    """
    try:
        if not (new or is_begun(location)):
            raise IndexNotFound(f"there is no index in {location}", "ragcli index FOLDER")
        prepare(location)
        with write_lock(location, wait), contextlib.closing(_open(location)) as catalog:
            writer = Writer(location, catalog)
            try:
                yield writer
            except BaseException:
                writer.abandon()
                with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
                    catalog.checkpoint()
                raise
    except (sqlite3.OperationalError, OSError) as error:
        raise _failed(location, error) from error
    except sqlite3.DatabaseError as error:
        raise damaged(error, location) from error


def _open(location: Path) -> Catalog:
    try:
        return Catalog.open_write(location)
    except IndexForeign as error:
        if shutil.disk_usage(location).free < _ROOM:
            # SQLite finds its own new files broken where they cannot be written.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise


def _failed(location: Path, error: Exception) -> RagcliError:
    """What is told of an error: the index's, unless it names a place elsewhere or none at all."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, OSError):
        name = error.filename
        if isinstance(name, str | bytes) and not _is_below(os.fsdecode(name), location):
            return ModelUnavailable(f"{os.fsdecode(name)} cannot be used: {reason}")
        if name is None and error.errno in _MACHINE:
            return ModelUnavailable(
                f"the machine gives this program no more: {reason}",
                "end other programs, or read with fewer processes: --workers 1",
            )
    full = getattr(error, "errno", None) in _FULL or "full" in str(error)
    return IndexUnavailable(
        f"{location} cannot be written: {reason}",
        "free some space, or name another place: --index DIR"
        if full
        else "see that you may write there, or name another place: --index DIR",
    )


def _is_below(name: str, location: Path) -> bool:
    """Whether a path is the index's, or one of the folders that it lies in: it may be made."""
    path, own = os.path.abspath(name), os.path.abspath(location)
    return os.path.commonpath([path, own]) in (path, own)
