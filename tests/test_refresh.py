"""`query --refresh`: what little changed is taken in first, and the answer is a fresh index's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from conftest import answers, build, write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcli.cli.app import run
from ragcli.corpus.walk import Found, LeftOut
from ragcli.indexing import brief, index_folder, plan, refresh
from ragcli.indexing import run as run_module
from ragcli.indexing.refresh import Refresh
from ragcli.store.catalog import Catalog
from ragcli.store.index import Index
from ragcli.store.lock import write_lock

FILES = {
    "ports.md": "# Ports\n\nThe dashboard listens on port 8443.\n",
    "crane.txt": "The harbour crane lifts forty tonnes.\n\nCranes close at night.\n",
    "sub/tea.txt": "Tea is served at four.\n",
}
OLD = 1_700_000_000_000_000_000
"""A time at which nothing is racy."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with `docs`, indexed by words."""
    monkeypatch.delenv("RAGCLI_INDEX", raising=False)
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path / "docs", FILES)
    for path in (tmp_path / "docs").rglob("*.*"):
        os.utime(path, ns=(OLD, OLD))
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    return tmp_path


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def asked(*arguments: str) -> tuple[int, str, str]:
        code = run(["query", *arguments])
        return code, *capsys.readouterr()

    return asked


def files_of(location: Path) -> set[str]:
    with Index.open(location) as index:
        return {os.fsdecode(path) for path in index.catalog.column("SELECT path FROM files")}


def test_what_little_changed_is_in_the_answer(here: Path, ask) -> None:
    docs = here / "docs"
    (docs / "ports.md").write_text("# Ports\n\nThe dashboard listens on port 9000.\n")
    (docs / "new.txt").write_text("The lighthouse keeper sleeps.\n")
    (docs / "crane.txt").unlink()
    code, out, err = ask("lighthouse port", "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["index"]["refresh"] == {
        "changed": 1, "came": 1, "went": 1, "taken": True, "busy": False, "left": 0, "failed": 0,
        "away": False,
    }  # fmt: skip
    assert {hit["path"]: hit["stale"] for hit in result["hits"]} == {
        "new.txt": False, "ports.md": False,
    }  # fmt: skip
    assert "9000" in result["prompt"]
    _, out, _ = ask("lighthouse port", "--json")
    assert json.loads(out)["index"]["refresh"] == {
        "changed": 0, "came": 0, "went": 0, "taken": False, "busy": False, "left": 0, "failed": 0,
        "away": False,
    }  # fmt: skip


def test_it_is_said_in_one_line_and_only_where_something_changed(here: Path, ask) -> None:
    assert ask("crane")[2] == ""
    (here / "docs" / "ports.md").write_text("other words here\n")
    (here / "docs" / "crane.txt").rename(here / "docs" / "lift.txt")
    code, out, err = ask("crane")
    assert code == 0
    assert "lift.txt" in out
    line = "ragcli: files since they were indexed: 1 changed, 1 new, 1 gone; taken in\n"
    assert err == line
    (here / "docs" / "ports.md").write_text("others again\n")
    assert ask("crane", "--quiet")[2] == ""
    assert files_of(here / ".rag") == {"ports.md", "lift.txt", "sub/tea.txt"}


def test_touched_is_not_changed(here: Path, ask) -> None:
    (here / "docs" / "crane.txt").touch()
    assert ask("crane")[2] == ""
    assert refresh.refresh(here / ".rag") == Refresh()


def test_never_does_not_look_and_stale_is_told(here: Path, ask) -> None:
    (here / "docs" / "crane.txt").write_text("gone\n")
    code, out, _ = ask("crane", "--refresh", "never", "--json")
    result = json.loads(out)
    assert (code, result["index"]["refresh"]) == (0, None)
    assert result["hits"][0]["stale"] is True
    assert "changed or gone" in ask("crane", "--refresh", "never")[2]


def test_much_is_only_told_and_always_takes_it_in(here: Path, ask) -> None:
    write_files(here / "docs", {f"many/{i}.txt": f"buoy number {i}\n" for i in range(60)})
    (here / "docs" / "crane.txt").write_text("changed crane\n")
    code, out, err = ask("crane", "--show", "table")
    assert code == 0
    assert err.startswith(
        "ragcli: files since they were indexed: 1 changed, 60 new; ragcli index takes them in\n"
    )
    assert "changed or gone" in err
    assert len(files_of(here / ".rag")) == 3
    code, out, err = ask("buoy", "--refresh", "always", "--json")
    assert json.loads(out)["index"]["refresh"]["taken"] is True
    assert len(files_of(here / ".rag")) == 63


def test_a_large_file_is_only_told(here: Path, ask) -> None:
    (here / "docs" / "large.txt").write_text("buoy and crane\n" * 30_000)
    assert "1 new; ragcli index takes them in" in ask("crane")[2]
    assert files_of(here / ".rag") == set(FILES)


