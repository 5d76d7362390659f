"""What an index covers: its root and starts, the rules of its walk, and a run that only looks."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragcli.corpus.walk import WalkRules, walk
from ragcli.encoders import open_tokenizer
from ragcli.errors import IndexNotFound, ModelUnavailable, UsageError
from ragcli.indexing import check
from ragcli.indexing.plan import known_files, make_plan
from ragcli.records import Counts, IndexReport, Problem, Settings
from ragcli.store.catalog import FILE, Catalog
from ragcli.store.folder import ENCODER
from ragcli.store.index import read_settings

READING = 1
"""Raised by one whenever readers or chunking give other text: every file is then read again."""


def scope(paths: Sequence[Path]) -> tuple[Path, list[str]]:
    """The root (the folder named, or the common one) and the starts below it."""
    absolute = [Path(os.path.abspath(path)) for path in paths]
    if len(absolute) == 1 and absolute[0].is_dir():
        return absolute[0], [""]
    folders = [path if path.is_dir() else path.parent for path in absolute]
    root = Path(os.path.commonpath(folders))
    return root, [Path(os.path.relpath(path, root)).as_posix() for path in absolute]


def remembered(catalog: Catalog, location: Path) -> tuple[Path, list[str]]:
    """The root and starts that the catalogue has; raises IndexNotFound where it has none."""
    root, starts = catalog.get("root"), catalog.get("starts", [""])
    if not isinstance(root, str) or not isinstance(starts, list):
        raise IndexNotFound(f"the index in {location} was never begun", "ragcli index FOLDER")
    found = Path(os.path.normpath(location.absolute().parent / root))
    if not found.is_dir():
        raise UsageError(
            f"the indexed folder {found} is not there",
            "mount it again, or index another folder: ragcli index FOLDER",
        )
    return found, [str(start) for start in starts]


def rules_of(settings: Settings) -> WalkRules:
    """What the walk needs of the settings."""
    return WalkRules(
        glob=settings.glob,
        exclude=settings.exclude,
        hidden=settings.hidden,
        ignore=settings.ignore,
        follow=settings.follow,
        max_file_size=settings.max_file_size,
    )


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
            root, starts = scope(paths) if paths else remembered(catalog, location)
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
    return f"{READING} {settings.chunk} {name}"
