"""A soak of `ragcli index --watch`: edits at random, and at the end an index equal to a fresh one.

    python benchmarks/watching.py FOLDER [--seconds 600] [--changes 2000] [--seed 7]
        [--encoder none]

FOLDER is copied; nothing of it is changed. While the copy is watched, files of it are edited (in
place, or as editors do by a new file in the old one's place), renamed, deleted and written anew,
at random moments. A change counts as committed when the catalogue has the file's new stat, looked
at ten times a second. Afterwards the index must equal one made from nothing: documents, passages,
texts and offsets, the ledger, hits and scores of questions; and `inspect --check` must find it
sound. Linux only: memory and handles are read from /proc.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ragcli.indexing import index_folder
from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index

RAGCLI = [sys.executable, "-m", "ragcli"]
SETTLING = 120.0
"""Seconds for the last changes to be committed."""

Stat = tuple[int, int] | None
"""Size and time of a file; None where it must be gone."""


class Soak:
    """The changes, and which of them are not committed yet."""

    def __init__(self, docs: Path, rng: random.Random) -> None:
        self._docs = docs
        self._rng = rng
        self._files = sorted(path for path in docs.rglob("*") if path.is_file())
        self._folders = sorted({path.parent for path in self._files})
        self._words = sorted(set(" ".join(map(_text, self._files[:200])).split()))
        self.open: dict[str, tuple[Stat, float]] = {}
        self.latencies: list[float] = []
        self.kinds: Counter[str] = Counter()

    def change(self) -> None:
        """One change of one file."""
        kind = self._rng.choices(("edit", "save", "rename", "delete", "new"), (35, 20, 20, 12, 13))
        self.kinds[kind[0]] += 1
        getattr(self, f"_{kind[0]}")()

    def _any(self) -> Path:
        return self._rng.choice(self._files)

    def _some_text(self) -> str:
        words = self._rng.choices(self._words, k=self._rng.randrange(5, 120))
        return "\n\n" + " ".join(words) + ".\n"

    def _changed_text(self, path: Path) -> str:
        text = _text(path)
        at = self._rng.randrange(len(text) + 1)
        return text[:at] + self._some_text() + text[at + self._rng.randrange(400) :]

    def _edit(self) -> None:
        path = self._any()
        path.write_text(self._changed_text(path), encoding="utf-8", errors="surrogateescape")
        self._wait_for(path)

    def _save(self) -> None:
        path = self._any()
        beside = path.with_name(path.name + "~")
        beside.write_text(self._changed_text(path), encoding="utf-8", errors="surrogateescape")
        beside.replace(path)
        self._wait_for(path)

    def _rename(self) -> None:
        path = self._any()
        number = self._rng.randrange(10**6)
        new = self._rng.choice(self._folders) / f"moved{number}{''.join(path.suffixes)}"
        new.parent.mkdir(parents=True, exist_ok=True)
        path.rename(new)
        self._files[self._files.index(path)] = new
        self._wait_for(path)
        self._wait_for(new)

    def _delete(self) -> None:
        path = self._files.pop(self._rng.randrange(len(self._files)))
        path.unlink()
        self._wait_for(path)

    def _new(self) -> None:
        folder = self._rng.choice(self._folders)
        if self._rng.random() < 0.2:
            folder = folder / f"folder{self._rng.randrange(10**6)}"
            self._folders.append(folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"new{self._rng.randrange(10**6)}.md"
        path.write_text(f"# New\n{self._some_text()}", encoding="utf-8")
        self._files.append(path)
        self._wait_for(path)

    def _wait_for(self, path: Path) -> None:
        stat = path.stat() if path.exists() else None
        state = None if stat is None else (stat.st_size, stat.st_mtime_ns)
        self.open[path.relative_to(self._docs).as_posix()] = state, time.monotonic()

    def look(self, catalogue: Path) -> None:
        """Take from the open ones those that the catalogue has by now."""
        if not self.open:
            return
        connection = sqlite3.connect(f"file:{catalogue}?mode=ro", uri=True)
        try:
            rows = connection.execute("SELECT path, size, mtime_ns FROM files").fetchall()
        finally:
            connection.close()
        known = {os.fsdecode(path): (size, mtime) for path, size, mtime in rows}
        now = time.monotonic()
        for path, (state, since) in list(self.open.items()):
            if known.get(path) == state:
                del self.open[path]
                self.latencies.append(now - since)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def usage(process: int) -> tuple[float, int, int, float]:
    """(resident MB, open handles, watched folders, CPU seconds) of a process."""
    here = Path(f"/proc/{process}")
    pages = int((here / "statm").read_text().split()[1])
    watched = sum(text.read_text().count("inotify wd") for text in (here / "fdinfo").iterdir())
    fields = (here / "stat").read_text().rpartition(")")[2].split()
    spent = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    handles = len(list((here / "fd").iterdir()))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, handles, watched, spent


def contents(location: Path) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Every passage with its place and text, and every line of the ledger, in order."""
    with Index.open(location) as index, index.reading() as connection:
        passages = connection.execute(
            "SELECT f.path, d.record, d.kind, d.title, d.language, d.words, d.pieces, c.start,"
            " c.end, c.first_line, c.last_line, c.page, c.heading, c.text FROM chunks c"
            " JOIN documents d ON d.id = c.document JOIN files f ON f.id = d.file"
            " ORDER BY f.path, d.record, c.start, c.end, c.text"
        ).fetchall()
        ledger = connection.execute(
            "SELECT f.path, f.state, p.kind, p.message, p.page FROM files f"
            " LEFT JOIN problems p ON p.file = f.id ORDER BY 1, 3, 4, 5"
        ).fetchall()
    return passages, ledger


