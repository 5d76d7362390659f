"""What each mode finds on public sets, by the command line, with the defaults.

    python benchmarks/quality.py SET [SET …] [--chunk auto] [--encoder minilm] [--runs DIR]

A SET is a folder with either corpus.jsonl, queries.jsonl ({"id", "question"}) and qrels.tsv
(query-id, corpus-id, score; one header line), as BEIR has them: nDCG@10, MRR@10 and recall@5, a
record ranked by its best passage (--max-per-file 1). Or documents in a folder of its own and
questions.jsonl: with "file" (and "answerable"), how often the first hit and one of five is of the
right file; with "references" ({"start", "end"}), the share of their characters in five passages and
the intersection over union (Smith & Troynikov 2024), both in percent. With --runs DIR the runs are
kept as jsonl lines for another scorer.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ragcli

MODES = {
    "lexical": ["--mode", "lexical"],
    "dense": ["--mode", "dense"],
    "hybrid": [],
    "hybrid, rrf": ["--fusion", "rrf"],
}
DEPTH = 20
Hits = Sequence[Mapping[str, Any]]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ragcli", *arguments]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


class Records:
    """A set in BEIR's form."""

    metrics = ("nDCG@10", "MRR@10", "recall@5")
    options = ("--max-per-file", "1")

    def __init__(self, folder: Path) -> None:
        self.source = folder / "corpus.jsonl"
        self.questions = lines_of(folder / "queries.jsonl")
        self.qrels: dict[str, dict[str, int]] = {}
        for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            query, document, score = line.split("\t")
            self.qrels.setdefault(query, {})[document] = int(score)
        self.questions = [q for q in self.questions if q["id"] in self.qrels]

    def kept(self, hits: Hits) -> dict[str, object]:
        """What the other scorer reads."""
        return {"docs": [hit["record"] for hit in hits]}

    def score(self, question: Mapping[str, Any], hits: Hits) -> tuple[float, ...]:
        """One question's figures, in the order of `metrics`."""
        relevant = self.qrels[question["id"]]
        found = [hit["record"] for hit in hits][:10]
        gains = [relevant.get(document, 0) for document in found]
        ideal = sorted(relevant.values(), reverse=True)[:10]
        return (
            discounted(gains) / discounted(ideal),
            next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0),
            sum(document in relevant for document in found[:5]) / len(relevant),
        )


class Files:
    """A folder of documents; a question names the right one."""

    metrics: tuple[str, ...] = ("file@1", "file@5")
    options: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        self.questions = [
            question
            for question in lines_of(folder / "questions.jsonl")
            if question.get("answerable", True)
        ]
        self.source = (folder / self.questions[0]["file"]).parent

    def kept(self, hits: Hits) -> dict[str, object]:
        """What the other scorer reads."""
        return {"hits": [{"file": h["path"], "start": h["start"], "end": h["end"]} for h in hits]}

    def score(self, question: Mapping[str, Any], hits: Hits) -> tuple[float, ...]:
        """One question's figures, in the order of `metrics`."""
        right = {Path(name).name for name in question.get("files") or [question["file"]]}
        found = [Path(hit["path"]).name in right for hit in hits[:5]]
        return float(any(found[:1])), float(any(found))


class Ranges(Files):
    """A folder of documents; a question names stretches of text."""

    metrics = ("recall % @5", "IoU % @5")

    def score(self, question: Mapping[str, Any], hits: Hits) -> tuple[float, ...]:
        """One question's figures, in the order of `metrics`."""
        wanted: set[int] = set()
        for reference in question["references"]:
            wanted.update(range(reference["start"], reference["end"]))
        got: set[int] = set()
        total = 0
        for hit in hits[:5]:
            total += hit["end"] - hit["start"]
            if Path(hit["path"]).name == Path(question["file"]).name:
                got.update(range(hit["start"], hit["end"]))
        both = len(wanted & got)
        return 100 * both / len(wanted), 100 * both / (total + len(wanted) - both)


def discounted(gains: list[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def open_set(folder: Path) -> Records | Files:
    if (folder / "corpus.jsonl").exists():
        return Records(folder)
    first = lines_of(folder / "questions.jsonl")[0]
    return Ranges(folder) if "references" in first else Files(folder)


def make_index(source: Path, work: Path, options: list[str]) -> Path:
    """Index the file or folder `source`; the index."""
    if source.is_file():
        (work / "source").mkdir()
        shutil.copy(source, work / "source")
        source = work / "source"
    index = work / "index"
    asked = ["index", str(source), "--index", str(index), "--quiet", *options]
    subprocess.run(command(*asked), check=True)
    return index


def ask(data: Records | Files, index: Path, mode: list[str]) -> list[Hits]:
    """The hits of each question."""
    batch = index.parent / "questions.jsonl"
    batch.write_text(
        "".join(json.dumps({"id": str(i), "question": q["question"]}) + "\n"
                for i, q in enumerate(data.questions)),
        encoding="utf-8",
    )  # fmt: skip
    asked = ["--batch", str(batch), "--json", "-k", str(DEPTH), "--index", str(index)]
    done = subprocess.run(
        command("query", *asked, *data.options, *mode), check=True, capture_output=True, text=True
    )
    return [json.loads(line)["hits"] for line in done.stdout.splitlines()]


def measure(data: Records | Files, runs: list[Hits]) -> list[float]:
    scores = [data.score(q, hits) for q, hits in zip(data.questions, runs, strict=True)]
    return [sum(column) / len(scores) for column in zip(*scores, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--chunk", default="auto")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--runs", type=Path)
    given = parser.parse_args()
    options = ["--chunk", given.chunk, "--encoder", given.encoder]
    print(f"ragcli {ragcli.__version__}, Python {platform.python_version()}; {' '.join(options)}\n")
    print("| set | mode | |\n|---|---|---|")
    for folder in given.sets:
        data = open_set(folder)
        with tempfile.TemporaryDirectory() as work:
            index = make_index(data.source, Path(work), options)
            for name, mode in MODES.items():
                if given.encoder == "none" and name != "lexical":
                    continue
                runs = ask(data, index, mode)
                values = zip(data.metrics, measure(data, runs), strict=True)
                told = " · ".join(f"{metric} {value:.4f}" for metric, value in values)
                print(f"| {folder.name} | {name} | {told} |", flush=True)
                if given.runs:
                    given.runs.mkdir(exist_ok=True)
                    (given.runs / f"{folder.name}.{name.replace(', ', '-')}.jsonl").write_text(
                        "".join(
                            json.dumps({"id": q["id"], **data.kept(hits)}) + "\n"
                            for q, hits in zip(data.questions, runs, strict=True)
                        ),
                        encoding="utf-8",
                    )


if __name__ == "__main__":
    main()
