"""One file to chunks, postings and vectors: what a worker does, in whichever process.

Owns the reading of bytes from disk and the order reader → chunking → terms → encoder.
Writes nothing and knows no catalogue.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.corpus.chunking import chunk, parse_chunking
from ragcli.corpus.readers import iter_documents
from ragcli.corpus.source import Source, without_surrogates
from ragcli.encoders import Encoded, open_encoder, open_tokenizer
from ragcli.errors import UnreadableFile
from ragcli.records import Chunk, Document, Settings
from ragcli.store.batch import NewDocument
from ragcli.store.languages import DEFAULT, detect
from ragcli.store.terms import Analyzer

if TYPE_CHECKING:
    from ragcli.store.lexical import Postings

_READ_TRIES = 3
SLICE = 2_000_000
"""Characters of text that are analysed, sent and put at once, so that memory stays bounded."""
SAMPLE = 4
"""Chunks of a document whose words and pieces are counted."""
MESSAGE = 300
"""The most characters of a line in the ledger."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FileTask:
    """A file to read: `digest` is what its content was, None where it is new or forced.

    Size and times are those that the scan saw.
    """

    path: str
    absolute: str
    size: int
    digest: bytes | None = None
    mtime_ns: int = 0
    ctime_ns: int = 0


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of a file. `state`: indexed, same, skipped or failed.

    `documents` carry no text of their own, only their chunks'. `problems` are
    (kind, message, page label). The stat is that of the moment it was read. A large file comes
    in several outcomes, all but the first without `begins` and all but the last with `more`; a
    document cut in two comes in both.
    """

    path: str
    state: str
    size: int
    mtime_ns: int
    ctime_ns: int
    read_ns: int
    digest: bytes | None = None
    reason: str | None = None
    documents: tuple[NewDocument, ...] = ()
    problems: tuple[tuple[str, str, str | None], ...] = ()
    begins: bool = True
    more: bool = False


@dataclass(frozen=True, slots=True)
class Analysed:
    """The outcomes of some files, and the postings and vectors of all their chunks in order."""

    outcomes: tuple[FileOutcome, ...]
    postings: Postings | None
    encoded: Encoded | None


class Analysis:
    """Turns files into outcomes under fixed settings; one per process."""

    def __init__(
        self,
        settings: Settings,
        home: Path,
        *,
        vectors: bool,
        more_time: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`home` is the encoder's; `vectors`: also encode, where that is cheap enough.

        `more_time` is called with the seconds that a file needs from now on.
        """
        self._chunking = parse_chunking(settings.chunk)
        self._tokenizer = open_tokenizer(settings, home)
        encoder = open_encoder(settings, home)
        self._encoder = encoder if vectors and encoder and encoder.inline else None
        self._pieces: Callable[[str], tuple[int, int]] | None = getattr(
            self._tokenizer, "pieces", None
        )
        self._limit = settings.max_file_size
        self._ocr = settings.ocr
        self._more_time = more_time
        self._analyzer = Analyzer()

    def run(self, files: Sequence[FileTask]) -> Iterator[Analysed]:
        """Read and analyse `files`, a few megabytes of text at a time."""
        waiting: list[FileOutcome] = []
        size = 0
        for task in files:
            for outcome in self._file(task):
                waiting.append(outcome)
                size += sum(len(c.text) for d in outcome.documents for c in d.chunks)
                if size >= SLICE:
                    yield self._analysed(tuple(waiting))
                    waiting, size = [], 0
        if waiting:
            yield self._analysed(tuple(waiting))

    def _analysed(self, outcomes: tuple[FileOutcome, ...]) -> Analysed:
        texts: list[str] = []
        languages: list[str] = []
        for outcome in outcomes:
            for document in outcome.documents:
                texts += [piece.text for piece in document.chunks]
                languages += [document.language or DEFAULT] * len(document.chunks)
        if not texts:
            return Analysed(outcomes, None, None)
        encoded = self._encoder.encode_documents(texts) if self._encoder else None
        return Analysed(outcomes, self._analyzer.postings(texts, languages), encoded)

    def _file(self, task: FileTask) -> Iterator[FileOutcome]:
        facts: tuple[int, int, int] = (task.size, task.mtime_ns, task.ctime_ns)
        now = time.time_ns()
        digest = None
        try:
            data, facts, now = read_bytes(task.absolute, self._limit)
            digest = blake2b(data, digest_size=16).digest()
            if digest == task.digest:
                yield FileOutcome(task.path, "same", *facts, now, digest)
                return
            source = Source(task.path, data, ocr=self._ocr, more_time=self._more_time)
            problems: list[tuple[str, str, str | None]] = []
            whole = FileOutcome(task.path, "indexed", *facts, now, digest)
            begins = True
            for documents in self._slices(source, problems):
                yield replace(whole, documents=documents, begins=begins, more=True)
                begins = False
            ledger = tuple(dict.fromkeys(map(_line, [*source.problems, *problems])))
            yield replace(whole, problems=ledger, begins=begins)
        except UnreadableFile as error:
            state = "skipped" if error.skip else "failed"
            told = _line((error.kind, error.message, None))
            ledger = () if error.skip else (told,)
            reason = error.kind if error.skip else told[1]
            yield FileOutcome(task.path, state, *facts, now, digest, reason, problems=ledger)

    def _slices(
        self, source: Source, problems: list[tuple[str, str, str | None]]
    ) -> Iterator[tuple[NewDocument, ...]]:
        """The documents of a file, cut after every SLICE characters; fills `problems`."""
        found: list[NewDocument] = []
        empty: list[str] = []
        size = 0
        for document in iter_documents(source):
            clean = _without_surrogates(document)
            problems += clean.problems
            shell = replace(clean, text="", blocks=(), pages=(), line_anchors=(), problems=())
            language = detect(clean.text)
            chunks: list[Chunk] = []
            counts = (0, 0)
            for number, piece in enumerate(chunk(clean, self._chunking, self._tokenizer)):
                chunks.append(piece)
                size += len(piece.text)
                if self._pieces and number < SAMPLE:
                    words, pieces = self._pieces(piece.text)
                    counts = counts[0] + words, counts[1] + pieces
                if size >= SLICE:
                    yield (*found, NewDocument(shell, language, chunks, *counts))
                    found, chunks, counts, size = [], [], (0, 0), 0
            found.append(NewDocument(shell, language, chunks, *counts))
            if clean.record is not None and not clean.text.strip():
                empty.append(clean.record)
        if empty:
            problems.append(
                ("empty", f"{len(empty)} without text among the records, first {empty[0]}", None)
            )
        yield tuple(found)


