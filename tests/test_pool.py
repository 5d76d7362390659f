"""The child processes that read files: what is their fault, what a file's, and their limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import build, write_files

from ragcli.errors import ModelUnavailable
from ragcli.indexing import pool
from ragcli.indexing.analysis import FileTask
from ragcli.records import Settings
from ragcli.store.index import Index

PAGE = {"a.html": "<p>The harbour crane.</p>"}


def test_children_that_do_not_start_cost_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were all "its parser crashed" once, and their passages gone."""
    write_files(tmp_path / "docs", PAGE)
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    write_files(tmp_path, {"broken/numpy/__init__.py": "raise ImportError('numpy is broken')"})
    write_files(tmp_path / "docs", {"a.html": "<p>The lifted bridge.</p>"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    with pytest.raises(ModelUnavailable, match="does not start: ImportError: numpy is broken"):
        build(tmp_path / ".rag", tmp_path / "docs")
    with Index.open(tmp_path / ".rag") as index:
        assert index.counts()[0] == 1
    monkeypatch.delenv("PYTHONPATH")
    assert build(tmp_path / ".rag", tmp_path / "docs").counts.indexed == 1


@pytest.mark.skipif(not hasattr(os, "nice"), reason="no limits of work on this system")
def test_the_limit_is_of_work_and_not_of_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "=?utf-8?q?crane?= " * 50_000
    write_files(tmp_path / "docs", {**PAGE, "long.eml": f"Subject: {words}\n\nHello.\n"})
    monkeypatch.setattr(pool, "SECONDS", 0.1)
    monkeypatch.setattr(pool, "_BYTES_A_SECOND", 10**9)
    monkeypatch.setattr(pool, "PATIENCE", 1000.0)
    report = build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    assert (report.counts.indexed, report.counts.failed) == (1, 1)
    (problem,) = report.problems
    assert (problem.path, problem.kind) == ("long.eml", "timeout")
    assert problem.message == "took longer than 0 s to read"


limited = pytest.mark.skipif(os.name == "nt", reason="no limits of resources on this system")

UNDER_A_LIMIT = """
import json, resource, sys
from pathlib import Path
resource.setrlimit(getattr(resource, sys.argv[1]), (int(sys.argv[2]), int(sys.argv[2])))
from ragcli.indexing import index_folder
report = index_folder(Path(".rag"), [Path("docs")], {"encoder": "none"}, workers=1)
print(json.dumps([report.counts.indexed, [problem.message for problem in report.problems]]))
"""


@limited
@pytest.mark.parametrize(("name", "most"), [("RLIMIT_CPU", 25), ("RLIMIT_DATA", 512_000_000)])
def test_a_harder_limit_of_the_user_costs_no_file(tmp_path: Path, name: str, most: int) -> None:
    """`ulimit -t` made each file a crash, under `ulimit -d` no child started."""
    write_files(tmp_path / "docs", PAGE)
    done = subprocess.run(
        [sys.executable, "-c", UNDER_A_LIMIT, name, str(most)], cwd=tmp_path, check=False,
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [1, []]


@limited
def test_the_limits_that_hold_are_told() -> None:
    program = """
import resource
from ragcli.indexing.worker import is_spent, limit_memory, limit_time
free = limit_time(30), limit_memory(1 << 40), is_spent()
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
held = limit_time(1), limit_time(30), limit_memory(1 << 40), limit_memory(1 << 29)
print(free, *map(round, held), resource.getrlimit(resource.RLIMIT_CPU), is_spent())
end = resource.getrusage(resource.RUSAGE_SELF).ru_utime + 2.1
while resource.getrusage(resource.RUSAGE_SELF).ru_utime < end:
    pass
print(is_spent())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    free, _, held = done.stdout.partition(") ")
    assert free == f"(30, {1 << 40}, False", done.stderr
    (first, second, *memory), rest = held.split()[:4], held.split()[4:]
    assert first == "1"
    assert second in ("3", "4")
    assert memory == [str(1 << 30), str(1 << 29)]
    assert rest[1:] == ["5)", "False", "True"]


def worker(analysis: str) -> list[str]:
    """The arguments of a child whose Analysis has this body."""
    program = f"""
import os, time
from ragcli.indexing import analysis
class Analysis(analysis.Analysis):
{analysis}
analysis.Analysis = Analysis
from ragcli.indexing.worker import main
main()
"""
    return ["-c", program]


@limited
@pytest.mark.slow
def test_a_child_that_is_soon_over_its_limit_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whichever file it is at would be blamed."""
    work = """
    def run(self, files):
        import resource
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        if hard == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_CPU, (4, 5))
        end = os.times().user + 0.5
        while os.times().user < end:
            pass
        yield from super().run(files)
"""
    monkeypatch.setattr(pool, "_WORKER", worker(work))
    write_files(tmp_path / "docs", {f"{i}.html": f"<p>crane {i}" for i in range(12)})
    report = build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    assert (report.counts.indexed, report.problems) == (12, ())


@limited
def test_the_message_names_the_limit_that_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = """
    def run(self, files):
        self._more_time(1.0)
        while True:
            pass
"""
    monkeypatch.setattr(pool, "_WORKER", worker(work))
    write_files(tmp_path / "docs", PAGE)
    (problem,) = build(tmp_path / ".rag", tmp_path / "docs", encoder="none").problems
    assert (problem.kind, problem.message) == ("timeout", "took longer than 1 s to read")


def test_children_import_nothing_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Python 3.10, which has no -P, a folder numpy in it was executed."""
    write_files(tmp_path / "docs", PAGE)
    code = f"open({str(tmp_path / 'executed')!r}, 'w')"
    write_files(tmp_path, {"numpy/__init__.py": code, "sitecustomize.py": code, "lxml.py": code})
    monkeypatch.chdir(tmp_path)
    assert build(tmp_path / ".rag", tmp_path / "docs").counts.indexed == 1
    assert not (tmp_path / "executed").exists()


@limited
def test_what_a_dead_child_ran_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text(
        f"#!/bin/sh\nsleep 60 >&- &\necho $! > {tmp_path}/pid\necho broken >&2\nexit 1\n"
    )
    program.chmod(0o755)
    write_files(tmp_path / "docs", PAGE)
    monkeypatch.setattr(sys, "executable", str(program))
    began = time.monotonic()
    with pytest.raises(ModelUnavailable, match="does not start: broken"):
        build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    assert time.monotonic() - began < 30
    number = int((tmp_path / "pid").read_text())
    status = Path(f"/proc/{number}/stat")
    end = time.monotonic() + 10
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end, "it lives on"
        time.sleep(0.05)


@limited
@pytest.mark.parametrize("error", [PermissionError, ProcessLookupError])
def test_a_child_that_is_gone_can_be_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    asked = []

    def killpg(number: int, _signal: int) -> None:
        asked.append(number)
        raise error

    child = pool._Child(Settings(), tmp_path, False)
    os.kill(child._process.pid, signal.SIGKILL)
    with monkeypatch.context() as patched:
        patched.setattr(os, "killpg", killpg)
        child.kill()  # which may find it ended, and then its number may be another's
    assert asked == [child._process.pid]
    child.close()
    child.kill()


def test_a_child_that_starts_while_all_are_stopped_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = """
    def run(self, files):
        if "RAGCLI_TEST_SLOW" in os.environ:
            time.sleep(50)
        yield from super().run(files)
"""
    monkeypatch.setattr(pool, "_WORKER", worker(work))
    closing, real, started = threading.Event(), pool._Child.__init__, []

    def start(self: pool._Child, *arguments: object) -> None:
        if started:
            monkeypatch.setenv("RAGCLI_TEST_SLOW", "1")
        started.append(self)
        real(self, *arguments)  # type: ignore[arg-type]
        if len(started) == 2:
            closing.wait(60)
            time.sleep(0.3)

    monkeypatch.setattr(pool._Child, "__init__", start)
    write_files(tmp_path, {"a.txt": "crane", "b.txt": "tea"})
    tasks = [[FileTask(name, str(tmp_path / name), 5)] for name in ("a.txt", "b.txt")]
    answers = pool.Pool(Settings(encoder="none"), tmp_path, 2, vectors=False).run(tasks)
    next(answers)
    while len(started) < 2:
        time.sleep(0.01)
    began = time.monotonic()
    closing.set()
    answers.close()
    assert time.monotonic() - began < 25
