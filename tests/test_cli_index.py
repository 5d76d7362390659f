"""`ragcli index`: what the options ask of the core, where the index goes, and the summary."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ragcli.cli import progress
from ragcli.cli.app import run
from ragcli.cli.output import Output
from ragcli.cli.reports.indexing import summary
from ragcli.corpus.walk import LeftOut
from ragcli.errors import IndexUnavailable, UsageError
from ragcli.indexing import index_folder, scope
from ragcli.indexing import run as run_module
from ragcli.records import Counts, IndexReport, Problem, Progress, Settings
from ragcli.store.catalog import FILE
from ragcli.store.index import Index


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with `docs` in it, and a home elsewhere."""
    folder = tmp_path / "work"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a.md").write_text("# A\n\nThe dashboard listens on port 8443.\n")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RAGCLI_INDEX", raising=False)
    monkeypatch.chdir(folder)
    return folder


def settings_of(location: Path) -> Settings:
    with Index.open(location) as index:
        return index.settings


def report(**more: object) -> IndexReport:
    return IndexReport(
        **{
            "root": "/r", "index": "/elsewhere/.rag", "counts": Counts(), "skipped": {},
            "chunks": 7, "embedded": 7, "documents": 3, "problems": (), "seconds": 1.25,
            "encoder": "hash", "chunking": "auto", **more,
        }  # type: ignore[arg-type]
    )  # fmt: skip


def test_settings_are_remembered_until_they_are_given_anew(work: Path, capsys) -> None:
    given = {
        "encoder": "hash", "chunk": "words:50", "glob": ("*.md", "*.txt"), "exclude": ("x*",),
        "hidden": True, "ignore": False, "follow": True, "max_file_size": 500 * 1024, "dim": 64,
        "normalise": False,
    }  # fmt: skip
    assert run([
        "index", "docs", "--encoder", "hash", "--chunk", "words:50", "--glob", "*.md", "--glob",
        "*.txt", "--exclude", "x*", "--hidden", "--no-ignore", "--follow", "--max-file-size",
        "500k", "--dim", "64", "--no-normalise",
    ]) == 0  # fmt: skip
    assert settings_of(work / ".rag") == Settings(**given)
    assert run(["index"]) == 0
    assert settings_of(work / ".rag") == Settings(**given)
    assert run(["index", "--no-hidden", "--ignore", "--glob", "", "--normalise"]) == 0
    assert settings_of(work / ".rag") == Settings(
        **{**given, "hidden": False, "ignore": True, "glob": (), "normalise": True}
    )


def test_every_setting_has_an_option(capsys) -> None:
    run(["index", "--help"])
    page = capsys.readouterr().out
    for name in Settings.__dataclass_fields__:
        assert f"--{name.replace('_', '-')}" in page


def test_the_index_lies_where_index_was_run_or_where_it_was_told(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["index", "docs", "--quiet"]) == 0
    assert (work / ".rag" / "catalog.sqlite").exists()
    assert run(["index", "docs", "--index", "other", "--quiet"]) == 0
    assert (work / "other" / "catalog.sqlite").exists()
    monkeypatch.setenv("RAGCLI_INDEX", str(work / "third"))
    assert run(["index", "docs", "--quiet"]) == 0
    assert (work / "third" / "catalog.sqlite").exists()


