"""Time and memory of `inspect --check` over many passages, everything sound.

    python benchmarks/checking.py [--passages 100000] [--runs 5]

The index is that of queries.py: passages of passages.py, with random vectors of unit length and
384 columns; beside it one with the counts of `hash` in 1,024 columns. Each figure is a whole
process that opens the index, checks it and lays out the report; beside it
`python -c "import numpy"`, in turns. The files are in memory. Median of the runs; the peak is of
the process (Linux, MacOS).
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from queries import prepare, timed

CHECK = (
    "import sys; from pathlib import Path; from ragcli.store.index import Index;"
    "from ragcli.inspection.checking import check; from ragcli.cli.reports.checking import lines;"
    "report = check(Index.open(Path(sys.argv[1]))); print(*lines(report), sep='\\n');"
    "sys.exit(bool(report.findings))"
)


def counted(index: Path) -> None:
    """Give every passage the counts of `hash`."""
    subprocess.run(
        [sys.executable, "-m", "ragcli", "index", "--index", str(index), "--encoder", "hash",
         "--quiet"], check=True,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        # Elsewhere, for a process' peak counts what its parent held when it was forked.
        with ProcessPoolExecutor(1, get_context("spawn")) as other:
            other.submit(prepare, work, given.passages).result()
        counted(work / "lazy")
        commands = {
            "import numpy": [sys.executable, "-c", "import numpy"],
            "check, 384 columns": [sys.executable, "-c", CHECK, str(work / "full")],
            "check, counts of 1,024 columns": [sys.executable, "-c", CHECK, str(work / "lazy")],
        }
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for run in range(given.runs + 1):
            for name, command in commands.items():
                figures = timed(command)
                if run:  # the first one warms the files
                    seen[name].append(figures)
        told = [subprocess.run(c, capture_output=True, text=True, check=True).stdout.strip()
                for name, c in commands.items() if name != "import numpy"]  # fmt: skip
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "faiss-cpu"))
    print(f"{given.passages:,} passages, {given.runs} runs")
    print(f"Python {platform.python_version()}, {packages}\n")
    print(*told, sep="\n")
    print("\n| fresh process | seconds, median | least | ratio to import numpy | peak MB |")
    print("|---|---|---|---|---|")
    numpy = statistics.median(spent for spent, _ in seen["import numpy"])
    for name, figures in seen.items():
        median = statistics.median(spent for spent, _ in figures)
        least, peak = min(spent for spent, _ in figures), max(peak for _, peak in figures)
        print(f"| {name} | {median:.3f} | {least:.3f} | {median / numpy:.1f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
