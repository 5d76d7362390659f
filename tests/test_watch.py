"""`index --watch`: a plain run after each change, whatever becomes of the folder meanwhile."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import answers, build, write_files

from ragcli.cli import watching as lines
from ragcli.cli.app import run
from ragcli.errors import IndexNotFound, RagcliError, UsageError
from ragcli.indexing import index_folder, watching
from ragcli.records import Counts, IndexReport, Problem
from ragcli.store.index import Index
from ragcli.store.lock import write_lock

pytest.importorskip("watchfiles")

REPOSITORY = Path(__file__).resolve().parents[1]
PATIENCE = 60.0
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
from ragcli.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def texts_of(location: Path) -> dict[str, str]:
    """The text of each file of an index, by path."""
    with Index.open(location) as index, index.reading() as connection:
        rows = connection.execute(
            "SELECT f.path, group_concat(c.text, ' ') FROM files f LEFT JOIN documents d ON"
            " d.file = f.id LEFT JOIN chunks c ON c.document = d.id GROUP BY f.id"
        ).fetchall()
    return {os.fsdecode(path): (text or "").strip() for path, text in rows}


def until(condition: Callable[[], object]) -> None:
    """Wait for what another process is to do."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.05)


def shows(location: Path, expected: dict[str, str]) -> Callable[[], bool]:
    def seen() -> bool:
        try:
            return texts_of(location) == expected
        except RagcliError:
            return False

    return seen


