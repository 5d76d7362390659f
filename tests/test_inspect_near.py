"""Neighbours, near-duplicates and hubs, against all pairs by plain NumPy."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import build, write_files
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ragcli.cli.reports import duplicates as duplicates_text
from ragcli.cli.reports import hubs as hubs_text
from ragcli.cli.reports import neighbors as neighbors_text
from ragcli.encoders import Encoded
from ragcli.encoders.hashing import tokens
from ragcli.encoders.quantising import quantise
from ragcli.errors import UsageError
from ragcli.inspection import near, nearest
from ragcli.inspection.duplicates import MEMBERS, DuplicateReport, duplicates
from ragcli.inspection.hubs import HubReport, hubs
from ragcli.inspection.near import Groups, join_near
from ragcli.inspection.neighbors import neighbors
from ragcli.inspection.occurrences import by_chance, observed
from ragcli.store.catalog import Catalog
from ragcli.store.contents import texts as stored_texts
from ragcli.store.index import Index
from ragcli.store.lock import write_lock
from ragcli.store.matrix import matrix
from ragcli.store.writer import Writer

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "lantern"


def components(reaching: np.ndarray) -> list[int]:
    """For each row of a symmetric matrix the least row that it hangs together with."""
    labels = list(range(len(reaching)))
    for first in range(len(reaching)):
        if labels[first] < first:
            continue
        stack = [first]
        while stack:
            for other in np.flatnonzero(reaching[stack.pop()]).tolist():
                if other > first and labels[other] == other:
                    labels[other] = first
                    stack.append(other)
    return labels


def all_cosines(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float64)
    norms = np.sqrt(np.square(rows).sum(axis=1))
    rows = rows / np.where(norms > 0, norms, 1)[:, np.newaxis]
    return rows @ rows.T


def joined(rows: np.ndarray, threshold: float) -> list[int]:
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    units = units.astype(np.float32)
    groups = Groups(len(rows))

    def exact(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        norms = np.sqrt(np.square(rows[first]).sum(1) * np.square(rows[second]).sum(1))
        return np.asarray((rows[first] * rows[second]).sum(1) / norms)

    join_near(units, np.arange(len(rows)), groups, threshold, exact)
    return groups.labels.tolist()


def made_up(kind: str, count: int, dim: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim))
    if kind == "clustered":
        rows = rng.standard_normal((5, dim))[rng.integers(0, 5, count)] + 0.3 * rows
    if kind == "narrow":
        rows = rows * np.arange(1, dim + 1) ** -1.5 + 1e-3
    if kind == "alike":
        rows = rng.standard_normal(dim) + 0.02 * rows
    return rows


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["random", "clustered", "narrow", "alike"]),
    st.integers(0, 90),
    st.integers(1, 40),
    st.floats(0.1, 1.0),
    st.integers(0, 2**32 - 1),
)
def test_join_near_against_all_pairs(
    kind: str, count: int, dim: int, threshold: float, seed: int
) -> None:
    rows = made_up(kind, count, dim, seed)
    cosines = all_cosines(rows)
    assume(not (np.abs(cosines - threshold) < 1e-11).any())
    with pytest.MonkeyPatch.context() as patch:  # many blocks, and every way through them
        patch.setattr(near, "_HIGH", 8)
        patch.setattr(near, "_WIDE", 16)
        patch.setattr(near, "_SLICE", 5)
        patch.setattr(near, "_MANY", 20)
        patch.setattr(near, "_WIDTHS", (1, 2, 4, 8, 16))
        patch.setattr(near, "_SAMPLE", 20)
        patch.setattr(near, "_TRIED", 10)
        assert joined(rows, threshold) == components(cosines >= threshold)


@pytest.mark.parametrize("kind", ["random", "clustered", "narrow", "alike"])
def test_join_near_in_real_blocks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "_SAMPLE", 1024)
    rows = made_up(kind, 2500, 96, 1)
    rows[2000:] = rows[:500] + 0.05 * made_up("random", 500, 96, 2)
    assert joined(rows, 0.95) == components(all_cosines(rows) >= 0.95)


def test_the_bound_is_used_and_never_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "_SAMPLE", 200)
    rows = made_up("random", 500, 128, 3).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    places = np.arange(3, 500)
    bounds = near._bounds(rows, places, 0.95)
    assert bounds is not None
    assert bounds.shape[1] < 128
    slack = (128 + 32) * 2.0**-23
    assert ((bounds @ bounds.T) >= rows[places] @ rows[places].T - slack).all()


@pytest.mark.parametrize("dim", [2, 50])
def test_a_tie_at_the_threshold_is_decided_in_whole_numbers(dim: int) -> None:
    """float32 has (3, 4) · (4, 3) / 25 off from .96; it must reach .96, and no more than that."""
    rows = np.zeros((2, dim))
    rows[0, :2], rows[1, :2] = (3, 4), (4, 3)
    assert joined(rows, 0.96) == [0, 0]
    assert joined(rows, 0.96 + 1e-10) == [0, 1]
    assert joined(np.array([[1.0, 1], [3, 3], [1, 0]]), 1.0) == [0, 0, 2]


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=40))
def test_groups(pairs: list[tuple[int, int]]) -> None:
    linked = np.eye(20, dtype=bool)
    groups = Groups(20)
    for start in range(0, len(pairs), 7):
        first, second = np.array(pairs[start : start + 7]).T
        groups.join(first, second)
        linked[first, second] = linked[second, first] = True
    assert groups.labels.tolist() == components(linked)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 70), st.integers(1, 30), st.integers(1, 12), st.booleans(), st.booleans(),
    st.booleans(), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_nearest_against_a_full_sort(
    count: int, asked: int, k: int, mine: bool, positive: bool, by_norm: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (count, 4)).astype(np.float32)  # exact, with many ties
    own = np.sort(rng.permutation(count)[:asked]) if mine else None
    questions = rows[own] if mine else rng.integers(-2, 3, (asked, 4)).astype(np.float32)
    norms = rng.integers(1, 4, count).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "_HIGH", 6)
        patch.setattr(nearest, "_WIDE", 9)
        patch.setattr(nearest, "_FEW", 3)
        lists = nearest.nearest(
            rows, questions, k, own=own, positive=positive, norms=norms, by_norm=by_norm
        )
    plain = questions @ rows.T
    scaled = plain * norms
    for wanted, width, got in (
        (scaled if by_norm else plain, k, lists.places),
        (plain if by_norm else scaled, 1, lists.other),
    ):
        assert got is not None
        for i, products in enumerate(wanted):
            order = [
                place
                for place in np.argsort(-products, kind="stable").tolist()
                if (products[place] > 0 or not positive) and (own is None or place != own[i])
            ][:width]
            row = np.atleast_1d(got[i]).tolist()
            assert row == order + [-1] * (width - len(order))


def sentences(count: int) -> list[str]:
    return [f"Passage number {i} stands in this place." for i in range(count)]


def with_vectors(tmp_path: Path, encoded: Encoded, files: int = 2) -> Path:
    """An index of as many passages, over so many files, with these vectors, first to last."""
    count = len(encoded.codes)
    lines = sentences(count)
    cut = -(-count // files)
    write_files(
        tmp_path / "docs",
        {f"{i:02}.txt": "\n".join(lines[i * cut : (i + 1) * cut]) + "\n" for i in range(files)},
    )
    location = tmp_path / ".rag"
    build(location, tmp_path / "docs", encoder="fake", chunk="sentences:1", lazy=True)
    add_vectors(location, encoded)
    return location


def add_vectors(location: Path, encoded: Encoded) -> None:
    """Give the first passages without one these vectors, in the order of their texts' numbers."""
    with Index.open(location) as index:
        numbers = {chunk: int(text.split()[2]) for chunk, text in stored_texts(index)}
    with write_lock(location, 1.0):
        catalog = Catalog.open_write(location)
        writer = Writer(location, catalog)
        pending = np.array(sorted(writer.pending(), key=numbers.__getitem__), np.int64)
        half = len(encoded.codes) // 2  # two segments
        for some in (slice(0, half), slice(half, len(encoded.codes))):
            if len(pending[some]):
                writer.add_vectors(pending[some][: len(encoded.codes)], encoded.take(some))
        writer.commit()
        catalog.close()


