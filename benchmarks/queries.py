"""Times and memory of a fresh `ragcli query` over many passages.

    python benchmarks/queries.py [--passages 200000] [--runs 7] [--st PYTHON MODEL]

The passages are those of passages.py. Their vectors are random ones of unit length, because
200,000 real ones would take half an hour: what a scan costs does not depend on them. Beside it
`python -c "import numpy"`; with --st, a Python with sentence-transformers and a model's folder: a
fresh process that embeds one question. Each figure is a whole process, the table and the prompt
included, in turns; median of the runs; the peak is of the process (Linux, MacOS).
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from passages import write_source

EMBED_ONE = (
    "import sys; from sentence_transformers import SentenceTransformer; "
    "SentenceTransformer(sys.argv[1], device='cpu').encode('who owns the service?')"
)
BATCH = 50_000


def make(index: Path, source: Path) -> None:
    """An index of `source` without vectors."""
    subprocess.run(
        [sys.executable, "-m", "ragcli", "index", str(source), "--index", str(index),
         "--lazy", "--quiet"], check=True,
    )  # fmt: skip


def fill(index: Path) -> None:
    """Give every passage a vector."""
    import numpy as np

    from ragcli.encoders.minilm import open_minilm
    from ragcli.encoders.quantising import quantise
    from ragcli.store.catalog import Catalog
    from ragcli.store.lock import write_lock
    from ragcli.store.writer import Writer

    rng = np.random.default_rng(1)
    with write_lock(index, 10.0):
        catalog = Catalog.open_write(index)
        writer = Writer(index, catalog)
        pending, dim = writer.pending(), open_minilm().dim
        for start in range(0, len(pending), BATCH):
            some = pending[start : start + BATCH]
            vectors = rng.standard_normal((len(some), dim))
            writer.add_vectors(some, quantise(vectors, normalise=True))
            writer.commit()
        while writer.merge_vectors():
            pass
        writer.commit()
        catalog.checkpoint()
        writer.sweep()
        catalog.close()


def prepare(work: Path, passages: int) -> list[tuple[str, str]]:
    """The indexes `lazy` and `full` in `work`; (id, question) pairs."""
    (work / "source").mkdir()
    questions = write_source(work / "source", work, passages, 0, None)
    make(work / "lazy", work / "source")
    shutil.copytree(work / "lazy", work / "full")
    fill(work / "full")
    return questions


def timed(command: list[str]) -> tuple[float, float]:
    """(seconds, peak in MB) of one process."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ}
    )
    _, status, usage = os.wait4(process.pid, 0)
    spent = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    unit = 1 if platform.system() == "Darwin" else 1024
    return spent, usage.ru_maxrss * unit / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--st", nargs=2, metavar=("PYTHON", "MODEL"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        # Elsewhere, for a process' peak counts what its parent held when it was forked.
        with ProcessPoolExecutor(1, get_context("spawn")) as other:
            questions = other.submit(prepare, work, given.passages).result()
        rng = random.Random(3)
        base = [sys.executable, "-m", "ragcli", "query", "--show", "table,prompt", "--index"]
        commands = {
            "import numpy": lambda _: [sys.executable, "-c", "import numpy"],
            "lexical": lambda q: [*base, str(work / "full"), "--mode", "lexical", q],
            "hybrid": lambda q: [*base, str(work / "full"), q],
            "hybrid, 50 to embed": lambda q: [*base, str(work / "lazy"), q],
        }
        if given.st:
            python, model = given.st
            commands["sentence-transformers, one question"] = lambda _: [
                python, "-c", EMBED_ONE, model
            ]  # fmt: skip
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for run in range(given.runs + 1):
            question = rng.choice(questions)[1]
            for name, command in commands.items():
                figures = timed(command(question))
                if run:  # the first one warms the files
                    seen[name].append(figures)
    packages = ("numpy", "faiss-cpu", "onnxruntime", "tokenizers", "typer")
    told = ", ".join(f"{name} {version(name)}" for name in packages)
    print(f"{given.passages:,} passages, {given.runs} runs")
    print(f"Python {platform.python_version()}, {told}")
    print("\n| fresh process | seconds, median | least | ratio to import numpy | peak MB |")
    print("|---|---|---|---|---|")
    numpy = statistics.median(spent for spent, _ in seen["import numpy"])
    for name, figures in seen.items():
        median = statistics.median(spent for spent, _ in figures)
        least, peak = min(spent for spent, _ in figures), max(peak for _, peak in figures)
        print(f"| {name} | {median:.3f} | {least:.3f} | {median / numpy:.2f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
