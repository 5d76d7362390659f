"""What of the disk an index may speak of: a stranger's must not lead out of its own folder.

An index remembers the inode of its `.rag` folder. Where that is still so, it was made here, and
its root, its starts and the links that it follows are what its user asked for. Elsewhere (copied,
unpacked, mounted) it is believed only as far as the folder that it lies in; what lies beyond, the
home folder and `/` must be named again. Owns this judgement; opens and reads no file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ragcli.errors import UsageError
from ragcli.store.catalog import Catalog

ORIGIN = "origin"
"""The key in the catalogue."""


def origin(folder: Path) -> int:
    """What tells the `.rag` folder `folder` from a copy of it."""
    return folder.stat().st_ino


def holds_home(folder: Path) -> bool:
    """Whether a folder is the home folder or holds it, as `/` does."""
    try:
        home = os.path.realpath(Path.home())
    except RuntimeError:  # there is none: neither HOME nor an account
        home = os.path.abspath(os.sep)
    return Path(home).is_relative_to(os.path.realpath(folder))


def follows(folder: Path, root: Path) -> UsageError:
    """What is told of an index from elsewhere whose settings follow links out of its root."""
    return UsageError(
        f"{folder} was not made here, and follows links out of {root}",
        "ragcli index --no-follow   (or --follow, if it shall)",
    )


@dataclass(frozen=True, slots=True)
class Origin:
    """`root` as the index remembers it, and whether the index was `made_here`."""

    root: Path
    made_here: bool
    starts: tuple[str, ...]
    follow: bool

    @classmethod
    def of(cls, catalog: Catalog, *, follow: bool) -> Origin | None:
        """None where the catalogue remembers no root; `follow` is the setting."""
        root, starts = catalog.get("root"), catalog.get("starts", [""])
        if not isinstance(starts, list) or not all(map(_is_path, [root, *starts])):
            return None
        base = catalog.folder.absolute().parent
        return cls(
            Path(os.path.normpath(base / str(root))),
            catalog.get(ORIGIN) == origin(catalog.folder),
            tuple(starts),
            follow,
        )

    def refusal(self, folder: Path) -> UsageError | None:
        """Why the index in `folder` is not believed about what it covers; None where it is."""
        if self.made_here:
            return None
        real = Path(os.path.realpath(self.root))
        inside = real.is_relative_to(os.path.realpath(folder.absolute().parent))
        if not inside or holds_home(self.root):
            return UsageError(
                f"{folder} was not made here, and says that its files are in {self.root}",
                f"if they are: ragcli index {self.root}",
            )
        if not all(self._covers(os.path.join(self.root, start)) for start in self.starts):
            return UsageError(
                f"{folder} was not made here, and leads out of {self.root}",
                "name what it shall index: ragcli index FOLDER",
            )
        if self.follow:
            return follows(folder, self.root)
        return None

    def source(self, path: str) -> Path | None:
        """Where a file of the index lies on disk; None where that is outside of what it covers.

        `path` is one that the catalogue has, and may be anything.
        """
        place = os.path.join(self.root, path)
        return Path(place) if _is_path(place) and self._covers(place) else None

    def _covers(self, place: str) -> bool:
        if not Path(os.path.normpath(place)).is_relative_to(self.root):
            return False
        if self.made_here and self.follow:
            return True
        real = Path(os.path.realpath(place))
        if real.is_relative_to(os.path.realpath(self.root)):
            return True
        named = (os.path.realpath(os.path.join(self.root, start)) for start in self.starts)
        return self.made_here and any(map(real.is_relative_to, named))


def _is_path(value: object) -> bool:
    """Whether the system can be asked for it."""
    try:
        return isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False
