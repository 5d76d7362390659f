"""FAISS against NumPy, and hashed tf-idf against its formula."""

from __future__ import annotations

import json
import math
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.encoders.hashing import HashingEncoder, tokens
from ragcli.errors import IndexDamaged
from ragcli.store.segments import Segment
from ragcli.store.vectors import Vectors, idf_weights, write_vectors

LANTERN = Path(__file__).resolve().parents[1].parent / "shared" / "lantern"


def stored(folder: Path, codes: np.ndarray) -> Vectors:
    return Vectors(Segment(folder, *write_vectors(folder, codes)))


def cosine(codes: np.ndarray, question: np.ndarray, weights: np.ndarray) -> np.ndarray:
    documents = codes * weights
    asked = question * weights
    norms = np.linalg.norm(documents, axis=1) * np.linalg.norm(asked)
    return np.divide(documents @ asked, norms, out=np.zeros(len(codes)), where=norms > 0)


@pytest.mark.parametrize("top", [3, 200, 255, 256, 5000])
def test_search_is_brute_force(tmp_path: Path, top: int) -> None:
    rng = np.random.default_rng(top)
    codes = (rng.random((300, 64)) < 0.1) * rng.integers(1, top + 1, (300, 64))
    codes[17] = 0
    vectors = stored(tmp_path, codes.astype(np.uint16))
    weights = idf_weights(vectors.frequencies(np.empty(0, np.intp)), 300)
    question = codes[5].astype(float)
    expected = cosine(codes, question, weights)
    rows, scores = vectors.search(question, weights, 10, normalise=True, allowed=None)
    best = np.argsort(-expected, kind="stable")[:10]
    assert set(best.tolist()) <= set(rows.tolist())
    assert scores == pytest.approx(expected[rows], abs=1e-12)
    raw, dots = vectors.search(question, weights, 10, normalise=False, allowed=None)
    assert dots == pytest.approx(((codes * weights) @ (question * weights))[raw])


def test_filtered_and_dead_rows_are_no_candidates(tmp_path: Path) -> None:
    codes = np.ones((6, 4), np.uint16)
    codes[:, 1] = 0
    vectors = stored(tmp_path, codes)
    allowed = np.array([False, True, False, True, False, False])
    rows, _ = vectors.search(np.ones(4), np.ones(4), 5, normalise=True, allowed=allowed)
    assert rows.tolist() == [1, 3]
    assert vectors.frequencies(np.array([0, 1])).tolist() == [4, 0, 4, 4]


def test_a_row_scores_the_same_wherever_it_lies(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 9, (64, 1024)).astype(np.uint16)
    weights = rng.random(1024) + 1
    question = rng.integers(0, 2, 1024).astype(float)
    together = stored(tmp_path, codes)
    whole = together.score(question, weights, np.arange(64), normalise=True)
    for row in range(64):
        alone = stored(tmp_path, codes[row : row + 1])
        assert alone.score(question, weights, np.array([0]), normalise=True)[0] == whole[row]


def test_a_cut_file_is_damage(tmp_path: Path) -> None:
    name, checksum = write_vectors(tmp_path, np.ones((3, 8), np.uint16))
    path = tmp_path / name / "vectors.faiss"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(IndexDamaged):
        Segment(tmp_path, name, checksum)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=80), min_size=1, max_size=5), st.sampled_from([1, 7, 32, 1024]))
def test_counts_are_the_formula(texts: list[str], dim: int) -> None:
    expected = np.zeros((len(texts), dim), int)
    for row, text in enumerate(texts):
        for token in tokens(text):
            expected[row, crc32(token.encode()) % dim] += 1
    assert HashingEncoder(dim).encode_documents(texts).tolist() == expected.tolist()


def test_idf() -> None:
    assert idf_weights(np.array([14, 0]), 21).tolist() == [
        math.log(22 / 15) + 1,
        math.log(22) + 1,
    ]


@pytest.mark.shared
@pytest.mark.skipif(not LANTERN.is_dir(), reason="the lantern figures are not beside the checkout")
def test_lantern_chunk_4() -> None:
    expected = json.loads((LANTERN / "expected.json").read_text())
    lines = (LANTERN / "lantern.txt").read_text().splitlines()
    encoder = HashingEncoder()
    vocabulary = {token for line in lines for token in tokens(line)}
    assert len(vocabulary) == expected["vocabulary"]
    buckets = {encoder.bucket(token) for token in vocabulary}
    assert len(vocabulary) - len(buckets) == expected["collisions"]
    few = {HashingEncoder(32).bucket(token) for token in vocabulary}
    assert len(vocabulary) - len(few) == expected["dimension_32"]["collisions"]
    chunk = expected["chunk_4"]
    assert tokens(lines[4]) == chunk["tokens"]
    assert [encoder.bucket(token) for token in tokens(lines[4])] == chunk["buckets"]
    codes = encoder.encode_documents(lines)
    weights = idf_weights(np.count_nonzero(codes, axis=0), len(lines))
    assert np.round(weights[chunk["buckets"]], 2).tolist() == chunk["idf"]
    vector = codes[4] * weights / np.linalg.norm(codes[4] * weights)
    assert np.round(vector[chunk["buckets"]], 3).tolist() == chunk["weight"]
    assert np.count_nonzero(vector) == chunk["nonzero"]
