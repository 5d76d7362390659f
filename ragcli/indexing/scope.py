"""What an index covers: its root and starts, the rules of its walk, and a run that only looks."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragcli.corpus.readers.pdf_pdfium import is_installed as pdfium_is_installed
from ragcli.corpus.walk import walk
from ragcli.encoders import open_tokenizer
from ragcli.errors import IndexNotFound, ModelUnavailable, UsageError
from ragcli.indexing import check
from ragcli.indexing.known import known_files, rules_of
from ragcli.indexing.plan import make_plan
from ragcli.records import Counts, IndexReport, Problem, Settings
from ragcli.store.catalog import FILE, Catalog
from ragcli.store.folder import ENCODER
from ragcli.store.index import read_settings
from ragcli.store.origin import ORIGIN, Origin, follows, origin

READING = 2
"""Raised by one whenever readers or chunking give other text: every file is then read again."""


def scope(paths: Sequence[Path]) -> tuple[Path, list[str]]:
    """The root (the folder named, or the common one) and the starts below it."""
    absolute = [Path(os.path.abspath(path)) for path in paths]
    if len(absolute) == 1 and absolute[0].is_dir():
        return absolute[0], [""]
    folders = [path if path.is_dir() else path.parent for path in absolute]
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
    if not found.root.is_dir():
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
    """What a run would do; writes nothing, not even the folder."""
    began = time.monotonic()
    settings, known = Settings(), {}
    if (location / FILE).exists():
        catalog = Catalog.open_read(location)
        try:
            known = known_files(catalog)
            settings = replace(read_settings(catalog), **changes)
            root, starts = covered(catalog, location, paths, changes)
        finally:
            catalog.close()
    elif paths:
        settings = replace(settings, **changes)
        root, starts = scope(paths)
    else:
        raise IndexNotFound("no index here", "ragcli index .")
    check(settings)
    items = walk(root, starts, rules_of(settings))
    try:
        reading = reading_of(settings, location / ENCODER)
    except ModelUnavailable:  # of `st:`, which a run would load first: then all is read
        reading = ""
    plan = make_plan(items, known, root, reading=reading, full=full, seen=lambda _: None)
    return IndexReport(
        root=str(root),
        index=str(location),
        counts=Counts(
            indexed=len(plan.read),
            unchanged=plan.unchanged,
            moved=len(plan.moved),
            removed=len(plan.removed),
            skipped=plan.left_out.total(),
            failed=len(plan.unreadable),
        ),
        skipped=dict(plan.left_out),
        chunks=0,
        embedded=0,
        documents=0,
        problems=tuple(Problem(i.path, "permission", i.reason) for i in plan.unreadable),
        seconds=time.monotonic() - began,
        encoder=settings.encoder,
        chunking=settings.chunk,
        dry_run=True,
    )


def reading_of(settings: Settings, home: Path) -> str:
    """Everything that shapes the chunks of a file whose content stays the same."""
    tokenizer = open_tokenizer(settings, home)
    # Asked of the class: a model would load its vocabulary to tell the number.
    limited = getattr(type(tokenizer), "window", None) is not None
    counted = settings.chunk.startswith("tokens") or limited
    name = getattr(tokenizer, "fingerprint", "words") if counted else "any"
    pdf = "pdfium" if pdfium_is_installed() else "pypdf"
    return f"{READING} {settings.chunk} {name} {pdf} {settings.ocr or ''}".rstrip()
