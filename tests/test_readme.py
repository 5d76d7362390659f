"""The README is what the program does: its sessions are run, its options are all there."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
README = (TOP / "README.md").read_text(encoding="utf-8")
_TIMES = re.compile(r"\d+(?:\.\d+)? (ms|s)\b")
_NUMBERS = re.compile(r"\b\d+( · )|(?<=number )\d+")
"""Of passages: files are numbered in the order in which child processes read them."""


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def without_times(text: str) -> str:
    return _NUMBERS.sub(r"N\1", _TIMES.sub(r"… \1", text)).rstrip()


def run(command: str, folder: Path) -> str:
    arguments = shlex.split(command)
    assert arguments[0] == "ragcli"
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout


@pytest.mark.slow
def test_sessions_are_real_output(tmp_path: Path) -> None:
    pytest.importorskip("docx", reason="the example corpus has office files: needs the extra")
    shutil.copytree(TOP / "examples", tmp_path / "examples")
    sessions = blocks("console")
    assert sessions
    for session in sessions:
        for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            seen = run(command, tmp_path)
            assert without_times(seen) == without_times(expected), command


@pytest.mark.slow
def test_the_library_example_runs(tmp_path: Path) -> None:
    shutil.copytree(TOP / "examples", tmp_path / "examples")
    (code,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "handbook/leave.md" in done.stdout


@pytest.mark.parametrize("command", ["index", "query", "inspect", "eval"])
def test_every_option_is_in_the_readme(command: str) -> None:
    page = run(f"ragcli {command} --help", TOP)
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    assert len(options) > 10
    missing = {option for option in options if not re.search(rf"{option}(?![\w-])", README)}
    assert not missing


def test_every_exit_code_is_in_the_readme() -> None:
    from ragcli import errors

    codes = {
        value.exit_code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.RagcliError)
    }
    listed = README.split("## Exit codes")[1].split("##")[0]
    assert codes | {0, 130} == {int(code) for code in re.findall(r"(?:^|· )(\d+) ", listed, re.M)}
