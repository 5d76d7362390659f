"""Chunk size against what is found and what it costs, by `ragcli.evaluation.sweep`.

    python benchmarks/sweep.py SET [--sweep chunk=auto:60,auto:100 …] [-k 5]

SET is a folder with documents in a folder of their own and questions.jsonl, whose "references"
({"start", "end"}) are characters of "file" (Chroma's evaluation of chunking). The questions are
written anew in ragcli's own form; the present index is made with the defaults, and its vectors are
shared with the variants.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from pathlib import Path

import ragcli
from ragcli.evaluation.questions import read_questions
from ragcli.evaluation.run import Figure, Way
from ragcli.evaluation.sweep import SweepReport, parse_sweep, sweep
from ragcli.indexing import index_folder

SWEEP = ["chunk=auto:60,auto:100,auto:150,auto:250"]


def converted(folder: Path, target: Path) -> Path:
    """Write the questions of `folder` in ragcli's form; returns the folder of its documents."""
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    with target.open("w", encoding="utf-8") as file:
        for question in map(json.loads, lines):
            name = Path(question["file"]).name
            spans = [
                {"path": name, "start": span["start"], "end": span["end"]}
                for span in question["references"]
            ]
            asked = {"id": question["id"], "question": question["question"], "relevant": spans}
            file.write(json.dumps(asked) + "\n")
    return folder / Path(question["file"]).parent


def told(figure: Figure) -> str:
    """A share in percent, with its interval."""
    return f"{100 * figure.mean:.2f} ({100 * figure.low:.1f}–{100 * figure.high:.1f})"


def show(report: SweepReport, k: int) -> None:
    names = ["recall", "precision", "iou"]
    print(
        "| | chunks | shared | index s | recall % | precision % | IoU % | words | p50 ms | behind |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in report.rows:
        figures = " | ".join(told(row.figures[f"characters_{name}@{k}"]) for name in names)
        gap = row.against_best
        less = "best" if gap is None else (
            f"{100 * gap.mean:.2f} ({100 * gap.low:.1f}–{100 * gap.high:.1f}), p {gap.p:.4f}"
        )  # fmt: skip
        print(
            f"| {row.label} | {row.chunks:,} | {row.shared:,} | {row.index_seconds:.0f} | {figures}"
            f" | {row.words:.0f} | {row.milliseconds_50:.1f} | {less} |"
        )
    print(f"\nBest by {report.measure}: {report.best}; cannot be told from it: "
          f"{', '.join(report.alike) or 'none'}. {report.seconds:.0f} s in all.")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", type=Path)
    parser.add_argument("--sweep", nargs="+", default=SWEEP)
    parser.add_argument("-k", type=int, default=5)
    given = parser.parse_args()
    print(f"ragcli {ragcli.__version__}, Python {platform.python_version()}\n", flush=True)
    due = 0.0

    def progress(done: int, total: int, label: str, stage: str, left: float | None) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + 5
            rest = "?" if left is None else f"{left:.0f}"
            print(f"{done} of {total}, {label}: {stage}, {rest} s left", file=sys.stderr)

    with tempfile.TemporaryDirectory() as work:
        source = converted(given.set, Path(work) / "questions.jsonl")
        index = Path(work) / "index"
        present = index_folder(index, [source])
        print(f"Present index: {present.chunking}, {present.chunks:,} chunks, "
              f"{present.seconds:.0f} s.\n", flush=True)  # fmt: skip
        report = sweep(
            index, read_questions(Path(work) / "questions.jsonl"), Way(), (given.k,), "chunk",
            parse_sweep(given.sweep), measure=f"characters_recall@{given.k}", progress=progress,
        )  # fmt: skip
    show(report, given.k)


if __name__ == "__main__":
    main()
