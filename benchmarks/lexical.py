"""Lexical search on 200,000 passages: ragcli beside bm25s, SQLite FTS5 and tantivy.

    python benchmarks/lexical.py                   made-up passages, the report to the terminal
    python benchmarks/lexical.py --out FILE.md     the report to a file
    python benchmarks/lexical.py --text FOLDER     passages cut from real files instead

Each step of each engine runs in a process of its own, and the engines take turns. Needs
`pip install 'ragcli[dev]'` and, for the memory, Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from indexing import resident
from passages import QUESTIONS, content_words, read_file, write_source

ENGINES = ("ragcli", "bm25s", "SQLite FTS5", "tantivy")
PACE = "tantivy"
FIXED = ("bm25s",)
"""Engines that build once and cannot add or delete."""

BUILDS = 3
CHANGES = 3
WARM_ROUNDS = 5
Figures = dict[str, dict[str, float]]
"""Per measure (see ROWS) the figure of each engine."""

ROWS = (
    ("build", "build, s", 1),
    ("build_cpu", "build, s of processor time", 1),
    ("memory", "build, peak memory, MB", 0),
    ("bytes", "on disk, MB", 0),
    ("fresh", "fresh process, one question, ms", 0),
    ("warm", "warm question, median, ms", 2),
    ("warm95", "warm question, 95th percentile, ms", 2),
    ("add", "add 1,000 passages, s", 2),
    ("delete", "delete 1,000 passages, s", 2),
    ("found", f"source passage among the ten, of {QUESTIONS}", 0),
)


def step(engine: str, verb: str, *arguments: str) -> subprocess.Popen[str]:
    """Start one step (see `lexical_engines.step`)."""
    return subprocess.Popen(
        [
            sys.executable, "-c", "import sys, lexical_engines as e; e.step(*sys.argv[1:])",
            engine, verb, *arguments,
        ],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def answer(process: subprocess.Popen[str]) -> str:
    """What a step printed; ends the run where it failed."""
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{shlex.join(map(str, process.args))} failed")  # type: ignore[arg-type]
    return out


def measure_builds(figures: Figures, indexes: dict[str, Path], source: Path) -> None:
    """Seconds, processor seconds and peak memory, medians; size on disk."""
    seen: dict[tuple[str, str], list[float]] = {}
    for _ in range(BUILDS):
        for engine, index in indexes.items():
            print(f"build {engine}", file=sys.stderr)
            if index.is_dir():
                shutil.rmtree(index)
            index.unlink(missing_ok=True)
            for measure, figure in build(engine, source, index).items():
                seen.setdefault((measure, engine), []).append(figure)
    for (measure, engine), values in seen.items():
        figures[measure][engine] = statistics.median(values)
    for engine, index in indexes.items():
        files = [path for path in (index, *index.rglob("*")) if path.is_file()]
        figures["bytes"][engine] = sum(path.stat().st_size for path in files) / 1e6


def build(engine: str, source: Path, index: Path) -> dict[str, float]:
    """One build, by measure."""
    before = os.times()
    process = step(engine, "build", str(source), str(index))
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.02)
    seconds = json.loads(answer(process))
    after = os.times()
    user = after.children_user - before.children_user
    system = after.children_system - before.children_system
    return {"build": seconds, "build_cpu": user + system, "memory": peak / 1e6}


def measure_fresh(
    figures: Figures, indexes: dict[str, Path], asked: list[list[str]], rounds: int
) -> None:
    """Wall time of a whole process: start, imports, open, one question."""
    seen: dict[str, list[float]] = {engine: [] for engine in indexes}
    for question in asked[:rounds]:
        for engine, index in indexes.items():
            began = time.perf_counter()
            answer(step(engine, "fresh", str(index), *question))
            seen[engine].append(time.perf_counter() - began)
    for engine, times in seen.items():
        figures["fresh"][engine] = statistics.median(times) * 1e3


def measure_warm(
    figures: Figures, indexes: dict[str, Path], asked: Path, sources: list[str]
) -> None:
    """Per question the median of the rounds; of those the median and the 95th percentile."""
    seen: dict[str, list[list[float]]] = {engine: [] for engine in indexes}
    for _ in range(WARM_ROUNDS):
        for engine, index in indexes.items():
            results = json.loads(answer(step(engine, "warm", str(index), str(asked))))
            seen[engine].append([seconds for seconds, _ in results])
            figures["found"][engine] = sum(
                source in ids for source, (_, ids) in zip(sources, results, strict=True)
            )
    for engine, rounds in seen.items():
        each = np.median(np.array(rounds), axis=0) * 1e3
        figures["warm"][engine] = float(np.median(each))
        figures["warm95"][engine] = float(np.percentile(each, 95))


def measure_changes(figures: Figures, indexes: dict[str, Path], source: Path, more: Path) -> None:
    """Add a file of passages and delete an old one, each committed; the median of some."""
    old = sorted(source.iterdir())
    seen: dict[tuple[str, str], list[float]] = {}
    for number, new in enumerate(sorted(more.iterdir())):
        gone = shutil.copy(old[(2 * number + 1) * len(old) // (2 * CHANGES)], more.parent)
        for engine, index in indexes.items():
            for verb, file in (("add", new), ("delete", gone)):
                if engine not in FIXED:
                    seconds = json.loads(
                        answer(step(engine, verb, str(source), str(index), str(file)))
                    )
                    seen.setdefault((verb, engine), []).append(seconds)
    for (verb, engine), times in seen.items():
        figures[verb][engine] = statistics.median(times)


def report(figures: Figures, arguments: list[str], facts: list[str]) -> str:
    """The figures as Markdown, each with its ratio to tantivy's."""
    lines = [
        "# Lexical engines on the same passages",
        "",
        f"`{shlex.join(['python', 'benchmarks/lexical.py', *arguments])}`",
        "",
        *facts,
        "",
        f"| | {' | '.join(ENGINES)} |",
        "|---|" + "---:|" * len(ENGINES),
    ]
    for key, title, digits in ROWS:
        row = figures[key]
        cells = []
        for engine in ENGINES:
            cell = f"{row[engine]:,.{digits}f}" if engine in row else "none"
            if engine in row and engine != PACE and key != "found":
                ratio = row[engine] / row[PACE]
                cell += f" (× {ratio:.{0 if ratio >= 10 else 1}f})"
            cells.append(cell)
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines += [
        "",
        f"ragcli's postings alone, without the catalogue and its text, in one process: build "
        f"{figures['build']['postings']:.1f} s, {figures['bytes']['postings']:.0f} MB.",
        "",
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--passages", type=int, default=200_000)
    parser.add_argument("--text", type=Path, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=15, help="fresh processes per engine")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="keep passages and indexes")
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    work = options.work or Path(tempfile.mkdtemp(prefix="ragcli-lexical-"))
    try:
        text = measure(options, work.absolute(), arguments)
    finally:
        if not options.work:
            shutil.rmtree(work)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    else:
        print(text)


