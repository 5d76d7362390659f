"""Signals that ask a run for its end, and do not tear it from its work."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupt:
    """While it is entered, the first KeyboardInterrupt of a signal is only noted.

    Of SIGINT in any case; of SIGTERM and SIGHUP where a handler outside raises it for them. The
    second is raised. Outside of the main thread there are no signals.

    It asks the handlers outside and does not stand in their place: which signals end a command,
    how soon the next one counts and what the exit code is, is theirs. A program that imports
    ragcli has others than the command line.
    """

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._outside: dict[int, Any] = {}

    def __bool__(self) -> bool:
        """Whether an end was asked for."""
        return self._asked.is_set()

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None)):
                if number == signal.SIGINT or (number and callable(signal.getsignal(number))):
                    self._outside[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._outside.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        outside = self._outside[number]
        try:
            if not callable(outside):
                raise KeyboardInterrupt
            outside(number, frame)
        except KeyboardInterrupt:
            if self:
                raise
            self._asked.set()
