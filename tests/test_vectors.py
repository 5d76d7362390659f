"""FAISS against NumPy, and hashed tf-idf against its formula."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.encoders import Encoded
from ragcli.encoders.hashing import HashingEncoder, tokens
from ragcli.errors import IndexDamaged
from ragcli.store.segments import Segment
from ragcli.store.vectors import (
    Plain,
    Scoring,
    Vectors,
    Weighted,
    idf_weights,
    write_vectors,
)

LANTERN = Path(__file__).resolve().parents[1].parent / "shared" / "lantern"
NOBODY = np.empty(0, np.int64)


def stored(
    folder: Path, encoded: Encoded, *, chunks: np.ndarray | None = None, dead: np.ndarray = NOBODY
) -> Vectors:
    ids = np.arange(len(encoded.codes)) if chunks is None else chunks
    return Vectors(Segment(folder, *write_vectors(folder, ids, encoded)), dead)


def counts(codes: np.ndarray) -> Encoded:
    return Encoded(codes.astype(np.uint16), None)


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
    vectors = stored(tmp_path, counts(codes))
    weights = idf_weights(vectors.frequencies(), 300)
    question = codes[5].astype(float)
    expected = cosine(codes, question, weights)
    rows, scores = Weighted(question, weights, normalise=True).search(vectors, 10, None)
    best = np.argsort(-expected, kind="stable")[:10]
    assert set(best.tolist()) <= set(rows.tolist())
    assert scores == pytest.approx(expected[rows], abs=1e-12)
    raw, dots = Weighted(question, weights, normalise=False).search(vectors, 10, None)
    assert dots == pytest.approx(((codes * weights) @ (question * weights))[raw])


def test_filtered_and_dead_rows_are_no_candidates(tmp_path: Path) -> None:
    codes = np.ones((6, 4), np.uint16)
    codes[:, 1] = 0
    chunks = np.arange(6) * 10
    vectors = stored(tmp_path, counts(codes), chunks=chunks, dead=np.array([0, 7, 10]))
    scoring = Weighted(np.ones(4), np.ones(4), normalise=True)
    for allowed, found in (([10, 11, 30], [3]), (None, [2, 3, 4, 5]), ([], [])):
        ids = None if allowed is None else np.array(allowed, np.int64)
        assert scoring.search(vectors, 5, vectors.among(ids))[0].tolist() == found
    assert vectors.frequencies().tolist() == [4, 0, 4, 4]
    assert (vectors.rows, vectors.live_rows) == (6, 4)
    assert vectors.find(np.array([50, 0, 51, -1])).tolist() == [5, 0, -1, -1]


def quantised(rng: np.random.Generator, rows: int, dim: int, *, spread: float) -> Encoded:
    codes = np.clip(np.rint(rng.standard_normal((rows, dim)) * 50), -128, 127).astype(np.int8)
    factors = (1.0 + spread * rng.random(rows)).astype(np.float32) / 500
    return Encoded(codes, factors)


@pytest.mark.parametrize("dim", [2, 7, 16, 384])
@pytest.mark.parametrize("spread", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("keep", [1.0, 0.5, 0.02])
def test_plain_search_is_brute_force(tmp_path: Path, dim: int, spread: float, keep: float) -> None:
    """Signs, factors, filters: 16 and 384 are the dimensions that FAISS has a fast way for."""
    rng = np.random.default_rng(dim)
    encoded = quantised(rng, 3000, dim, spread=spread)
    assert encoded.factors is not None
    encoded.codes[100:140] = encoded.codes[99]  # ties
    encoded.factors[100:140] = encoded.factors[99]
    vectors = stored(tmp_path, encoded)
    may = None if keep == 1.0 else rng.random(3000) < keep
    for question in (rng.standard_normal(dim), -encoded.codes[99] / 300.0, np.zeros(dim)):
        expected = (encoded.codes.astype(float) @ question) * encoded.factors
        rows, scores = Plain(question).search(vectors, 10, may)
        assert scores == pytest.approx(expected[rows], rel=1e-12, abs=1e-12)
        among = np.arange(3000) if may is None else np.flatnonzero(may)
        assert set(rows.tolist()) <= set(among.tolist())
        least = np.sort(expected[among])[-10]
        wanted = among[expected[among] > least + 1e-9]
        assert set(wanted.tolist()) <= set(rows.tolist())
        assert np.sort(scores)[-10:] == pytest.approx(np.sort(expected[among])[-10:])


def test_what_is_wholly_below_zero_is_found(tmp_path: Path) -> None:
    """There the smallest factors score best, and the products alone say the opposite."""
    rng = np.random.default_rng(1)
    codes = rng.integers(-128, -20, (2000, 16)).astype(np.int8)
    products = codes.sum(axis=1, dtype=float)
    factors = (np.linspace(1, 3, 2000) * np.abs(products) ** -3.0).astype(np.float32)
    expected = products * factors
    vectors = stored(tmp_path, Encoded(codes, factors))
    _, scores = Plain(np.ones(16)).search(vectors, 5, None)
    assert expected.max() < 0
    assert np.sort(scores)[-5:] == pytest.approx(np.sort(expected)[-5:])


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing(tmp_path: Path, threads: int) -> None:
    encoded = quantised(np.random.default_rng(5), 2000, 384, spread=0.1)
    question = np.random.default_rng(6).standard_normal(384)
    vectors = stored(tmp_path, encoded)
    vectors.load()
    faiss.omp_set_num_threads(threads)
    _, scores = Plain(question).search(vectors, 100, None)
    order = np.argsort(-scores)[:100]
    expected = (encoded.codes * question).sum(axis=1) * encoded.factors
    assert scores[order].tolist() == np.sort(expected)[::-1][:100].tolist()


def test_every_code_comes_back(tmp_path: Path) -> None:
    for number, codes in enumerate(
        (
            np.arange(-128, 128, dtype=np.int8).reshape(4, 64),
            np.arange(256, dtype=np.uint8).reshape(4, 64),
            np.arange(0, 65536, 256, dtype=np.uint16).reshape(4, 64),
        )
    ):
        factors = np.arange(4, dtype=np.float32) if codes.dtype == np.int8 else None
        chunks = np.array([40, 10, 30, 20])
        vectors = stored(tmp_path / str(number), Encoded(codes, factors), chunks=chunks)
        order = np.argsort(chunks)
        back = vectors.encoded(np.arange(4))
        assert back.codes.dtype == codes.dtype
        assert back.codes.tolist() == codes[order].tolist()
        assert vectors.chunks.tolist() == [10, 20, 30, 40]
        if factors is not None:
            assert back.factors is not None
            assert back.factors.tolist() == factors[order].tolist()


@pytest.mark.parametrize("kind", ["weighted", "plain"])
def test_a_row_scores_the_same_wherever_it_lies(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(3)
    if kind == "weighted":
        encoded = counts(rng.integers(0, 9, (64, 1024)))
        question = rng.integers(0, 2, 1024).astype(float)
        scoring: Scoring = Weighted(question, rng.random(1024) + 1, normalise=True)
    else:
        encoded = quantised(rng, 64, 384, spread=0.2)
        scoring = Plain(rng.standard_normal(384))
    whole = stored(tmp_path, encoded).score(scoring, np.arange(64))
    assert scoring.score(encoded).tolist() == whole.tolist()
    for row in range(64):
        alone = stored(tmp_path, encoded.take(np.array([row])))
        assert alone.score(scoring, np.array([0]))[0] == whole[row]


def test_counting_loads_no_faiss(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; import numpy as np;"
        "from ragcli.store.segments import Segment; from ragcli.store.vectors import Vectors;"
        "print(Vectors(Segment(Path(sys.argv[1]), *sys.argv[2:]), np.array([1])).live_rows);"
        "sys.exit('faiss' in sys.modules)"
    )
    made = write_vectors(tmp_path, np.arange(3), counts(np.ones((3, 8))))
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), *made], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == "2\n"


def test_a_cut_file_is_damage(tmp_path: Path) -> None:
    name, checksum = write_vectors(tmp_path, np.arange(3), counts(np.ones((3, 8))))
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
    assert HashingEncoder(dim).encode_documents(texts).codes.tolist() == expected.tolist()


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
    codes = encoder.encode_documents(lines).codes
    weights = idf_weights(np.count_nonzero(codes, axis=0), len(lines))
    assert np.round(weights[chunk["buckets"]], 2).tolist() == chunk["idf"]
    vector = codes[4] * weights / np.linalg.norm(codes[4] * weights)
    assert np.round(vector[chunk["buckets"]], 3).tolist() == chunk["weight"]
    assert np.count_nonzero(vector) == chunk["nonzero"]
