"""Bucket collisions against a plain count, and whether dense vectors have collapsed."""

from __future__ import annotations

import json
import math
import shutil
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from conftest import build, write_files
from hypothesis import given
from hypothesis import strategies as st

from ragcli.cli.reports import collapse as collapse_text
from ragcli.cli.reports import collisions as collisions_text
from ragcli.encoders.hashing import tokens
from ragcli.errors import UsageError
from ragcli.inspection.collapse import collapsed
from ragcli.inspection.collisions import CollisionReport, _dimensions, collisions
from ragcli.store.index import Index
from ragcli.store.matrix import column_weights

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "lantern"

TEXTS = (
    "The red fox jumps over the lazy dog beside a river.",
    "A river runs by the stone house and its garden.",
    "The key to the house lies under a stone.",
    "Letters of the garden club are kept for a year.",
    "The dog guards the house, and the fox knows it.",
    "Fox, fox and fox again: nothing but the fox.",
)


def report_of(location: Path, **options: int) -> CollisionReport:
    with Index.open(location) as index:
        return collisions(index, **options)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    write_files(tmp_path / "docs", {f"{i}.txt": text for i, text in enumerate(TEXTS)})
    build(tmp_path / ".rag", tmp_path / "docs", dim=16)
    return tmp_path / ".rag"


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the lantern figures are not beside the checkout")
@pytest.mark.parametrize(("dim", "expected"), [(1024, 8), (32, 87)])
def test_lantern(tmp_path: Path, dim: int, expected: int) -> None:
    shutil.copy(SHARED / "lantern.txt", tmp_path)
    build(tmp_path / ".rag", tmp_path / "lantern.txt", chunk="sentences:1", dim=dim)
    report = report_of(tmp_path / ".rag")
    figures = json.loads((SHARED / "expected.json").read_text())
    assert report.vocabulary == figures["vocabulary"] == 118
    assert (report.buckets, report.collisions) == (dim, expected)
    assert report.used == 118 - expected
    assert {each.buckets: each.collisions for each in report.dimensions}[1024] == 8


def test_everything_against_a_plain_count(small: Path) -> None:
    report = report_of(small)
    holding: defaultdict[str, set[int]] = defaultdict(set)
    for number, text in enumerate(TEXTS):
        for token in tokens(text):
            holding[token].add(number)
    buckets: defaultdict[int, list[str]] = defaultdict(list)
    for token in holding:
        buckets[crc32(token.encode()) % 16].append(token)
    shared = {bucket: them for bucket, them in buckets.items() if len(them) > 1}
    assert report.shared == len(shared) == len(report.colliding) + report.left_out
    assert report.collisions == sum(len(them) - 1 for them in shared.values())
    for each in report.colliding:
        assert set(each.tokens) == set(shared[each.bucket])
        assert each.frequencies == tuple(len(holding[token]) for token in each.tokens)
        together = set().union(*(holding[token] for token in each.tokens))
        assert each.frequency == len(together)
        assert each.idf == pytest.approx(math.log(7 / (len(together) + 1)) + 1)
        # False matches, one by one: a question of one token against chunks without it.
        false = sum(1 for token in each.tokens for _ in together - holding[token])
        assert each.cost == pytest.approx(each.idf**2 * false)
    costs = [each.cost for each in report.colliding]
    assert costs == sorted(costs, reverse=True)


def test_idf_is_that_of_the_vectors(small: Path) -> None:
    with Index.open(small) as index:
        weights = column_weights(index.view(scoring=True).vectors)
        assert weights is not None
        for each in collisions(index).colliding:
            assert each.idf == pytest.approx(weights[each.bucket])


def test_limit_and_fewer_than(small: Path) -> None:
    report = report_of(small, limit=2, fewer_than=5)
    assert len(report.colliding) == 2
    assert report.left_out == report.shared - 2
    *more, enough = report.dimensions
    assert all(each.collisions >= 5 for each in more)
    assert enough.collisions < 5
    assert report.enough == enough.buckets
    assert [each.buckets for each in report.dimensions] == [16 << i for i in range(len(more) + 1)]
    with pytest.raises(UsageError):
        report_of(small, fewer_than=0)


