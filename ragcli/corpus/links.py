"""Which real paths a walk covers, and which link it may follow.

Owns the rule for links that `walk` states. Looks at nothing but paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ragcli.corpus.unwanted import NEVER_ENTERED
from ragcli.corpus.verdicts import LeftOut


class Links:
    """The folders that one walk covers: its starts, and what it has followed links to."""

    def __init__(self, where: str, starts: Iterable[str], follow: bool) -> None:
        """`where` is the real path of the root, `starts` are relative to it."""
        self._follow = follow
        self._bases: dict[str, str] = {}  # real path of what is walked: the path it has here
        real = {start: os.path.realpath(Path(where, start)) for start in sorted(starts)}
        # Links come last: what such a start leads to may have its own path in another one.
        for start in sorted(real, key=lambda start: real[start] != str(Path(where, start))):
            if self._base_of(real[start]) is None or real[start] == str(Path(where, start)):
                self._bases[real[start]] = start

    def elsewhere(self, real: str, path: str) -> str | None:
        """Return the path that a real path is walked under, if it is another one than this."""
        base = self._bases.get(real, path)
        return None if base == path else base or "."

    def followed(self, real: str, path: str) -> None:
        """Say that what lies at a real path is walked under the path of a link."""
        self._bases[real] = path

    def refused(
        self, where: str, path: str, real: str, is_dir: bool, named: bool
    ) -> LeftOut | None:
        """Whether a link must not be followed to where it leads."""
        never = next((name for name in real.split("/") if name in NEVER_ENTERED), None)
        if never:
            return LeftOut(path, NEVER_ENTERED[never], "never entered", is_dir)
        base = self._base_of(real)
        if base is not None and self._bases[base] != path:
            loop = Path(where).is_relative_to(real)
            target = f"{self._bases[base]}/{real[len(base) :].lstrip('/')}".strip("/") or "."
            return LeftOut(path, "symlink loop" if loop else "linked twice", target, is_dir)
        if not (named or self._follow):
            return LeftOut(path, "symlink out of the folder", real, is_dir)
        return None

    def _base_of(self, real: str) -> str | None:
        """The deepest of the bases that is or holds a real path."""
        while real not in self._bases:
            if real == "/":
                return None
            real = real.rpartition("/")[0] or "/"
        return real