def numbers_of(index: Index) -> dict[int, int]:
    return {chunk: int(text.split()[2]) for chunk, text in stored_texts(index)}


@pytest.mark.parametrize("kind", ["random", "clustered", "alike"])
@pytest.mark.parametrize("threshold", [0.5, 0.9, 0.99])
def test_duplicates_against_all_pairs(
    tmp_path: Path, fake: type, kind: str, threshold: float
) -> None:
    encoded = quantise(made_up(kind, 60, 24, 4), normalise=True)
    location = with_vectors(tmp_path, encoded)
    with Index.open(location) as index:
        report = duplicates(index, threshold=threshold, across=False, limit=1000)
        number = numbers_of(index)
    cosines = all_cosines(encoded.codes)
    labels = np.array(components(cosines >= threshold))
    expected = [np.flatnonzero(labels == label).tolist() for label in set(labels.tolist())]
    expected = [group for group in expected if len(group) > 1]
    assert report.all_groups == len(report.groups) == len(expected)
    assert report.all_redundant == sum(len(group) - 1 for group in expected)
    assert (report.text_groups, report.text_redundant, report.compared) == (0, 0, 60)
    by_first = {number[group.passages[0].chunk]: group for group in report.groups}
    for members in expected:
        group = by_first[members[0]]
        assert group.size == len(members)
        assert [number[p.chunk] for p in group.passages] == members[:MEMBERS]
        assert group.left_out == max(0, len(members) - MEMBERS)
        assert group.least_cosine == pytest.approx(cosines[members[0], members[1:]].min())
        assert group.documents == len({member // 30 for member in members})
    assert report.within_one == sum(group.documents == 1 for group in report.groups)
    sizes = [group.size for group in report.groups]
    assert sizes == sorted(sizes, reverse=True)


SAME = "The same sentence stands here."


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    write_files(
        tmp_path / "docs",
        {
            "a.txt": f"{SAME}\nA red fox jumps over the lazy dog.\n",
            "b.txt": f"{SAME}\n{SAME}\nDogs that are lazy sleep.\n",
            "c.txt": "Only here, twice.\nOnly here, twice.\nStone walls of the garden.\n",
            "d.txt": "A red fox jumps over a lazy dog!\n",
        },
    )
    return tmp_path / "docs"


def texts_of(report: DuplicateReport) -> list[set[str]]:
    return [{passage.text for passage in group.passages} for group in report.groups]


@pytest.mark.parametrize("encoder", ["hash", "none"])
def test_equal_texts_with_and_without_vectors(copies: Path, encoder: str) -> None:
    location = copies.parent / ".rag"
    build(location, copies, encoder=encoder, chunk="sentences:1")
    with Index.open(location) as index:
        report = duplicates(index)
        everything = duplicates(index, across=False)
        differing = duplicates(index, same_text=False)
    assert (report.text_groups, report.text_redundant) == (2, 3)
    assert report.within_one == 1
    same = report.groups[0]
    assert (same.size, same.documents, same.same_text) == (3, 2, True)
    assert [passage.path for passage in same.passages] == ["a.txt", "b.txt", "b.txt"]
    if encoder == "hash":  # the tokens of the two foxes are the same
        fox = {"A red fox jumps over the lazy dog.", "A red fox jumps over a lazy dog!"}
        assert texts_of(report) == [{SAME}, fox]
        assert texts_of(differing) == [fox]
        assert (report.all_groups, report.all_redundant) == (3, 4)
        assert same.least_cosine == 1.0
        assert not report.groups[1].same_text
    else:
        assert texts_of(report) == [{SAME}]
        assert (report.all_groups, report.compared) == (2, 0)
        assert same.least_cosine is None
    assert {"Only here, twice."} in texts_of(everything)
    told = "\n".join(duplicates_text.lines(report))
    assert "a.txt:1" in told
    assert SAME in told
    json.dumps(asdict(report), allow_nan=False)


def test_dead_rows_are_no_duplicates(copies: Path) -> None:
    location = copies.parent / ".rag"
    build(location, copies, chunk="sentences:1")
    write_files(copies, {"a.txt": "Something else now.\n", "d.txt": "And here too.\n"})
    build(location)
    with Index.open(location) as index:
        assert texts_of(duplicates(index)) == []
        assert duplicates(index).all_groups == 2
        live = dict(stored_texts(index))
        report = hubs(index, k=3)
        assert report.chunks == len(live)
        assert {hub.passage.text for hub in report.hubs} <= set(live.values())
        for chunk in live:
            found = neighbors(index, chunk, 20).neighbors
            assert {each.passage.chunk for each in found} <= live.keys() - {chunk}


def test_duplicates_of_a_lazy_index_with_some_vectors(tmp_path: Path, fake: type) -> None:
    encoded = quantise(np.ones((3, 8)), normalise=True)
    location = with_vectors(tmp_path, Encoded(np.zeros((0, 8), np.int8), np.zeros(0, np.float32)))
    (tmp_path / "docs" / "00.txt").write_text("\n".join(sentences(5)) + "\n")
    (tmp_path / "docs" / "01.txt").write_text("\n".join(sentences(5)[4:]) + "\n")
    build(location, lazy=True)
    add_vectors(location, encoded)
    with Index.open(location) as index:
        report = duplicates(index, across=False)
        number = numbers_of(index)
        bare = next(chunk for chunk, n in number.items() if n == 4)
        with pytest.raises(UsageError, match="no vector yet"):
            neighbors(index, bare, 3)
        assert hubs(index, k=2).chunks == 3
    assert (report.chunks, report.compared) == (6, 3)
    assert [(group.size, group.least_cosine) for group in report.groups] == [(3, 1.0), (2, None)]
    assert "3 passages without a vector" in "\n".join(duplicates_text.lines(report))


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.1, float("nan")])
def test_no_threshold(copies: Path, threshold: float) -> None:
    location = copies.parent / ".rag"
    build(location, copies)
    with Index.open(location) as index, pytest.raises(UsageError):
        duplicates(index, threshold=threshold)


