"""The one writer: a lock on `.rag/lock` that the system lets go of when its holder dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragcli.errors import IndexBusy

FILE = "lock"
_EVERY = 0.1


def _try_lock(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def write_lock(folder: Path, wait: float) -> Iterator[None]:
    """Hold the lock of the index in `folder`, waiting up to `wait` seconds for another writer.

    Raises IndexBusy after that, OSError where the lock file cannot be made.
    """
    # A link would make a file where it leads.
    flags = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | flags, 0o644)
    try:
        end = time.monotonic() + wait
        while not _try_lock(handle):
            if time.monotonic() >= end:
                raise IndexBusy(
                    f"another ragcli is writing {folder}", "try again when it has finished"
                )
            time.sleep(_EVERY)
        yield
    finally:
        os.close(handle)
