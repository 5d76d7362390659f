"""Runs `index` in this process and kills it at the n-th write boundary.

`crashpoint.py N ENCODER LOCATION [FOLDER]`, each batch of vectors a commit of its own. A boundary
is every open for writing, mkdir, rename, remove, fsync and SQL statement, seen through audit
hooks, a wrapped fsync and SQLite's own trace. With N = 0 nothing is killed and the number of
boundaries is printed.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import neural

from ragcli.indexing import index_folder, run

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_EVENTS = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "os.truncate"}


class Counter:
    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0

    def boundary(self) -> None:
        self.seen += 1
        if self.seen == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _EVENTS:
            self.boundary()
        elif event == "open":
            flags = arguments[2]
            if isinstance(flags, int) and flags & _WRITING:
                self.boundary()


def main() -> None:
    counter = Counter(int(sys.argv[1]))
    synchronise, connect = os.fsync, sqlite3.connect

    def fsync(handle: int) -> None:
        counter.boundary()
        synchronise(handle)

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(lambda _: counter.boundary())
        return connection

    os.fsync, sqlite3.connect = fsync, traced
    sys.addaudithook(counter.audit)
    neural.install()
    run.COMMIT_SECONDS = 0.0
    folders = [Path(name) for name in sys.argv[4:]]
    index_folder(Path(sys.argv[3]), folders, {"encoder": sys.argv[2]})
    print(counter.seen)


if __name__ == "__main__":
    main()
