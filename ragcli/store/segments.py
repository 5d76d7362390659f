"""Immutable folders of arrays: written once, whole or not at all, read by memory map.

Owns naming, checksums and the atomic move into place. Does not know what the arrays mean
(`lexical`, `vectors`) nor which folders are live (`catalog`).

A segment is `segments/NAME/` with one `.npy` file per array, perhaps other files, and
`manifest.json`: each file's length and BLAKE2b checksum. The catalogue keeps the manifest's own
checksum, so that a swapped folder is noticed too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Mapping, Set
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.errors import IndexDamaged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MANIFEST = "manifest.json"
_UNFINISHED = ".unfinished-"
_NAME = re.compile(r"[pv]-[0-9a-z]{1,40}")
_MOST_MANIFEST = 1 << 20
_HINT = "ragcli index --full   (checks every part and makes it again)"


def _checksum(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def sync(path: Path) -> None:
    """Make a file's or folder's content survive a power cut."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _save(path: Path, array: NDArray[np.generic]) -> None:
    """What `np.save` writes; that hands small arrays to C's stdio and does not ask it whether they
    reached the disk.
    """
    import numpy as np
    from numpy.lib import format as npy

    rows = np.ascontiguousarray(array)
    with path.open("wb") as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(rows))
        file.write(rows.data)


def write_segment(
    folder: Path,
    prefix: str,
    arrays: Mapping[str, NDArray[np.generic]],
    writers: Mapping[str, Callable[[Path], object]] | None = None,
) -> tuple[str, str]:
    """Write `arrays` (and what each of `writers` writes to its path) as a new segment.

    Returns (name, checksum of the manifest). The name is `prefix` and a random part, so that
    a name is never used twice. Raises OSError when the disk is full or read-only; then
    nothing but an unfinished folder is left, which `sweep` removes.
    """
    import secrets

    folder.mkdir(exist_ok=True)
    name = f"{prefix}-{secrets.token_hex(6)}"
    unfinished = folder / f"{_UNFINISHED}{name}"
    unfinished.mkdir()
    for key, array in arrays.items():
        _save(unfinished / f"{key}.npy", array)
    for file_name, write in (writers or {}).items():
        write(unfinished / file_name)
    files = {}
    for path in sorted(unfinished.iterdir()):
        sync(path)
        files[path.name] = {"bytes": path.stat().st_size, "blake2b": _checksum(path)}
    manifest = json.dumps({"files": files}, indent=1).encode()
    (unfinished / MANIFEST).write_bytes(manifest)
    sync(unfinished / MANIFEST)
    sync(unfinished)
    unfinished.rename(folder / name)
    sync(folder)
    return name, blake2b(manifest, digest_size=16).hexdigest()


class Segment:
    """A segment opened for reading: lengths checked now, checksums on demand."""

    def __init__(self, folder: Path, name: str, checksum: str) -> None:
        """Raises IndexDamaged where the folder, a file or a length is not as it was written."""
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise IndexDamaged(f"no segment of an index is named {name!r:.40}", _HINT)
        self.name = name
        self.path = folder / name
        try:
            if not stat.S_ISDIR(self.path.lstat().st_mode):
                raise IndexDamaged(f"segment {name} of the index is no folder", _HINT)
            if self._size(MANIFEST) > _MOST_MANIFEST:
                raise IndexDamaged(f"the manifest of segment {name} is none", _HINT)
            manifest = (self.path / MANIFEST).read_bytes()
        except OSError as error:
            raise IndexDamaged(f"segment {name} of the index is missing", _HINT) from error
        if blake2b(manifest, digest_size=16).hexdigest() != checksum:
            raise IndexDamaged(f"segment {name} of the index is not the one written", _HINT)
        try:
            self._files: dict[str, tuple[int, str]] = {
                file_name: (int(facts["bytes"]), str(facts["blake2b"]))
                for file_name, facts in json.loads(manifest)["files"].items()
            }
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise IndexDamaged(f"the manifest of segment {name} is none", _HINT) from error
        for file_name, (written, _) in self._files.items():
            try:
                size = self._size(file_name)
            except OSError as error:
                raise IndexDamaged(f"{name}/{file_name} of the index is missing", _HINT) from error
            if size != written:
                raise IndexDamaged(f"{name}/{file_name} of the index is cut or longer", _HINT)

    def _size(self, file_name: str) -> int:
        """Bytes of a file of the segment; raises IndexDamaged for what `write_segment` never made.

        A link or a name with a slash would lead out of the index, a pipe would never end.
        """
        if Path(file_name).name != file_name:
            raise IndexDamaged(f"{self.name} of the index names {file_name!r:.40}", _HINT)
        status = (self.path / file_name).lstat()
        if not stat.S_ISREG(status.st_mode):
            raise IndexDamaged(f"{self.name}/{file_name} of the index is no file", _HINT)
        return status.st_size

    def __contains__(self, key: str) -> bool:
        """Whether it has an array `key`."""
        return f"{key}.npy" in self._files

    def array(self, key: str) -> NDArray[np.generic]:
        """The array `key`, mapped read-only."""
        import numpy as np

        path = self.path / f"{key}.npy"
        if key not in self:
            raise IndexDamaged(f"{self.name}/{key}.npy of the index is missing", _HINT)
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # what a broken header raises is numpy's business
            raise IndexDamaged(f"{self.name}/{key}.npy of the index: {error}", _HINT) from error
        return np.asarray(array)

    @property
    def files(self) -> Set[str]:
        """The names of its files, without the manifest."""
        return self._files.keys()

    @property
    def bytes(self) -> int:
        """Size on disk, without the manifest."""
        return sum(size for size, _ in self._files.values())

    def verify(self) -> None:
        """Read every file; raises IndexDamaged at the first whose checksum differs."""
        for file_name, (_, checksum) in self._files.items():
            if _checksum(self.path / file_name) != checksum:
                raise IndexDamaged(f"{self.name}/{file_name} of the index has changed", _HINT)


def sweep(folder: Path, live: set[str]) -> list[str]:
    """Remove every folder that is not in `live`, unfinished ones included; returns their names.

    Readers that have them mapped keep their view where the system allows; others look again.
    """
    if not folder.is_dir():
        return []
    gone = [entry for entry in folder.iterdir() if entry.name not in live]
    for entry in gone:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    return [entry.name for entry in gone]
