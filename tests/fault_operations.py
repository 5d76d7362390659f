"""What ragcli does to an index while a fault comes: the start, the act, and what it should become.

Each operation is small, so that thousands of its runs can be tried, and reaches what it is there
for: whole commits, merges, sweeps, checkpoints.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from conftest import build, write_files

from ragcli.cli import app
from ragcli.errors import RagcliError
from ragcli.indexing import run
from ragcli.store.keeping import keep_calibration

OLD = {
    **{f"{i}.txt": f"Old words {i}. Harbour crane number {i}." for i in range(5)},
    "notes/long.md": "# Tides\n\nThe harbour floods.\n\n## Lamps\n\nA lamp burns old oil.",
}
NEW = {
    **{name: OLD[name] for name in ("0.txt", "1.txt")},
    "2.txt": "New words 2. Lighthouse lamp.",
    "moved.txt": OLD["3.txt"],
    "notes/long.md": OLD["notes/long.md"] + "\n\n## Cranes\n\nNew crane words.",
    "7.txt": "New words 7. Harbour lamp.",
    "broken.json": "{ harbour",
}
QUESTIONS = ("harbour crane", "lighthouse lamp", "new words", "old words number")
CALIBRATION = {"schema": "not a model", "filler": "x" * 5000}


class Operation(NamedTuple):
    """`docs`: the sources at the time of the act. `start` makes the index that is there before.

    `act` is given (index, docs), and its exit code is that of a command. `settings` are those of
    a fresh build, and of the run that mends what a fault left, unless the act `only_reads` as far
    as they go. `damaged`: a check finds something before the act.
    """

    docs: Mapping[str, str]
    start: Callable[[Path, Path], object] | None
    act: Callable[[Path, Path], int]
    settings: Mapping[str, object]
    only_reads: bool = False
    damaged: bool = False


def index(location: Path, docs: Path, *options: str) -> int:
    return app.run(["index", str(docs), "--index", str(location), *options])


def plain_index(location: Path, docs: Path) -> int:
    return app.run(["index", "--index", str(location)])


def full_index(location: Path, docs: Path) -> int:
    return app.run(["index", "--index", str(location), "--full"])


def with_encoder(name: str, *options: str) -> Callable[[Path, Path], int]:
    return lambda location, docs: index(location, docs, "--encoder", name, *options)


def of_old(encoder: str, *, lazy: bool = False) -> Callable[[Path, Path], object]:
    def start(location: Path, docs: Path) -> None:
        write_files(docs, OLD)
        build(location, docs, encoder=encoder, lazy=lazy)

    return start


def in_seven_parts(location: Path, docs: Path) -> None:
    """Seven segments of postings and of vectors: with one more they are merged."""
    for name in sorted(OLD)[:6]:
        write_files(docs, {name: OLD[name]})
        build(location, docs)
    write_files(docs, {"seventh.txt": "A seventh harbour."})
    build(location, docs)


def damaged(location: Path, docs: Path) -> None:
    """One segment with a changed byte, and one that is lost."""
    of_old("hash")(location, docs)
    postings = min((location / "segments").glob("p-*/counts.npy"))
    data = bytearray(postings.read_bytes())
    data[-1] ^= 1
    postings.write_bytes(data)
    shutil.rmtree(min((location / "segments").glob("v-*")))


def query(location: Path, docs: Path) -> int:
    """Over an index without vectors: those of the passages asked for are made, and kept."""
    return app.run(["query", "harbour crane", "--index", str(location)])


def calibrate(location: Path, docs: Path) -> int:
    """What `eval --calibrate` does when it has a model."""
    try:
        keep_calibration(location, CALIBRATION)
    except RagcliError as error:
        print(error.message)
        return error.exit_code
    return 0


HASH, FAKE = {"encoder": "hash"}, {"encoder": "fake"}
OPERATIONS = {
    "first index": Operation(OLD, None, with_encoder("hash"), HASH),
    "first index, vectors later": Operation(OLD, None, with_encoder("fake"), FAKE),
    "edits, removals, renames": Operation(NEW, of_old("hash"), plain_index, HASH),
    "the same, vectors later": Operation(NEW, of_old("fake"), plain_index, FAKE),
    "merges": Operation(
        {**OLD, "seventh.txt": "A seventh harbour.", "eighth.txt": "An eighth harbour crane."},
        in_seven_parts,
        plain_index,
        HASH,
    ),
    "another encoder": Operation(OLD, of_old("hash"), with_encoder("fake"), FAKE),
    "no encoder": Operation(OLD, of_old("hash"), with_encoder("none"), {"encoder": "none"}),
    "another chunking": Operation(
        OLD,
        of_old("hash"),
        with_encoder("hash", "--chunk", "words:3"),
        {"encoder": "hash", "chunk": "words:3"},
    ),
    "index --full of a damaged one": Operation(OLD, damaged, full_index, HASH, damaged=True),
    "query that keeps vectors": Operation(
        OLD, of_old("fake", lazy=True), query, FAKE, only_reads=True
    ),
    "eval --calibrate": Operation(OLD, of_old("hash"), calibrate, HASH, only_reads=True),
    "minilm": Operation(NEW, of_old("minilm"), plain_index, {"encoder": "minilm"}),
}


def each_batch_a_commit() -> None:
    """From now on vectors are committed batch by batch, and files as they come."""
    run.COMMIT_SECONDS = run.FIRST_COMMIT_SECONDS = 0.0
