"""Child processes that read files, each under a limit of time and memory.

Owns starting, feeding, timing and ending them. A file that hangs a parser, eats the memory or
kills the process costs itself alone: its neighbours in the same task are read again singly.
Does not know what an outcome means.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

from ragcli.errors import ModelUnavailable
from ragcli.indexing.analysis import Analysed, FileOutcome, FileTask
from ragcli.indexing.worker import DONE, receive, send
from ragcli.records import Settings

SECONDS = 30.0
"""Of a child's own work for one file; a megabyte gets a second more."""

PATIENCE = 2.0
"""Seconds of the clock for each of them: others work on the machine too."""

START_SECONDS = 120.0

MEMORY = 1 << 30
_BYTES_A_SECOND = 1_000_000
_WAITING = 4

# Without the working folder on the path of imports: a folder numpy in it would be executed.
_WORKER = (
    ["-P", "-m", "ragcli.indexing.worker"]
    if sys.version_info >= (3, 11)
    else ["-c", "import sys; del sys.path[0]; from ragcli.indexing.worker import main; main()"]
)


class _Child:
    """One process and the pipe to it."""

    def __init__(self, settings: Settings, home: Path, vectors: bool) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, *_WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,  # until it is ready; afterwards it writes to nowhere
            env=environment,
            start_new_session=True,  # what it runs itself is ended with it
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._complaints = self._process.stderr
        self._first: Any = (settings, home, vectors, MEMORY)
        self._late = threading.Event()
        self._seconds, self._memory = 0.0, MEMORY

    def ask(self, files: Sequence[FileTask], seconds: float) -> Iterator[Analysed | str]:
        """The answers, then how it ended: a word of `worker`'s, `timeout` or `crashed`.

        The limit is `seconds` of its work, or what it says since by sending a number.
        Raises ModelUnavailable where it does not start.
        """
        if self._first is not None:
            self._begin()
        self._seconds = seconds
        timer = self._limited(seconds * PATIENCE)
        try:
            send(self._requests, (files, seconds))
            while not isinstance(answer := receive(self._answers), str):
                if isinstance(answer, Analysed):
                    yield answer
                else:
                    timer.cancel()
                    self._seconds = answer
                    timer = self._limited(answer * PATIENCE)
            yield answer
        except (EOFError, OSError):
            yield "timeout" if self._late.is_set() or self._overworked() else "crashed"
        finally:
            timer.cancel()

    def _begin(self) -> None:
        """Let it load what it needs. Raises ModelUnavailable where it does not come to that."""
        timer = self._limited(START_SECONDS)
        try:
            send(self._requests, self._first)
            self._memory = receive(self._answers)
            self._first = None
            return
        except (EOFError, OSError):
            pass  # told below, with what it said of it
        finally:
            timer.cancel()
        self.kill()
        said = self._complaints.read().decode("utf-8", "replace").strip().splitlines()
        reason = said[-1] if said else f"it ended with {self._process.wait()}"
        raise ModelUnavailable(
            f"the process that reads files does not start: {reason}", "install ragcli anew"
        )

    def _limited(self, seconds: float) -> threading.Timer:
        def end() -> None:
            self._late.set()
            self.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        return timer

    def _overworked(self) -> bool:
        """Whether it came to its limit of work."""
        self.kill()  # what it ran itself may live on
        return self._process.wait() == -getattr(signal, "SIGXCPU", 0) != 0

    def kill(self) -> None:
        """End the process and what it runs at once; what it was asked is answered with `crashed`.

        Also where it has ended by itself, as long as nobody has waited for it: until then its
        number is no other's.
        """
        if self._process.returncode is None and hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):  # macOS: none is left in the group
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()

    def reason(self, kind: str) -> str:
        """What is told of a file that ended it so."""
        return {
            "timeout": f"took longer than {self._seconds:.0f} s to read",
            "memory": f"took more than {self._memory >> 20} MB to read",
            "crashed": "its parser crashed",
        }[kind]

    def close(self) -> None:
        """Let the process end, as it does when nobody asks it any more, and wait for it."""
        for stream in (self._requests, self._answers, self._complaints):
            try:
                stream.close()
            except BrokenPipeError:
                continue  # it died with a request half written; nothing is owed to it
        self._process.wait()


