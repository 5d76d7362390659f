"""Faults tried one by one, and what must hold after each.

The catalogue's commits of an undisturbed run give the states that there may be. After a fault in
call number n of the same run: a reader sees the last state that was committed, or the one that
was being committed; a check names at most what the next run removes; the next run makes the
index equal to a fresh build, and leaves nothing over.

    python tests/fault_trials.py [--operation NAME]… [--fault NAME]… [--points N] [--seed N]

tries N points of each operation under each fault (0: all) and prints a JSON object per pair.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import random
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import faults
import neural
from conftest import build, write_files
from fault_operations import OPERATIONS, QUESTIONS, Operation, each_batch_a_commit
from power import LOST, Disk, copy_meanwhile, empty

from ragcli.errors import IndexForeign, IndexUnavailable, RagcliError
from ragcli.indexing import index_folder
from ragcli.inspection.checking import check
from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.catalog import FILE
from ragcli.store.folder import _CACHE_TAG
from ragcli.store.index import Index

POWER = {f"power lost: {lost}": lost for lost in LOST}
COPY = "copied while it is written"
FAULTS = (*faults.FAULTS, *POWER, COPY)
State = dict[str, Any]
NOTHING, DAMAGED, FOREIGN = (
    {"none": name} for name in ("IndexNotFound", "IndexDamaged", "IndexForeign")
)
_ROWS = {
    "files": "SELECT path, state, reason, digest FROM files ORDER BY path",
    "chunks": "SELECT f.path, d.record, d.kind, d.language, c.start, c.end, c.first_line,"
    " c.last_line, c.heading, c.text FROM chunks c LEFT JOIN documents d ON d.id = c.document"
    " LEFT JOIN files f ON f.id = d.file ORDER BY f.path, d.record, c.start, c.end",
    "problems": "SELECT f.path, p.kind, p.message, p.page FROM problems p"
    " LEFT JOIN files f ON f.id = p.file ORDER BY f.path, p.kind, p.message, p.page",
    "tallies": "SELECT * FROM tallies ORDER BY language",
    "meta": "SELECT key, value FROM meta WHERE key IN"
    " ('settings', 'root', 'starts', 'encoder', 'calibration') AND value != 'null' ORDER BY key",
}


def observe(location: Path) -> State:
    """All that an index says, but for its own numbers and dates."""
    if not (location / FILE).exists():
        return NOTHING
    try:
        with Index.open(location) as index:
            state: State = {
                name: index.catalog.connection.execute(sql).fetchall()
                for name, sql in _ROWS.items()
            }
            state["counts"] = index.counts()
            retriever = Retriever(index)
            state["hits"] = [
                (hit.path, hit.start, hit.text, hit.score, hit.lexical, hit.dense)
                for question in QUESTIONS
                for hit in retriever.search(SearchRequest(question, 10)).hits
            ]
        return state
    except IndexUnavailable as error:
        return {"none": type(error).__name__}


class Point(NamedTuple):
    """One fault at one call, and what was wrong afterwards: nothing, if all is well."""

    at: int
    kind: str
    place: str
    wrong: list[str]


class Trials:
    """One operation in a folder of its own: its start, its states, its end."""

    def __init__(self, operation: Operation, work: Path) -> None:
        self.operation = operation
        self.work = work
        self.place, self.begin = work / "place", work / "begin"
        self.docs, self.location = self.place / "docs", self.place / "rag"
        self.printed, self.log = work / "printed", work / "log"
        write_files(self.docs, operation.docs)
        build(self.location, self.docs, **operation.settings)
        self.wanted = observe(self.location)
        self.usual = {path.name for path in self.location.iterdir()}
        shutil.rmtree(self.location)
        if operation.start is not None:
            shutil.rmtree(self.docs)
            operation.start(self.location, self.docs)
            shutil.copytree(self.location, self.begin)
            shutil.rmtree(self.docs)
            write_files(self.docs, operation.docs)
        self.states = self._record()

    def restore(self) -> None:
        """The index as it was before the act, in the same folder: it knows a copy of itself."""
        if self.operation.start is None:
            shutil.rmtree(self.location, ignore_errors=True)
        else:
            empty(self.location)
            shutil.copytree(self.begin, self.location, dirs_exist_ok=True)

    def _act(self) -> int:
        return self.operation.act(self.location, self.docs)

    def _record(self) -> list[State]:
        """The states of an undisturbed run: the first, and that after each commit."""
        self.restore()
        states = [observe(self.location)]
        kept = self.work / "states"
        kept.write_bytes(b"")

        def note(calls: int) -> None:
            with kept.open("ab") as file:
                pickle.dump((calls, observe(self.location)), file)

        met = faults.strike(self._act, self.place, self.printed, None, log=self.log, committed=note)
        assert met.code == 0, met
        with kept.open("rb") as file:
            commits = [pickle.load(file) for _ in range(met.commits)]
        self.committed_at = [calls for calls, _ in commits]
        states += [state for _, state in commits]
        self.calls = list(faults.read_log(self.log))
        return states

    def points(self, name: str) -> list[int]:
        """The calls that the fault of this name can meet, by number."""
        tears = name in faults.FAULTS and faults.FAULTS[name].tears
        return [
            number
            for number, call in enumerate(self.calls, 1)
            if not tears or (call.kind == "write" and len(call.data) > 1)
        ]

    def at(self, number: int, fault: faults.Fault) -> Point | None:
        """What is wrong after `fault` in call `number`; None where there was no such call."""
        self.restore()
        met = faults.strike(self._act, self.place, self.printed, fault, number)
        if met.hit == "other":
            return None
        wrong = list(self._misbehaved(met, fault))
        # A command may go on after a commit that failed, and do the next one.
        until = met.commits + 2 if fault.kills else None
        allowed = self.states[met.commits : until] or self.states[-1:]
        wrong += self.judge(allowed)
        return Point(number, met.hit, met.place, wrong)

    def without_power(self, number: int, lost: str, dice: random.Random) -> Point:
        """What is wrong where the power went after call `number` and took `lost` along."""
        self.restore()
        disk = Disk(self.location)
        disk.replay(self.calls[:number])
        disk.leave(lost, dice)
        commits = sum(at <= number for at in self.committed_at)
        call = self.calls[number - 1]
        wrong = list(self.judge(self.states[commits : commits + 2]))
        return Point(number, call.kind, call.path, wrong)

    def copied(self, number: int, dice: random.Random) -> Point:
        """What is wrong with a copy that was made file by file during the run."""
        self.restore()
        copy_meanwhile(self.location, self.calls, dice)
        return Point(number, "copy", "", list(self._judge_copy()))

    def _judge_copy(self) -> Iterator[str]:
        """It gives what some commit had, or is refused; the next run heals it, or refuses it."""
        seen = observe(self.location)
        if seen not in (*self.states, NOTHING, DAMAGED, FOREIGN):
            yield f"a reader of the copy sees {told(seen)}"
        try:
            yield from self._mended()
        except IndexForeign as error:
            if seen not in (NOTHING, DAMAGED, FOREIGN):
                yield f"the next run ended with {error.message}"

    def _misbehaved(self, met: faults.Met, fault: faults.Fault) -> Iterator[str]:
        """How a process must not end."""
        if fault.kills:
            if met.code != -9:
                yield f"ended with {met.code} although it was killed: {met.printed}"
        elif met.code not in (0, 3) or "Traceback" in met.printed:
            yield f"ended with {met.code}: {met.printed}"

    def judge(self, allowed: list[State]) -> Iterator[str]:
        """What is wrong with the index as it lies there, and after the next run."""
        seen = observe(self.location)
        if seen not in allowed:
            yield f"a reader sees {told(seen)}, not {' or '.join(map(told, allowed))}"
        if "none" not in seen and not self.operation.damaged:
            yield from self._checked({"orphan", "gone"})
        try:
            yield from self._mended()
        except RagcliError as error:
            yield f"the next run ended with {type(error).__name__}: {error.message}"

    def _mended(self) -> Iterator[str]:
        """What is wrong after the next run, which may raise."""
        settings = {} if self.operation.only_reads else self.operation.settings
        index_folder(self.location, [self.docs], settings, full=self.operation.damaged)
        healed = observe(self.location)
        healed["meta"] = [row for row in healed["meta"] if row[0] != "calibration"]
        if healed != self.wanted:
            other = [key for key in self.wanted if healed.get(key) != self.wanted[key]]
            yield f"the next run gives {told(healed)}, other {other} than a fresh build"
        yield from self._checked(set())
        yield from self._left_over()

    def _checked(self, may: set[str]) -> Iterator[str]:
        with Index.open(self.location) as index:
            for finding in check(index).findings:
                if finding.kind not in may:
                    yield f"check: {finding.message}"

    def _left_over(self) -> Iterator[str]:
        left = {path.name for path in self.location.iterdir()}
        if left != self.usual:
            yield f"in the folder lie {sorted(left ^ self.usual)}"
        if (self.location / "CACHEDIR.TAG").read_text() != _CACHE_TAG:
            yield "CACHEDIR.TAG is cut"
        if (self.location / ".gitignore").read_text() != "*\n":
            yield ".gitignore is cut"


def told(state: State) -> str:
    """Enough of a state to tell it from others."""
    if "none" in state:
        return str(state["none"])
    names = " ".join(os.fsdecode(row[0]) for row in state["files"])
    return f"{state['counts']} of {names} ({zlib.crc32(repr(state).encode()):08x})"


def warm_up() -> None:
    """Do once here what each fork would have to: load, and leave it where no fork copies it."""
    neural.install()
    each_batch_a_commit()
    with tempfile.TemporaryDirectory() as folder, silence():
        work = Path(folder)
        location = work / "rag"
        for name in ("first index", "query that keeps vectors"):
            write_files(work / "docs", OPERATIONS[name].docs)
            OPERATIONS[name].act(location, work / "docs")
        observe(location)
        with Index.open(location) as index:
            check(index)
    gc.disable()
    gc.freeze()


@contextmanager
def silence() -> Iterator[None]:
    """Nothing is printed inside."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    streams = os.dup(1), os.dup(2)
    try:
        for number in (1, 2):
            os.dup2(quiet, number)
        yield
        sys.stdout.flush()
    finally:
        for number, stream in enumerate(streams, 1):
            os.dup2(stream, number)
        for handle in (quiet, *streams):
            os.close(handle)


