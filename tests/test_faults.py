"""A fault in any system call of any write: nothing committed is lost, and the next run mends it.

A sample of the points, the same for each seed: RAGCLI_FAULT_SEED chooses another one,
RAGCLI_FAULT_POINTS how many of each operation and fault (0: all of them, some 75,000: hours).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import faults
import numpy as np
import pytest
from fault_operations import OPERATIONS

from ragcli.store.segments import write_segment

TRIALS = Path(__file__).with_name("fault_trials.py")
SEED = os.environ.get("RAGCLI_FAULT_SEED", "7")
POINTS = os.environ.get("RAGCLI_FAULT_POINTS", "1")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

pytestmark = pytest.mark.skipif(bool(WHY_NOT := faults.why_not()), reason=WHY_NOT or "")


def trials(arguments: list[str]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("group", range(3))
def test_a_fault_at_any_call_loses_nothing(group: int) -> None:
    some = [word for name in list(OPERATIONS)[group::3] for word in ("--operation", name)]
    rows = trials([str(TRIALS), *some, "--points", POINTS, "--seed", SEED])
    tried = sum(row["points"] for row in rows)
    wrong = [
        f"{row['operation']}, {row['fault']} at {point['at']}, {point['kind']} of"
        f" {point['place']}: {'; '.join(point['wrong'])}"
        for row in rows
        for point in row["wrong"]
    ]
    print(f"{tried} points tried, {tried - len(wrong)} survived")
    assert not wrong, "\n".join(wrong)
    assert tried >= len(rows) * 3 // 4


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["what is in files", "all that was not synced"])
def test_the_trials_see_what_is_not_synced(lost: str, tmp_path: Path) -> None:
    script = tmp_path / "unsynced.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(TRIALS.parent)!r})\n"
        "import fault_trials\nfrom ragcli.store import segments\n"
        "segments.sync = lambda path: None\nfault_trials.main()\n",
        encoding="utf-8",
    )
    first = ["--operation", "first index", "--fault", f"power lost: {lost}", "--points", "12"]
    (row,) = trials([str(script), *first])
    assert row["wrong"]


def test_a_segment_is_whole_or_an_error(tmp_path: Path) -> None:
    """NumPy's own `save` says nothing where the last bytes of an array find no room."""
    rows = np.arange(1000, dtype=np.uint16)

    def write() -> int:
        write_segment(tmp_path / "segments", "p", {"rows": rows, "few": rows[:3]})
        return 0

    met = faults.strike(write, tmp_path / "segments", tmp_path / "out", None)
    assert met.code == 0, met
    assert met.calls == 14
    for at in range(2, met.calls + 1):  # the first makes a folder that is there by now
        met = faults.strike(
            write, tmp_path / "segments", tmp_path / "out", faults.FAULTS["ENOSPC once"], at
        )
        assert met.code == 70, (at, met)
        assert "No space left on device" in met.printed
