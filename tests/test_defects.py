"""One test for each defect that was found in use, with the right value in it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import answers, build, write_files

from ragcli.errors import IndexDamaged, IndexForeign, IndexUnavailable, UsageError
from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index, locate

FILES = {
    f"{name}.txt": f"Harbour crane number {name}. Tea is served at {i}.\n\nA lighthouse {i * i}."
    for i, name in enumerate(["one", "two", "three", "four", "five", "six"])
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    write_files(tmp_path / "docs", FILES)
    return tmp_path / "docs"


@pytest.mark.parametrize("array", ["counts", "lengths", "chunks", "rows"])
@pytest.mark.parametrize("at", [20, -1])
def test_changed_bytes_of_the_same_length_are_mended(
    docs: Path, tmp_path: Path, array: str, at: int
) -> None:
    location = tmp_path / "rag"
    build(location, docs)
    before = answers(location, "harbour lighthouse")
    [path] = location.glob(f"segments/p-*/{array}.npy")
    raw = bytearray(path.read_bytes())
    raw[at] ^= 0x55
    path.write_bytes(raw)
    build(location, full=True)
    assert answers(location, "harbour lighthouse") == before
    raw = bytearray((path := next(location.glob(f"segments/p-*/{array}.npy"))).read_bytes())
    raw[at] ^= 0x55
    path.write_bytes(raw)
    write_files(docs, {"one.txt": "Quite another text."})
    build(location)
    build(tmp_path / "fresh", docs)
    assert answers(location, "harbour lighthouse") == answers(
        tmp_path / "fresh", "harbour lighthouse"
    )


def test_a_broken_header_is_damage_with_the_right_hint(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs)
    [path] = (tmp_path / "rag").glob("segments/v-*/frequencies.npy")
    raw = bytearray(path.read_bytes())
    raw[70] = ord("(")
    path.write_bytes(raw)
    with pytest.raises(IndexDamaged) as caught:
        answers(tmp_path / "rag", "harbour", mode="dense")
    assert "--full" in (caught.value.hint or "")


def test_a_rename_beside_a_new_chunking_is_read_again(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs, chunk="words:3")
    (docs / "one.txt").rename(docs / "seven.txt")
    build(tmp_path / "rag", chunk="words:5")
    build(tmp_path / "fresh", docs, chunk="words:5")
    assert answers(tmp_path / "rag", "harbour crane", 50) == answers(
        tmp_path / "fresh", "harbour crane", 50
    )


def test_an_open_reader_does_not_hold_up_a_writer(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs)
    with Index.open(tmp_path / "rag") as index:
        assert index.counts() == (6, 6)
        write_files(docs, {"one.txt": "Quite another text."})
        began = time.monotonic()
        build(tmp_path / "rag")
        assert time.monotonic() - began < 10
    build(tmp_path / "rag")
    assert not (tmp_path / "rag" / "catalog.sqlite-wal").exists() or not (
        (tmp_path / "rag" / "catalog.sqlite-wal").stat().st_size
    )


def test_nothing_is_written_into_another_programs_folder(docs: Path, tmp_path: Path) -> None:
    theirs = tmp_path / ".rag"
    theirs.mkdir()
    connection = sqlite3.connect(theirs / "catalog.sqlite")
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(IndexForeign):
        build(theirs, docs)
    assert [path.name for path in theirs.iterdir()] == ["catalog.sqlite"]
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(IndexForeign) as caught:
        build(tmp_path / "file", docs)
    assert "is a file" in caught.value.message


@pytest.mark.parametrize("fusion", ["mix", "rrf"])
def test_k_does_not_change_the_order(tmp_path: Path, fusion: str) -> None:
    texts = {f"{i:03}.txt": f"harbour {'crane ' * (i % 7)} word{i % 13}" for i in range(150)}
    write_files(tmp_path / "docs", texts)
    build(tmp_path / "rag", tmp_path / "docs")
    with Index.open(tmp_path / "rag") as index:
        retriever = Retriever(index)
        few, many = (
            [
                hit.path
                for hit in retriever.search(
                    SearchRequest("crane word3 harbour", k, fusion=fusion)
                ).hits
            ]
            for k in (5, 140)
        )
    assert few == many[:5]


def test_a_word_that_stands_nowhere_finds_nothing(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs, dim=2)
    assert answers(tmp_path / "rag", "zzzqqq") == []
    assert answers(tmp_path / "rag", "zzzqqq", mode="dense")


def test_a_root_that_is_empty_now_is_not_taken_at_its_word(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs)
    shutil.rmtree(docs)
    docs.mkdir()
    with pytest.raises(UsageError) as caught:
        build(tmp_path / "rag")
    assert "6 files" in caught.value.message
    assert answers(tmp_path / "rag", "harbour")
    assert build(tmp_path / "rag", full=True).counts.removed == 6


def test_a_named_file_that_is_gone_is_removed(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs / "one.txt", docs / "two.txt")
    (docs / "two.txt").unlink()
    counts = build(tmp_path / "rag").counts
    assert (counts.unchanged, counts.removed, counts.failed) == (1, 1, 0)


def test_records_without_text_are_in_the_ledger(tmp_path: Path) -> None:
    lines = ['{"id": "a", "text": "Harbour."}', '{"id": "b", "text": ""}', '{"id": "c"}']
    write_files(tmp_path / "docs", {"corpus.jsonl": "\n".join(lines)})
    report = build(tmp_path / "rag", tmp_path / "docs")
    assert [(p.kind, p.message) for p in report.problems] == [
        ("empty", "2 without text among the records, first b")
    ]


def test_a_dimension_beyond_reason_is_refused(docs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        build(tmp_path / "rag", docs, dim=1_000_000_000)


def test_an_empty_path_filter_is_refused(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs)
    with Index.open(tmp_path / "rag") as index, pytest.raises(UsageError):
        Retriever(index).search(SearchRequest("harbour", paths=("",)))


def test_where_one_cannot_look_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(IndexUnavailable) as caught:
        locate(tmp_path)
    assert "Permission denied" in caught.value.message


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_two_interrupts_end_the_run_without_a_traceback(tmp_path: Path) -> None:
    text = "\n\n".join(f"Harbour crane number {i} lifts word{i}." for i in range(20_000))
    write_files(tmp_path / "docs", {f"{i}.txt": text for i in range(12)})
    command = [
        sys.executable, "-m", "ragcli", "index", str(tmp_path / "docs"),
        "--index", str(tmp_path / "rag"), "--encoder", "none",
    ]  # fmt: skip
    for pause in (0.05, 0.4):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in err, err
        assert process.returncode in (0, 130), (out, err)