def tried(trials: Trials, name: str, points: int, dice: random.Random) -> tuple[int, list[Point]]:
    """(points tried, those after which something was wrong); `points` of them, 0 for all."""
    numbers = trials.points(name)
    if points and points < len(numbers):
        numbers = sorted(dice.sample(numbers, points))
    if name == COPY:
        met = [trials.copied(number, dice) for number in numbers]
    elif name in POWER:
        met = [trials.without_power(number, POWER[name], dice) for number in numbers]
    else:
        fault = faults.FAULTS[name]
        met = [point for number in numbers if (point := trials.at(number, fault))]
    return len(met), [point for point in met if point.wrong]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operation", action="append", choices=OPERATIONS)
    parser.add_argument("--fault", action="append", choices=FAULTS)
    parser.add_argument("--points", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warm_up()
    for name in options.operation or OPERATIONS:
        dice = random.Random(f"{options.seed} {name}")
        with tempfile.TemporaryDirectory(dir=fast_folder()) as work:
            trials = Trials(OPERATIONS[name], Path(work))
            for fault in options.fault or FAULTS:
                began = time.monotonic()
                count, wrong = tried(trials, fault, options.points, dice)
                print(
                    json.dumps(
                        {
                            "operation": name,
                            "fault": fault,
                            "calls": len(trials.calls),
                            "commits": len(trials.states) - 1,
                            "points": count,
                            "seconds": round(time.monotonic() - began, 2),
                            "wrong": [point._asdict() for point in wrong],
                        }
                    ),
                    flush=True,
                )


def fast_folder() -> str | None:
    """In memory where that can be: the calls are what counts, not the disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    sys.exit(main())