@given(st.sets(st.text("abcdefg123", min_size=2), max_size=60), st.integers(1, 300))
def test_dimensions_by_hashing(vocabulary: set[str], present: int) -> None:
    for each in _dimensions(vocabulary, present, 1):
        used = {crc32(token.encode()) % each.buckets for token in vocabulary}
        assert each.collisions == len(vocabulary) - len(used)


def test_deleted_text_counts_no_more(small: Path) -> None:
    before = report_of(small).vocabulary
    (small.parent / "docs" / "3.txt").unlink()
    build(small)
    gone = set(tokens(TEXTS[3])) - {
        t for i, text in enumerate(TEXTS) if i != 3 for t in tokens(text)
    }
    assert gone
    assert report_of(small).vocabulary == before - len(gone)


def test_empty_and_lazy(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    build(tmp_path / ".rag", tmp_path / "docs")
    report = report_of(tmp_path / ".rag")
    assert (report.vocabulary, report.collisions, report.colliding) == (0, 0, ())
    assert report.enough == 1024
    write_files(tmp_path / "docs", {"a.txt": TEXTS[0]})
    build(tmp_path / ".rag", lazy=True)
    assert report_of(tmp_path / ".rag").vocabulary == len(set(tokens(TEXTS[0])))


def test_other_encoders_are_told_where_to_look(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": TEXTS[0]})
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    with pytest.raises(UsageError, match="none") as error:
        report_of(tmp_path / ".rag")
    assert "--duplicates" in (error.value.hint or "")
    with Index.open(tmp_path / ".rag") as index, pytest.raises(UsageError):
        collapsed(index)


def test_text_and_json(small: Path) -> None:
    report = report_of(small)
    told = "\n".join(collisions_text.lines(report))
    assert f"{report.collisions} collisions" in told
    assert f"--dim {report.enough}" in told
    assert report.colliding[0].tokens[0] in told
    asked = json.loads(json.dumps(asdict(report), allow_nan=False))
    assert asked["colliding"][0]["tokens"] == list(report.colliding[0].tokens)


def test_collapse_against_numpy(tmp_path: Path, fake: type) -> None:
    write_files(tmp_path / "docs", {f"{i}.txt": text for i, text in enumerate(TEXTS)})
    write_files(tmp_path / "docs", {"none.txt": "?! --"})
    build(tmp_path / ".rag", tmp_path / "docs", encoder="fake")
    with Index.open(tmp_path / ".rag") as index:
        report = collapsed(index)
        rows = [segment.encoded(segment.kept()).codes for segment in index.view().vectors]
    units = np.concatenate(rows).astype(float)
    assert report.vectors == len(units) == len(TEXTS) + report.zero_vectors
    units = units[units.any(axis=1)]
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    pairs = (units @ units.T)[np.triu_indices(len(units), 1)]
    assert report.mean_cosine == pytest.approx(pairs.mean())
    spread = np.linalg.eigvalsh(np.cov(units.T, bias=True))
    assert report.effective_dimensions == pytest.approx(spread.sum() ** 2 / (spread**2).sum())
    assert report.first_direction == pytest.approx(spread.max() / spread.sum())
    assert report.collapsed is bool(report.reasons)
    told = collapse_text.lines(report)
    assert any("collapsed" in line for line in told)
    json.dumps(asdict(report), allow_nan=False)


@pytest.mark.parametrize("texts", [("cat dog", "cat dog!", "dog cat."), ("one passage alone",)])
def test_collapse_of_one_vector(tmp_path: Path, fake: type, texts: tuple[str, ...]) -> None:
    """Different texts with one vector have collapsed; of one text nothing can be told."""
    write_files(tmp_path / "docs", {f"{i}.txt": text for i, text in enumerate(texts)})
    build(tmp_path / ".rag", tmp_path / "docs", encoder="fake")
    with Index.open(tmp_path / ".rag") as index:
        report = collapsed(index)
    assert report.collapsed is (len(texts) > 1)
    if len(texts) > 1:
        assert report.reasons == ("direction", "redundant")
        assert report.effective_dimensions is None
        [group] = report.near.groups
        assert (group.size, group.same_text) == (3, False)
    assert collapse_text.lines(report)