def test_without_a_path_the_index_is_found_by_walking_up(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    assert run(["index"]) == 3
    assert capsys.readouterr().err.endswith("hint: ragcli index .\n")
    assert run(["index", "--index", "nowhere"]) == 3
    run(["index", "docs", "--quiet"])
    (work / "docs" / "b.md").write_text("more")
    monkeypatch.chdir(work / "docs")
    capsys.readouterr()
    assert run(["index", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["indexed"], counts["unchanged"]) == (1, 1)
    assert not (work / "docs" / ".rag").exists()


@pytest.mark.parametrize("path", ["/", "~", "~/..", "docs ~"])
def test_the_whole_disk_and_the_home_folder_need_a_flag(tmp_path: Path, path: str, capsys) -> None:
    paths = [part.replace("~", str(tmp_path / "home")) for part in path.split()]
    assert run(["index", *paths]) == 2
    assert "--yes" in capsys.readouterr().err
    assert not Path(".rag").exists()


def test_with_the_flag_the_home_folder_is_indexed(tmp_path: Path, capsys) -> None:
    (tmp_path / "home" / "note.txt").write_text("a note")
    assert run(["index", str(tmp_path / "home"), "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["indexed"] == 1


def test_json_is_the_whole_report(work: Path, capsys) -> None:
    (work / "docs" / "binary").write_bytes(bytes(range(256)) * 40)
    assert run(["index", "docs", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    shown = json.loads(out)
    assert shown["schema"] == "ragcli.index/1"
    assert shown.keys() == {"schema", *IndexReport.__dataclass_fields__}
    assert shown["counts"] == {
        "indexed": 1, "unchanged": 0, "moved": 0, "removed": 0, "skipped": 1, "failed": 0,
    }  # fmt: skip
    assert sum(shown["skipped"].values()) == 1


def test_a_lazy_run_makes_no_vectors_and_a_query_says_so(work: Path, capsys) -> None:
    assert run(["index", "docs", "--lazy", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["chunks"], shown["embedded"]) == (1, 0)
    assert run(["query", "port", "-k", "1"]) == 0
    assert (
        "1 of 1 passages have no vector yet (1 made for this answer); ragcli index makes them"
        in capsys.readouterr().err
    )
    assert run(["query", "port", "-k", "1"]) == 0
    assert capsys.readouterr().err == ""  # kept
    assert run(["query", "port", "-k", "1", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["query", "port", "-k", "1", "--mode", "lexical"]) == 0
    assert capsys.readouterr().err == ""


def test_what_a_run_leaves_without_a_vector_is_said(work: Path, capsys) -> None:
    assert run(["index", "docs", "--lazy"]) == 0
    assert "1 passage without a vector: ragcli index makes them\n" in capsys.readouterr().out
    assert run(["index"]) == 0
    assert "without a vector" not in capsys.readouterr().out
    assert run(["index", "--encoder", "none"]) == 0
    assert "without a vector" not in capsys.readouterr().out


@pytest.mark.parametrize("option", [None, "--quiet", "--json", "--lazy"])
def test_that_passages_can_be_searched_is_said_once(
    work: Path, capsys, fake: object, option: str | None
) -> None:
    for number in range(9):
        (work / "docs" / f"{number}.txt").write_text(f"Crane number {number}.")
    arguments = ["index", "docs", "--encoder", "fake", *([option] if option else [])]
    assert run(arguments) == 0
    err = capsys.readouterr().err
    if option:
        assert err == ""
    else:
        line = r"ragcli: 10 passages can be searched now \(\d+\.\d s\); vectors follow\n"
        assert re.fullmatch(line, err)
    assert run(["index"]) == 0
    assert ("vectors follow" in capsys.readouterr().err) == (option == "--lazy")


def test_a_query_keeps_the_vectors_it_had_to_make(work: Path, capsys, fake: object) -> None:
    assert run(["index", "docs", "--encoder", "fake", "--lazy"]) == 0
    capsys.readouterr()
    for embedded in (0, 1):
        assert run(["query", "port", "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)["index"]
        assert (shown["embedded"], shown["embedded_now"]) == (embedded, 1 - embedded)


def test_an_interrupt_keeps_the_vectors_that_are_there(work: Path, fake: object) -> None:
    (work / "docs" / "long.txt").write_text("\n\n".join(f"Crane number {i}." for i in range(40)))
    seen = []

    def progress(now: Progress) -> None:
        if now.stage in ("searchable", "embed"):
            seen.append((now.stage, now.chunks, now.chunks_total))
        if now.stage == "searchable":
            with Index.open(work / ".rag") as index:
                assert index.counts() == (42, 0)
        if now.stage == "embed" and now.chunks >= 10:
            signal.raise_signal(signal.SIGINT)

    changes = {"encoder": "fake", "chunk": "sentences:1"}
    folders = [work / "docs"]
    report = index_folder(work / ".rag", folders, changes, progress=progress)
    assert report.interrupted
    assert (report.chunks, report.embedded) == (42, 12)
    assert seen == [("searchable", 42, 0), *(("embed", n, 42) for n in (3, 6, 9, 12))]
    assert index_folder(work / ".rag").embedded == 42


def test_the_pace_of_embedding() -> None:
    assert progress.embedding(640, 12_345, 6.53) == "embedding 640/12,345 · 98/s · 2 min left"
    assert progress.embedding(12_000, 12_345, 120) == "embedding 12,000/12,345 · 100/s · 3 s left"
    assert progress.embedding(0, 12_345, 0.0).startswith("embedding 0/12,345 · 0/s")


def test_a_failed_file_is_named_and_under_strict_ends_with_5(work: Path, capsys) -> None:
    (work / "docs" / "broken.pdf").write_bytes(b"%PDF-1.7\nnot really\n")
    assert run(["index", "docs"]) == 0
    out, _ = capsys.readouterr()
    assert "1 failed" in out
    assert "\n1 problem:\n  broken.pdf: " in out
    assert run(["query", "port"]) == 0
    assert "has 1 problem" in capsys.readouterr().err
    assert run(["index", "--strict"]) == 5
    out, err = capsys.readouterr()
    assert "1 failed" in out
    assert err.startswith("ragcli: 1 file failed\n\nhint: ")
    assert run(["index", "--strict", "--json"]) == 5
    out, err = capsys.readouterr()
    assert json.loads(out)["counts"]["failed"] == 1
    assert json.loads(err)["error"] == "files_failed"


def test_names_that_hold_new_lines_and_bytes(work: Path, capsys) -> None:
    names = [b"new\nline.txt", b"\xff\xfe.txt", b"\x1b[31m.txt"]
    for name in names:
        try:
            Path(os.fsdecode(os.path.join(os.fsencode(work / "docs"), name))).write_text("crane")
        except OSError:
            pytest.skip("this file system takes no such names")
    assert run(["index", "docs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["indexed"] == 4
    assert run(["query", "crane", "--show", "table"]) == 0
    out = capsys.readouterr().out
    for name in (r"new\nline.txt:1", r"\xff\xfe.txt:1", r"\x1b[31m.txt:1"):
        assert f"  {name}\n" in out
    assert run(["query", "crane", "--json"]) == 0
    out = capsys.readouterr().out
    out.encode()
    paths = {hit["path"] for hit in json.loads(out)["hits"] if "crane" in hit["text"]}
    assert paths == {"new\nline.txt", "\ufffd\ufffd.txt", "\x1b[31m.txt"}


def test_the_counts_of_the_summary_add_up() -> None:
    lines = summary(
        report(
            counts=Counts(1000, 20, 3, 40, 5, 6),
            skipped={"binary": 1, "too_large": 4},
        )
    )
    assert lines == [
        "1,034 files seen: 1,000 indexed, 20 unchanged, 3 moved, 5 skipped, 6 failed",
        "40 files removed",
        "skipped: 4 too_large, 1 binary",
        "/elsewhere/.rag: 7 passages of 3 documents, 7 with vectors (hash, auto), 1.2 s",
    ]


def test_the_first_ten_problems_are_lines_and_the_rest_a_number() -> None:
    problems = [Problem(f"{i:02}\x1b.pdf", "no_text", "no text", f"{i}") for i in range(13)]
    lines = summary(report(problems=tuple(reversed(problems))))
    start = lines.index("13 problems:")
    assert lines[start + 1] == r"  00\x1b.pdf p. 0: no text (no_text)"
    assert lines[start + 10] == r"  09\x1b.pdf p. 9: no text (no_text)"
    assert lines[start + 11] == "  … and 3 more: ragcli inspect --problems"
    assert len(summary(report(problems=tuple(problems[:10])))) == 1 + 1 + 10 + 1


def test_a_link_to_itself_is_no_folder(work: Path, capsys) -> None:
    (work / "loop").symlink_to("loop")
    assert run(["index", "loop"]) == 2
    assert capsys.readouterr().err.startswith("ragcli: loop")
    assert not (work / ".rag").exists()


def test_without_a_home_a_folder_can_be_indexed(work: Path, monkeypatch, capsys) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert run(["index", "docs", "--encoder", "none"]) == 0
    assert run(["index", "/", "--index", "x"]) == 2
    assert "is the home folder or holds it" in capsys.readouterr().err


def test_a_dry_run_says_so(capsys) -> None:
    assert run(["index", "docs", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 file seen: 1 indexed")
    assert out.endswith("dry run: nothing was written\n")
    assert run(["query", "port"]) == 3


def test_progress_off_a_terminal_is_a_line_now_and_then_if_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    for verbose, seen in ((True, 3), (False, 0)):
        with progress.IndexDisplay(Output(verbose=verbose)) as display:
            for done in range(10):
                display.show(Progress("read", files_done=done, files_total=1000))
        err = capsys.readouterr().err
        assert len(err.splitlines()) == pytest.approx(seen, abs=1)
        assert re.fullmatch(r"(ragcli: read: \d of 1,000 files\n)*", err)


@pytest.mark.slow
def test_an_interrupt_keeps_what_is_done_and_ends_with_130(work: Path) -> None:
    for number in range(4000):
        (work / "docs" / f"{number}.txt").write_text(f"crane number {number}\n" * 50)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    running = subprocess.Popen(
        [sys.executable, "-m", "ragcli", "index", "docs", "--json"], env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not Path(".rag/catalog.sqlite").exists():
        time.sleep(0.01)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    shown = json.loads(err)
    assert (shown["error"], shown["exit_code"]) == ("interrupted", 130)
    assert json.loads(out)["interrupted"] is True
    assert run(["index", "--quiet", "--lazy"]) == 0
    with Index.open(work / ".rag") as index:
        assert index.counts()[0] >= 4000


def test_what_one_may_not_look_at_is_told(work: Path, monkeypatch, capsys) -> None:
    (work / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match="symbolic links"):
        index_folder(work / ".rag", [work / "loop"])
    assert run(["index", ".", "--encoder", "none", "--index", str(work / "own")]) == 0
    real = os.stat

    def stat(path: Any, **more: Any) -> os.stat_result:
        if isinstance(path, str | Path) and "locked" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, **more)

    monkeypatch.setattr(os, "stat", stat)
    with pytest.raises(UsageError, match="Permission denied"):
        index_folder(work / ".rag", [work / "locked" / "docs"])
    for dry_run in (False, True):
        with pytest.raises(IndexUnavailable, match="Permission denied"):
            index_folder(work / "locked" / ".rag", dry_run=dry_run)


@pytest.mark.parametrize("arguments", [["--dry-run"], []])
def test_a_catalogue_that_cannot_be_read_ends_with_3(work: Path, capsys, arguments) -> None:
    assert run(["index", ".", "--encoder", "none"]) == 0
    file = work / ".rag" / FILE
    content = bytearray(file.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    file.write_bytes(content)
    assert run(["index", *arguments]) == 3


def test_a_dry_run_calls_problems_as_a_run_does(work: Path, monkeypatch) -> None:
    left_out = [LeftOut("a", "permission denied"), LeftOut("b", "path too long")]
    for module in (run_module, scope):
        monkeypatch.setattr(module, "walk", lambda *_: iter(left_out))
    looked = index_folder(work / ".rag", [work], {"encoder": "none"}, dry_run=True)
    done = index_folder(work / ".rag", [work], {"encoder": "none"})
    assert looked.problems == done.problems
    assert [problem.kind for problem in done.problems] == ["permission", "unreadable"]
