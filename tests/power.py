"""What a disk may hold after the power went: a run's calls replayed, with what was not synced lost.

A file's bytes and length are safe once it was synced, a name (made, moved, removed) once the
folder that it lies in was; beyond that the disk may keep any part, in any order. `-shm` is
written through a memory map, which no call shows, and is never safe.

Also what a copy holds that was made meanwhile: each file as it was at another moment.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from faults import Call

LOST = ("all that was not synced", "what is in files", "some, by chance")
"""What the power takes along; names are kept in the second, as file systems with a journal do."""


class File:
    """Its bytes as they are seen, as they are safe, and the writes between the two."""

    def __init__(self, data: bytes = b"") -> None:
        self.seen = bytearray(data)
        self.safe = bytes(data)
        self.waiting: list[tuple[int, bytes | None]] = []

    def write(self, at: int, data: bytes) -> None:
        self.waiting.append((at, data))
        _write(self.seen, at, data)

    def cut(self, size: int) -> None:
        self.waiting.append((size, None))
        _cut(self.seen, size)

    def sync(self) -> None:
        self.safe = bytes(self.seen)
        self.waiting.clear()

    def after(self, dice: random.Random | None) -> bytes:
        """What is there: all that is safe, and of the rest what `dice` give."""
        left = bytearray(self.safe)
        for at, data in self.waiting if dice else ():
            if dice and dice.random() < 0.5:
                _cut(left, at) if data is None else _write(left, at, data)
        return bytes(left)


def _write(content: bytearray, at: int, data: bytes) -> None:
    content.extend(bytes(max(0, at - len(content))))
    content[at : at + len(data)] = data


def _cut(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


Names = dict[str, "File | None"]
"""What there is, by path: a file, or None for a folder."""


class Disk:
    """The folder `root` as it is now, all of it safe, and then what calls make of it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.seen: Names = {}
        for path in (root, *root.rglob("*")) if root.exists() else ():
            self.seen[str(path)] = None if path.is_dir() else File(path.read_bytes())
        self._safe: Names = dict(self.seen)
        self._waiting: list[tuple[str, dict[str, File | str | None]]] = []

    def replay(self, calls: Iterable[Call]) -> None:
        for call in calls:
            self._do(call)

    def _do(self, call: Call) -> None:
        path = call.path
        if call.kind == "mkdir":
            self._name(path, {path: None})
        elif call.kind == "open":
            known = self.seen.get(path)
            if path not in self.seen:
                self._name(path, {path: File()})
            elif call.at & os.O_TRUNC and known:
                known.cut(0)
        elif call.kind in ("unlink", "rmdir"):
            self._name(path, {path: "gone"})
        elif call.kind == "rename":
            moved = {
                call.to + name[len(path) :]: what
                for name, what in self.seen.items()
                if name == path or name.startswith(path + "/")
            }
            gone = {path + name[len(call.to) :]: "gone" for name in moved}
            self._name(path, {**gone, **moved})
        elif call.kind == "sync" and self.seen.get(path) is None:
            self._sync_folder(path)
        else:
            self._write(call)

    def _write(self, call: Call) -> None:
        file = self.seen[call.path]
        assert file is not None, call
        if call.kind == "write":
            file.write(call.at, call.data)
        elif call.kind == "truncate":
            file.cut(call.at)
        else:
            file.sync()

    def _name(self, path: str, change: dict[str, File | str | None]) -> None:
        """A change of names that is safe once the folder of `path` is."""
        self._waiting.append((str(Path(path).parent), change))
        _apply(self.seen, change)

    def _sync_folder(self, folder: str) -> None:
        for where, change in self._waiting:
            if where == folder:
                _apply(self._safe, change)
        self._waiting = [(where, change) for where, change in self._waiting if where != folder]

    def leave(self, lost: str, dice: random.Random) -> None:
        """Make `root` what is left of it."""
        names = dict(self._safe)
        for _, change in self._waiting:
            if lost == LOST[1] or (lost == LOST[2] and dice.random() < 0.5):
                _apply(names, change)
        empty(self._root)
        if str(self._root) not in names:
            self._root.rmdir()
        for path, what in sorted(names.items(), key=lambda item: item[0]):
            if not Path(path).parent.is_dir():
                continue  # the folder's own name was lost
            if what is None:
                Path(path).mkdir(exist_ok=True)
            elif not path.endswith("-shm"):
                Path(path).write_bytes(what.after(dice if lost == LOST[2] else None))


def empty(folder: Path) -> None:
    """Make it a folder with nothing in it, the same one where it is there."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def copy_meanwhile(root: Path, calls: Sequence[Call], dice: random.Random) -> None:
    """Make `root` what a copy is that was made file by file, by name, while `calls` were made.

    A file is copied whole at one moment; what is gone by then is not in the copy.
    """
    disk = Disk(root)
    first, last = sorted(dice.randrange(len(calls) + 1) for _ in range(2))
    moments = sorted(dice.randint(first, last) for _ in range(2 * len(disk.seen) + 2))
    copied: dict[str, bytes | None] = {}
    done = 0
    for moment in [*moments, *[last] * len(calls)]:
        disk.replay(calls[done:moment])
        done = moment
        left = sorted(name for name in disk.seen if name > max(copied, default=""))
        if not left:
            break
        what = disk.seen[left[0]]
        copied[left[0]] = None if what is None else bytes(what.seen)
    shutil.rmtree(root, ignore_errors=True)
    for path, data in copied.items():
        if data is None:
            Path(path).mkdir(parents=True)
        elif Path(path).parent.is_dir():
            Path(path).write_bytes(data)


def _apply(names: Names, change: dict[str, File | str | None]) -> None:
    for path, what in change.items():
        if isinstance(what, str):
            for name in [name for name in names if name == path or name.startswith(path + "/")]:
                del names[name]
        else:
            names[path] = what