def test_neighbors_against_numpy(tmp_path: Path, fake: type) -> None:
    encoded = quantise(made_up("clustered", 40, 12, 5), normalise=True)
    location = with_vectors(tmp_path, encoded)
    cosines = all_cosines(encoded.codes)
    with Index.open(location) as index:
        chunk_of = {number: chunk for chunk, number in numbers_of(index).items()}
        number = {chunk: number for number, chunk in chunk_of.items()}
        for asked in (0, 17, 39):
            report = neighbors(index, chunk_of[asked], 7)
            order = [i for i in np.argsort(-cosines[asked], kind="stable") if i != asked][:7]
            assert [number[each.passage.chunk] for each in report.neighbors] == order
            assert [each.cosine for each in report.neighbors] == pytest.approx(
                cosines[asked, order].tolist()
            )
            assert report.passage.chunk == chunk_of[asked]
            assert report.compared == 39
        assert len(neighbors(index, chunk_of[0], 500).neighbors) == 39


def test_neighbors_of_hash_say_what_is_shared(copies: Path) -> None:
    location = copies.parent / ".rag"
    build(location, copies, chunk="sentences:1", dim=8)
    with Index.open(location) as index:
        chunks = dict(stored_texts(index))
        asked = next(chunk for chunk, text in chunks.items() if text == SAME)
        report = neighbors(index, asked, 9)
    first, second, *others = report.neighbors
    for each in (first, second):
        assert (each.cosine, each.same_text) == (1.0, True)
    assert [first.passage.path, second.passage.path] == ["b.txt", "b.txt"]  # ties: by path
    for each in others:
        assert each.cosine > 0
        assert each.shared is not None
        assert each.collided is not None
        assert set(each.shared) == set(tokens(SAME)) & set(tokens(each.passage.text))
        assert each.shared or each.collided  # else nothing could make them near
    assert any(each.collided for each in others)
    told = "\n".join(neighbors_text.lines(report))
    assert "(the same text)" in told
    assert "one bucket" in told
    json.dumps(asdict(report), allow_nan=False)