def test_a_busy_index_is_not_waited_for(here: Path, ask) -> None:
    with write_lock(here / ".rag", 0.0):
        assert ask("crane")[2] == ""
        (here / "docs" / "ports.md").write_text("other\n")
        code, _, err = ask("crane")
        assert code == 0
        assert err == (
            "ragcli: files since they were indexed: 1 changed; not taken in, another ragcli is "
            "writing the index\n"
        )


def test_a_copied_index_is_left_alone(here: Path, ask, monkeypatch) -> None:
    # Its root leads to the folder that it lies in now, which has files of its own.
    build(here / "docs" / ".rag", here / "docs", encoder="none")
    other = here / "other"
    other.mkdir()
    (other / "readme.txt").write_text("something else\n")
    shutil.copytree(here / "docs" / ".rag", other / ".rag")
    monkeypatch.chdir(other)
    _, out, _ = ask("crane", "--json")
    assert json.loads(out)["index"]["refresh"] is None
    assert files_of(other / ".rag") == set(FILES)


@pytest.mark.parametrize("how", ["away", "empty"])
def test_sources_that_are_gone_are_not_forgotten(here: Path, ask, how: str) -> None:
    (here / "docs").rename(here / "elsewhere")
    if how == "empty":
        (here / "docs").mkdir()
    code, out, _ = ask("crane", "--json")
    assert code == 0
    told = json.loads(out)["index"]["refresh"]
    if how == "away":
        assert told is None
    else:
        assert (told["went"], told["left"], told["away"]) == (3, 3, True)
        assert "none of the 3 files of the index is there now" in ask("crane")[2]
    assert files_of(here / ".rag") == set(FILES)
    assert ask("crane", "--refresh", "always")[0] == 2


def test_a_folder_of_other_files_is_told(here: Path, ask) -> None:
    """It cannot be told from one that is not mounted, and was passed over in silence."""
    shutil.rmtree(here / "docs")
    write_files(here / "docs", {"walrus.md": "The walrus sleeps.\n"})
    code, _, err = ask("walrus")
    assert code == 1
    assert "none of the 3 files of the index is there now, and 1 are new; if that is right" in err


def test_what_is_not_found_where_nobody_looked_is_said(here: Path, ask, monkeypatch) -> None:
    monkeypatch.setattr(refresh, "LOOKED_AT", 2)
    (here / "docs" / "ports.md").write_text("ostrich\n")
    told = "the folder was not looked at for changes: ragcli index"
    assert told in ask("ostrich")[2]
    assert told not in ask("crane")[2]


def test_an_index_of_many_files_is_not_looked_at(here: Path, ask, monkeypatch) -> None:
    monkeypatch.setattr(refresh, "LOOKED_AT", 2)
    (here / "docs" / "ports.md").write_text("other\n")
    assert json.loads(ask("crane", "--json")[1])["index"]["refresh"] is None
    # Nor a folder that has many, of which the index knows few.
    monkeypatch.setattr(refresh, "LOOKED_AT", 4)
    write_files(here / "docs", {f"{i}.png": "" for i in range(9)})
    assert refresh.refresh(here / ".rag") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_index_that_cannot_be_written_is_not_looked_at(here: Path, ask) -> None:
    (here / "docs" / "ports.md").write_text("other\n")
    (here / ".rag").chmod(0o555)
    try:
        assert json.loads(ask("crane", "--json")[1])["index"]["refresh"] is None
    finally:
        (here / ".rag").chmod(0o755)


def test_settings_stay_and_a_failed_file_is_not_tried_each_time(here: Path, ask) -> None:
    (here / "docs" / "broken.pdf").write_bytes(b"%PDF-1.7\nnot really\n")
    os.utime(here / "docs" / "broken.pdf", ns=(OLD, OLD))
    index_folder(here / ".rag", (), {"exclude": ("*.bak",)})
    with Index.open(here / ".rag") as index:
        before = index.settings
    assert refresh.refresh(here / ".rag") == Refresh()
    (here / "docs" / "x.bak").write_text("crane")
    (here / "docs" / "y.txt").write_text("crane")
    assert refresh.refresh(here / ".rag") == Refresh(came=1, taken=True)
    with Index.open(here / ".rag") as index:
        assert index.settings == before
        assert index.problem_count == 1


def test_a_batch_is_preceded_by_one_look(here: Path, ask, monkeypatch) -> None:
    looks = []
    real = refresh.refresh
    monkeypatch.setattr(refresh, "refresh", lambda place: looks.append(place) or real(place))
    (here / "docs" / "new.txt").write_text("lighthouse\n")
    (here / "questions.jsonl").write_text('{"id": 1, "question": "lighthouse"}\n' * 3)
    code, out, _ = ask("--batch", "questions.jsonl", "--json")
    assert code == 0
    assert len(looks) == 1
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["hits"][0]["path"] for line in lines] == ["new.txt"] * 3
    assert all(line["index"]["refresh"]["taken"] for line in lines)


