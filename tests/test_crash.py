"""SIGKILL at the write boundaries of indexing and merging; a full disk; a read-only index."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import answers, build, write_files

from ragcli.errors import IndexUnavailable
from ragcli.store.index import Index

CRASHPOINT = Path(__file__).with_name("crashpoint.py")
EVERY = int(os.environ.get("RAGCLI_CRASH_EVERY", "7"))
"""Every so many boundaries one is tried; 1 tries them all."""

OLD = {f"{i}.txt": f"Old words {i}. Harbour crane number {i}." for i in range(6)}
NEW = {
    **{f"{i}.txt": OLD[f"{i}.txt"] for i in (0, 1)},
    "2.txt": "New words 2. Lighthouse lamp.",
    "moved.txt": OLD["3.txt"],
    "7.txt": "New words 7. Harbour lamp.",
}
QUESTIONS = ["harbour crane", "lighthouse lamp", "new words", "old words number"]


def run(at: int, encoder: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CRASHPOINT), str(at), encoder, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def everything(location: Path) -> list[object]:
    return [answers(location, question, 10) for question in QUESTIONS]


def file_texts(location: Path) -> dict[str, str]:
    with Index.open(location) as index:
        rows = index.catalog.connection.execute(
            "SELECT f.path, group_concat(c.text, ' ') FROM files f JOIN documents d ON"
            " d.file = f.id JOIN chunks c ON c.document = d.id GROUP BY f.id"
        ).fetchall()
    return {path.decode(): text for path, text in rows}


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["hash", "fake"])
@pytest.mark.parametrize("first", [True, False], ids=["first run", "later run"])
def test_a_kill_at_any_boundary_loses_nothing(
    tmp_path: Path, first: bool, encoder: str, fake: object
) -> None:
    docs, start, fresh = tmp_path / "docs", tmp_path / "start", tmp_path / "fresh"
    write_files(docs, OLD)
    if not first:
        build(start, docs, encoder=encoder)
    shutil.rmtree(docs)
    write_files(docs, NEW)
    build(fresh, docs, encoder=encoder)
    wanted = everything(fresh)
    trial = tmp_path / "trial"

    def prepare() -> None:
        shutil.rmtree(trial, ignore_errors=True)
        if not first:
            shutil.copytree(start, trial)

    prepare()
    boundaries = int(run(0, encoder, trial, docs).stdout)
    assert boundaries > 40
    tried = 0
    for at in range(1, boundaries + 1, EVERY):
        prepare()
        assert run(at, encoder, trial, docs).returncode == -9
        tried += 1
        if not first:
            texts = file_texts(trial)
            for name, text in texts.items():
                assert text in (OLD.get(name), NEW.get(name)), f"{name} at boundary {at}"
            assert texts.keys() >= {"0.txt", "1.txt"}
            everything(trial)
        build(trial, docs, encoder=encoder)
        assert everything(trial) == wanted, f"after boundary {at}"
        left = {path.name for path in (trial / "segments").iterdir()}
        assert not any(name.startswith(".") for name in left)
    print(f"{tried} of {boundaries} boundaries tried")


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_the_old_state_stays(tmp_path: Path) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, OLD)
    build(location, docs)
    before = everything(location)
    write_files(docs, {"big.txt": "\n\n".join(f"word{i} in a big file" for i in range(30_000))})

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    done = subprocess.run(
        [sys.executable, "-m", "ragcli", "index", "--index", str(location)],
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        check=False,
    )
    assert done.returncode == 3, done
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert everything(location) == before
    assert build(location).counts.indexed == 1
    assert answers(location, "word29999")


def as_a_user_without_power() -> list[str]:
    """A prefix that takes root's power to write anywhere, [] where there is none to take."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root can write anywhere, and setpriv is not here to take that away")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]


@pytest.mark.slow
def test_a_read_only_index_is_searched_and_not_written(tmp_path: Path) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, OLD)
    build(location, docs)
    (docs / "new.txt").write_text("Something new.")
    folders = [location, *(path for path in location.rglob("*") if path.is_dir())]
    for path in location.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    location.chmod(0o555)
    prefix = [*as_a_user_without_power(), sys.executable, "-m", "ragcli"]
    try:
        asked = subprocess.run(
            [*prefix, "query", "harbour crane", "-k", "1", "--index", str(location)],
            capture_output=True,
            text=True,
            check=False,
        )
        wrote = subprocess.run(
            [*prefix, "index", "--index", str(location)],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        for path in folders:
            path.chmod(0o755)
    assert asked.returncode == 0, asked
    assert "Harbour crane" in asked.stdout
    assert wrote.returncode == 3, wrote
    assert "Traceback" not in wrote.stderr
    assert "cannot be written" in wrote.stderr


def test_an_index_without_its_sources_answers(tmp_path: Path) -> None:
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, OLD)
    build(location, docs)
    before = answers(location, "harbour crane")
    shutil.rmtree(docs)
    shutil.move(location, tmp_path / "elsewhere")
    assert answers(tmp_path / "elsewhere", "harbour crane") == before


def test_a_catalogue_that_is_cut_is_one_clear_error(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", OLD)
    build(tmp_path / "rag", tmp_path / "docs")
    path = tmp_path / "rag" / "catalog.sqlite"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(IndexUnavailable):
        answers(tmp_path / "rag", "harbour crane")
    with pytest.raises(IndexUnavailable):
        build(tmp_path / "rag")
