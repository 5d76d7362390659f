"""The example corpus holds what its questions ask for, and the scripts show what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_question_has_its_answer_in_one_place() -> None:
    assert "all good" in run("check_questions.py")


def test_another_library_gives_its_own_answers() -> None:
    shown = run("hot_swap.py")
    rows = [line.split() for line in shown.splitlines() if line.startswith("   index of 20")]
    assert [(row[3:6], row[7:10]) for row in rows] == [
        (["12", "of", "12,"], ["0", "of", "12,"]),
        (["0", "of", "12,"], ["12", "of", "12,"]),
    ]
    assert "NOT SHOWN" not in shown


def test_a_generator_answers_from_the_library_it_was_given() -> None:
    repeat = f"cmd:{sys.executable} -c 'import sys; print(sys.stdin.read())'"
    shown = run("hot_swap.py", "--generator", repeat, "-k", "1")
    table = shown[shown.index("It stands in what") :]
    assert [line.split()[3] for line in table.splitlines()[2:4]] == ["12", "0"]


@pytest.mark.slow
def test_the_quiet_failures_show() -> None:
    pytest.importorskip("docx", reason="the example corpus has office files: needs the extra")
    assert "NOT SHOWN" not in run("quiet_failures.py")
