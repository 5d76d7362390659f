"""How far a command is, on stderr: a bar on a terminal, else hardly a word."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TypeVar

from ragcli.cli.output import Output, counted
from ragcli.records import Progress

if TYPE_CHECKING:
    from ragcli.cli.render import ProgressBar

_PATIENCE = 1.0
"""Seconds before a bar appears: most runs are over by then."""

_EVERY = 0.1

_INDEX_PATIENCE = 0.4
_LINE_EVERY = 3.0
"""Seconds between lines of progress where there is no terminal."""


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
        self.close()

    def close(self) -> None:
        """Take the bar away, where there is one."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def draw(self, stage: str, done: int, total: int, unit: str) -> None:
        """Bring the bar up to date, where there is one to see."""
        if not self.terminal or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _EVERY
        self._opened().count(stage, done, total, unit)

    def _opened(self) -> ProgressBar:
        if self._bar is None:
            from ragcli.cli.render import ProgressBar, console

            self._bar = ProgressBar(console(sys.stderr, color=self._output.color))
        return self._bar


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


class IndexDisplay(Display):
    """A run of indexing; without a terminal, under `--verbose`, a line now and then.

    That passages can be searched already is said in any case but `--quiet` and `--json`.
    """

    def __init__(self, output: Output) -> None:
        super().__init__(output)
        self._began = self._since = time.monotonic()
        self._due = self._began + (_INDEX_PATIENCE if self.terminal else _LINE_EVERY)
        self._stage: str | None = None

    def show(self, progress: Progress) -> None:
        """Called by indexing as often as it likes."""
        if progress.stage != self._stage:
            self._stage, self._since = progress.stage, time.monotonic()
        if progress.stage == "searchable":
            self._say_searchable(progress.chunks)
        elif self._bar is not None:
            self._bar.show(progress)
        elif time.monotonic() >= self._due:
            if self.terminal:
                self._opened().show(progress)
            elif not self._output.quiet:
                self._due = time.monotonic() + _LINE_EVERY
                self._output.remark(self._line(progress))

    def _say_searchable(self, passages: int) -> None:
        if not self._output.as_json:
            self.close()
            self._output.warn(
                f"{counted(passages, 'passage')} can be searched now "
                f"({self._since - self._began:.1f} s); vectors follow"
            )

    def _line(self, progress: Progress) -> str:
        if progress.stage == "embed":
            spent = time.monotonic() - self._since
            return embedding(progress.chunks, progress.chunks_total, spent)
        total = f" of {progress.files_total:,}" if progress.files_total else ""
        return f"{progress.stage}: {progress.files_done:,}{total} files"


def embedding(done: int, total: int, spent: float) -> str:
    """`embedding 640/12,345 · 98/s · 2 min left`, after `spent` seconds."""
    rate = done / max(spent, 0.1)
    left = (total - done) / max(rate, 0.1)
    return f"embedding {done:,}/{total:,} · {rate:,.0f}/s · {_spoken(left)} left"


def _spoken(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
