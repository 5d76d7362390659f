"""Vectors made for a question and kept: what is refused, and several processes at it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import build, write_files
from neural import FakeEncoder

from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store import segments
from ragcli.store.catalog import Catalog
from ragcli.store.index import Index
from ragcli.store.keeping import keep_vectors
from ragcli.store.lock import write_lock

pytestmark = pytest.mark.usefixtures("fake")
NAMES = [f"{number:03}.txt" for number in range(120)]

ASK = """
import sys, time
from pathlib import Path
import neural
neural.install()
from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index
location, end, kept = Path(sys.argv[1]), time.monotonic() + float(sys.argv[2]), 0
for number in range(1000):
    with Index.open(location) as index:
        retriever = Retriever(index)
        found = retriever.search(SearchRequest(f"crane word{number % 7}", 5))
    assert len(found.hits) == 5
    began = time.monotonic()
    kept += retriever.keep()
    assert time.monotonic() - began < 5
    if time.monotonic() > end:
        break
print(kept)
"""

RUN = """
import sys
from pathlib import Path
import neural
neural.install()
from ragcli.indexing import index_folder, run
run.COMMIT_SECONDS = 0.05
report = index_folder(Path(sys.argv[1]), [], {})
print(report.chunks, report.embedded)
"""


@pytest.fixture
def location(tmp_path: Path) -> Path:
    texts = {name: f"Harbour crane {name} word{i % 7}." for i, name in enumerate(NAMES)}
    write_files(tmp_path / "docs", texts)
    build(tmp_path / "rag", tmp_path / "docs", encoder="fake", lazy=True)
    return tmp_path / "rag"


def stored(location: Path) -> dict[int, str]:
    with Index.open(location) as index:
        return dict(index.catalog.connection.execute("SELECT id, text FROM chunks"))


def counts(location: Path) -> tuple[int, int]:
    with Index.open(location) as index:
        return index.counts()


def keep(location: Path, passages: list[tuple[int, str]], fingerprint: str = "fake/1") -> bool:
    encoded = FakeEncoder().encode_documents([text for _, text in passages])
    return keep_vectors(location, fingerprint, passages, encoded)


def python(program: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_what_is_kept_is_what_a_run_would_have_made(location: Path, tmp_path: Path) -> None:
    passages = list(stored(location).items())
    assert keep(location, passages[::-1])
    assert counts(location) == (120, 120)
    FakeEncoder.texts.clear()
    assert build(location).embedded == 120
    assert FakeEncoder.texts == []
    build(tmp_path / "fresh", tmp_path / "docs", encoder="fake")
    question = SearchRequest("word3 crane", 30, mode="dense")
    found = []
    for place in (location, tmp_path / "fresh"):
        with Index.open(place) as index:
            hits = Retriever(index).search(question).hits
            found.append([(hit.path, hit.score, hit.dense) for hit in hits])
    assert found[0] == found[1]


def test_small_segments_are_merged(location: Path) -> None:
    for passage in list(stored(location).items())[:30]:
        assert keep(location, [passage])
    assert counts(location) == (120, 30)
    assert len(list((location / "segments").glob("v-*"))) < 8
    for log in location.glob("catalog.sqlite-wal"):
        assert log.stat().st_size == 0


def test_what_is_gone_changed_or_there_is_left_out(location: Path, tmp_path: Path) -> None:
    old = stored(location)
    assert keep(location, list(old.items())[:3])
    write_files(tmp_path / "docs", {NAMES[5]: "Quite another text."})
    (tmp_path / "docs" / NAMES[6]).unlink()
    build(location, lazy=True)
    assert keep(location, [*old.items(), (999_999, "No such chunk.")])
    assert counts(location) == (119, 118)
    new = stored(location)
    [(chunk, text)] = [item for item in new.items() if item[1] == "Quite another text."]
    assert keep(location, [(chunk, "The text that had this number before.")])
    assert counts(location) == (119, 118)
    assert keep(location, [(chunk, text)])
    assert counts(location) == (119, 119)


def test_where_it_cannot_be_kept_it_is_not(location: Path, tmp_path: Path) -> None:
    passages = list(stored(location).items())[:3]
    assert not keep(location, passages, "fake/2")
    assert not keep(tmp_path / "nowhere", passages)
    with write_lock(location, 0.0):
        began = time.monotonic()
        assert not keep(location, passages)
        assert time.monotonic() - began < 1
    other = sqlite3.connect(location / "catalog.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    assert not keep(location, passages)
    assert time.monotonic() - began < 2
    other.close()
    assert counts(location) == (120, 0)
    assert keep(location, passages)
    shutil.rmtree(location)
    location.mkdir()
    assert not keep(location, passages)
    assert list(location.iterdir()) == []


def test_a_disk_that_is_full_is_no_error(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(segments, "_save", full)
    assert not keep(location, list(stored(location).items())[:3])
    monkeypatch.undo()
    assert counts(location) == (120, 0)
    catalog = Catalog.open_write(location)
    with catalog.transaction():
        catalog.put("nothing", "was left open")
    catalog.close()


def test_a_retriever_keeps_once_and_reuses(location: Path) -> None:
    with Index.open(location) as index:
        retriever = Retriever(index)
        assert retriever.search(SearchRequest("crane word1")).embedded_now == 50
        assert retriever.search(SearchRequest("crane word1")).embedded_now == 0
        assert retriever.keep()
        assert retriever.search(SearchRequest("word2")).embedded_now > 0
    assert counts(location)[1] == 50
    assert retriever.keep()
    assert counts(location)[1] == len(FakeEncoder.texts)
    assert retriever.keep()


@pytest.mark.slow
def test_several_keep_at_once(location: Path) -> None:
    processes = [python(ASK, location, 2) for _ in range(3)]
    results = [process.communicate(timeout=60) for process in processes]
    assert [error for _, error in results] == ["", "", ""]
    assert sum(int(out) for out, _ in results) > 0
    assert counts(location) == (120, 120)
    with Index.open(location) as index:
        held = np.concatenate([segment.chunks for segment in index.view().vectors])
    assert len(held) == len(set(held.tolist())) == 120


@pytest.mark.slow
def test_keeping_beside_a_run(location: Path, tmp_path: Path) -> None:
    writer = python(RUN, location, FAKE_SECONDS="0.02")
    readers = [python(ASK, location, 2) for _ in range(2)]
    seen = set()
    while writer.poll() is None:
        seen.add(counts(location)[1])
    results = [process.communicate(timeout=60) for process in (writer, *readers)]
    assert [error for _, error in results] == ["", "", ""]
    assert results[0][0] == "120 120\n"
    assert len(seen) >= 3, seen
    assert counts(location) == (120, 120)