def hits(location: Path, questions: list[str]) -> list[object]:
    """The hits of each question, with every score."""
    with Index.open(location) as index:
        retriever = Retriever(index)
        return [
            [(h.path, h.start, h.end, h.score, h.lexical, h.dense) for h in found.hits]
            for found in (retriever.search(SearchRequest(q, 10)) for q in questions)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--changes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--encoder", default="none")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ragcli-soak-") as folder:
        here = Path(folder)
        shutil.copytree(given.folder, here / "docs", ignore=shutil.ignore_patterns(".rag"))
        soak(here, given)


def soak(here: Path, given: argparse.Namespace) -> None:
    rng = random.Random(given.seed)
    of = Soak(here / "docs", rng)
    moments = sorted(rng.uniform(0, given.seconds) for _ in range(given.changes))
    location = here / ".rag"
    with (here / "out").open("w") as out, (here / "err").open("w") as err:
        process = subprocess.Popen(
            [*RAGCLI, "index", "docs", "--watch", "--json", "--encoder", given.encoder],
            cwd=here, stdout=out, stderr=err,
        )  # fmt: skip
    try:
        while "watching" not in (here / "err").read_text():
            time.sleep(0.1)
        time.sleep(3)
        before = usage(process.pid)
        began = time.monotonic()
        while moments or (of.open and time.monotonic() - began < given.seconds + SETTLING):
            while moments and time.monotonic() - began >= moments[0]:
                moments.pop(0)
                of.change()
            of.look(location / "catalog.sqlite")
            time.sleep(0.1)
        lasted = time.monotonic() - began
        time.sleep(3)
        after = usage(process.pid)
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    finally:
        process.kill()
    runs = len((here / "out").read_text().splitlines()) - 1
    print(f"{sum(of.kinds.values())} changes in {lasted:.0f} s: {dict(of.kinds)}; {runs} runs")
    ordered = sorted(of.latencies)
    print(
        f"from change to commit: median {statistics.median(ordered):.2f} s,"
        f" p95 {ordered[int(0.95 * len(ordered))]:.2f} s, longest {ordered[-1]:.2f} s"
    )
    for name, start, end in zip(("MB", "handles", "watched folders"), before, after, strict=False):
        print(f"{name}: {start:.0f} at the start, {end:.0f} at the end")
    print(f"CPU: {after[3] - before[3]:.0f} s of {lasted:.0f} s")
    print(f"not committed: {len(of.open)}; exit code {code}")
    said = [line for line in (here / "err").read_text().splitlines() if "watching" not in line]
    print(f"stderr: {said}")
    compare(here, location, given.encoder, rng)


def compare(here: Path, location: Path, encoder: str, rng: random.Random) -> None:
    """Hold the index against one made from nothing; ends with 1 where they differ."""
    fresh = here / "fresh"
    index_folder(fresh, [here / "docs"], {"encoder": encoder})
    mine, other = contents(location), contents(fresh)
    words = sorted({word for row in mine[0] for word in str(row[-1]).split()[:8]})
    questions = [" ".join(rng.choices(words, k=3)) for _ in range(200)]
    asked = hits(location, questions), hits(fresh, questions)
    check = subprocess.run(
        [*RAGCLI, "inspect", "--check", "--index", str(location)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    equal = {
        f"{len(mine[0])} passages": mine[0] == other[0],
        f"{len(mine[1])} lines of files and ledger": mine[1] == other[1],
        f"hits and scores of {len(questions)} questions": asked[0] == asked[1],
        f"inspect --check, with a sound one:\n{check.stdout.strip()}": check.returncode == 0,
    }
    for what, same in equal.items():
        print(f"{'equal' if same else 'DIFFERENT'}: {what}")
    if not all(equal.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