def test_the_closed_book_looks_nowhere(tmp_path: Path, monkeypatch, ask) -> None:
    monkeypatch.chdir(tmp_path)
    assert ask("crane", "-k", "0")[0] == 0


def test_only_plain_kinds_are_read_and_of_the_others_is_told(here: Path, ask, monkeypatch) -> None:
    (here / "docs" / "letter.docx").write_bytes(b"PK\x03\x04 as if")
    assert refresh.refresh(here / ".rag") == Refresh(came=1, left=1)
    (here / "docs" / "crane.txt").write_text("The lighthouse keeper sleeps.\n")
    code, out, err = ask("lighthouse", "--show", "table")
    assert code == 0
    assert err == (
        "ragcli: files since they were indexed: 1 changed, 1 new; taken in but 1, which ragcli "
        "index takes in\n"
    )
    assert "crane.txt" in out
    assert files_of(here / ".rag") == set(FILES)
    time.sleep(0.15)  # until the stat of what was just written proves something
    assert refresh.refresh(here / ".rag") == Refresh(came=1, left=1)
    # What is only told is no reason to hold the index for writing.
    with write_lock(here / ".rag", 0.0):
        assert refresh.refresh(here / ".rag") == Refresh(came=1, left=1)


def test_a_file_of_many_passages_is_not_dropped_meanwhile(here: Path) -> None:
    record = '{{"id": "{0}", "text": "buoy {0}"}}\n'
    many = "".join(record.format(i) for i in range(brief.PASSAGES + 1))
    write_files(here / "docs", {"many.jsonl": many, "few.jsonl": record.format(1)})
    for name in ("many.jsonl", "few.jsonl"):
        os.utime(here / "docs" / name, ns=(OLD, OLD))
    index_folder(here / ".rag")
    (here / "docs" / "few.jsonl").unlink()
    assert refresh.refresh(here / ".rag") == Refresh(went=1, taken=True)
    (here / "docs" / "many.jsonl").write_text(record.format(1))
    assert refresh.refresh(here / ".rag") == Refresh(changed=1, left=1)
    (here / "docs" / "many.jsonl").unlink()
    assert refresh.refresh(here / ".rag") == Refresh(went=1, left=1)
    assert "many.jsonl" in files_of(here / ".rag")


def test_a_large_file_that_was_renamed_is_taken_in(here: Path, monkeypatch) -> None:
    docs = here / "docs"
    (docs / "large.txt").write_text("buoy and crane\n" * 30_000)
    os.utime(docs / "large.txt", ns=(OLD, OLD))
    index_folder(here / ".rag")
    (docs / "other").mkdir()
    (docs / "large.txt").rename(docs / "other" / "large.txt")
    assert refresh.refresh(here / ".rag") == Refresh(came=1, went=1, taken=True)
    # So much that comparing contents would take long is not looked into.
    monkeypatch.setattr(brief, "MOVED_BYTES", 100_000)
    (docs / "other" / "large.txt").rename(docs / "large.txt")
    monkeypatch.setattr(plan, "read_bytes", None)
    assert refresh.refresh(here / ".rag") == Refresh(came=1, went=1, left=2)


def test_text_that_is_lost_is_told(here: Path, ask) -> None:
    (here / "docs" / "crane.txt").write_bytes(b"\x7fELF\0\1\2" * 100)
    (here / "docs" / "ports.md").write_text("# Ports\n\nThe dashboard listens on port 9.\n")
    assert ask("port")[2] == (
        "ragcli: files since they were indexed: 2 changed; taken in; 1 without text now: "
        "ragcli inspect --problems\n"
    )
    assert refresh.refresh(here / ".rag") == Refresh()


@pytest.mark.parametrize("how", ["gone", "emptied"])
def test_a_part_of_the_folder_that_is_away_is_not_forgotten(here: Path, ask, how: str) -> None:
    write_files(here / "docs", {"sub/milk.txt": "milk for the tea\n"})
    index_folder(here / ".rag")
    (here / "docs" / "sub" / "milk.txt").unlink()
    assert refresh.refresh(here / ".rag") == Refresh(went=1, taken=True)
    (here / "docs" / "sub" / "tea.txt").unlink()
    if how == "gone":
        (here / "docs" / "sub").rmdir()
    (here / "docs" / "ports.md").write_text("other\n")
    assert refresh.refresh(here / ".rag") == Refresh(changed=1, went=1, left=1)
    assert refresh.refresh(here / ".rag") == Refresh(went=1, left=1)
    assert files_of(here / ".rag") == set(FILES)
    assert "1 gone; ragcli index takes them in" in ask("tea")[2]
    assert index_folder(here / ".rag").counts.removed == 1


