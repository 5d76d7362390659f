"""Every fault at every call of every operation, then readers and writers together: faults.md.

    python benchmarks/faults.py [--points N] [--seed N] [--minutes N] [--readers N] [--writers N]

`--points 0` (the default) tries all of them, some 75,000, in one process per core: hours.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from fault_operations import OPERATIONS  # noqa: E402
from fault_trials import FAULTS  # noqa: E402

GROUPS = {
    "SIGKILL": ("kill before", "kill after"),
    "torn write, SIGKILL": ("torn write",),
    "short write": ("short write",),
    **{
        name: tuple(fault for fault in FAULTS if fault.startswith(name))
        for name in ("ENOSPC", "EDQUOT", "EIO", "EACCES", "EROFS", "power lost", "copied")
    },
}
"""What a column of the table adds up."""


def run(script: str, *arguments: object) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(TESTS / script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """operation × group: points survived of points tried."""
    column = {fault: group for group, faults in GROUPS.items() for fault in faults}
    tried: dict[tuple[str, str], int] = defaultdict(int)
    wrong: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        tried[row["operation"], column[row["fault"]]] += row["points"]
        wrong[row["operation"], column[row["fault"]]] += len(row["wrong"])
    lines = [
        "| operation | calls | commits | " + " | ".join(GROUPS) + " |",
        "|---|" + "---|" * (len(GROUPS) + 2),
    ]
    facts = {row["operation"]: (row["calls"], row["commits"]) for row in rows}
    for name, (calls, commits) in facts.items():
        cells = [
            f"{tried[name, group] - wrong[name, group]:,} of {tried[name, group]:,}"
            for group in GROUPS
        ]
        lines.append(f"| {name} | {calls} | {commits} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--writers", type=int, default=2)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cores) as pool:
        some = [
            pool.submit(
                run, "fault_trials.py", "--operation", name,
                "--points", options.points, "--seed", options.seed,
            )
            for name in OPERATIONS
        ]  # fmt: skip
        rows = [row for each in some for row in each.result()]
    points = sum(row["points"] for row in rows)
    wrong = [(row["operation"], row["fault"], point) for row in rows for point in row["wrong"]]
    seconds = sum(row["seconds"] for row in rows)
    print("\n".join(table(rows)))
    print(f"\n{points:,} points tried, {points - len(wrong):,} survived; {points / seconds:.0f}/s")
    for line in wrong:
        print(*line, sep=" · ")
    if options.minutes:
        (soaked,) = run(
            "soak.py", "--seconds", options.minutes * 60,
            "--readers", options.readers, "--writers", options.writers,
        )  # fmt: skip
        print()
        for name, value in soaked.items():
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
