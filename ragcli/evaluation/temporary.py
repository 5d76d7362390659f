"""Indexes that are made for a while, of the sources of another one and with other settings.

Owns where they lie, that they are gone at the end, and that no text is encoded twice under one
encoder. The index that they are made like is only read.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ragcli.errors import IndexUnavailable, UsageError
from ragcli.indexing import index_folder
from ragcli.indexing.known import known_files
from ragcli.indexing.scope import remembered
from ragcli.records import IndexReport, Progress
from ragcli.store.index import Index
from ragcli.store.sharing import begin, share_vectors

Told = Callable[[str, float], None]
"""(stage as in `Progress`, `share` beside; what share of it all is done, 0 where unknown)."""


@dataclass(frozen=True, slots=True)
class MadeIndex:
    """An index in `place`, and what making it took.

    `shared` of its `chunks` took their vector over from another index.
    """

    place: Path
    chunks: int
    shared: int
    seconds: float


class TemporaryIndexes:
    """`with TemporaryIndexes(present) as made:`; what is made is removed at the end.

    `changed` is how many files were not as `present` has them when one was made.
    """

    def __init__(self, present: Path, *, workers: int | None) -> None:
        """Raises UsageError where the sources are not there, IndexUnavailable in its kinds."""
        with Index.open(present) as index:
            self.settings = index.settings
            self._root, self._starts = remembered(index.catalog, present)
            self._digests = _digests(index)
        self._workers = workers
        self._donors = [(self.settings.encoder, present)]
        self._folder = tempfile.TemporaryDirectory(
            prefix="ragcli-sweep-", dir=_elsewhere(self._root)
        )
        self.changed = 0

    def __enter__(self) -> TemporaryIndexes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._folder.cleanup()

    def make(self, changes: Mapping[str, str], tell: Told) -> MadeIndex:
        """Index the sources as they are now, with `changes` to the settings of `present`.

        Raises KeyboardInterrupt for an interrupt, IndexUnavailable where there is no room, and
        what `index_folder` raises; then nothing of it is left.
        """
        began = time.monotonic()
        place = Path(tempfile.mkdtemp(dir=self._folder.name))
        encoder = changes.get("encoder", self.settings.encoder)
        donors = [donor for name, donor in self._donors if name == encoder]
        try:
            with _with_room(place):
                begin(place, self._root, self._starts, self.settings, donors)
                report, shared = self._index(place, changes, donors, tell)
            if not report.chunks:
                raise UsageError(f"{self._root} has no text now", "mount it, or see ragcli index")
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        self._donors.append((encoder, place))
        self._count_changed(place)
        return MadeIndex(place, report.chunks, shared, time.monotonic() - began)

    def _index(
        self, place: Path, changes: Mapping[str, str], donors: list[Path], tell: Told
    ) -> tuple[IndexReport, int]:
        """The words first, then the vectors that there are, then the others."""
        report = self._run(place, changes, tell, lazy=bool(donors))
        shared = 0
        for donor in donors:
            tell("share", 0.0)
            shared += share_vectors(place, donor)
        return (self._run(place, {}, tell) if donors else report), shared

    def _run(
        self, place: Path, changes: Mapping[str, str], tell: Told, *, lazy: bool = False
    ) -> IndexReport:
        def told(at: Progress) -> None:
            embedding = at.stage == "embed" and at.chunks_total
            tell(at.stage, at.chunks / at.chunks_total if embedding else 0.0)

        report = index_folder(place, (), changes, lazy=lazy, workers=self._workers, progress=told)
        if report.interrupted:
            raise KeyboardInterrupt
        return report

    def _count_changed(self, place: Path) -> None:
        with Index.open(place) as made:
            differing = self._digests.items() ^ _digests(made).items()
        self.changed = max(self.changed, len({path for path, _ in differing}))


def _digests(index: Index) -> dict[str, bytes | None]:
    """What the content of each indexed file was."""
    return {
        path: file.digest
        for path, file in known_files(index.catalog).items()
        if file.state == "indexed"
    }


def _elsewhere(root: Path) -> str:
    """The folder for temporary files. Raises UsageError where it lies in the sources."""
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:
        raise UsageError(
            "no folder for temporary files can be written", "TMPDIR=/elsewhere ragcli eval …"
        ) from error
    if Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root)):
        raise UsageError(
            f"the folder for temporary files, {folder}, lies in {root}, which is indexed",
            "name another one: TMPDIR=/elsewhere ragcli eval …",
        )
    return folder


@contextmanager
def _with_room(place: Path) -> Iterator[None]:
    """Where the temporary index cannot be written, the error says where that is."""
    hint = "free some space, or name another place: TMPDIR=/elsewhere ragcli eval …"
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise IndexUnavailable(f"{place} cannot be written: {error}", hint) from error
    except IndexUnavailable as error:
        if type(error) is IndexUnavailable:
            raise IndexUnavailable(error.message, hint) from error
        raise
