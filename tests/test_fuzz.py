"""Hostile variations of each kind of file, read in a child process that may not crash or hang.

Some seconds for each kind; RAGCLI_FUZZ_SECONDS=600 divides ten minutes among them, and begins
with RAGCLI_FUZZ_FIRST. A failure names the case, which `fuzz_child.py` runs again.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_mutations import case
from fuzz_seeds import SEEDS

SECONDS = float(os.environ.get("RAGCLI_FUZZ_SECONDS", 2 * len(SEEDS))) / len(SEEDS)
FIRST = os.environ.get("RAGCLI_FUZZ_FIRST", "0")
CHILD = Path(__file__).with_name("fuzz_child.py")


def fuzz(kind: str, seconds: float, first: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CHILD), kind, str(seconds), first, str(folder)],
        capture_output=True,
        check=False,
        text=True,
        timeout=seconds + 120,
        env={**os.environ, "PYTHONPATH": str(CHILD.parents[1])},
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", SEEDS)
def test_no_file_gets_the_better_of_its_reader(kind: str, tmp_path: Path) -> None:
    if kind.endswith((".docx", ".pptx", ".xlsx")):
        pytest.importorskip({"d": "docx", "p": "pptx", "x": "openpyxl"}[kind[2]])
    done = fuzz(kind, SECONDS, FIRST, tmp_path)
    number = (tmp_path / "case").read_text() if (tmp_path / "case").exists() else "none"
    assert done.returncode == 0, (
        f"fuzz_child.py {kind} 0 {number} FOLDER shows it again:\n{done.stderr[-3000:]}"
    )
    assert int(done.stdout) > 0


def test_the_child_tells_what_is_wrong(tmp_path: Path) -> None:
    """A reader that loses text is caught: the oracle is not asleep."""
    broken = (
        "import sys, fuzz_child\n"
        "from ragcli.corpus import readers\n"
        "from ragcli.records import Document\n"
        "readers.READERS['.md'] = lambda source: [Document('lost text', 'markdown')]\n"
        "fuzz_child.main('a.md', 0, 0, fuzz_child.Path(sys.argv[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", broken, str(tmp_path)],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{CHILD.parents[1]}{os.pathsep}{CHILD.parent}"},
    )
    assert done.returncode == 1
    assert "text without blocks" in done.stderr


def test_a_case_is_the_same_again() -> None:
    for kind in ("a.md", "a.odt", "a.ipynb", "questions"):
        number = random.Random(kind).randrange(1000)
        assert case(kind, number) == case(kind, number)
        assert len({case(kind, number) for number in range(20)}) > 15
