"""Two writers, and writers with readers, as real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import answers, build, write_files
from soak import soak

from ragcli.errors import IndexBusy
from ragcli.store.lock import write_lock

SECONDS = float(os.environ.get("RAGCLI_SOAK_SECONDS", "16"))


def epoch(number: int) -> dict[str, str]:
    return {f"{i}.txt": f"epoch n{number} harbour file{i}" for i in range(20)}


@pytest.mark.slow
def test_readers_and_writers_that_are_killed_never_see_half_a_commit(tmp_path: Path) -> None:
    done = soak(tmp_path / "rag", SECONDS, readers=6, writers=2)
    print(done)
    assert done["wrong"] == []
    assert int(str(done["queries"])) >= 6
    assert int(str(done["commits"])) >= 2
    assert done["writers killed"]


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
