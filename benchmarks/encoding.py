"""Passages a second of the shipped encoder, beside sentence-transformers on torch.

    python benchmarks/encoding.py CORPUS.jsonl [--passages 300] [--rounds 3] [--st PYTHON MODEL]

CORPUS has lines with "text" (and "title"); each is cut to its first 100 words. Every figure is a
fresh process that loads its model, encodes a few passages, and then is timed over the rest; the
two take turns. The peak is of the whole process. --st: a Python that has sentence-transformers, and
the folder of all-MiniLM-L6-v2; without it there is no reference.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

WORDS = 100

OURS = """
import json, sys, time
from ragcli.encoders.minilm import open_minilm
texts = json.load(open(sys.argv[1]))
encoder = open_minilm()
encoder.encode_documents(texts[:8])
began = time.perf_counter()
for start in range(8, len(texts), encoder.batch):
    encoder.encode_documents(texts[start : start + encoder.batch])
print((len(texts) - 8) / (time.perf_counter() - began))
"""

THEIRS = """
import json, sys, time
from sentence_transformers import SentenceTransformer
texts = json.load(open(sys.argv[1]))
model = SentenceTransformer(sys.argv[2], device="cpu")
model.encode(texts[:8])
began = time.perf_counter()
model.encode(texts[8:], batch_size=32)
print((len(texts) - 8) / (time.perf_counter() - began))
"""


def measured(command: list[str]) -> tuple[float, float]:
    """(passages a second, peak in MB) of one process."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    unit = 1 if platform.system() == "Darwin" else 1024
    return float(told.split()[-1]), usage.ru_maxrss * unit / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--passages", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--st", nargs=2, metavar=("PYTHON", "MODEL"))
    given = parser.parse_args()
    texts = []
    for line in given.corpus.read_text(encoding="utf-8").splitlines()[: given.passages]:
        record = json.loads(line)
        texts.append(" ".join(f"{record.get('title', '')} {record['text']}".split()[:WORDS]))
    seen: dict[str, list[tuple[float, float]]] = {"minilm": []}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(texts, file)
        file.flush()
        commands = {"minilm": [sys.executable, "-c", OURS, file.name]}
        if given.st:
            commands["sentence-transformers"] = [given.st[0], "-c", THEIRS, file.name, given.st[1]]
        for _ in range(given.rounds):
            for name, command in commands.items():
                seen.setdefault(name, []).append(measured(command))
    packages = ", ".join(f"{name} {version(name)}" for name in ("onnxruntime", "tokenizers"))
    print(f"{len(texts)} passages of {WORDS} words, {os.cpu_count()} processors, {packages}\n")
    print("| encoder | passages/s, median | each round | peak MB |\n|---|---|---|---|")
    for name, figures in seen.items():
        rates = [rate for rate, _ in figures]
        each = ", ".join(f"{rate:.0f}" for rate in rates)
        peak = max(peak for _, peak in figures)
        print(f"| {name} | {statistics.median(rates):.1f} | {each} | {peak:.0f} |")
    if given.st:
        ratios = [
            ours[0] / theirs[0]
            for ours, theirs in zip(seen["minilm"], seen["sentence-transformers"], strict=True)
        ]
        print(f"\nratio, median of the rounds: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
