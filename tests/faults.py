"""A process in which a chosen system call fails: `faults.c` compiled, and forks armed with it.

Owns what a fault is, and what the parent sees of the child that met it.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).with_name("faults.c")
SECONDS = 60
"""After which a run counts as one that hangs."""

KINDS = ("other", "write", "open", "rename", "unlink", "rmdir", "mkdir", "sync", "truncate")
_HEADER = struct.Struct("=4i2q")


class Fault(NamedTuple):
    """`code` is faults.c's `enum fault`, `error` the errno of the last two."""

    code: int
    error: int = 0

    @property
    def kills(self) -> bool:
        return self.code in (1, 2, 3)

    @property
    def tears(self) -> bool:
        """Only writes can be cut in two."""
        return self.code in (3, 4)


ERRORS = ("ENOSPC", "EDQUOT", "EIO", "EACCES", "EROFS")
FAULTS = {
    "kill before": Fault(1),
    "kill after": Fault(2),
    "torn write": Fault(3),
    "short write": Fault(4),
    **{f"{name} once": Fault(5, getattr(errno, name)) for name in ERRORS},
    **{f"{name} from there on": Fault(6, getattr(errno, name)) for name in ERRORS},
}


class _Shared(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("at", "fault", "error", "log", "count", "hit")),
        ("untaught", ctypes.c_int64),
        ("place", ctypes.c_char * 256),
        ("commits", ctypes.c_int64),
    ]


class Call(NamedTuple):
    """A call that changed something: `at` is an offset, a size or the flags of an open."""

    kind: str
    path: str
    to: str
    at: int
    data: bytes


class Met(NamedTuple):
    """How a forked child ended: its exit code, -9 where it was killed, what it printed.

    `hit`: the kind of the call that failed, `other` where none did; `commits`: how often the
    catalogue had said that a commit is done.
    """

    code: int
    printed: str
    calls: int
    hit: str
    place: str
    commits: int


def why_not() -> str | None:
    """Why no fault can be made here; None where they can."""
    if not sys.platform.startswith("linux"):
        return "faults are made with seccomp, which only Linux has"
    if shutil.which("cc") is None:
        return "faults.c cannot be compiled: there is no cc here"
    try:
        with tempfile.TemporaryDirectory() as folder:
            met = strike(lambda: 0, Path(folder), Path(folder, "out"), None)
    except subprocess.CalledProcessError as error:
        return f"faults.c cannot be compiled: {error.stderr.strip().splitlines()[-1]}"
    return None if met.code == 0 else f"no seccomp filter can be set here: {met.printed.strip()}"


@cache
def _library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "faults.so")
        subprocess.run(
            ["cc", "-O1", "-shared", "-fPIC", "-o", str(made), str(SOURCE)],
            check=True,
            capture_output=True,
            text=True,
        )
        return ctypes.CDLL(str(made))


def strike(
    act: Callable[[], int],
    root: Path,
    printed: Path,
    fault: Fault | None,
    at: int = 0,
    *,
    log: Path | None = None,
    committed: Callable[[int], None] = lambda _: None,
) -> Met:
    """Run `act` in a forked child in which call number `at` below `root` meets `fault`.

    `committed` is called in the child after each commit of a catalogue, with the calls so far.
    """
    library = _library()
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    shared = _Shared.from_buffer(memory)
    shared.at, shared.log = at, -1
    shared.fault, shared.error = fault or (0, 0)
    child = os.fork()
    if not child:
        code = 70
        try:
            signal.alarm(SECONDS)
            out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            sys.stdout = sys.stderr = os.fdopen(out, "w", encoding="utf-8")  # not pytest's
            if log is not None:
                shared.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

            _watch_commits(partial(_note, shared, committed))
            refused = library.faults_arm(ctypes.byref(shared), os.fsencode(root))
            if refused:
                raise OSError(refused, os.strerror(refused))
            code = act()
        except BaseException:  # noqa: BLE001 -- told by the parent
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert not shared.untaught, f"faults.c knows no system call {shared.untaught}"
    met = Met(
        code,
        printed.read_text(encoding="utf-8", errors="replace"),
        shared.count,
        KINDS[shared.hit],
        shared.place.decode(errors="replace"),
        shared.commits,
    )
    del shared
    memory.close()
    return met


def _note(shared: _Shared, committed: Callable[[int], None]) -> None:
    shared.commits += 1
    committed(shared.count)


def _watch_commits(done: Callable[[], None]) -> None:
    connect = sqlite3.connect

    class Watched(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            cursor = super().execute(sql, *arguments)
            if sql == "COMMIT":
                done()
            return cursor

        def executescript(self, script: str) -> sqlite3.Cursor:
            cursor = super().executescript(script)
            done()
            return cursor

    def watched(name: str, *arguments: Any, **options: Any) -> sqlite3.Connection:
        if "mode=rwc" in name:
            options["factory"] = Watched
        return connect(name, *arguments, **options)

    sqlite3.connect = watched  # type: ignore[assignment]


def read_log(path: Path) -> Iterator[Call]:
    """The calls that a log holds, in order."""
    with path.open("rb") as file:
        while header := file.read(_HEADER.size):
            kind, length, other, _, at, size = _HEADER.unpack(header)
            names = [os.fsdecode(file.read(n)) for n in (length, other)]
            data = file.read(size) if KINDS[kind] == "write" else b""
            yield Call(KINDS[kind], *names, at, data)