def test_what_cannot_be_looked_at_is_only_told(here: Path, monkeypatch) -> None:
    real = refresh.walk

    def walk(*arguments: Any) -> Iterator[Found | LeftOut]:
        for item in real(*arguments):
            hidden = item.path.startswith("sub/")
            yield LeftOut(item.path, "permission denied") if hidden else item

    monkeypatch.setattr(refresh, "walk", walk)
    monkeypatch.setattr(run_module, "walk", walk)
    (here / "docs" / "ports.md").write_text("other\n")
    assert refresh.refresh(here / ".rag") == Refresh(changed=1, went=1, left=1)
    with Index.open(here / ".rag") as index:
        assert index.problem_count == 0
        assert index.catalog.count("documents") == 3


def test_a_file_dated_in_the_future_starts_no_run(here: Path, monkeypatch) -> None:
    future = time.time_ns() + 10**18
    os.utime(here / "docs" / "crane.txt", ns=(future, future))
    time.sleep(0.15)
    index_folder(here / ".rag")
    monkeypatch.setattr(run_module, "Run", None)
    assert refresh.refresh(here / ".rag") == Refresh()
    monkeypatch.undo()
    (here / "docs" / "crane.txt").write_text("Cranes everywhere.\n")
    os.utime(here / "docs" / "crane.txt", ns=(future, future))
    assert refresh.refresh(here / ".rag") == Refresh(changed=1, taken=True)


def test_always_tells_the_same_as_a_look(here: Path) -> None:
    docs = here / "docs"
    (docs / "ports.md").write_text("other words\n")
    (docs / "crane.txt").rename(docs / "lift.txt")
    (docs / "new.txt").write_text("lighthouse\n")
    (docs / "sub" / "tea.txt").touch()
    assert refresh.take_in(here / ".rag") == Refresh(changed=1, came=2, went=1, taken=True)
    assert refresh.take_in(here / ".rag") == Refresh()


def test_an_interrupt_ends_the_question(here: Path, monkeypatch) -> None:
    (here / "docs" / "ports.md").write_text("other words\n")
    real = run_module.known_files

    def known_files(catalog: Catalog) -> object:
        signal.raise_signal(signal.SIGINT)
        return real(catalog)

    monkeypatch.setattr(run_module, "known_files", known_files)
    for take in (refresh.refresh, refresh.take_in):
        with pytest.raises(KeyboardInterrupt):
            take(here / ".rag")
    monkeypatch.undo()
    assert refresh.refresh(here / ".rag") == Refresh(changed=1, taken=True)


NAMES = ["a.md", "b.txt", "sub/c.txt", ".ragcliignore"]
TEXTS = ["The crane lifts.", "Tea at four.", "harbour crane\n\ncranes", "*.md", ""]
steps = st.lists(
    st.tuples(st.sampled_from(["write", "delete", "rename"]), st.sampled_from(NAMES),
              st.sampled_from(TEXTS), st.sampled_from(NAMES)), min_size=1, max_size=5,
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(edits=st.lists(steps, min_size=1, max_size=3), encoder=st.sampled_from(["none", "hash"]))
def test_after_a_refresh_hits_are_those_of_a_fresh_index(
    edits: list[list[tuple[str, str, str, str]]], encoder: str
) -> None:
    with TemporaryDirectory() as folder:
        root, location = Path(folder, "docs"), Path(folder, ".rag")
        write_files(root, {**FILES, "keep.txt": "a crane that stays"})
        build(location, root, encoder=encoder)
        for number, some in enumerate(edits):
            for kind, name, text, other in some:
                path = root / name
                if kind == "write":
                    write_files(root, {name: text})
                elif path.exists() and kind == "delete":
                    path.unlink()
                elif path.exists() and name != other:
                    (root / other).parent.mkdir(exist_ok=True)
                    path.replace(root / other)
            assert refresh.refresh(location) is not None
            fresh = Path(folder, f"fresh{number}")
            build(fresh, root, encoder=encoder)
            for question in ("crane harbour", "tea four", "port"):
                assert answers(location, question) == answers(fresh, question)
            assert refresh.refresh(location) == Refresh()


def test_the_look_loads_no_reader(here: Path) -> None:
    program = (
        "import sys; from ragcli.cli.app import run; code = run(['query', 'crane', '--quiet']);"
        "print('loaded:', *sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=here
    )
    loaded = set(done.stderr.rpartition("loaded:")[2].split())
    assert "ragcli.indexing.refresh" in loaded
    assert loaded & {
        "ragcli.corpus.readers", "ragcli.corpus.source", "ragcli.indexing.analysis",
        "ragcli.indexing.run", "pathspec", "asyncio",
    } == set()  # fmt: skip
