"""How long the steps of a long job took, and so how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Mapping

_TELLING = 0.05
"""The share of a step that must be done before its pace says how long the whole will take."""


class Pace:
    """The steps of a job, of several kinds; one runs at a time."""

    def __init__(self, steps: Mapping[str, int]) -> None:
        """`steps`: how many of each kind there will be."""
        self._left = dict(steps)
        self._spent: dict[str, list[float]] = {kind: [] for kind in steps}
        self.begin(next(iter(steps)))

    def begin(self, kind: str) -> None:
        """A step of this kind begins."""
        self._kind = kind
        self._began = time.monotonic()

    def end(self) -> None:
        """It is done."""
        self._spent[self._kind].append(time.monotonic() - self._began)
        self._left[self._kind] -= 1

    def drop(self, kind: str, steps: int) -> None:
        """So many steps will not come."""
        self._left[kind] -= steps

    def seconds_left(self, share: float) -> float | None:
        """What is left when `share` of the current step is done; None while nothing tells.

        Kinds of which no step has been done yet count for nothing.
        """
        spent = time.monotonic() - self._began
        means = {kind: sum(of) / len(of) for kind, of in self._spent.items() if of}
        whole = spent / share if share >= _TELLING else means.get(self._kind)
        if whole is None:
            return None
        means.setdefault(self._kind, whole)
        steps = sum(means.get(kind, 0.0) * number for kind, number in self._left.items())
        return max(whole - spent, 0.0) + max(steps - means[self._kind], 0.0)
