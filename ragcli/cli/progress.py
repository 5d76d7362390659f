"""How far a run of questions or a sweep is, on stderr: a bar on a terminal, else hardly a word."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TypeVar

from ragcli.cli.output import Output

if TYPE_CHECKING:
    from ragcli.cli.render import ProgressBar

_PATIENCE = 1.0
"""Seconds before a bar appears: most runs are over by then."""

_EVERY = 0.1


Shown = TypeVar("Shown", bound="Display")


class Display:
    """A bar that is there once it is worth it; a context that takes it away."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._bar: ProgressBar | None = None
        self._due = time.monotonic() + _PATIENCE
        self.terminal = not output.quiet and sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self: Shown) -> Shown:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def draw(self, stage: str, done: int, total: int, unit: str) -> None:
        """Bring the bar up to date, where there is one to see."""
        if not self.terminal or time.monotonic() < self._due:
            return
        if self._bar is None:
            from ragcli.cli.render import ProgressBar, console

            self._bar = ProgressBar(console(sys.stderr, color=self._output.color))
        self._due = time.monotonic() + _EVERY
        self._bar.count(stage, done, total, unit)


class AskedDisplay(Display):
    """How many of `total` questions are asked."""

    def __init__(self, output: Output, total: int) -> None:
        super().__init__(output)
        self._total = total

    def show(self, done: int) -> None:
        """`done` questions are asked."""
        self.draw("asking", done, self._total, "questions")


class SweepDisplay(Display):
    """Which variant a sweep is at; without a terminal, under `--verbose`, a line for each."""

    def __init__(self, output: Output) -> None:
        super().__init__(output)
        self._label: str | None = None

    def show(self, done: int, total: int, label: str, stage: str, left: float | None) -> None:
        """Called as often as the sweep likes; `left` is in seconds."""
        time_left = "" if left is None else f" · {_spoken(left)} left"
        if not self.terminal and label != self._label:
            self._label = label
            self._output.remark(f"{done + 1} of {total}: {label}{time_left}")
        self.draw(f"{label}, {stage}{time_left}", done, total, "variants")


def _spoken(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
