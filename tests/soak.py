"""Readers and writers of one index, as processes of their own, for a while.

    python tests/soak.py [--seconds 60] [--readers 20] [--writers 2]

The sources are files of several passages that all name one epoch; writers replace whole files and
index, and some of them are killed in the middle. A reader must find all passages of every file,
each file's of one epoch; a copy made under the lock must be sound. Prints JSON, with what was
seen that must not be in `wrong`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from conftest import answers, build

from ragcli.errors import IndexBusy
from ragcli.inspection.checking import check
from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index
from ragcli.store.lock import write_lock

FILES = 20
PASSAGES = 3
CHUNKING = "words:4"
KILLS = 5
PAUSE = 0.2
"""Seconds between a reader's questions, so that many of them leave the writers some of the time."""


def text(file: int, epoch: str) -> str:
    """`PASSAGES` passages of four words."""
    return " ".join(f"harbour file{file} part{part} {epoch}" for part in range(PASSAGES))


def put(docs: Path, file: int, epoch: str) -> None:
    """Replace a file whole, as editors do."""
    part = docs / f".{file}.{os.getpid()}"
    part.write_text(text(file, epoch), encoding="utf-8")
    part.replace(docs / f"{file}.txt")


def wrong_in(location: Path) -> list[str]:
    """What a reader must not see."""
    with Index.open(location) as index:
        hits = Retriever(index).search(SearchRequest("harbour", FILES * PASSAGES * 2)).hits
    epochs: dict[str, set[str]] = {}
    for hit in hits:
        words = hit.text.split()
        epochs.setdefault(hit.path, set()).add(words[3])
        if words[1] != f"file{hit.path.removesuffix('.txt')}":
            return [f"{hit.path} holds {hit.text}"]
    if len(hits) != FILES * PASSAGES or len(epochs) != FILES:
        return [f"{len(hits)} passages of {len(epochs)} files"]
    return [f"{path} is of {seen}" for path, seen in epochs.items() if len(seen) > 1]


def read(location: Path, end: float) -> Counter[str]:
    """Ask until `end`."""
    done: Counter[str] = Counter()
    while time.time() < end:
        try:
            found = wrong_in(location)
        except IndexBusy:
            done["busy"] += 1
            continue
        done["queries"] += 1
        done.update(f"wrong: {line}" for line in found)
        time.sleep(PAUSE)
    return done


def write(location: Path, end: float) -> Counter[str]:
    """Replace some files and index, until `end`."""
    done: Counter[str] = Counter()
    dice = random.Random(os.getpid())
    docs = location.parent / "docs"
    while time.time() < end:
        for file in dice.sample(range(FILES), 5):
            put(docs, file, f"n{dice.randrange(10**6)}")
        try:
            build(location)
            done["runs"] += 1
        except IndexBusy:
            done["busy"] += 1
    return done


def copy(location: Path, end: float) -> Counter[str]:
    """Copy the index under the lock and look at the copy, until `end`."""
    done: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "rag"
        while time.time() < end:
            try:
                with write_lock(location, 60):
                    shutil.copytree(location, place)
            except IndexBusy:
                done["busy"] += 1
                continue
            done["copies"] += 1
            done.update(f"wrong: copy: {line}" for line in wrong_in(place))
            with Index.open(place) as index:
                findings = [f for f in check(index).findings if f.kind != "orphan"]
            done.update(f"wrong: copy: {finding.message}" for finding in findings)
            shutil.rmtree(place)
            time.sleep(0.2)
    return done


ROLES = {"read": read, "write": write, "copy": copy}


def start(role: str, location: Path, end: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, "--role", role, str(location), str(end)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


def soak(location: Path, seconds: float, readers: int, writers: int) -> dict[str, object]:
    """Let them all loose on a new index at `location`; what they did and saw."""
    docs = location.parent / "docs"
    docs.mkdir()
    for file in range(FILES):
        put(docs, file, "n0")
    build(location, docs, chunk=CHUNKING)
    end = time.time() + seconds
    writing = [start("write", location, end) for _ in range(writers)]
    others = [start("copy", location, end), *(start("read", location, end) for _ in range(readers))]
    total: Counter[str] = Counter()
    ended = []
    while time.time() < end - seconds / KILLS:
        time.sleep(seconds / KILLS)
        victim = writing.pop(0)
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
        total["writers killed"] += 1
        writing.append(start("write", location, end))
    for process in [*writing, *others]:
        out, error = process.communicate()
        if process.returncode:
            ended.append(error.strip().splitlines()[-1])
        else:
            total.update(json.loads(out))
    wrong = [*ended, *(f"{n} × {line}" for line, n in total.items() if line.startswith("wrong"))]
    build(location)
    fresh = location.with_name("fresh")
    build(fresh, docs, chunk=CHUNKING)
    if answers(location, "harbour", 100) != answers(fresh, "harbour", 100):
        wrong.append("afterwards it is not as built anew")
    with Index.open(location) as index:
        wrong += [finding.message for finding in check(index).findings]
        generation = index.catalog.get("generation")
    counts = {name: n for name, n in sorted(total.items()) if not name.startswith("wrong")}
    return {
        "seconds": seconds, "readers": readers, "writers": writers, **counts,
        "commits": generation, "wrong": wrong,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--role", nargs=3, metavar=("ROLE", "INDEX", "END"))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--writers", type=int, default=2)
    options = parser.parse_args()
    if options.role:
        role, location, end = options.role
        print(json.dumps(ROLES[role](Path(location), float(end))))
        return
    with tempfile.TemporaryDirectory() as folder:
        location = Path(folder) / "rag"
        print(json.dumps(soak(location, options.seconds, options.readers, options.writers)))


if __name__ == "__main__":
    main()