def test_neighbors_that_cannot_be(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "It is the one.\n", "b.txt": "Of what?\n"})
    build(tmp_path / ".rag", tmp_path / "docs")
    with Index.open(tmp_path / ".rag") as index:
        by_text = {text.split()[0]: chunk for chunk, text in stored_texts(index)}
        assert neighbors(index, by_text["It"], 3).neighbors == ()
        assert "is near it" in neighbors_text.lines(neighbors(index, by_text["It"], 3))[-1]
        for chunk, message in ((by_text["Of"], "zeros"), (999, "no passage 999")):
            with pytest.raises(UsageError, match=message) as error:
                neighbors(index, chunk, 3)
            assert error.value.hint
        with pytest.raises(UsageError):
            neighbors(index, by_text["It"], 0)
    build(tmp_path / "none", tmp_path / "docs", encoder="none")
    with Index.open(tmp_path / "none") as index:
        for look in (lambda: neighbors(index, 1, 3), lambda: hubs(index)):
            with pytest.raises(UsageError, match="--encoder none") as error:
                look()
            assert error.value.hint


def occurrences(products: np.ndarray, k: int, own: bool) -> tuple[np.ndarray, np.ndarray]:
    """(N_k, how often each is first) from all products, questions by rows."""
    products = products.copy()
    if own:
        np.fill_diagonal(products, -np.inf)
    order = np.argsort(-products, axis=1, kind="stable")[:, : min(k, products.shape[1] - own)]
    count = products.shape[1]
    return np.bincount(order.ravel(), minlength=count), np.bincount(order[:, 0], minlength=count)


