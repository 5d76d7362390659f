"""The Lantern figures through the command line, to their last digit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "lantern"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(
        not SHARED.is_dir(), reason="the lantern figures are not beside the checkout"
    ),
]


class Lantern:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copy(SHARED / "lantern.txt", folder)
        self.expected = json.loads((SHARED / "expected.json").read_text())

    def ragcli(self, *arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "ragcli", *arguments, "--json"],
            cwd=self.folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def index(self, *options: str) -> dict[str, Any]:
        return self.ragcli("index", "lantern.txt", "--encoder", "hash", *options)

    def top(self, question: str, k: int) -> list[tuple[int, float]]:
        """(number of the line from 0, score) of the first hits."""
        hits = self.ragcli("query", question, "--mode", "dense", "-k", str(k))["hits"]
        return [(hit["lines"][0] - 1, hit["score"]) for hit in hits]


@pytest.fixture
def lantern(tmp_path: Path) -> Lantern:
    return Lantern(tmp_path)


def rounded(hits: list[tuple[int, float]], digits: int) -> list[list[float]]:
    return [[chunk, round(score, digits)] for chunk, score in hits]


def test_cosine(lantern: Lantern) -> None:
    assert lantern.index("--chunk", "sentences:1")["chunks"] == lantern.expected["chunks"]
    for row in lantern.expected["cosine_top3"]:
        hits = lantern.top(row["question"], len(row["hits"]))
        assert rounded(hits, 3) == row["hits"], row["question"]


def test_raw_dot_product(lantern: Lantern) -> None:
    lantern.index("--chunk", "sentences:1", "--no-normalise")
    for row in lantern.expected["raw_dot_product_top1"]:
        [(chunk, score)] = lantern.top(row["question"], 1)
        assert chunk == row["hit"][0] == 0
        assert score == pytest.approx(row["hit"][1], abs=0.005 + 1e-9), row["question"]


def test_seven_sentences_a_chunk(lantern: Lantern) -> None:
    expected = lantern.expected["seven_sentences_per_chunk"]
    assert lantern.index("--chunk", "sentences:7")["chunks"] == expected["chunks"]
    for row in expected["top2"]:
        hits = lantern.top(row["question"], 2)
        scores = [round(score, 3) for _, score in hits]
        assert scores == row["scores"]
        assert hits[0][0] // 7 == row["first"]
        assert round(scores[0] - scores[1], 3) == row["gap"]


def test_thirty_two_buckets(lantern: Lantern) -> None:
    lantern.index("--chunk", "sentences:1", "--dim", "32")
    expected = lantern.expected["dimension_32"]
    assert rounded(lantern.top(expected["question"], 1), 3) == [expected["first"]]