class Pool:
    """`workers` children over a list of tasks: `for analysed in pool.run(tasks)`."""

    def __init__(self, settings: Settings, home: Path, workers: int, *, vectors: bool) -> None:
        self._settings = settings
        self._home = home
        self._vectors = vectors
        self._workers = workers
        self._stopped = threading.Event()
        self._starting = threading.Lock()  # no child starts unseen by what stops them all
        self._children: set[_Child] = set()

    def run(self, tasks: Sequence[Sequence[FileTask]]) -> Generator[Analysed, None, None]:
        """The outcomes of each task, in the order in which they are ready."""
        todo = deque(tasks)
        done: queue.Queue[Analysed | BaseException | None] = queue.Queue(_WAITING)
        threads = [
            threading.Thread(target=self._serve, args=(take, todo, done), daemon=True)
            for take, _ in zip(
                # From both ends: neighbours share words, and a child analyses each word once.
                cycle((todo.popleft, todo.pop)),
                range(min(self._workers, len(tasks))),
            )
        ]
        for thread in threads:
            thread.start()
        running = len(threads)
        try:
            while running:
                answer = done.get()
                if answer is None:
                    running -= 1
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    yield answer
        finally:
            with self._starting:
                self._stopped.set()
            for child in tuple(self._children):
                child.kill()
            while any(thread.is_alive() for thread in threads):
                try:
                    done.get(timeout=0.05)
                except queue.Empty:
                    continue

    def _serve(
        self,
        take: Callable[[], Sequence[FileTask]],
        todo: deque[Sequence[FileTask]],
        done: queue.Queue[Analysed | BaseException | None],
    ) -> None:
        child: _Child | None = None
        try:
            while not self._stopped.is_set():
                try:
                    files = take()
                except IndexError:
                    break
                if child is None and (child := self._started()) is None:
                    break
                ended, unfinished = self._ask(child, files, done)
                if ended != DONE and not self._stopped.is_set():
                    self._children.discard(child)
                    child.kill()
                    child.close()
                    if len(unfinished) > 1:  # one of them did it
                        todo.extend([file] for file in unfinished)
                    elif unfinished:
                        failed = _failed(unfinished[0], ended, child.reason(ended))
                        done.put(Analysed((failed,), None, None))
                    child = None
        except BaseException as error:  # noqa: BLE001 - handed to the thread that reads `done`
            done.put(error)
        finally:
            if child is not None:
                self._children.discard(child)
                child.close()
            done.put(None)

    def _started(self) -> _Child | None:
        """One child more; None where all are stopped."""
        with self._starting:
            if self._stopped.is_set():
                return None
            child = _Child(self._settings, self._home, self._vectors)
            self._children.add(child)
            return child

    def _ask(
        self,
        child: _Child,
        files: Sequence[FileTask],
        done: queue.Queue[Analysed | BaseException | None],
    ) -> tuple[str, list[FileTask]]:
        """Pass on what the child answers; returns how it ended and which files it owes."""
        finished: set[str] = set()
        ended = DONE
        for answer in child.ask(files, time_limit(files)):
            if isinstance(answer, Analysed):
                finished |= {outcome.path for outcome in answer.outcomes if not outcome.more}
                done.put(answer)
            else:
                ended = answer
        return ended, [file for file in files if file.path not in finished]


def time_limit(files: Sequence[FileTask]) -> float:
    """Seconds that reading `files` may take."""
    return SECONDS + sum(file.size for file in files) / _BYTES_A_SECOND


def _failed(file: FileTask, kind: str, message: str) -> FileOutcome:
    return FileOutcome(
        file.path, "failed", file.size, file.mtime_ns, file.ctime_ns, time.time_ns(), None, message,
        problems=((kind, message, None),),
    )  # fmt: skip
