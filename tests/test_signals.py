"""SIGTERM and SIGHUP end a command as Ctrl-C does: what it began is ended, what it made is gone."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import build, write_files

from ragcli.cli import app
from ragcli.errors import UsageError
from ragcli.indexing import index_folder
from ragcli.records import Progress

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")

REPOSITORY = Path(__file__).resolve().parents[1]
ENDING = [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]


@pytest.fixture(autouse=True)
def _as_from_a_terminal() -> Iterator[None]:
    """Whatever the test run itself ignores or handles."""
    outside = {
        number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    outside[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in outside.items():
        signal.signal(number, handler)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """What the command that is parsed does."""

    def does(what: Callable[[], None]) -> None:
        class Command:
            run = staticmethod(what)

        monkeypatch.setattr(app, "_parse", lambda arguments: Command())

    return does


@pytest.mark.parametrize(("number", "code"), ENDING)
def test_a_signal_unwinds_and_ends_with_its_number(command, capsys, number: int, code: int) -> None:
    unwound = []

    def work() -> None:
        try:
            signal.raise_signal(number)
            time.sleep(5)
        finally:
            unwound.append(number)

    command(work)
    assert app.run(["try"]) == code
    assert unwound == [number]
    by = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
    assert capsys.readouterr().err.startswith(f"ragcli: interrupted{by}\n\nhint: ")


def test_afterwards_signals_are_as_they_were(command) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    seen = []
    command(lambda: seen.append([signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)]))
    assert app.run(["try"]) == 0
    assert callable(seen[0][0])
    assert seen[0][1] == signal.SIG_IGN  # nohup
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    thread = threading.Thread(target=app.run, args=(["try"],))
    thread.start()
    thread.join()
    assert seen[1][0] == signal.SIG_DFL


def test_what_follows_at_once_does_not_cut_the_ending_short(command) -> None:
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)

    command(work)
    assert app.run(["try"]) == 129


def test_a_later_one_counts_again(command, monkeypatch) -> None:
    monkeypatch.setattr(app, "_ENDING_SECONDS", 0.0)
    swallowed = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            swallowed.append(1)
        signal.raise_signal(signal.SIGTERM)

    command(work)
    assert app.run(["try"]) == 143
    assert swallowed == [1]


def test_an_error_that_the_end_leads_to_is_not_the_news(command, capsys) -> None:
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGHUP)
        except KeyboardInterrupt:
            raise UsageError("the output cannot be written: Input/output error") from None

    command(work)
    assert app.run(["try"]) == 129
    assert "interrupted by SIGHUP" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), ENDING[:2])
def test_index_ends_after_the_file_at_hand(tmp_path: Path, command, number: int, code: int) -> None:
    reports = []
    write_files(tmp_path / "docs", {f"{i}.txt": f"crane {i}" for i in range(3)})

    def progress(now: Progress) -> None:
        if now.stage == "read":
            signal.raise_signal(number)
            signal.raise_signal(number)

    def work() -> None:
        reports.append(
            index_folder(tmp_path / ".rag", [tmp_path / "docs"], {"encoder": "none"},
                         progress=progress)
        )  # fmt: skip
        if reports[0].interrupted:
            raise KeyboardInterrupt

    command(work)
    assert app.run(["try"]) == code
    assert reports[0].interrupted
    assert reports[0].chunks > 0


def test_without_a_handler_outside_the_signal_is_left_alone(tmp_path: Path) -> None:
    seen = []
    write_files(tmp_path / "docs", {"a.txt": "crane"})

    def progress(now: Progress) -> None:
        seen.append(signal.getsignal(signal.SIGTERM))

    index_folder(tmp_path / ".rag", [tmp_path / "docs"], {"encoder": "none"}, progress=progress)
    assert set(seen) == {signal.SIG_DFL}


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []

    def start(here: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "ragcli", *arguments], cwd=here, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        )  # fmt: skip
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), ENDING)
def test_the_generators_program_and_its_children_end(
    tmp_path: Path, started, number: int, code: int
) -> None:
    program = (
        "import os, subprocess, time; other = subprocess.Popen(['sleep', '60']);"
        "print(os.getpid(), other.pid, flush=True); time.sleep(60)"
    )
    spec = f"cmd:{shlex.join([sys.executable, '-c', program])}"
    asked = started(tmp_path, "query", "which port?", "-k", "0", "-G", spec)
    assert asked.stdout
    pids = [int(pid) for pid in asked.stdout.readline().split()]
    assert len(pids) == 2
    asked.send_signal(number)
    assert asked.wait(30) == code
    assert all(gone(pid) for pid in pids)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), ENDING)
def test_a_sweep_leaves_no_folder(tmp_path: Path, started, number: int, code: int) -> None:
    room = tmp_path / "room"
    room.mkdir()
    text = "\n\n".join(f"Harbour crane number {i} lifts word{i}." for i in range(4000))
    write_files(tmp_path / "docs", {f"{i}.txt": text for i in range(10)})
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    question = {"question": "crane number 7", "relevant": ["1.txt"]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(question) + "\n")
    sweep = started(
        tmp_path, "eval", "questions.jsonl", "--sweep", "chunk=words:20,words:50", "--json",
        TMPDIR=str(room),
    )  # fmt: skip
    end = time.monotonic() + 60
    while not list(room.rglob("catalog.sqlite")):
        assert time.monotonic() < end
        assert sweep.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)
    sweep.send_signal(number)
    _, err = sweep.communicate(timeout=60)
    assert sweep.returncode == code
    assert json.loads(err.splitlines()[-1])["exit_code"] == code
    assert list(room.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_group_that_is_told_to_end_loses_no_file(tmp_path: Path, number: int) -> None:
    files = {f"{i}.html": f"<p>crane {i}</p>" * 2000 for i in range(300)}
    write_files(tmp_path / "docs", files)
    index = subprocess.Popen(
        [sys.executable, "-m", "ragcli", "index", "docs", "--encoder", "none", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (tmp_path / ".rag" / "catalog.sqlite").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(1.5)
    os.killpg(index.pid, number)
    out, err = index.communicate(timeout=60)
    report = json.loads(out)
    assert index.returncode == 128 + number, err
    assert report["interrupted"] is True
    assert (report["counts"]["failed"], report["problems"]) == (0, [])
    assert index_folder(tmp_path / ".rag").counts.failed == 0
