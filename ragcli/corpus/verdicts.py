"""What a walk is asked for, and what it says of each file. Decides nothing."""

from __future__ import annotations

import errno
from dataclasses import dataclass

TOO_LARGE = "too large"

_REASONS = {
    errno.ENOENT: "vanished",
    errno.ENOTDIR: "vanished",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ELOOP: "symlink loop",
    errno.ENAMETOOLONG: "path too long",
    errno.EFBIG: TOO_LARGE,
}


@dataclass(frozen=True, slots=True)
class WalkRules:
    """What the user asked for; `max_file_size` is in bytes.

    `glob` and `exclude` are gitignore patterns relative to the root. An empty `glob` wants
    everything; otherwise a file is wanted if it, or a folder above it, matches. `ignore` is
    whether ignore files count, `hidden` whether names with a leading dot do, `follow` whether
    links may lead out of the folder.
    """

    glob: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hidden: bool = False
    ignore: bool = True
    follow: bool = False
    max_file_size: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file to index. `path` is relative to the root, `/` between its parts.

    Bytes of a name that are not UTF-8 are kept as `os.fsdecode` keeps them (surrogateescape).
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One file that is not indexed, or (`folder`) one whole folder that was not entered.

    `reason` is one of `ignored` (detail: `.gitignore:3: *.log`), `hidden`, `excluded` (detail:
    the pattern), `no glob matches`, `too large`, `a cache folder`, `the index itself`,
    `a temporary file` (an editor's), `linked twice` or `symlink loop` (detail: the path that it
    leads to), `symlink out of the folder`, `dangling symlink`, `not a regular file`, `permission
    denied`, `vanished`, `path too long`, `cannot be read`.
    """

    path: str
    reason: str
    detail: str = ""
    folder: bool = False


def unreadable(path: str, error: OSError, folder: bool = False) -> LeftOut:
    """What to say of what the system refuses to list, stat or open."""
    reason = _REASONS.get(error.errno or 0, "cannot be read")
    return LeftOut(path, reason, error.strerror or str(error), folder)
