"""Times of the command line on one folder: first index, nothing changed, three changes, a query.

    python benchmarks/indexing.py FOLDER [--runs 5] [--word WORD]

FOLDER is copied; nothing of it is changed. Each figure is a whole process, median of the runs,
beside `python -c "import typer, numpy"` and `python -c pass` in the same run. Peak memory is the
largest sum of resident sets of the process and its children, looked at every 20 ms.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path

RAGCLI = [sys.executable, "-m", "ragcli"]


def resident(process: int) -> int:
    """Bytes of a process and its descendants (Linux)."""
    total = 0
    try:
        fields = Path(f"/proc/{process}/statm").read_text().split()
        total = int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
        tasks = Path(f"/proc/{process}/task").iterdir()
        for task in tasks:
            for child in (task / "children").read_text().split():
                total += resident(int(child))
    except (FileNotFoundError, ProcessLookupError):
        return total  # it ended while it was looked at
    return total


def timed(command: list[str]) -> tuple[float, int, str]:
    """(seconds, peak bytes, stdout) of one process with its children."""
    peak = 0
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ended = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.02):
            peak = max(peak, resident(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, errors = process.communicate()
    spent = time.perf_counter() - began
    ended.set()
    watcher.join()
    if process.returncode or "Traceback" in errors:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{errors}")
    return spent, peak, out


def three_changes(folder: Path, number: int) -> None:
    """Edit one file, rename one, delete one."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    edited, renamed, deleted = files[10 * number], files[10 * number + 1], files[10 * number + 2]
    with edited.open("a", encoding="utf-8") as file:
        file.write(f"\n\nOne more paragraph, number {number}.\n")
    renamed.rename(renamed.with_stem(renamed.stem + f"-renamed{number}"))
    deleted.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--word", default="dependency injection")
    given = parser.parse_args()
    figures: dict[str, list[float]] = {}
    peaks: dict[str, list[int]] = {}

    def measure(name: str, command: list[str]) -> None:
        seconds, peak, _ = timed(command)
        figures.setdefault(name, []).append(seconds)
        peaks.setdefault(name, []).append(peak)

    with tempfile.TemporaryDirectory() as work:
        for number in range(given.runs):
            folder, index = Path(work) / "docs", Path(work) / "index"
            for old in (folder, index):
                shutil.rmtree(old, ignore_errors=True)
            shutil.copytree(given.folder, folder)
            time.sleep(0.3)  # files younger than the clock's tick are looked into once more
            base = [*RAGCLI, "index", "--index", str(index), "--quiet"]
            ask = [*RAGCLI, "query", given.word, "--index", str(index), "--mode", "lexical"]
            measure("python -c pass", [sys.executable, "-c", "pass"])
            measure("import typer, numpy", [sys.executable, "-c", "import typer, numpy"])
            measure("ragcli --help", [*RAGCLI, "--help"])
            measure("first index, --encoder none", [*base, str(folder), "--encoder", "none"])
            measure("nothing changed", base)
            three_changes(folder, number)
            measure("one edited, one renamed, one deleted", base)
            measure("query --mode lexical", ask)
            measure("first vectors, --encoder hash", [*base, "--encoder", "hash"])
            measure("query (hybrid)", ask[:-2])
        files = [path for path in given.folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    packages = ", ".join(f"{name} {version(name)}" for name in ("ragcli", "numpy", "typer"))
    print(f"{len(files)} files, {size / 1e6:.1f} MB; {os.cpu_count()} cores, {platform.machine()}")
    print(f"Python {platform.python_version()}, {packages}; median of {given.runs}\n")
    base = statistics.median(figures["import typer, numpy"])
    print("| what | seconds | ÷ import typer, numpy | peak MB |\n|---|---|---|---|")
    for name, values in figures.items():
        middle = statistics.median(values)
        print(f"| {name} | {middle:.3f} | {middle / base:.2f} | {max(peaks[name]) / 1e6:.0f} |")


if __name__ == "__main__":
    main()
