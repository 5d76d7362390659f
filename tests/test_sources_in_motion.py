"""Sources that do not hold still: clocks that jump, files that change while they are read or
turn into something else, folders that vanish during the walk. Afterwards all is as built anew.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import answers, build, write_files

from ragcli.corpus.walk import Found, LeftOut
from ragcli.errors import IndexDamaged, UsageError
from ragcli.indexing import plan, rebuild, run
from ragcli.records import Counts, IndexReport

FILES = {f"{folder}/{i}.txt": f"harbour {folder} {i}" for folder in "abc" for i in range(3)}
DAY_NS = 24 * 3600 * 10**9


def as_built_anew(location: Path, docs: Path) -> None:
    fresh = location.with_name("fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    build(fresh, docs)
    assert answers(location, "harbour", 50) == answers(fresh, "harbour", 50)


def seen(report: IndexReport) -> int:
    counts = report.counts
    return counts.indexed + counts.unchanged + counts.moved + counts.skipped + counts.failed


@pytest.mark.parametrize("shift", [-DAY_NS, DAY_NS])
@pytest.mark.parametrize("file_time", [-DAY_NS, 0, DAY_NS], ids=["old", "now", "future"])
def test_a_clock_that_jumps_hides_no_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: int, file_time: int
) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, FILES)
    stamp = time.time_ns() + file_time
    real = time.time_ns
    os.utime(docs / "a/0.txt", ns=(stamp, stamp))
    monkeypatch.setattr(time, "time_ns", lambda: real() + shift)
    build(location, docs)
    monkeypatch.setattr(time, "time_ns", real)
    (docs / "a/0.txt").write_text("harbour b 0", encoding="utf-8")  # as long as before
    os.utime(docs / "a/0.txt", ns=(stamp, stamp))
    assert build(location).counts.indexed == 1
    as_built_anew(location, docs)


@pytest.mark.parametrize("grows", [True, False], ids=["grows", "is rewritten"])
def test_a_file_that_is_written_all_the_time(tmp_path: Path, grows: bool) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, FILES)
    busy = docs / "a/busy.txt"
    busy.write_text("harbour start.\n" * 2000, encoding="utf-8")
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            with busy.open("a" if grows else "w", encoding="utf-8") as file:
                file.write(f"harbour line n{number}.\n" * (1 if grows else 2000))
            time.sleep(0.0005)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        began = time.monotonic()
        reports = [build(location, docs) for _ in range(5)]
        assert time.monotonic() - began < 30
    finally:
        stop.set()
        writer.join()
    for report in reports:
        assert seen(report) == len(FILES) + 1
        kinds = [problem.kind for problem in report.problems]
        assert set(kinds) <= {"changing", "empty"}
        assert report.counts.failed == kinds.count("changing")
    build(location)
    as_built_anew(location, docs)


def swap_after_the_walk(monkeypatch: pytest.MonkeyPatch, swap: Callable[[], object]) -> None:
    """`swap` happens between the walk and the reading."""
    planned = run.make_plan

    def make_plan(*arguments: Any, **options: Any) -> Any:
        plan = planned(*arguments, **options)
        swap()
        return plan

    monkeypatch.setattr(run, "make_plan", make_plan)


@pytest.mark.parametrize("kind", ["FIFO", "folder", "nothing", "link out", "unreadable"])
def test_a_file_that_becomes_something_else_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, FILES)
    victim = docs / "a/0.txt"

    def swap() -> None:
        victim.unlink()
        if kind == "FIFO":
            os.mkfifo(victim)
        elif kind == "folder":
            victim.mkdir()
        elif kind == "link out":
            victim.symlink_to(tmp_path / "nowhere.txt")
        elif kind == "unreadable":
            write_files(docs, {"a/0.txt": "harbour again"})

    with monkeypatch.context() as patched:
        swap_after_the_walk(patched, swap)
        report = build(location, docs)
    assert seen(report) == len(FILES)
    wanted = {"FIFO": (8, 1, 0), "unreadable": (9, 0, 0), "folder": (8, 1, 0)}.get(kind, (8, 0, 1))
    counts = report.counts
    assert (counts.indexed, counts.skipped, counts.failed) == wanted, report
    build(location)
    as_built_anew(location, docs)


@pytest.mark.parametrize("first", [True, False], ids=["first run", "later run"])
def test_a_folder_that_vanishes_during_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, FILES)
    if not first:
        build(location, docs)
    walk = run.walk

    def vanishing(*arguments: Any, **options: Any) -> Iterator[Found | LeftOut]:
        for number, item in enumerate(walk(*arguments, **options)):
            if number == 1:
                shutil.rmtree(docs / "a")
                shutil.rmtree(docs / "c")
            yield item

    with monkeypatch.context() as patched:
        patched.setattr(run, "walk", vanishing)
        report = build(location, docs)
    # Of a, one was seen before it went, and two were listed; c was listed with the root.
    assert report.counts.indexed + report.counts.unchanged >= 3
    assert {path.split("/")[0] for path, *_ in answers(location, "harbour", 50)} <= {"a", "b"}
    report = build(location)
    assert seen(report) == 3
    as_built_anew(location, docs)


def test_a_root_that_vanishes_during_the_walk_takes_nothing_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, FILES)
    build(location, docs)
    before = answers(location, "harbour", 50)
    walk = run.walk

    def vanishing(*arguments: Any, **options: Any) -> Iterator[Found | LeftOut]:
        for item in walk(*arguments, **options):
            yield item
            shutil.rmtree(docs, ignore_errors=True)

    with monkeypatch.context() as patched:
        patched.setattr(run, "walk", vanishing)
        with pytest.raises(UsageError, match="went away"):
            build(location)
    assert answers(location, "harbour", 50) == before
    write_files(docs, FILES)
    build(location)
    as_built_anew(location, docs)


@pytest.mark.parametrize("when", ["scan", "hash"])
def test_the_first_interrupt_ends_the_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, FILES)
    build(location, docs)
    before = answers(location, "harbour", 50)
    (docs / "a/0.txt").write_text("other", encoding="utf-8")
    (docs / "b").rename(docs / "d")
    looked: list[object] = []
    real_walk, real_read = run.walk, plan.read_bytes

    def walk(*arguments: Any) -> Iterator[Found | LeftOut]:
        if when == "scan":
            signal.raise_signal(signal.SIGINT)
        for item in real_walk(*arguments):
            looked.append(item)
            yield item

    def read_bytes(*arguments: Any) -> object:
        signal.raise_signal(signal.SIGINT)
        looked.append(arguments)
        return real_read(*arguments)

    monkeypatch.setattr(run, "walk", walk)
    monkeypatch.setattr(plan, "read_bytes", read_bytes)
    report = build(location)
    assert report.interrupted
    assert report.counts == Counts()
    assert len(looked) == (1 if when == "scan" else len(FILES) + 1)
    assert answers(location, "harbour", 50) == before
    monkeypatch.undo()
    build(location)
    as_built_anew(location, docs)


def test_healing_ends_with_the_first_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, FILES)
    build(location, docs)
    monkeypatch.setattr(rebuild, "_BLOCK", 1)
    real = rebuild._texts
    blocks: list[object] = []

    def texts(*arguments: Any) -> Any:
        blocks.append(arguments)
        signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(rebuild, "_texts", texts)
    for segment in (location / "segments").glob("p*"):
        next(file for file in segment.iterdir() if file.stat().st_size).write_bytes(b"")
    with pytest.raises(IndexDamaged):
        answers(location, "harbour")
    build(location, full=True)
    assert len(blocks) == 1
    monkeypatch.undo()
    build(location)
    as_built_anew(location, docs)
