"""The temperature under which p(z|x) = softmax(score / T) gives most to the right passage.

    python benchmarks/temperature.py SET [SET …]

A SET is a folder of BEIR's form, as for `quality.py`. Per set and way to ask, over the questions
that have a right passage among the first five: the T of the grid with the highest mean log of the
right passages' share, and that mean; beside it the mean at T = 1.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from quality import Records, ask, make_index

WAYS = {
    "hybrid": [],
    "hybrid, rrf": ["--fusion", "rrf"],
    "dense": ["--mode", "dense"],
    "lexical": ["--mode", "lexical"],
}
GRID = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0)
K = 5
Scored = list[tuple[np.ndarray, np.ndarray]]


def scored(records: Records, index: Path, options: list[str]) -> Scored:
    """(scores, which are right), each (5,), of the questions that have a right passage."""
    found: Scored = []
    for question, hits in zip(records.questions, ask(records, index, options), strict=True):
        best = hits[:K]
        relevant = records.qrels[question["id"]]
        right = np.array([relevant.get(hit["record"], 0) > 0 for hit in best], bool)
        if right.any() and len(right) == K:
            found.append((np.array([hit["score"] for hit in best]), right))
    return found


def mean_log_share(found: Scored, temperature: float) -> float:
    shares = []
    for scores, right in found:
        raised = np.exp((scores - scores.max()) / temperature)
        shares.append(max(raised[right].sum() / raised.sum(), 1e-300))
    return float(np.log(shares).mean())


def main(folders: list[str]) -> None:
    print("| set | asked | questions | best T | mean log share | at T = 1 |")
    print("|---|---|---|---|---|---|")
    for folder in map(Path, folders):
        records = Records(folder)
        with tempfile.TemporaryDirectory() as name:
            index = make_index(records.source, Path(name), [])
            for way, options in WAYS.items():
                found = scored(records, index, options)
                means = {temperature: mean_log_share(found, temperature) for temperature in GRID}
                best = max(means, key=means.__getitem__)
                print(f"| {folder.name} | {way} | {len(found)} | {best:g} "
                      f"| {means[best]:.3f} | {means[1.0]:.3f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