class Watching:
    """`ragcli index docs --watch` in a process of its own, its output in files."""

    def __init__(self, here: Path, *arguments: str, until_watching: bool = True) -> None:
        self.here = here
        self._out, self._err = here / "out", here / "err"
        options = ["index", "docs", "--watch", "--encoder", "none", *arguments]
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *options], cwd=here, stdout=out, stderr=err,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            )  # fmt: skip
        if until_watching:
            until(lambda: "watching" in self.err)

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[..., Watching]]:
    started: list[Watching] = []
    write_files(tmp_path / "docs", {"a.txt": "one crane"})

    def start(*arguments: str, **more: bool) -> Watching:
        started.append(Watching(tmp_path, *arguments, **more))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def report(**more: object) -> IndexReport:
    return IndexReport(
        **{
            "root": "/r", "index": "/r/.rag", "counts": Counts(), "skipped": {}, "chunks": 1204,
            "embedded": 0, "documents": 3, "problems": (), "seconds": 0.25, "encoder": "none",
            "chunking": "auto", **more,
        }  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_run_is_one_line() -> None:
    counts = Counts(indexed=1002, unchanged=9, moved=1, removed=2, failed=1)
    problems = (Problem("a.pdf", "corrupt", "x"), Problem("b.pdf", "no_text", "y"))
    assert lines.line(report(counts=counts, problems=problems), "12:03:41") == (
        "12:03:41  1,002 indexed, 1 moved, 2 removed, 1 failed · 1,204 passages · 2 problems"
        " · 0.2 s"
    )
    assert lines.line(report(), "12:03:41") == (
        "12:03:41  nothing changed · 1,204 passages · 0.2 s"
    )


@pytest.mark.parametrize("option", ["--dry-run", "--strict"])
def test_what_is_of_a_run_that_ends_is_refused(tmp_path: Path, capsys, option: str) -> None:
    assert run(["index", str(tmp_path), "--watch", option]) == 2
    assert capsys.readouterr().err == (
        f"ragcli: --watch does not end, and {option} is of a run that does\n\n"
        "hint: give one of them\n"
    )
    assert not (tmp_path / ".rag").exists()


def test_the_missing_extra_is_told_before_any_work(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("crane")
    assert run(["index", ".", "--watch"]) == 6
    assert capsys.readouterr().err == (
        "ragcli: watchfiles is not installed\n\nhint: pip install 'ragcli[watch]'\n"
    )
    assert not (tmp_path / ".rag").exists()


@pytest.fixture
def changes(tmp_path: Path) -> Callable[..., watching._Changes]:
    """What matters of what happens in an index of `docs`."""
    write_files(tmp_path / "docs", {"a.txt": "crane", "sub/b.txt": "tea"})

    def make(**settings: object) -> watching._Changes:
        build(tmp_path / ".rag", tmp_path / "docs", encoder="none", **settings)
        return watching._Changes(tmp_path / ".rag", watching._scope_of(tmp_path / ".rag", None))

    return make


@pytest.mark.parametrize(
    ("path", "matters"),
    [
        ("a.txt", True),
        ("sub/new.txt", True),
        ("sub", True),
        (".gitignore", True),
        ("sub/.ragcliignore", True),
        (".rag/catalog.sqlite-wal", False),
        (".git/index", False),
        ("sub/.a.txt.swp", False),
        ("a.txt~", False),
        ("#a.txt#", False),
        (".#a.txt", False),
        ("a.txt___jb_tmp___", False),
        ("~$letter.docx", False),
        (".~lock.letter.odt#", False),
        ("4913", True),  # vim's, for a moment; but also the name of a letter in a mailbox
    ],
)
def test_what_matters(tmp_path: Path, changes, path: str, matters: bool) -> None:
    assert changes()._matters(str(tmp_path / "docs" / path)) is matters


def test_hidden_files_matter_where_they_are_wanted(tmp_path: Path, changes) -> None:
    of = changes(hidden=True)
    assert of._matters(str(tmp_path / "docs" / ".config" / "a.txt"))
    assert not of._matters(str(tmp_path / "docs" / ".rag" / "lock"))
    assert not of._matters(str(tmp_path / "docs" / ".a.txt.swp"))


@pytest.mark.parametrize("name", ["index", ".rag"])
def test_the_index_does_not_matter_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    """Where the system watches what lies below too (macOS), a run would be a reason for a run."""
    docs = tmp_path / "real"
    write_files(docs, {"a.txt": "crane"})
    (tmp_path / "docs").symlink_to(docs)
    location = tmp_path / "docs" / name
    build(location, tmp_path / "docs", encoder="none", hidden=True)
    of = watching._Changes(location, watching._scope_of(location, None))
    for path in ("", "/catalog.sqlite", "/catalog.sqlite-wal", "/segments/p-1/rows.npy"):
        assert not of._matters(f"{docs}/{name}{path}")
    assert of._matters(f"{docs}/{name}.txt")
    assert of._matters(f"{docs}/a.txt")


def test_ones_own_output_does_not_matter(tmp_path: Path, changes, monkeypatch) -> None:
    log = tmp_path / "docs" / "log.txt"
    log.touch()
    real = watching._stat
    monkeypatch.setattr(watching, "_stat", lambda path: real(log if path == 1 else path))
    of = changes()
    assert not of._matters(str(log))
    assert of._matters(str(tmp_path / "docs" / "a.txt"))


@pytest.mark.skipif(sys.platform != "linux", reason="folder by folder on Linux only")
def test_links_and_what_is_ignored_are_not_watched(tmp_path: Path, changes) -> None:
    docs = tmp_path / "docs"
    write_files(docs, {".gitignore": "out/", "out/x.txt": "", ".git/y": "", ".rag/z": ""})
    (docs / "all").symlink_to("/")
    with changes() as of:
        assert of._folders == {str(docs), str(docs / "sub")}


def test_where_no_more_can_be_watched_it_looks_now_and_then(
    tmp_path: Path, changes, monkeypatch
) -> None:
    import watchfiles

    def refuse(*_: object, **__: object) -> Iterator[None]:
        raise OSError("OS file watch limit reached.")
        yield

    monkeypatch.setattr(watchfiles, "watch", refuse)
    monkeypatch.setattr(watching, "POLL", 0.01)
    changes()
    said = watching.watch_folder(tmp_path / ".rag")
    first = next(said)
    assert isinstance(first, RagcliError)
    assert "watch limit reached" in first.message
    assert isinstance(next(said), IndexReport)
    write_files(tmp_path / "docs", {"c.txt": "new"})
    second = next(said)
    assert isinstance(second, IndexReport)
    assert second.counts.indexed == 1
    said.close()


def test_what_passes_is_told_once_and_tried_again(tmp_path: Path, changes, monkeypatch) -> None:
    monkeypatch.setattr(watching, "RETRY", 0.01)
    changes()
    said = watching.watch_folder(tmp_path / ".rag")
    assert isinstance(next(said), IndexReport)
    outcomes: list[Exception | None] = [UsageError("empty"), UsageError("empty"), None]

    def failing(*arguments: object, **more: object) -> IndexReport:
        if outcome := outcomes.pop(0):
            raise outcome
        return index_folder(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(watching, "index_folder", failing)
    write_files(tmp_path / "docs", {"c.txt": "new"})
    told = next(said)
    assert isinstance(told, UsageError)
    after = next(said)
    assert isinstance(after, IndexReport)
    assert after.counts.indexed == 1
    assert outcomes == []
    said.close()


def test_an_index_that_is_gone_ends_it(tmp_path: Path, changes) -> None:
    changes()
    said = watching.watch_folder(tmp_path / ".rag")
    next(said)
    shutil.rmtree(tmp_path / ".rag")
    with pytest.raises(IndexNotFound, match="is gone"):
        next(said)
    assert not (tmp_path / ".rag").exists()


def test_a_root_that_goes_while_it_is_looked_at_is_not_forgotten(
    tmp_path: Path, changes, monkeypatch
) -> None:
    write_files(tmp_path / "docs", {f"{i}/x.txt": "crane" for i in range(9)})
    changes()
    from ragcli.indexing import run as runs

    def walk(root: Path, *arguments: object) -> Iterator[object]:
        for number, item in enumerate(real(root, *arguments)):
            if number == 3:
                root.rename(tmp_path / "away")
            yield item

    real = runs.walk
    monkeypatch.setattr(runs, "walk", walk)
    with pytest.raises(UsageError, match="went away"):
        index_folder(tmp_path / ".rag")
    monkeypatch.undo()
    assert len(texts_of(tmp_path / ".rag")) == 11
    (tmp_path / "away").rename(tmp_path / "docs")
    assert index_folder(tmp_path / ".rag").counts == Counts(unchanged=11)


def test_what_failed_is_not_read_with_each_run(tmp_path: Path, changes, monkeypatch) -> None:
    (tmp_path / "docs" / "broken.pdf").write_bytes(b"%PDF-1.7\nnot really\n")
    os.utime(tmp_path / "docs" / "broken.pdf", (1e9, 1e9))
    changes()
    from ragcli.indexing import pool

    monkeypatch.setattr(pool.Pool, "run", lambda self, tasks: pytest.fail(f"reads {tasks}"))
    assert index_folder(tmp_path / ".rag", retry=False).counts == Counts(unchanged=2, failed=1)


def test_a_file_that_was_too_slow_is_not_read_with_each_run(
    tmp_path: Path, changes, monkeypatch
) -> None:
    from ragcli.indexing import pool

    changes()
    for path in ("a.txt", "sub/b.txt", "slow.html"):
        (tmp_path / "docs" / path).write_text("<p>crane")
        os.utime(tmp_path / "docs" / path, (1e9, 1e9))
    index_folder(tmp_path / ".rag", (), {"glob": ("*.txt",)})
    index_folder(tmp_path / ".rag", (), {"exclude": ("*.html",)})
    monkeypatch.setattr(pool, "SECONDS", 0.0)
    index_folder(tmp_path / ".rag", (), {"glob": (), "exclude": ()})
    report = index_folder(tmp_path / ".rag", retry=False)
    assert (report.counts.failed, [p.kind for p in report.problems]) == (1, ["timeout"])
    monkeypatch.undo()
    assert index_folder(tmp_path / ".rag", retry=False).counts.failed == 1
    assert index_folder(tmp_path / ".rag").counts.indexed == 1


@pytest.mark.slow
def test_edits_new_folders_moves_and_rules_are_taken_in(tmp_path: Path, watch) -> None:
    docs, location = tmp_path / "docs", tmp_path / ".rag"
    watching_it = watch()
    write_files(docs, {"a.txt": "two cranes"})
    until(shows(location, {"a.txt": "two cranes"}))
    write_files(docs, {"deep/er/b.txt": "tea"})
    until(shows(location, {"a.txt": "two cranes", "deep/er/b.txt": "tea"}))
    time.sleep(1)
    write_files(docs, {"deep/er/b.txt": "tea at four"})
    until(shows(location, {"a.txt": "two cranes", "deep/er/b.txt": "tea at four"}))
    (docs / "deep").rename(docs / "flat")
    until(shows(location, {"a.txt": "two cranes", "flat/er/b.txt": "tea at four"}))
    write_files(docs, {".ragcliignore": "a.txt"})
    until(shows(location, {"flat/er/b.txt": "tea at four"}))
    (docs / ".ragcliignore").unlink()
    until(shows(location, {"a.txt": "two cranes", "flat/er/b.txt": "tea at four"}))
    (docs / "flat").chmod(0o755)
    # An editor's save: a new file in the place of the old one.
    write_files(docs, {"a.txt~": "backup", "new": "three cranes"})
    (docs / "new").replace(docs / "a.txt")
    until(shows(location, {"a.txt": "three cranes", "flat/er/b.txt": "tea at four"}))
    assert watching_it.end() == 143
    assert "ragcli: interrupted by SIGTERM\n\nhint: " in watching_it.err


@pytest.mark.slow
def test_quiet_where_nothing_happens_though_the_index_lies_in_the_folder(
    tmp_path: Path, watch
) -> None:
    write_files(tmp_path / "docs", {"x.txt": "x"})
    watching_it = watch("--index", "docs/.rag", "--json")
    write_files(tmp_path / "docs", {"a.txt": "two"})
    until(lambda: len(watching_it.out.splitlines()) == 2)
    cpu = cpu_seconds(watching_it.process.pid)
    time.sleep(4)
    assert cpu_seconds(watching_it.process.pid) - cpu < 0.5
    seen = [json.loads(line) for line in watching_it.out.splitlines()]
    assert [(one["schema"], one["counts"]["indexed"]) for one in seen] == [
        ("ragcli.index/1", 2), ("ragcli.index/1", 1),
    ]  # fmt: skip
    assert watching_it.end(signal.SIGINT) == 130


def cpu_seconds(process: int) -> float:
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_a_root_that_goes_and_comes(tmp_path: Path, watch) -> None:
    docs, location = tmp_path / "docs", tmp_path / ".rag"
    watching_it = watch()
    docs.rename(tmp_path / "away")
    until(lambda: "is not there" in watching_it.err)
    assert texts_of(location) == {"a.txt": "one crane"}
    (tmp_path / "away").rename(docs)
    write_files(docs, {"b.txt": "tea"})
    until(shows(location, {"a.txt": "one crane", "b.txt": "tea"}))
    write_files(docs, {"b.txt": "more tea"})
    until(shows(location, {"a.txt": "one crane", "b.txt": "more tea"}))
    for path in docs.iterdir():
        path.unlink()
    until(lambda: "is empty" in watching_it.err)
    assert set(texts_of(location)) == {"a.txt", "b.txt"}
    shutil.rmtree(docs)
    write_files(docs, {"c.txt": "new"})
    until(shows(location, {"c.txt": "new"}))
    location.rename(tmp_path / "removed")
    assert watching_it.process.wait(PATIENCE) == 3
    assert re.search("(there is no index in |is gone: it was removed)", watching_it.err)
    assert not location.exists()


@pytest.mark.slow
def test_other_writers_and_their_settings(tmp_path: Path, watch) -> None:
    docs, location = tmp_path / "docs", tmp_path / ".rag"
    watching_it = watch("--quiet", until_watching=False)
    until(shows(location, {"a.txt": "one crane"}))
    time.sleep(1)
    with write_lock(location, PATIENCE):
        write_files(docs, {"b.txt": "tea", "c.log": "log"})
        time.sleep(2)
        assert texts_of(location) == {"a.txt": "one crane"}
    until(shows(location, {"a.txt": "one crane", "b.txt": "tea", "c.log": "log"}))
    write_files(tmp_path / "other", {"d.txt": "lighthouse"})
    time.sleep(1)
    build(location, docs, exclude=("*.log",))
    until(shows(location, {"a.txt": "one crane", "b.txt": "tea"}))
    write_files(docs, {"c.log": "more"})
    time.sleep(2)
    build(location, tmp_path / "other")
    time.sleep(2)
    write_files(tmp_path / "other", {"d.txt": "two lighthouses"})
    until(shows(location, {"d.txt": "two lighthouses"}))
    assert watching_it.end() == 143
    assert watching_it.out == ""


@pytest.mark.slow
def test_a_thousand_changes_and_a_file_that_never_rests(tmp_path: Path, watch) -> None:
    docs, location = tmp_path / "docs", tmp_path / ".rag"
    watching_it = watch("--json")
    write_files(docs, {f"{i % 10}/{i}.txt": f"buoy number {i}" for i in range(1000)})
    end = time.monotonic() + 3
    while time.monotonic() < end:
        (docs / "restless.txt").write_text(f"buoy at {time.monotonic()}\n" * 200)
    until(lambda: len(texts_of(location)) == 1002)
    until(lambda: str(texts_of(location)["restless.txt"]) != "")
    last = (docs / "restless.txt").read_text().splitlines()[0]
    until(lambda: last in texts_of(location)["restless.txt"])
    assert watching_it.end() == 143
    assert 2 <= len(watching_it.out.splitlines()) <= 12
    fresh = tmp_path / "fresh"
    build(fresh, docs, encoder="none")
    for question in ("buoy number", "crane", "77"):
        assert answers(location, question, 20) == answers(fresh, question, 20)


@pytest.mark.slow
def test_a_file_that_is_named_is_watched(tmp_path: Path, watch) -> None:
    watching_it = watch("docs/a.txt", "--json")
    del watching_it
    (tmp_path / "docs" / "a.txt").write_text("another")
    until(shows(tmp_path / ".rag", {"a.txt": "another"}))


@pytest.mark.slow
def test_a_signal_in_the_middle_keeps_what_is_done(tmp_path: Path, watch) -> None:
    write_files(tmp_path / "docs", {f"{i}.txt": f"crane number {i}\n" * 400 for i in range(4000)})
    watching_it = watch("--json", until_watching=False)
    until((tmp_path / ".rag" / "catalog.sqlite").exists)
    time.sleep(0.5)
    assert watching_it.end() == 143
    shown = json.loads(watching_it.err)
    assert (shown["error"], shown["exit_code"]) == ("interrupted", 143)
    assert index_folder(tmp_path / ".rag").counts.failed == 0
    assert len(texts_of(tmp_path / ".rag")) == 4001
