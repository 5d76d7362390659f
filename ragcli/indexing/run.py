"""One run of the write path, from the lock to the sweep."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ragcli import __version__
from ragcli.corpus.chunking import check_fits, parse_chunking
from ragcli.corpus.readers import is_plain
from ragcli.corpus.walk import walk
from ragcli.encoders import WordTokenizer, open_encoder, prepare_encoder
from ragcli.errors import IndexForeign, IndexNotFound, IndexUnavailable, UsageError
from ragcli.indexing import LOCK_WAIT, check
from ragcli.indexing.interrupt import Interrupt
from ragcli.indexing.known import known_files, rules_of
from ragcli.indexing.plan import Plan, TooMuch, make_plan
from ragcli.indexing.scope import covered, reading_of
from ragcli.records import Counts, IndexReport, Problem, Progress, Settings
from ragcli.store.batch import FileState
from ragcli.store.catalog import FILE, Catalog, damaged, decode_path
from ragcli.store.folder import ENCODER, prepare
from ragcli.store.index import read_settings
from ragcli.store.lock import write_lock
from ragcli.store.merging import FIRST_LEVEL
from ragcli.store.openfile import OpenFile
from ragcli.store.origin import ORIGIN, origin
from ragcli.store.writer import Writer

if TYPE_CHECKING:
    from ragcli.indexing.analysis import Analysed, FileOutcome, FileTask

TASK_BYTES = 1 << 20
TASKS_A_WORKER = 8
"""Plain files are read this many bytes at a time, less where that would leave workers idle."""

INLINE_BYTES = 512 * 1024
"""So much plain text is read in this process: children would take longer to start."""

FILE_BYTES = 2000
"""What opening a file weighs beside reading it."""

_ROOM = 1 << 20
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
COMMIT_SECONDS = 10.0
FIRST_COMMIT_SECONDS = 2.0
"""Whoever waits for the first index can ask it that soon."""

COMMIT_BYTES = 48 * 1024 * 1024


class Run:
    """Holds the lock and the catalogue for one run: `with Run(…) as run: run.index(…)`."""

    def __init__(
        self,
        location: Path,
        paths: Sequence[Path],
        changes: Mapping[str, Any],
        *,
        workers: int | None,
        progress: Callable[[Progress], None],
        wait: float = LOCK_WAIT,
    ) -> None:
        self._location = location
        self._wait = wait
        self._paths = paths
        self._changes = changes
        self._workers = workers or len(_processors())
        self._progress = progress
        self._began = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._half: dict[str, OpenFile] = {}
        self._interrupted = Interrupt()

    def __enter__(self) -> Run:
        if not (self._paths or (self._location / FILE).exists()):
            raise IndexNotFound(f"there is no index in {self._location}", "ragcli index FOLDER")
        try:
            prepare(self._location)
            self._lock = write_lock(self._location, self._wait)
            self._lock.__enter__()
        except OSError as error:
            raise _unwritable(self._location, error) from error
        try:
            self._catalog = Catalog.open_write(self._location)
        except BaseException as error:
            self._lock.__exit__(None, None, None)
            if isinstance(error, sqlite3.OperationalError):
                raise _unwritable(self._location, error) from error
            if isinstance(error, IndexForeign) and _is_full(self._location):
                # SQLite finds its own new files broken where they cannot be written.
                full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                raise _unwritable(self._location, full) from error
            raise
        self._writer = Writer(self._location, self._catalog)
        self._interrupted.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._interrupted.__exit__()
        try:
            if error is not None:
                self._writer.abandon()
                with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
                    self._catalog.checkpoint()
            self._catalog.close()
        finally:
            self._lock.__exit__(None, None, None)
        if isinstance(error, sqlite3.OperationalError | OSError):
            raise _unwritable(self._location, error) from error
        if isinstance(error, sqlite3.DatabaseError):
            raise damaged(error, self._location) from error

    def index(
        self, *, lazy: bool, full: bool, verify: bool, retry: bool = True, brief: bool = False
    ) -> IndexReport:
        """Do all of it and tell what was done; `verify`: hold each segment to its checksums.

        `retry`: read what failed again. `brief`: somebody waits. Raises TooMuch where there is
        more to do than is soon done; merges small segments alone, and prepares no model.
        """
        catalog, writer = self._catalog, self._writer
        settings = replace(read_settings(catalog), **self._changes)
        check(settings)
        home = self._location / ENCODER
        # Not for a name that an index from somewhere else remembers: only for one given now.
        fetch = bool({"encoder", "query_model"} & {*self._changes})
        if not brief:
            prepare_encoder(settings, home, fetch=fetch)
        self._encoder = open_encoder(settings, home)
        check_fits(parse_chunking(settings.chunk), self._encoder or WordTokenizer())
        if self._encoder and self._catalog.get("encoder") != self._encoder.fingerprint:
            if brief:
                raise TooMuch
            self._encoder.encode_query("a")  # a model that does not run must not cost the vectors
        self._reading = reading_of(settings, home)
        root, starts = covered(catalog, self._location, self._paths, self._changes)
        # A copy may have been made while a run wrote, each file of it at another moment.
        moved = catalog.get(ORIGIN) != origin(self._location)
        if brief and moved:
            raise TooMuch
        self._heal(verify=verify or moved)
        plan = self._plan(root, starts, settings, full=full, retry=retry)
        if brief and not plan.is_brief:
            raise TooMuch
        self._remember(settings, root, starts)
        self._apply_known(plan)
        self._read(plan.read, settings, vectors=not lazy, reuse=not full)
        if not self._interrupted:
            self._progress(Progress("merge"))
            most = FIRST_LEVEL if brief else None
            while writer.merge_postings(most):
                pass
            if not lazy:
                self._encode()
            self._merge_vectors(most)
        self._settle()
        return self._report(root, settings)

    def _settle(self) -> None:
        """Commit, and leave nothing on disk that the commit does not name."""
        self._writer.commit()
        self._catalog.checkpoint()
        self._writer.sweep()

    def _merge_vectors(self, most: int | None = None) -> None:
        while self._writer.merge_vectors(most):
            pass

    def _plan(
        self, root: Path, starts: Sequence[str], settings: Settings, *, full: bool, retry: bool
    ) -> Plan:
        self._progress(Progress("scan"))
        before = _identity(root)
        plan = make_plan(
            walk(root, starts, rules_of(settings)),
            known_files(self._catalog),
            root,
            reading=self._reading,
            full=full,
            retry=retry,
            seen=lambda number: self._progress(Progress("scan", files_done=number)),
        )
        if _identity(root) != before:
            # What was not found may be there still: unmounted, or under another name.
            raise UsageError(f"{root} went away while it was looked at", "bring it back")
        return plan

    def _remember(self, settings: Settings, root: Path, starts: Sequence[str]) -> None:
        base = Path(os.path.abspath(self._location)).parent
        stored = os.path.relpath(root, base) if root.is_relative_to(base) else str(root)
        wanted = {
            "settings": asdict(settings),
            "root": stored,
            "starts": list(starts),
            ORIGIN: origin(self._location),
        }
        have = {key: self._catalog.get(key) for key in wanted}
        if _plain(wanted) != have:
            self._writer.remember(settings, stored, starts, __version__)
        fingerprint = self._encoder.fingerprint if self._encoder else None
        if self._catalog.get("encoder") != fingerprint:
            self._writer.drop_vectors()
            self._catalog.put("encoder", fingerprint)

    def _apply_known(self, plan: Plan) -> None:
        """What needs no reading: removals, moves, counts."""
        for file, _ in plan.removed:
            self._writer.remove_file(file)
        for file, state in plan.moved:
            self._writer.touch(file, state)
        self._skipped += plan.left_out
        self._counts.update(
            unchanged=plan.unchanged,
            moved=len(plan.moved),
            removed=len(plan.removed),
            skipped=plan.left_out.total(),
        )
        self._counts["failed"] += plan.failed
        for item in plan.unreadable:
            self._counts["failed"] += 1
            state = FileState(item.path, "failed", 0, 0, 0, 0, None, item.reason, self._reading)
            kind = "permission" if item.reason == "permission denied" else "unreadable"
            self._writer.put_file(state).finish([(kind, item.reason, None)])

    def _read(
        self, files: Sequence[FileTask], settings: Settings, *, vectors: bool, reuse: bool
    ) -> None:
        total = sum(file.size for file in files)
        done = files_done = waiting = 0
        committed = time.monotonic() + FIRST_COMMIT_SECONDS - COMMIT_SECONDS
        # Closed here, not when it is collected: an interrupt in a finalizer would be lost.
        with contextlib.closing(self._analysed(files, settings, vectors=vectors)) as stream:
            for analysed in stream:
                self._put(analysed, reuse=reuse)
                whole = [outcome for outcome in analysed.outcomes if not outcome.more]
                size = sum(outcome.size for outcome in whole)
                done, waiting = done + size, waiting + size
                files_done += len(whole)
                self._progress(
                    Progress(
                        "read",
                        files_done,
                        len(files),
                        done,
                        total,
                        len(self._writer.batch.chunks),
                        analysed.outcomes[-1].path,
                    )
                )
                due = waiting >= COMMIT_BYTES or time.monotonic() - committed >= COMMIT_SECONDS
                if due and not self._half:
                    self._writer.commit()
                    committed, waiting = time.monotonic(), 0
                if self._interrupted and not self._half:
                    break
        self._writer.commit()

    def _analysed(
        self, files: Sequence[FileTask], settings: Settings, *, vectors: bool
    ) -> Generator[Analysed, None, None]:
        """Outcomes in this process for a little plain text, else from children."""
        home = self._location / ENCODER
        plain = sum(file.size for file in files if is_plain(file.path))
        tasks = list(make_tasks(files, min(TASK_BYTES, plain // (TASKS_A_WORKER * self._workers))))
        small = sum(file.size for file in files) <= INLINE_BYTES
        if small and all(is_plain(file.path) for file in files):
            from ragcli.indexing.analysis import Analysis

            analysis = Analysis(settings, home, vectors=vectors)
            return (analysed for task in tasks for analysed in analysis.run(task))
        from ragcli.indexing.pool import Pool

        return Pool(settings, home, self._workers, vectors=vectors).run(tasks)

    def _put(self, analysed: Analysed, *, reuse: bool) -> None:
        rows: list[tuple[int, int] | None] = []
        for outcome in analysed.outcomes:
            state = self._state(outcome)
            if outcome.state == "same":
                self._touch(state)
            else:
                file = self._half.pop(outcome.path, None)
                if outcome.begins or file is None:
                    file = self._writer.put_file(state, reuse=reuse)
                for document in outcome.documents:
                    rows += file.add(document)
                if outcome.more:
                    self._half[outcome.path] = file
                    continue
                file.finish(outcome.problems)
            self._counts[_COUNTED[outcome.state]] += 1
            if outcome.state == "skipped":
                self._skipped[outcome.reason or "skipped"] += 1
        if analysed.postings is not None:
            self._writer.batch.add(rows, analysed.postings, analysed.encoded)

    def _touch(self, state: FileState) -> None:
        row = self._catalog.connection.execute(
            "SELECT id FROM files WHERE path = ?", (os.fsencode(state.path),)
        ).fetchone()
        self._writer.touch(row[0], state)

    def _state(self, outcome: FileOutcome) -> FileState:
        return FileState(
            outcome.path, outcome.state, outcome.size, outcome.mtime_ns, outcome.ctime_ns,
            outcome.read_ns, outcome.digest, outcome.reason, self._reading,
        )  # fmt: skip

    def _heal(self, *, verify: bool) -> None:
        """Make lost or damaged segments again from the text in the catalogue."""
        from ragcli.indexing.rebuild import rebuild_lost

        rebuild_lost(self._writer, verify=verify)
        self._writer.commit()

    def _encode(self) -> None:
        """Vectors for the chunks that have none yet, visible to readers as they come."""
        from ragcli.indexing.rebuild import encode_pending

        encoder = self._encoder
        if encoder is None:
            return
        chunks = self._catalog.count("chunks")
        if not encoder.inline and self._writer.embedded() < chunks:
            self._settle()
            self._progress(Progress("searchable", chunks=chunks))
        committed = time.monotonic()
        for done, total in encode_pending(self._writer, encoder):
            self._progress(Progress("embed", chunks=done, chunks_total=total))
            due = time.monotonic() - committed >= COMMIT_SECONDS
            if due or self._writer.batch.vector_bytes >= COMMIT_BYTES:
                self._writer.commit()
                self._merge_vectors()
                committed = time.monotonic()
            if self._interrupted:
                break
        self._writer.commit()

    def _report(self, root: Path, settings: Settings) -> IndexReport:
        catalog = self._catalog
        ledger = catalog.connection.execute(
            "SELECT f.path, p.kind, p.message, p.page FROM problems p JOIN files f"
            " ON f.id = p.file ORDER BY f.path, p.rowid"
        )
        return IndexReport(
            root=str(root),
            index=str(self._location),
            counts=Counts(**{key: self._counts[key] for key in Counts.__dataclass_fields__}),
            skipped=dict(sorted(self._skipped.items())),
            chunks=catalog.count("chunks"),
            embedded=self._writer.embedded(),
            documents=catalog.count("documents"),
            problems=tuple(
                Problem(decode_path(path), kind, message, page)
                for path, kind, message, page in ledger
            ),
            seconds=time.monotonic() - self._began,
            encoder=settings.encoder,
            chunking=settings.chunk,
            interrupted=bool(self._interrupted),
        )


_COUNTED = {"indexed": "indexed", "same": "unchanged", "skipped": "skipped", "failed": "failed"}


def make_tasks(files: Sequence[FileTask], most: int) -> Iterable[list[FileTask]]:
    """Plain files together up to `most` bytes, other kinds singly and first: they take longest."""
    plain: list[FileTask] = []
    for file in files:
        if is_plain(file.path):
            plain.append(file)
        else:
            yield [file]
    task: list[FileTask] = []
    size = 0
    for file in plain:
        if task and size + file.size > most:
            yield task
            task, size = [], 0
        task.append(file)
        size += file.size + FILE_BYTES
    if task:
        yield task


def _plain(values: Mapping[str, object]) -> Mapping[str, object]:
    """As JSON gives it back: tuples become lists."""
    import json

    plain: Mapping[str, object] = json.loads(json.dumps(values))
    return plain


def _processors() -> Sequence[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return range(os.cpu_count() or 1)


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_full(folder: Path) -> bool:
    return shutil.disk_usage(folder).free < _ROOM


def _unwritable(location: Path, error: Exception) -> IndexUnavailable:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    full = getattr(error, "errno", None) in _FULL or "full" in str(error)
    return IndexUnavailable(
        f"{location} cannot be written: {reason}",
        "free some space, or name another place: --index DIR"
        if full
        else "see that you may write there, or name another place: --index DIR",
    )
