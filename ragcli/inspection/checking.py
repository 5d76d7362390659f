"""`inspect --check`: everything on disk against everything else, and what to do about it.

The kinds of findings:

    catalogue   SQLite finds its file broken, or settings in it cannot be read
    reference   a row names what is not there, or what it does not belong to
    counts      sums and numbers of rows that do not agree
    offsets     a chunk whose place does not fit its text
    segment     a segment of the catalogue that is not there, or not the one written
    checksum    a file of a segment that has changed since it was written
    postings    arrays of postings that cannot be
    vectors     vectors that cannot be: not finite, of another dimension or length
    orphan      a segment on disk that no commit names
    stranger    a file in `.rag` that ragcli does not keep there
    gone        a source file that is in the index and not in its folder
    model       the encoder cannot be had, or is not the one that made the vectors

Owns what is compared and the hints; `store` does the reading of what lies in `.rag`.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from ragcli import encoders
from ragcli.errors import IndexBusy, ModelUnavailable, UsageError
from ragcli.store.catalog import FILE
from ragcli.store.checking import Damage, check_catalog, check_folder, counts, is_current
from ragcli.store.checking_arrays import Shape
from ragcli.store.checking_segments import SegmentsCheck
from ragcli.store.contents import StoredFile, files
from ragcli.store.folder import ENCODER
from ragcli.store.index import Index

_TRIES = 3
_AGAIN = "ragcli index --full   (checks every part and makes it again)"
_HINTS = {
    "orphan": "ragcli index   (removes what no commit names)",
    "gone": "ragcli index   (forgets what is gone)",
    "stranger": "remove it, unless it is yours: ragcli does not use it",
}
_ELSEWHERE = "ragcli index --full where the sources are, or a sound copy of the index"
"""Without its sources an index cannot be made again, and a run would forget what it cannot see."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: its kind, the table, segment or file, one line, and what to do."""

    kind: str
    part: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Checked:
    """How much was looked at; `vectors` are rows, `bytes` those of the catalogue and segments."""

    files: int = 0
    documents: int = 0
    chunks: int = 0
    segments: int = 0
    vectors: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found and looked at.

    `waiting` chunks have no vector yet and `changed` source files differ from what was read:
    both are as they should be until the next run, and no findings. `sources`: whether the indexed
    files are here to be looked at.
    """

    findings: tuple[Finding, ...]
    checked: Checked
    waiting: int
    changed: int
    sources: bool
    seconds: float


def check(index: Index) -> CheckReport:
    """Hold all of the index against all of it, and against its sources where they are here.

    A writer may sweep what an older commit lists: then its newest commit is looked at. Raises
    IndexBusy where commits come faster than that.
    """
    began = time.monotonic()
    report = _current(index, began)
    for _ in range(_TRIES):
        if report is not None:
            return report
        with Index.open(index.path) as newest:
            report = _current(newest, began)
    raise IndexBusy(f"{index.path} is being written all the time", "try again when that is done")


def _current(index: Index, began: float) -> CheckReport | None:
    """The report; None where it finds something and the index has moved on."""
    report = _check(index, began)
    return report if not report.findings or is_current(index) else None


def _check(index: Index, began: float) -> CheckReport:
    damages = check_catalog(index)
    if any(damage.kind == "catalogue" for damage in damages):
        findings = tuple(_finding(index, damage, here=True) for damage in damages)
        return CheckReport(findings, Checked(), 0, 0, True, time.monotonic() - began)
    shape, unit, doubts = _model(index)
    with index.reading():
        segments = SegmentsCheck(index.catalog, shape, unit=unit).run()
    here, changed, gone = _sources(index)
    damages += [*segments.damages, *check_folder(index.path), *gone]
    size = (index.path / FILE).stat().st_size
    return CheckReport(
        findings=(*doubts, *(_finding(index, damage, here=here) for damage in damages)),
        checked=Checked(*counts(index), segments.segments, segments.vectors, segments.bytes + size),
        waiting=0 if index.settings.encoder == "none" else segments.waiting,
        changed=changed,
        sources=here,
        seconds=time.monotonic() - began,
    )


def _finding(index: Index, damage: Damage, *, here: bool) -> Finding:
    """With what mends it. `here`: the sources are, and a run of `index` can read them again."""
    if damage.kind == "catalogue":
        hint = f"where the sources are, remove {index.path} and make it again: ragcli index FOLDER"
    elif here or damage.kind == "stranger":
        hint = _HINTS.get(damage.kind, _AGAIN)
    else:
        hint = _ELSEWHERE
    return Finding(*damage, hint)


def _model(index: Index) -> tuple[Shape | None, bool, list[Finding]]:
    """What the encoder that made the vectors gives: their shape, and whether of length 1.

    None where it cannot be had or is another one, with the finding.
    """
    name = index.settings.encoder
    try:
        encoder = encoders.open_encoder(index.settings, index.path / ENCODER)
        if encoder is None:
            return None, False, []
        if index.encoder not in (None, encoder.fingerprint):
            message = f"{name} has changed since the index was made with it"
            hint = "ragcli index   (makes the vectors again)"
            return None, False, [Finding("model", name, message, hint)]
        shape = Shape(encoder.dim, encoder.weighted)
        return shape, encoder.normalise and not encoder.weighted, []
    except (ModelUnavailable, UsageError) as error:
        return None, False, [Finding("model", name, error.message, error.hint or _AGAIN)]


def _sources(index: Index) -> tuple[bool, int, list[Damage]]:
    """Whether the sources are here, how many of them have changed, and those that are gone.

    Where none of the files is there the index was moved, or the folder is not mounted.
    """
    root = index.root
    known = files(index)
    states = [] if root is None else [_state(index, file) for file in known]
    gone = [file.path for file, state in zip(known, states, strict=False) if state == "gone"]
    if root is None or (gone and len(gone) == len(known)):
        return False, 0, []
    says = "is in the index and no longer in the folder"
    damages = [Damage("gone", path, f"{path} {says}") for path in gone]
    return True, states.count("changed"), damages


def _state(index: Index, file: StoredFile) -> str:
    """`gone`, `changed` or `same`; what cannot be looked at is not gone."""
    where = index.source(file.path)
    if where is None:
        return "gone"
    try:
        now = os.stat(where)
    except (FileNotFoundError, NotADirectoryError):
        return "gone"
    except OSError:
        return "same"
    is_read = file.state == "indexed"
    differs = (now.st_size, now.st_mtime_ns) != (file.size, file.mtime_ns)
    return "changed" if is_read and differs else "same"
