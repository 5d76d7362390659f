"""The example corpus holds what its questions ask for, and its script shows what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_question_has_its_answer_in_one_place() -> None:
    assert "all good" in run("check_questions.py")


@pytest.mark.slow
def test_the_quiet_failures_show() -> None:
    pytest.importorskip("docx", reason="the example corpus has office files: needs the extra")
    assert "NOT SHOWN" not in run("quiet_failures.py")
