"""Any program as a generator: the prompt goes to its stdin, what it prints is the answer.

Owns the child: its three pipes, its time limit and its end. It is started from an argument list,
never by a shell, and in a session of its own, so that its children end with it. What is read
here is not made safe to show.
"""

from __future__ import annotations

import codecs
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress

from ragcli.errors import ModelUnavailable, UsageError
from ragcli.generation.generators import Usage
from ragcli.generation.settings import time_limit
from ragcli.generation.visible import visible

_BLOCK = 65_536
_STDERR_KEPT = 16_384
_LINE_SHOWN = 300
_TICK = 0.05
"""Seconds between two looks at whether the child has ended."""
_LINGER = 1.0
"""Seconds that another process may keep the pipes open, silently, after the child has ended."""
_COMPLAINING = 4
"""So many time limits a program has that says nothing but on its stderr, as while it loads."""
_TERM = 2.0
"""Seconds that a process group has for its end before it is killed."""


def open_command(line: str, environment: Mapping[str, str]) -> Command:
    """The program of `line`, split as a shell splits words, and nothing else of what a shell does.

    Raises UsageError for a line that cannot be split, ModelUnavailable for a program that is not
    there or may not be run.
    """
    try:
        arguments = shlex.split(line)
    except ValueError as error:
        raise UsageError(
            f"cmd:{visible(line)} cannot be split into words: {str(error).lower()}",
            "quote it as for a shell: -G 'cmd:llm -m \"a b\"'",
        ) from error
    if not arguments or not arguments[0]:
        raise UsageError("cmd: names no program", "for example cmd:'llm -m x'")
    if "\0" in line:
        raise UsageError("a command line holds no NUL", "leave it out")
    if shutil.which(arguments[0], path=environment.get("PATH")) is None:
        raise ModelUnavailable(
            f"cmd: {visible(arguments[0])} is no program that can be run",
            "check its name and that it is executable, or give its full path",
        )
    return Command(f"cmd:{line}", arguments, environment, time_limit(environment))