def test_hubs_against_numpy(tmp_path: Path, fake: type) -> None:
    encoded = quantise(made_up("clustered", 50, 12, 6), normalise=True)
    location = with_vectors(tmp_path, encoded)
    with Index.open(location) as index:
        report = hubs(index, k=4, limit=50)
        number = numbers_of(index)
    counts, firsts = occurrences(all_cosines(encoded.codes), 4, own=True)
    assert (report.asked, report.population, report.own, report.mean) == (50, 50, True, 4.0)
    told = {number[hub.passage.chunk]: hub for hub in report.hubs}
    assert {n: hub.occurrences for n, hub in told.items()} == {
        n: count for n, count in enumerate(counts.tolist()) if count
    }
    assert all(hub.first == firsts[n] and hub.share == counts[n] / 50 for n, hub in told.items())
    centred = counts - counts.mean()
    assert report.observed.skewness == pytest.approx(
        (centred**3).mean() / (centred**2).mean() ** 1.5
    )
    assert report.orphans == (counts == 0).sum()
    assert report.observed.orphans == report.orphans / 50
    assert report.observed.top == counts.max() / counts.sum()
    assert report.firsts == (firsts > 0).sum()
    assert report.norms is None
    assert "not kept" in (report.norms_reason or "")
    assert "not kept" in hubs_text.lines(report)[-1]
    json.dumps(asdict(report), allow_nan=False)