def measure(options: argparse.Namespace, work: Path, arguments: list[str]) -> str:
    """Every measure, in `work`; returns the report."""
    source, more = work / "source", work / "more"
    for folder in (work, source, more):
        folder.mkdir(exist_ok=True)
    made = write_source(source, more, options.passages, CHANGES, options.text)
    asked = [[question, " ".join(content_words(question))] for _, question in made]
    questions = work / "questions.json"
    questions.write_text(json.dumps(asked), encoding="utf-8")
    figures: Figures = {key: {} for key, *_ in ROWS}
    indexes = {engine: work / engine.replace(" ", "-") for engine in ENGINES}
    measure_builds(figures, {**indexes, "postings": work / "postings"}, source)
    print("questions", file=sys.stderr)
    measure_fresh(figures, indexes, asked, options.rounds)
    measure_warm(figures, indexes, questions, [name for name, _ in made])
    print("add and delete", file=sys.stderr)
    measure_changes(figures, indexes, source, more)
    what = "passages cut from real files" if options.text else "made-up passages"
    return report(figures, arguments, facts(options, what, min(more.iterdir())))


def processor() -> str:
    """The processor's model as Linux tells it."""
    information = Path("/proc/cpuinfo").read_text(encoding="ascii")
    return re.findall(r"model name\s*: (.*)", information)[0]


def facts(options: argparse.Namespace, what: str, sample: Path) -> list[str]:
    """Machine, versions and what was measured."""
    letters = statistics.mean(len(text) for _, text in read_file(sample))
    packages = ("ragcli", "bm25s", "tantivy", "numpy")
    return [
        f"{processor()}, {os.cpu_count()} processors; {platform.system()}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        + ", ".join(f"{name} {version(name)}" for name in packages)
        + ".",
        "",
        f"{options.passages:,} {what} of {letters:.0f} characters on average, {QUESTIONS} "
        "questions of four to nine content words of one passage with two to four stop words, "
        "ten hits each with their text. ragcli and bm25s drop the question's stop words by their "
        "own lists; FTS5 and tantivy get it without them. In brackets the ratio to tantivy in "
        "the same run. Build: from JSON Lines to committed, in the processes and threads that "
        f"each takes by itself, median of {BUILDS}; memory is the largest sum of resident "
        "sets, looked at every 20 ms. Fresh process: interpreter, "
        f"imports, opening, one question; median of {options.rounds} whole processes. Warm: "
        f"per question the median of {WARM_ROUNDS} processes. Add and delete: opened, changed "
        f"and committed (ragcli: the whole of `index`), median of {CHANGES}.",
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
