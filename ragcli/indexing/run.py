"""One run of the write path over an index that is held, from the settings to the sweep."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcli import __version__
from ragcli.corpus.chunking import check_fits, parse_chunking
from ragcli.corpus.walk import TOO_LARGE, walk
from ragcli.encoders import Encoder, WordTokenizer, open_encoder, prepare_encoder
from ragcli.errors import UsageError
from ragcli.indexing import check
from ragcli.indexing.brief import plan_little
from ragcli.indexing.comparing import Comparison, compare
from ragcli.indexing.interrupt import Interrupt
from ragcli.indexing.known import known_files, rules_of
from ragcli.indexing.plan import Plan, make_plan, problem_of
from ragcli.indexing.rebuild import encode_pending, rebuild_lost
from ragcli.indexing.scope import covered, make_report, reading_of
from ragcli.indexing.tasks import analyse, count_processors
from ragcli.records import IndexReport, Problem, Progress, Settings
from ragcli.store.batch import FileState
from ragcli.store.catalog import decode_path
from ragcli.store.folder import ENCODER
from ragcli.store.index import read_settings
from ragcli.store.merging import FIRST_LEVEL
from ragcli.store.openfile import OpenFile
from ragcli.store.origin import ORIGIN, origin
from ragcli.store.writer import Writer

if TYPE_CHECKING:
    from ragcli.indexing.analysis import Analysed, FileOutcome, FileTask

COMMIT_SECONDS = 10.0
FIRST_COMMIT_SECONDS = 2.0
"""Whoever waits for the first index can ask it that soon."""

COMMIT_BYTES = 48 * 1024 * 1024
"""Of files read, or of vectors made, after which a batch is committed."""

_SCANNED = 1000
"""Files after which the scan tells how far it is."""


class _Asked(Exception):
    """An end was asked for before any file was read."""


class Run:
    """A run over the index that `writer` writes; `interrupted` is whether its end is asked for."""

    def __init__(
        self,
        writer: Writer,
        interrupted: Interrupt,
        *,
        paths: Sequence[Path] = (),
        changes: Mapping[str, Any] | None = None,
        workers: int | None = None,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._writer = writer
        self._catalog = writer.catalog
        self._location = writer.folder
        self._home = writer.folder / ENCODER
        self._interrupted = interrupted
        self._paths = paths
        self._changes = changes or {}
        self._workers = workers or count_processors()
        self._progress = progress
        self._began = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._half: dict[str, OpenFile] = {}

    def index(self, *, lazy: bool, full: bool, verify: bool, retry: bool = True) -> IndexReport:
        """Do all of it and tell what was done; `verify`: hold each segment to its checksums.

        `retry`: read what failed again.
        """
        settings = replace(read_settings(self._catalog), **self._changes)
        check(settings, self._changes)
        # Not for a name that an index from somewhere else remembers: only for one given now.
        fetch = bool({"encoder", "query_model"} & {*self._changes})
        prepare_encoder(settings, self._home, fetch=fetch)
        self._encoder = open_encoder(settings, self._home)
        check_fits(parse_chunking(settings.chunk), self._encoder or WordTokenizer())
        if self._encoder and not self._has_made_vectors(self._encoder):
            self._encoder.encode_query("a")  # a model that does not run must not cost the vectors
        self._reading = reading_of(settings, self._home)
        root, starts = covered(self._catalog, self._location, self._paths, self._changes)
        try:
            # A copy may have been made while a run wrote, each file of it at another moment.
            self._heal(verify=verify or not self._is_made_here())
            plan = self._plan(root, starts, settings, full=full, retry=retry)
        except _Asked:
            self._writer.abandon()
            if self._catalog.get("settings") is None:  # the next run needs no path any more
                self._remember(settings, root, starts)
                self._settle()
            return self._report(root, settings)
        self._remember(settings, root, starts)
        self._apply_known(plan)
        self._read(plan.read, settings, vectors=not lazy, reuse=not full)
        if not self._interrupted:
            self._progress(Progress("merge"))
            self._merge_postings()
            if not lazy:
                self._encode()
            self._merge_vectors()
        self._settle()
        return self._report(root, settings)

    def take_little(self, *, lazy: bool) -> Comparison | None:
        """Take in what is soon done, while somebody waits, and return what is left of the rest.

        None where it is not for a question to do (the encoder is another one, or the index was
        not made here) and where its end is asked for. Nothing is healed, no model prepared, small
        segments alone are merged.
        """
        settings = read_settings(self._catalog)
        self._encoder = open_encoder(settings, self._home)
        if self._encoder and not self._has_made_vectors(self._encoder):
            return None
        if not self._is_made_here():
            return None
        self._reading = reading_of(settings, self._home)
        root, starts = covered(self._catalog, self._location, (), {})
        items = walk(root, starts, rules_of(settings))
        try:
            with self._same(root):
                found = compare(items, known_files(self._catalog), seen=self._seen)
                plan, left = plan_little(found, root, self._catalog)
        except _Asked:
            return None
        self._apply_known(plan)
        self._read(plan.read, settings, vectors=not lazy, reuse=True)
        self._merge_postings(FIRST_LEVEL)
        self._merge_vectors(FIRST_LEVEL)
        self._settle()
        return left

    def _has_made_vectors(self, encoder: Encoder) -> bool:
        return self._catalog.get("encoder") == encoder.fingerprint

    def _is_made_here(self) -> bool:
        return self._catalog.get(ORIGIN) == origin(self._location)

    def _settle(self) -> None:
        """Commit, and leave nothing on disk that the commit does not name."""
        self._writer.commit()
        self._catalog.checkpoint()
        self._writer.sweep()

    def _merge_postings(self, most: int | None = None) -> None:
        while not self._interrupted and self._writer.merge_postings(most):
            pass

    def _merge_vectors(self, most: int | None = None) -> None:
        while not self._interrupted and self._writer.merge_vectors(most):
            pass

    def _go_on(self) -> None:
        """Raises _Asked where an end is asked for."""
        if self._interrupted:
            raise _Asked

    def _seen(self, number: int) -> None:
        self._go_on()
        if number % _SCANNED == 0:
            self._progress(Progress("scan", files_done=number))

    def _plan(
        self, root: Path, starts: Sequence[str], settings: Settings, *, full: bool, retry: bool
    ) -> Plan:
        self._progress(Progress("scan"))
        items = walk(root, starts, rules_of(settings))
        with self._same(root):
            return make_plan(
                items,
                known_files(self._catalog),
                root,
                reading=self._reading.of,
                full=full,
                retry=retry,
                seen=self._seen,
            )

    @contextlib.contextmanager
    def _same(self, root: Path) -> Iterator[None]:
        """Raises UsageError where the root is another folder, or none, after the walk."""
        before = _identity(root)
        yield
        if _identity(root) != before:
            # What was not found may be there still: unmounted, or under another name.
            raise UsageError(f"{root} went away while it was looked at", "bring it back")

    def _remember(self, settings: Settings, root: Path, starts: Sequence[str]) -> None:
        base = Path(os.path.abspath(self._location)).parent
        stored = os.path.relpath(root, base) if root.is_relative_to(base) else str(root)
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
        self._counts += plan.counts
        for item in plan.unreadable:
            reading = self._reading.of(item.path)
            state = FileState(item.path, "failed", 0, 0, 0, 0, None, item.reason, reading)
            told = problem_of(item)
            self._writer.put_file(state).finish([(told.kind, told.message, None)])
        for path, reason in plan.named:
            reading = self._reading.of(path)
            state = FileState(path, "skipped", 0, 0, 0, 0, None, reason, reading)
            large = [("too_large", "larger than --max-file-size", None)]
            self._writer.put_file(state).finish(large if reason == TOO_LARGE else [])

    def _read(
        self, files: Sequence[FileTask], settings: Settings, *, vectors: bool, reuse: bool
    ) -> None:
        total = sum(file.size for file in files)
        done = files_done = waiting = 0
        committed = time.monotonic() + FIRST_COMMIT_SECONDS - COMMIT_SECONDS
        analysed_files = analyse(
            files, settings, self._home, workers=self._workers, vectors=vectors
        )
        # Closed here, not when it is collected: an interrupt in a finalizer would be lost.
        with contextlib.closing(analysed_files) as stream:
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
            outcome.read_ns, outcome.digest, outcome.reason, self._reading.of(outcome.path),
        )  # fmt: skip

    def _heal(self, *, verify: bool) -> None:
        """Make lost or damaged segments again from the text in the catalogue."""
        self._go_on()
        rebuild_lost(self._writer, verify=verify, go_on=self._go_on)
        self._writer.commit()

    def _encode(self) -> None:
        """Vectors for the chunks that have none yet, visible to readers as they come."""
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
        report = make_report(
            self._location,
            root,
            settings,
            counts=self._counts,
            skipped=self._skipped,
            problems=[
                Problem(decode_path(path), kind, message, page)
                for path, kind, message, page in ledger
            ],
            seconds=time.monotonic() - self._began,
        )
        return replace(
            report,
            chunks=catalog.count("chunks"),
            embedded=self._writer.embedded(),
            documents=catalog.count("documents"),
            interrupted=bool(self._interrupted),
        )


_COUNTED = {"indexed": "indexed", "same": "unchanged", "skipped": "skipped", "failed": "failed"}


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
