"""The write path: make the index true again.

scan → plan → read (in child processes) → put and commit in batches → encode what has no
vectors → merge → sweep. Owns the order and the promises: what is committed stays, a file is
wholly its old self or its new self, every file seen is counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.errors import IndexDamaged, UsageError
from ragcli.records import IndexReport, Progress

if TYPE_CHECKING:
    from ragcli.records import Settings

__all__ = ["index_folder"]

MOST_DIMENSIONS = 65_536


def index_folder(
    location: Path,
    paths: Sequence[Path] = (),
    changes: Mapping[str, object] | None = None,
    *,
    lazy: bool = False,
    full: bool = False,
    retry: bool = True,
    dry_run: bool = False,
    workers: int | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> IndexReport:
    """Bring the index in the `.rag` folder `location` in step with its sources.

    `paths`: folders and files to index from now on; () for those remembered. `changes`: the
    settings to change; the rest are remembered. `lazy`: no vectors in this run. `full`: read
    every file again. `retry`: read again what failed, though it has not changed since.
    `dry_run`: compare only, write nothing. `workers`: child processes.

    An interrupt (SIGINT; SIGTERM and SIGHUP where a handler raises KeyboardInterrupt for them)
    ends the run after the file at hand; what is read is committed and the report says
    `interrupted`.

    Raises UsageError (a path or setting that means nothing), IndexForeign, IndexNotFound,
    IndexBusy, IndexUnavailable (disk full, read-only).
    """
    from ragcli.indexing.held import held
    from ragcli.indexing.interrupt import Interrupt
    from ragcli.indexing.run import Run
    from ragcli.indexing.scope import dry

    for path in paths:
        _require(path)
    changes = _settled(changes or {})
    if dry_run:
        return dry(location, paths, changes, full=full)
    for verify in (full, True):
        try:
            with held(location, new=bool(paths)) as writer, Interrupt() as interrupted:
                run = Run(
                    writer,
                    interrupted,
                    paths=paths,
                    changes=changes,
                    workers=workers,
                    progress=progress,
                )
                return run.index(lazy=lazy, full=full, verify=verify, retry=retry)
        except IndexDamaged:
            if verify:
                raise
    raise AssertionError("unreachable")


def _require(path: Path) -> None:
    """Raises UsageError for a path that is not there, or that one may not look at."""
    try:
        path.stat()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        raise UsageError(
            f"{path} does not exist"
            if missing
            else f"{path} cannot be looked at: {error.strerror}",
            "name a folder or a file to index",
        ) from error


def _settled(changes: Mapping[str, object]) -> Mapping[str, object]:
    """`changes` as they are remembered: models in folders by their absolute place.

    What belongs to `st:` is forgotten with it, and by an empty text, as the languages of OCR are.
    """
    from ragcli.store.index import is_folder

    settled = dict(changes)
    encoder = settled.get("encoder")
    if isinstance(encoder, str):
        kind, colon, model = encoder.partition(":")
        if model and is_folder(model):
            settled["encoder"] = kind + colon + str(Path(model).resolve())
        if kind != "st":
            settled = {"query_model": None, "device": None, **settled}
    question = settled.get("query_model")
    if isinstance(question, str) and question and is_folder(question):
        settled["query_model"] = str(Path(question).resolve())
    return {
        name: None if name in ("query_model", "device", "ocr") and value == "" else value
        for name, value in settled.items()
    }


def check(settings: Settings, changes: Mapping[str, object]) -> None:
    """Raises UsageError for settings that cannot be used, before anything is written.

    Raises ModelUnavailable for OCR that `changes` ask for where tesseract is not installed. Where
    it was lost since, pages that need it say so in the ledger, and all else is indexed.
    """
    from ragcli.corpus.chunking import parse_chunking
    from ragcli.encoders import check_encoder

    if settings.dim > MOST_DIMENSIONS:
        raise UsageError(f"--dim {settings.dim} is more than {MOST_DIMENSIONS}", "use --dim 1024")
    parse_chunking(settings.chunk)
    check_encoder(settings)
    if settings.ocr is not None and "ocr" in changes:
        from ragcli.corpus.readers.pdf_ocr import check_ocr

        check_ocr(settings.ocr)
