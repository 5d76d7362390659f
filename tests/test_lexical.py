"""BM25 over our postings, against bm25s and against the formula written out."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.store.lexical import (
    K1,
    B,
    PackedNames,
    Postings,
    combine,
    drop_rows,
    find,
    idf,
    saturation,
)
from ragcli.store.terms import Analyzer

TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "a quick quick quick fox",
    "dogs and foxes and dogs",
    "",
    "brown bread with butter and more butter",
    "nothing of the kind stands here",
]


def packed(postings: Postings) -> Postings:
    names = PackedNames.pack(postings.names)
    return Postings(names, postings.starts, postings.rows, postings.counts, postings.lengths)


def scores(postings: Postings, query: list[str]) -> np.ndarray:
    rows = len(postings.lengths)
    total = np.zeros(rows)
    slow = saturation(postings.lengths, float(postings.lengths.mean()))
    for term in query:
        found = find(postings, [term], None)
        weight = idf(rows, len(found.rows))
        total[found.rows] += weight * found.counts / (found.counts + slow[found.rows])
    return total


def analysed(texts: list[str]) -> Postings:
    return packed(Analyzer().postings(texts, ["english"] * len(texts)))


def formula(texts: list[list[str]], query: list[str]) -> list[float]:
    mean = sum(map(len, texts)) / len(texts)
    result = []
    for text in texts:
        counts = Counter(text)
        score = 0.0
        for term in query:
            frequency = sum(term in other for other in texts)
            weight = math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
            score += weight * counts[term] / (counts[term] + K1 * (1 - B + B * len(text) / mean))
        result.append(score)
    return result


def test_scores_are_the_formula() -> None:
    tokens = [text.split() for text in TEXTS]
    names = sorted({token for text in tokens for token in text})
    number = {name: i for i, name in enumerate(names)}
    terms = np.array([number[token] for text in tokens for token in text], np.int64)
    rows = np.repeat(np.arange(len(tokens)), [len(text) for text in tokens])
    postings = packed(Postings.count(names, terms, rows, len(tokens)))
    query = ["quick", "dogs", "butter", "absent", "the"]
    assert scores(postings, query) == pytest.approx(formula(tokens, query), abs=1e-12)


def test_scores_are_those_of_bm25s() -> None:
    bm25s = pytest.importorskip("bm25s")
    rng = np.random.default_rng(7)
    vocabulary = [f"w{i}" for i in range(300)]
    tokens = [
        [vocabulary[min(int(rank), 299)] for rank in rng.zipf(1.3, rng.integers(5, 80))]
        for _ in range(400)
    ]
    oracle = bm25s.BM25(method="lucene", k1=K1, b=B)
    oracle.index(tokens, show_progress=False)
    postings = analysed([" ".join(text) for text in tokens])
    for _ in range(40):
        query = [str(term) for term in rng.choice(vocabulary, 4, replace=False)]
        assert scores(postings, query) == pytest.approx(
            oracle.get_scores(query), rel=1e-4, abs=1e-5
        )


def test_variants_count_as_one_word() -> None:
    postings = analysed(["dog", "hund", "dog hund", "cat"])
    found = find(postings, ["dog", "hund"], None)
    assert found.rows.tolist() == [0, 1, 2]
    assert found.counts.tolist() == [1, 1, 2]


def test_names_are_found_by_binary_search() -> None:
    words = sorted(["", "a", "ab", "é", "数据", "z\x00", "🦄"])
    names = PackedNames.pack(words)
    assert names.all() == words == list(names)
    assert [names.find(word) for word in words] == list(range(len(words)))
    assert names.find("b") is None
    assert names.find("🦄🦄") is None


word_lists = st.lists(
    st.lists(st.sampled_from("red green blue cyan pink grey".split()), max_size=8).map(" ".join),
    max_size=12,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(word_lists, min_size=1, max_size=4), st.data())
def test_merged_parts_equal_one_build(parts: list[list[str]], data: st.DataObject) -> None:
    """Rows shuffled among parts, some dropped: the merge is what a fresh build gives."""
    texts = [text for part in parts for text in part]
    kept = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    order = data.draw(st.permutations([i for i, keep in enumerate(kept) if keep]))
    place = {old: new for new, old in enumerate(order)}
    postings, targets, at = [], [], 0
    for part in parts:
        postings.append(Analyzer().postings(part, ["english"] * len(part)))
        targets.append(np.array([place.get(at + i, -1) for i in range(len(part))], np.int64))
        at += len(part)
    merged = combine(postings, targets, len(order))
    fresh = Analyzer().postings([texts[i] for i in order], ["english"] * len(order))
    assert list(merged.names) == list(fresh.names)
    for field in ("starts", "rows", "counts", "lengths"):
        assert getattr(merged, field).tolist() == getattr(fresh, field).tolist(), field


@settings(max_examples=60, deadline=None)
@given(word_lists, st.data())
def test_dropping_rows_is_a_merge_of_one(texts: list[str], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    rows = np.flatnonzero(kept)
    dropped = drop_rows(analysed(texts), rows)
    fresh = Analyzer().postings([texts[i] for i in rows], ["english"] * len(rows))
    assert list(dropped.names) == list(fresh.names)
    for field in ("starts", "rows", "counts", "lengths"):
        assert getattr(dropped, field).tolist() == getattr(fresh, field).tolist(), field


def test_more_than_65535_of_a_word_is_capped_not_wrapped() -> None:
    postings = analysed(["ox " * 70_000])
    assert find(postings, ["ox"], None).counts.tolist() == [65_535]
