"""Two writers, and a writer with ten readers, as real processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import answers, build, write_files

from ragcli.errors import IndexBusy
from ragcli.store.lock import write_lock

READER = """
import sys, time
from pathlib import Path
from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index
end, seen = time.monotonic() + float(sys.argv[2]), set()
asked = 0
while time.monotonic() < end:
    with Index.open(Path(sys.argv[1])) as index:
        hits = Retriever(index).search(SearchRequest("epoch harbour", 40)).hits
    epochs = {hit.text.split()[1] for hit in hits}
    assert len(hits) == 20, len(hits)
    assert len(epochs) == 1, epochs
    seen |= epochs
    asked += 1
print(asked, len(seen))
"""


def epoch(number: int) -> dict[str, str]:
    return {f"{i}.txt": f"epoch n{number} harbour file{i}" for i in range(20)}


@pytest.mark.slow
def test_ten_readers_beside_a_writer_never_see_half_a_commit(tmp_path: Path) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, epoch(0))
    build(location, docs)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READER, str(location), "12"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(10)
    ]
    number = 0
    while any(reader.poll() is None for reader in readers):
        number += 1
        write_files(docs, epoch(number))
        assert build(location).counts.indexed == 20
    results = [reader.communicate() for reader in readers]
    assert [err for _, err in results if err] == []
    assert [reader.returncode for reader in readers] == [0] * 10
    assert number >= 5
    assert max(int(out.split()[1]) for out, _ in results) >= 3, results


@pytest.mark.slow
def test_two_writers_take_turns(tmp_path: Path) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, epoch(0))
    command = [
        sys.executable, "-m", "ragcli", "index", str(docs), "--index", str(location), "--json",
    ]  # fmt: skip
    writers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    results = [writer.communicate(timeout=60) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4, results
    fresh = tmp_path / "fresh"
    build(fresh, docs, encoder="minilm")
    assert answers(location, "harbour file7", 20) == answers(fresh, "harbour file7", 20)


def test_a_second_writer_is_told_after_its_wait(tmp_path: Path) -> None:
    with write_lock(tmp_path, 0.0):
        refused: list[BaseException] = []

        def second() -> None:
            try:
                with write_lock(tmp_path, 0.2):
                    pass
            except IndexBusy as error:
                refused.append(error)

        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        assert refused
    with write_lock(tmp_path, 0.0):
        pass