def test_hubs_of_a_sample_are_the_same_each_time(tmp_path: Path, fake: type) -> None:
    location = with_vectors(tmp_path, quantise(made_up("random", 50, 12, 7), normalise=True))
    with Index.open(location) as index:
        first, second = hubs(index, sample=20), hubs(index, sample=20)
    assert first == second
    assert (first.asked, first.population) == (20, 50)
    assert "20 of 50 passages, drawn at random" in hubs_text.lines(first)[0]


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 12), st.integers(2, 15), st.integers(0, 2**32 - 1))
def test_overlap_is_what_two_lists_have_in_common(chunks: int, asked: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists = [set(rng.permutation(chunks)[: rng.integers(1, chunks)].tolist()) for _ in range(asked)]
    counts = np.bincount([place for each in lists for place in each], minlength=chunks)
    common = [len(a & b) for i, a in enumerate(lists) for j, b in enumerate(lists) if i != j]
    mean = np.mean([len(each) for each in lists])
    assert observed(counts, asked).overlap == pytest.approx(np.mean(common) / mean)


def test_chance_against_drawn_lists() -> None:
    rng = np.random.default_rng(8)
    chunks, asked, k = 2000, 500, 8
    runs = []
    for _ in range(10):
        lists = np.concatenate([rng.choice(chunks, k, replace=False) for _ in range(asked)])
        runs.append(observed(np.bincount(lists, minlength=chunks), asked))
    chance = by_chance(chunks, asked, asked * k)
    for name in ("skewness", "orphans", "top", "overlap"):
        assert getattr(chance, name) == pytest.approx(
            np.mean([getattr(run, name) for run in runs]), rel=0.03
        )
    everything = by_chance(5, 3, 15)
    assert (everything.skewness, everything.orphans, everything.overlap) == (None, 0.0, 1.0)


def test_retrieval_collapse(tmp_path: Path, fake: type) -> None:
    """Two passages lie where every question does: they are all that ever comes."""
    rows = made_up("random", 60, 40, 9) + 3.0
    rows[:2] = 1.0
    location = with_vectors(tmp_path, quantise(rows, normalise=True))
    with Index.open(location) as index:
        report = hubs(index, k=2)
        spread = hubs(index, k=50)
    assert report.collapsed
    assert {hub.passage.text for hub in report.hubs[:2]} == set(sentences(2))
    assert report.hubs[0].occurrences >= 55
    assert "has collapsed" in "\n".join(hubs_text.lines(report))
    assert not spread.collapsed  # of 59, lists of 50 have much in common by chance alone


TOPICS = {
    "long.txt": " ".join(f"alpha beta gamma delta epsilon word{i}" for i in range(30)),
    "alpha.txt": "alpha",
    "beta.txt": "beta beta",
    "gamma.txt": "gamma delta",
    "zero.txt": "of the",
}


@pytest.mark.parametrize("normalise", [True, False])
def test_norms_against_numpy(tmp_path: Path, normalise: bool) -> None:
    write_files(tmp_path / "docs", TOPICS)
    build(tmp_path / ".rag", tmp_path / "docs", normalise=normalise, chunk="words:1000")
    questions = ["alpha", "beta", "gamma delta", "epsilon", "nothing known", "of the"]
    with Index.open(tmp_path / ".rag") as index:
        report = hubs(index, questions=questions, k=2)
        chunks, rows = matrix(index, normalise=False)
        paths = {
            chunk: place.path.decode() for chunk, place in index.places(chunks.tolist()).items()
        }
        own = hubs(index, k=2)
    named = [paths[chunk] for chunk in chunks.tolist()]
    lengths = np.linalg.norm(rows, axis=1)
    asked = [rows[named.index(name)] for name in ("alpha.txt", "beta.txt", "gamma.txt")]
    raw = [named[int(np.argmax(rows @ question))] for question in asked[:3]]
    units = rows / np.where(lengths > 0, lengths, 1)[:, np.newaxis]
    cosine = [named[int(np.argmax(units @ question))] for question in asked[:3]]
    assert raw == ["long.txt"] * 3
    assert cosine == ["alpha.txt", "beta.txt", "gamma.txt"]
    assert (report.population, report.own) == (6, False)
    assert report.asked == 5  # what has no token asks nothing
    norms = report.norms
    assert norms is not None
    assert norms.normalised is normalise
    assert norms.changed == 3
    winner = norms.winners[0]
    assert winner.passage.path == "long.txt"
    assert winner.raw >= 4
    assert winner.norm == pytest.approx(lengths.max(), rel=1e-6)
    assert norms.largest_norm == winner.norm
    by_rank = {hub.passage.path: hub.first for hub in report.hubs}
    assert by_rank["long.txt"] == (winner.cosine if normalise else winner.raw)
    assert own.population == 4  # zeros ask nothing
    assert "zero.txt" not in {hub.passage.path for hub in own.hubs}
    assert hubs_text.lines(report)
    json.dumps(asdict(report), allow_nan=False)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the lantern figures are not beside the checkout")
def test_the_paragraph_that_wins_everything(tmp_path: Path) -> None:
    figures = json.loads((SHARED / "expected.json").read_text())["raw_dot_product_top1"]
    shutil.copy(SHARED / "lantern.txt", tmp_path)
    build(tmp_path / ".rag", tmp_path / "lantern.txt", chunk="sentences:1")
    with Index.open(tmp_path / ".rag") as index:
        report = hubs(index, questions=[row["question"] for row in figures])
    assert report.norms is not None
    [winner] = report.norms.winners
    assert (winner.raw, winner.cosine, report.norms.changed) == (3, 0, 3)
    assert winner.passage.lines == (1, 1)


def minimal(count: int) -> list[dict[str, str]]:
    return [{f"{i}.txt": f"only word{i} here" for i in range(n)} for n in range(count)]


@pytest.mark.parametrize("files", minimal(3), ids=["empty", "one", "two"])
def test_hardly_anything(tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / "docs").mkdir()
    write_files(tmp_path / "docs", files)
    build(tmp_path / ".rag", tmp_path / "docs")
    with Index.open(tmp_path / ".rag") as index:
        doubles = duplicates(index)
        assert (doubles.chunks, doubles.all_groups) == (len(files), 0)
        duplicates_text.lines(doubles)
        if not files:
            with pytest.raises(UsageError, match="the index has none"):
                hubs(index)
            return
        report: HubReport = hubs(index)
        asked: Any = hubs(index, questions=["only the unknown", "of"])
    assert report.asked == report.chunks == len(files)
    assert [hub.occurrences for hub in report.hubs] == ([1, 1] if len(files) == 2 else [])
    assert asked.asked == 1
    assert asked.observed.overlap is None
    for each in (report, asked):
        assert hubs_text.lines(each)
        json.dumps(asdict(each), allow_nan=False)


def test_no_questions(copies: Path) -> None:
    location = copies.parent / ".rag"
    build(location, copies)
    with Index.open(location) as index:
        for options in ({"questions": []}, {"k": 0}):
            with pytest.raises(UsageError):
                hubs(index, **options)  # type: ignore[arg-type]
        unknown = hubs(index, questions=["of the"])
    assert unknown.asked == 0
    assert "no list was made" in hubs_text.lines(unknown)[-1]
    json.dumps(asdict(unknown), allow_nan=False)
