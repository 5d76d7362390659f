"""What an index covers: its root and starts, the rules of its walk, and a run that only looks."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragcli.corpus.readers import READERS
from ragcli.corpus.suffixes import suffix_by_name
from ragcli.corpus.walk import walk
from ragcli.encoders import open_tokenizer
from ragcli.errors import IndexNotFound, ModelUnavailable, UsageError
from ragcli.indexing import check
from ragcli.indexing.known import known_files, rules_of
from ragcli.indexing.plan import make_plan, problem_of
from ragcli.records import Counts, IndexReport, Problem, Settings
from ragcli.store.catalog import Catalog
from ragcli.store.folder import ENCODER
from ragcli.store.index import Index, is_begun, is_folder, read_settings
from ragcli.store.origin import ORIGIN, Origin, follows, origin

READING = 2
"""Raised by one whenever readers or chunking give other text: every file is then read again."""


def scope(paths: Sequence[Path]) -> tuple[Path, list[str]]:
    """The root (the folder named, or the common one) and the starts below it."""
    absolute = [Path(os.path.abspath(path)) for path in paths]
    if len(absolute) == 1 and is_folder(absolute[0]):
        return absolute[0], [""]
    folders = [path if is_folder(path) else path.parent for path in absolute]
    root = Path(os.path.commonpath(folders))
    return root, [Path(os.path.relpath(path, root)).as_posix() for path in absolute]


def remembered(
    catalog: Catalog, location: Path, *, follow: bool | None = None
) -> tuple[Path, list[str]]:
    """The root and starts that the catalogue has; raises IndexNotFound where it has none.

    `follow`: what is said now of links that lead out, None for what is remembered. Raises
    UsageError for a root that is not there, and for what an index that was not made here is not
    believed about.
    """
    believed = read_settings(catalog).follow if follow is None else False
    found = Origin.of(catalog, follow=believed)
    if found is None:
        raise IndexNotFound(f"the index in {location} was never begun", "ragcli index FOLDER")
    refusal = found.refusal(location)
    if refusal:
        raise refusal
    if not is_folder(found.root):
        raise UsageError(
            f"the indexed folder {found.root} is not there",
            "mount it again, or index another folder: ragcli index FOLDER",
        )
    return found.root, list(found.starts)


def covered(
    catalog: Catalog, location: Path, paths: Sequence[Path], changes: Mapping[str, Any]
) -> tuple[Path, list[str]]:
    """The root and starts of a run: of `paths`, or those remembered. Raises as `remembered`."""
    if not paths:
        return remembered(catalog, location, follow=changes.get("follow"))
    root, starts = scope(paths)
    follow = read_settings(catalog).follow and "follow" not in changes
    if follow and catalog.get(ORIGIN) != origin(location):
        raise follows(location, root)
    return root, starts


def dry(
    location: Path, paths: Sequence[Path], changes: Mapping[str, Any], *, full: bool
) -> IndexReport:
    """What a run would do; writes nothing, not even the folder. Raises as a run does."""
    began = time.monotonic()
    settings, known = Settings(), {}
    if is_begun(location):
        with Index.open(location) as index, index.reading():
            known = known_files(index.catalog)
            settings = replace(read_settings(index.catalog), **changes)
            root, starts = covered(index.catalog, location, paths, changes)
    elif paths:
        settings = replace(settings, **changes)
        root, starts = scope(paths)
    else:
        raise IndexNotFound("no index here", "ragcli index .")
    check(settings, changes)
    items = walk(root, starts, rules_of(settings))
    try:
        reading = reading_of(settings, location / ENCODER)
    except ModelUnavailable:  # of `st:`, which a run would load first: then all is read
        reading = Reading("", None)
    plan = make_plan(items, known, root, reading=reading.of, full=full, seen=lambda _: None)
    report = make_report(
        location,
        root,
        settings,
        counts=plan.counts + Counter(indexed=len(plan.read)),
        skipped=plan.left_out,
        problems=[problem_of(item) for item in plan.unreadable],
        seconds=time.monotonic() - began,
    )
    return replace(report, dry_run=True)


def make_report(
    location: Path,
    root: Path,
    settings: Settings,
    *,
    counts: Counter[str],
    skipped: Counter[str],
    problems: Sequence[Problem],
    seconds: float,
) -> IndexReport:
    """The report of what was done with files, of an index that holds nothing; `counts` are by
    the names of `Counts`, `skipped` by reason.
    """
    return IndexReport(
        root=str(root),
        index=str(location),
        counts=Counts(**{key: counts[key] for key in Counts.__dataclass_fields__}),
        skipped=dict(sorted(skipped.items())),
        chunks=0,
        embedded=0,
        documents=0,
        problems=tuple(problems),
        seconds=seconds,
        encoder=settings.encoder,
        chunking=settings.chunk,
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """What shapes the chunks of a file whose content stays the same, as a short text per file.

    `common` shapes those of every kind, the languages of `ocr` those of PDFs alone.
    """

    common: str
    ocr: str | None

    def of(self, path: str) -> str:
        """The text for the file at `path`."""
        suffix = suffix_by_name(path)
        # What the name does not tell may be a PDF.
        may_be_pdf = suffix == ".pdf" or suffix not in READERS
        return f"{self.common} {self.ocr}" if self.ocr and may_be_pdf else self.common


def reading_of(settings: Settings, home: Path) -> Reading:
    """Everything that shapes the chunks of a file whose content stays the same."""
    tokenizer = open_tokenizer(settings, home)
    # Asked of the class: a model would load its vocabulary to tell the number.
    limited = getattr(type(tokenizer), "window", None) is not None
    counted = settings.chunk.startswith("tokens") or limited
    name = getattr(tokenizer, "fingerprint", "words") if counted else "any"
    return Reading(f"{READING} {settings.chunk} {name}", settings.ocr)