def read_bytes(path: str, limit: int) -> tuple[bytes, tuple[int, int, int], int]:
    """The content of a regular file, its (size, mtime_ns, ctime_ns), and the clock before.

    Never waits on a FIFO or device. Raises UnreadableFile.
    """
    try:
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
    except FileNotFoundError as error:
        raise UnreadableFile("vanished", "gone before it could be read") from error
    except PermissionError as error:
        raise UnreadableFile("permission", "permission denied") from error
    except OSError as error:
        raise UnreadableFile("unreadable", f"cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UnreadableFile("special", "not a regular file", skip=True)
    with os.fdopen(handle, "rb") as file:
        for _ in range(_READ_TRIES):
            now = time.time_ns()
            before = os.fstat(handle)
            if before.st_size > limit:
                raise UnreadableFile("too_large", "too large", skip=True)
            try:
                file.seek(0)
                data = file.read(before.st_size + 1)
            except OSError as error:
                raise UnreadableFile("unreadable", f"cannot be read: {error.strerror}") from error
            after = os.fstat(handle)
            same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
            if same and len(data) == after.st_size:
                return data, (after.st_size, after.st_mtime_ns, after.st_ctime_ns), now
    raise UnreadableFile("changing", "changed while it was read")


def _line(problem: tuple[str, str, str | None]) -> tuple[str, str, str | None]:
    """A problem as the ledger holds it: on one line, no longer than a person reads, storable.

    Parsers put what the file holds into their messages.
    """
    kind, message, page = problem
    flat = " ".join(without_surrogates(message).split())
    short = flat if len(flat) <= MESSAGE else f"{flat[: MESSAGE - 1]}…"
    return kind, short, None if page is None else without_surrogates(page)


def _without_surrogates(document: Document) -> Document:
    """Half a surrogate pair (JSON can hold one) is no character; U+FFFD stands in its place."""
    if not any(
        _SURROGATE.search(text)
        for text in (document.text, document.title or "", document.record or "")
    ):
        return document

    def clean(text: str) -> str:
        return _SURROGATE.sub("\ufffd", text)

    return replace(
        document,
        text=clean(document.text),
        title=document.title and clean(document.title),
        record=document.record and clean(document.record),
        blocks=tuple(
            replace(block, headings=tuple(map(clean, block.headings))) for block in document.blocks
        ),
    )
