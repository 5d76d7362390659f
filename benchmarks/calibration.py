"""How well `ragcli eval --calibrate` tells what a corpus cannot answer, on questions not seen.

    python benchmarks/calibration.py examples/corpus examples/questions.jsonl [--chroma SET]

First the corpus' own questions, some with "answerable": false: fitted on one half, tried on the
other, both ways. With --chroma, a folder with corpora/ and questions.jsonl ({"question", "file"}):
each file is left out in turn, and its questions asked of the others have no answer there; the same
halves. AUROC of the hybrid score of the first hit, and of P(answerable), on the half not fitted on;
where the fit was not kept, because it was not surely better, there is none.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FEWEST = 10
"""Questions of either class that `--calibrate` asks for."""


def ragcli(index: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ragcli", *arguments, "--index", str(index)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def write(file: Path, questions: Sequence[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(question) + "\n" for question in questions))
    return file


def auroc(values: Sequence[float], labels: Sequence[bool]) -> float:
    """The chance that an answerable question has the higher value; ties count half."""
    yes = [v for v, label in zip(values, labels, strict=True) if label]
    no = [v for v, label in zip(values, labels, strict=True) if not label]
    won = sum((a > b) + (a == b) / 2 for a in yes for b in no)
    return won / (len(yes) * len(no))


def halves(questions: Sequence[dict[str, Any]], which: int) -> tuple[list[Any], list[Any]]:
    """(to fit on, the rest): a half of each class, or the ten that a fit needs at the least."""
    seen: list[Any] = []
    unseen: list[Any] = []
    for label in (True, False):
        of = [q for q in questions if q.get("answerable", True) == label]
        random.Random(7).shuffle(of)
        of = of[::-1] if which else of
        cut = max(FEWEST, len(of) // 2)
        seen += of[:cut]
        unseen += of[cut:]
    return seen, unseen


def tried(index: Path, work: Path, seen: Sequence[Any], unseen: Sequence[Any]) -> str:
    """One line: fitted on `seen`, tried on `unseen`."""
    fitted = json.loads(
        ragcli(index, "eval", str(write(work / "seen.jsonl", seen)), "--calibrate", "--json")
    )["calibration"]
    batch = write(work / "b.jsonl", [{"id": q["id"], "question": q["question"]} for q in unseen])
    answers = [
        json.loads(line)
        for line in ragcli(index, "query", "--batch", str(batch), "--json", "-k", "1").splitlines()
    ]
    labels = [q.get("answerable", True) for q in unseen]
    raw = auroc([a["hits"][0]["score"] if a["hits"] else 0.0 for a in answers], labels)
    counts = f"{labels.count(True)} + {labels.count(False)}"
    if not fitted["kept"]:
        return f"{counts} | {raw:.3f} | not kept"
    return f"{counts} | {raw:.3f} | {auroc([a['answerable'] for a in answers], labels):.3f}"


def show(name: str, index: Path, work: Path, questions: Sequence[dict[str, Any]]) -> None:
    for which, half in enumerate(("first", "second")):
        seen, unseen = halves(questions, which)
        print(f"| {name}, but the {half} half | {tried(index, work, seen, unseen)} |", flush=True)


def chroma(folder: Path, work: Path) -> None:
    source = work / "corpora"
    shutil.copytree(folder / "corpora", source)
    asked = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    index = work / "chroma.rag"
    ragcli(index, "index", str(source), "--quiet")
    for file in sorted(source.iterdir()):
        text = file.read_bytes()
        file.unlink()
        ragcli(index, "index", "--quiet")
        questions = [
            {"id": q["id"], "question": q["question"]}
            | (
                {"answerable": False}
                if Path(q["file"]).name == file.name
                else {"relevant": [Path(q["file"]).name]}
            )
            for q in asked
        ]
        show(f"without {file.stem}", index, work, questions)
        file.write_bytes(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--chroma", type=Path)
    given = parser.parse_args()
    print("| questions not fitted on | answerable + not | score | P(answerable) |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        index = work / "corpus.rag"
        ragcli(index, "index", str(given.corpus), "--quiet")
        questions = [json.loads(line) for line in given.questions.read_text().splitlines()]
        show(given.questions.name, index, work, questions)
        if given.chroma:
            chroma(given.chroma, work)


if __name__ == "__main__":
    main()