class Command:
    """A program that is run once for each prompt.

    `environment` is all that it is started with; `limit` is the seconds it may neither read,
    print nor complain before it is ended. To complain alone helps it for four times as long.
    """

    window = None
    token_model = None

    def __init__(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], limit: float
    ) -> None:
        self.name = name
        self._arguments = list(arguments)
        self._environment = dict(environment)
        self._limit = limit
        self._running: Generator[str, None, None] | None = None

    def count(self, text: str) -> int | None:
        """None: nobody knows what the program reads with."""
        return None

    def usage(self) -> Usage:
        """Nothing: a program does not say."""
        return Usage()

    def stream(self, prompt: str) -> Iterator[str]:
        """What the program prints, as it comes; bytes that are no UTF-8 become U+FFFD.

        Raises ModelUnavailable when it cannot be started, prints nothing, is silent for too long
        or ends with another exit code than 0.
        """
        self._running = self._answer(prompt)
        return self._running

    def close(self) -> None:
        """End the child, if one still runs."""
        if self._running is not None:
            self._running.close()

    def _answer(self, prompt: str) -> Generator[str, None, None]:
        child = self._start()
        try:
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            complaints = bytearray()
            silent = True
            for piece in self._pieces(child, prompt.encode("utf-8", "replace"), complaints):
                text = decoder.decode(piece)
                silent = silent and not text.strip()
                if text:
                    yield text
            if rest := decoder.decode(b"", final=True):
                silent = False
                yield rest
            self._judge(child.returncode, silent, complaints)
        finally:
            _end(child)

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._arguments,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as error:
            raise ModelUnavailable(
                f"{self._program} could not be started: {error.strerror}", self._by_hand
            ) from error

    def _pieces(
        self, child: subprocess.Popen[bytes], prompt: bytes, complaints: bytearray
    ) -> Iterator[bytes]:
        """What the child prints until it has ended; the end of its stderr lands in `complaints`.

        All three pipes move at once: a child may answer before it has read everything, read
        nothing at all, or fill its stderr first.
        """
        assert child.stdin and child.stdout and child.stderr
        unread = memoryview(prompt)
        with selectors.DefaultSelector() as selector:
            for pipe in (child.stdin, child.stdout, child.stderr):
                os.set_blocking(pipe.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE)
            outputs = {child.stdout.fileno(), child.stderr.fileno()}
            for output in outputs:
                selector.register(output, selectors.EVENT_READ)
            signs = _Signs(self._program, self._limit)
            while True:
                ready = selector.select(_TICK if outputs else _TICK / 10)
                for key, _ in ready:
                    if key.fd not in outputs:
                        unread = unread[_write(key.fd, unread) :]
                        if not unread:
                            selector.unregister(child.stdin)
                            child.stdin.close()
                    elif not (piece := os.read(key.fd, _BLOCK)):
                        selector.unregister(key.fd)
                        outputs.remove(key.fd)
                    elif key.fd == child.stdout.fileno():
                        yield piece
                    else:
                        complaints += piece
                        del complaints[:-_STDERR_KEPT]
                signs.came({key.fd for key, _ in ready}, child.stderr.fileno())
                if child.poll() is not None and (not outputs or signs.quiet > _LINGER):
                    return
                signs.check()

    def _judge(self, code: int, silent: bool, complaints: bytearray) -> None:
        """Raises ModelUnavailable when this was no answer."""
        if code < 0:
            outcome = f"was killed by {_signal_name(-code)}"
        elif code:
            outcome = f"ended with exit code {code}"
        elif silent:
            outcome = "answered nothing"
        else:
            return
        lines = complaints.decode("utf-8", "replace").strip().splitlines()
        said = f": {visible(lines[-1].strip())[:_LINE_SHOWN]}" if lines else ""
        raise ModelUnavailable(f"{self._program} {outcome}{said}", self._by_hand)

    @property
    def _program(self) -> str:
        return visible(self._arguments[0])

    @property
    def _by_hand(self) -> str:
        return f"try it by hand: echo hello | {visible(shlex.join(self._arguments))}"


class _Signs:
    """A program's signs of life: when it last did anything, and when more than complain."""

    def __init__(self, program: str, limit: float) -> None:
        self._program = program
        self._limit = limit
        self._any = self._other = time.monotonic()

    @property
    def quiet(self) -> float:
        """Seconds without any."""
        return time.monotonic() - self._any

    def came(self, pipes: set[int], stderr: int) -> None:
        """On these pipes something has moved."""
        if pipes:
            self._any = time.monotonic()
        if pipes - {stderr}:
            self._other = self._any

    def check(self) -> None:
        """Raises ModelUnavailable for a program that had its time."""
        for what, since, limit in (
            ("did nothing", self._any, self._limit),
            ("wrote to stderr alone", self._other, self._limit * _COMPLAINING),
        ):
            if time.monotonic() - since > limit:
                raise ModelUnavailable(
                    f"{self._program} {what} for {limit:g} s and was ended",
                    "RAGCLI_TIMEOUT=SECONDS gives it longer",
                )


def _write(descriptor: int, unread: memoryview) -> int:
    """How much of `unread` is dealt with; all of it once nobody reads it any more."""
    try:
        return os.write(descriptor, unread[:_BLOCK])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(unread)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End what is left of the child's process group: asked first, killed after `_TERM` seconds."""
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    left = _tell(child.pid, signal.SIGTERM)
    try:
        deadline = time.monotonic() + _TERM
        while left and time.monotonic() < deadline:
            time.sleep(0.005)
            child.poll()
            left = _tell(child.pid, 0)
    finally:
        # Also when a second Ctrl-C comes while the first one's child has its time.
        if left:
            _tell(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_TERM)


def _tell(group: int, number: int) -> bool:
    """Signal a process group; whether there is one that can be signalled."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
