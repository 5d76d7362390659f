"""nDCG@10, MRR@10 and recall@5 of each mode on sets in BEIR's form.

    python benchmarks/quality.py SET [SET …] [--chunk auto] [--encoder hash]

A SET is a folder with corpus.jsonl, queries.jsonl ({"id", "question"}) and qrels.tsv (query-id,
corpus-id, score; one header line). Each is indexed by the command line with the defaults, asked by
`query --batch --json` in every mode, and its records are ranked by their best passage
(--max-per-file 1). With --runs DIR the runs are kept as jsonl lines {"id", "docs"}.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ragcli

MODES = {
    "lexical": ["--mode", "lexical"],
    "dense": ["--mode", "dense"],
    "hybrid": [],
    "hybrid, rrf": ["--fusion", "rrf"],
}
DEPTH = 20


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ragcli", *arguments]


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, document, score = line.split("\t")
        qrels.setdefault(query, {})[document] = int(score)
    return qrels


def run_set(folder: Path, work: Path, options: list[str], mode: list[str]) -> dict[str, list[str]]:
    """Question id → record ids, best first."""
    index = work / "index"
    if not index.exists():
        source = work / "source"
        source.mkdir()
        shutil.copy(folder / "corpus.jsonl", source)
        subprocess.run(
            command("index", str(source), "--index", str(index), "--quiet", *options), check=True
        )
    asked = subprocess.run(
        command(
            "query", "--batch", str(folder / "queries.jsonl"), "--json", "-k", str(DEPTH),
            "--max-per-file", "1", "--index", str(index), *mode,
        ),
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    answers = map(json.loads, asked.stdout.splitlines())
    return {a["id"]: [hit["record"] for hit in a["hits"]] for a in answers}


def scores(qrels: dict[str, dict[str, int]], run: dict[str, list[str]]) -> tuple[float, ...]:
    """Means over the questions of `qrels`: nDCG@10, MRR@10, recall@5."""
    ndcg = reciprocal = recall = 0.0
    for query, relevant in qrels.items():
        found = run.get(query, [])
        gains = [relevant.get(document, 0) for document in found[:10]]
        ideal = sorted(relevant.values(), reverse=True)[:10]
        ndcg += discounted(gains) / discounted(ideal)
        reciprocal += next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0)
        recall += sum(document in relevant for document in found[:5]) / len(relevant)
    return tuple(total / len(qrels) for total in (ndcg, reciprocal, recall))


def discounted(gains: list[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--chunk", default="auto")
    parser.add_argument("--encoder", default="hash")
    parser.add_argument("--runs", type=Path)
    given = parser.parse_args()
    options = ["--chunk", given.chunk, "--encoder", given.encoder]
    print(f"ragcli {ragcli.__version__}, Python {platform.python_version()}; {' '.join(options)}\n")
    print("| set | mode | nDCG@10 | MRR@10 | recall@5 |\n|---|---|---|---|---|")
    for folder in given.sets:
        qrels = read_qrels(folder / "qrels.tsv")
        with tempfile.TemporaryDirectory() as work:
            for name, mode in MODES.items():
                run = run_set(folder, Path(work), options, mode)
                values = " | ".join(f"{value:.4f}" for value in scores(qrels, run))
                print(f"| {folder.name} | {name} | {values} |", flush=True)
                if given.runs:
                    given.runs.mkdir(exist_ok=True)
                    target = given.runs / f"{folder.name}.{name.replace(', ', '-')}.jsonl"
                    target.write_text(
                        "".join(json.dumps({"id": q, "docs": d}) + "\n" for q, d in run.items()),
                        encoding="utf-8",
                    )


if __name__ == "__main__":
    main()
