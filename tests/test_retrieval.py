"""The read path with an encoder that takes its time: what is made on demand, and the mix."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from conftest import answers, build, write_files
from neural import FakeEncoder, vector

from ragcli.records import SearchRequest, SearchResult
from ragcli.retrieval import on_demand
from ragcli.retrieval.fusion import mix, scale, weight_of
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index

pytestmark = pytest.mark.usefixtures("fake")
WORDS = "harbour crane lamp tea queue worker ship rope tide gull anchor night".split()


def passage(number: int) -> str:
    rng = np.random.default_rng(number)
    return " ".join(rng.choice(WORDS, 6)) + f" number{number}."


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    write_files(tmp_path / "docs", {f"{i:03}.txt": passage(i) for i in range(150)})
    return tmp_path / "docs"


def search(location: Path, question: str, k: int = 10, **how: object) -> SearchResult:
    with Index.open(location) as index:
        return Retriever(index).search(SearchRequest(question, k, **how))  # type: ignore[arg-type]


def stored_vector(text: str) -> np.ndarray:
    encoded = FakeEncoder().encode_documents([text])
    assert encoded.factors is not None
    return encoded.codes[0].astype(float) * float(encoded.factors[0])


def test_dense_scores_are_dot_products_signs_and_all(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs, encoder="fake")
    found = search(tmp_path / "rag", "gull lamp", 150, mode="dense")
    expected = {
        f"{i:03}.txt": float(stored_vector(passage(i)) @ vector("gull lamp")) for i in range(150)
    }
    assert len(found.hits) == 150
    assert min(expected.values()) < -0.1
    assert {hit.path: hit.score for hit in found.hits} == pytest.approx(expected)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert found.hits[-1].dense is not None
    assert found.hits[-1].dense.rank == 150
    assert (found.embedded, found.embedded_now) == (150, 0)


def test_the_mix_is_the_mix(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs, encoder="fake")
    question = "tea rope number7"
    words = {h.path: h.score for h in search(tmp_path / "rag", question, 150, mode="lexical").hits}
    near = {h.path: h.score for h in search(tmp_path / "rag", question, 150, mode="dense").hits}

    def scaled(scores: dict[str, float], missing: float) -> dict[str, float]:
        best = sorted(scores.values(), reverse=True)
        low = best[99] if len(best) > 99 else missing
        return {path: max(0.0, (s - low) / (best[0] - low)) for path, s in scores.items()}

    lexical, dense = scaled(words, 0.0), scaled(near, best_missing := min(near.values()))
    assert best_missing < 0
    found = search(tmp_path / "rag", question, 20)
    hits, alpha = found.hits, found.alpha
    assert alpha is not None
    expected = {path: (1 - alpha) * lexical.get(path, 0.0) + alpha * dense[path] for path in near}
    assert [hit.score for hit in hits] == pytest.approx(sorted(expected.values())[::-1][:20])
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.path])


def test_what_has_no_vector_gets_one_on_demand(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs, encoder="fake", lazy=True)
    build(tmp_path / "full", docs, encoder="fake")
    best = [h.text for h in search(tmp_path / "rag", "tea rope", 50, mode="lexical").hits]
    FakeEncoder.texts.clear()
    found = search(tmp_path / "rag", "tea rope", 20)
    assert (found.embedded, found.embedded_now) == (0, 50)
    assert len(FakeEncoder.texts) == 50
    assert set(FakeEncoder.texts[:8]) <= set(best[:16])
    assert "embed" in found.timings_ms
    assert all(hit.dense and hit.dense.score is not None for hit in found.hits[:5])
    exact = {h.path: h.score for h in search(tmp_path / "full", "tea rope", 150, mode="dense").hits}
    for hit in found.hits:
        if hit.dense and hit.dense.score is not None:
            assert hit.dense.score == exact[hit.path]


def test_the_last_vector_there_is_is_the_zero_of_the_scale(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs, encoder="fake", lazy=True)
    found = search(tmp_path / "rag", "tea rope", 150)
    words = sorted((h.lexical.score for h in found.hits if h.lexical), reverse=True)
    near = [h.dense.score for h in found.hits if h.dense and h.dense.score is not None]
    assert len(near) == 50
    assert min(near) != 0
    low = words[99] if len(words) > 99 else 0.0
    for hit in found.hits:
        assert hit.lexical
        assert hit.dense
        lexical = max(0.0, (hit.lexical.score - low) / (words[0] - low))
        dense = 0.0
        if hit.dense.score is not None:
            dense = (hit.dense.score - min(near)) / (max(near) - min(near))
        assert found.alpha is not None
        assert hit.score == pytest.approx((1 - found.alpha) * lexical + found.alpha * dense)


def test_the_dense_share_falls_where_words_are_shattered(tmp_path: Path) -> None:
    words = ["tea", "rope", "incomprehensibilities"]
    write_files(tmp_path / "docs", {f"{i}.md": word for i, word in enumerate(words)})
    build(tmp_path / "rag", tmp_path / "docs", encoder="fake")
    pieces = [1 + len(word) // 4 for word in words]  # as the fake tokenizer has it
    assert sum(pieces) / 3 > 1.6
    found = search(tmp_path / "rag", "tea")
    assert found.alpha == pytest.approx(0.45 * 1.6 / (sum(pieces) / 3))
    assert weight_of(0.45, 1.6) == weight_of(0.45, 1.1) == weight_of(0.45, None) == 0.45
    with Index.open(tmp_path / "rag") as index:
        assert Retriever(index).search(SearchRequest("tea", alpha=0.3)).alpha == 0.3


def test_a_passage_gets_a_tenth_of_the_better_one_beside_it(tmp_path: Path) -> None:
    text = "Alpha tea one. Beta rope two. Gamma tea tea three. Delta four. Epsilon tea five."
    write_files(tmp_path / "docs", {"a.md": text, "b.md": "Zeta tea six."})
    build(tmp_path / "rag", tmp_path / "docs", encoder="fake", chunk="sentences:1")
    hits = {hit.text: hit for hit in search(tmp_path / "rag", "tea rope", 10).hits}
    assert len(hits) == 6
    alone = {text: hit.score - hit.neighbour for text, hit in hits.items()}
    order = ["Alpha tea one.", "Beta rope two.", "Gamma tea tea three.", "Delta four.",
             "Epsilon tea five."]  # fmt: skip
    for i, text in enumerate(order):
        beside = [alone[order[j]] for j in (i - 1, i + 1) if 0 <= j < len(order)]
        assert hits[text].neighbour == pytest.approx(0.1 * max(beside))
    assert hits["Zeta tea six."].neighbour == 0
    lexical = search(tmp_path / "rag", "tea rope", 10, mode="lexical").hits
    assert all(hit.neighbour == 0 for hit in lexical)


def test_dense_mode_is_given_the_best_by_words(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs, encoder="fake", lazy=True)
    found = search(tmp_path / "rag", "tea rope", 60, mode="dense")
    assert len(found.hits) == found.embedded_now == 50
    assert all(hit.lexical is None for hit in found.hits)
    assert search(tmp_path / "rag", "zzz", 5, mode="dense").hits == ()
    assert search(tmp_path / "rag", "tea rope", 5, mode="lexical").embedded_now == 0


def test_a_filter_holds_for_what_is_made(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs, encoder="fake", lazy=True)
    with Index.open(tmp_path / "rag") as index:
        retriever = Retriever(index)
        assert retriever.search(SearchRequest("tea rope", mode="dense")).embedded_now == 50
        for mode in ("dense", "hybrid"):
            found = retriever.search(SearchRequest("tea", 150, mode=mode, paths=("00*",)))
            assert 0 < len(found.hits) <= 10
            assert all(hit.path.startswith("00") for hit in found.hits)


@pytest.mark.parametrize("fusion", ["mix", "rrf"])
def test_made_on_demand_or_stored_is_the_same(docs: Path, tmp_path: Path, fusion: str) -> None:
    build(tmp_path / "rag", docs, encoder="fake", lazy=True)
    with Index.open(tmp_path / "rag") as index:
        retriever = Retriever(index)
        first = retriever.search(SearchRequest("tea rope", 40, fusion=fusion))
    assert retriever.keep()
    again = search(tmp_path / "rag", "tea rope", 40, fusion=fusion)
    assert (again.embedded, again.embedded_now) == (50, 0)
    assert again.hits == first.hits


def test_on_demand_ends_in_time(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "rag", docs, encoder="fake", lazy=True)
    monkeypatch.setattr(on_demand, "ON_DEMAND_SECONDS", 0.1)
    monkeypatch.setattr(FakeEncoder, "seconds", 0.01)
    made = search(tmp_path / "rag", "tea rope").embedded_now
    assert made in (8, 16)
    monkeypatch.setattr(on_demand, "ON_DEMAND_SECONDS", 0.0)
    assert search(tmp_path / "rag", "tea rope").embedded_now == 8


def test_at_most_so_many_of_a_file_looks_deeper(tmp_path: Path) -> None:
    same = "\n\n".join(f"Tea rope {i}." for i in range(130))
    write_files(tmp_path / "docs", {"many.txt": same, "one.txt": "Tea.", "two.txt": "Rope."})
    build(tmp_path / "rag", tmp_path / "docs", encoder="fake", chunk="sentences:1", lazy=True)
    for build_now in (False, True):
        if build_now:
            build(tmp_path / "rag")
        found = search(tmp_path / "rag", "tea rope", 4, max_per_file=2)
        assert sorted(hit.path for hit in found.hits) == [
            "many.txt",
            "many.txt",
            "one.txt",
            "two.txt",
        ]


def test_pieces_are_counted_where_the_tokenizer_counts_them(docs: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs, encoder="fake", lazy=True)
    counted = [FakeEncoder().pieces(passage(i)) for i in range(150)]
    with Index.open(tmp_path / "rag") as index:
        assert index.pieces_per_word == sum(p for _, p in counted) / sum(w for w, _ in counted)
    write_files(docs, {"000.txt": "Antidisestablishmentarianism."})
    build(tmp_path / "rag", lazy=True)
    counted[0] = (1, 1 + 28 // 4)
    with Index.open(tmp_path / "rag") as index:
        assert index.pieces_per_word == sum(p for _, p in counted) / sum(w for w, _ in counted)
    build(tmp_path / "rag", encoder="hash")
    with Index.open(tmp_path / "rag") as index:
        assert index.pieces_per_word is None
        assert index.languages() == ()
    assert answers(tmp_path / "rag", "tea rope")


def test_the_first_chunks_of_a_document_are_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragcli.indexing.analysis.SLICE", 20)
    text = " ".join(f"The number of this is {i}." for i in range(9))
    write_files(tmp_path / "docs", {"a.txt": text})
    build(tmp_path / "rag", tmp_path / "docs", encoder="fake", chunk="sentences:1", lazy=True)
    with Index.open(tmp_path / "rag") as index:
        rows = index.catalog.connection.execute("SELECT * FROM tallies").fetchall()
        assert rows == [("english", 1, 24, 4 * FakeEncoder().pieces("The number of this is 1.")[1])]
        assert index.languages() == ("english",)


@pytest.mark.parametrize(
    ("scores", "lowest", "scaled"),
    [
        ([3.0, 1.0, 2.0], 1.0, [1.0, 0.0, 0.5]),
        ([-1.0, -3.0, np.nan, -2.0], -3.0, [1.0, 0.0, 0.0, 0.5]),
        ([-1.0, np.nan], -1.0, [1.0, 0.0]),
        ([2.0, 2.0, 1.0], 2.0, [1.0, 1.0, 0.0]),
        ([0.0, np.nan], None, [0.0, 0.0]),
        ([], None, []),
    ],
)
def test_scale(scores: list[float], lowest: float | None, scaled: list[float]) -> None:
    assert scale(np.array(scores), lowest).tolist() == scaled
    lexical, dense = mix(np.array(scaled), np.array(scaled), 0.25)
    assert lexical.tolist() == [0.75 * value for value in scaled]
    assert dense.tolist() == [0.25 * value for value in scaled]


class BackwardsReranker:
    """Likes short texts; `asked` are the texts that each was given."""

    asked: list[list[str]] = []  # noqa: RUF012
    cut = 2

    def __init__(self, name: str, device: str | None = None) -> None:
        self.name = name

    def score(self, question: str, texts: list[str]) -> list[float]:
        self.asked.append(list(texts))
        return [-float(len(text)) for text in texts]


def test_a_reranker_orders_the_best_fifty_anew(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragcli.retrieval.rerank.Reranker", BackwardsReranker)
    BackwardsReranker.asked.clear()
    build(tmp_path / "rag", docs, encoder="fake")
    plain = search(tmp_path / "rag", "tea rope", 50).hits
    found = search(tmp_path / "rag", "tea rope", 7, rerank="backwards")
    assert [sorted(texts) for texts in BackwardsReranker.asked] == [sorted(h.text for h in plain)]
    lengths = sorted(len(hit.text) for hit in plain)
    assert [-hit.score for hit in found.hits] == lengths[:7]
    assert [hit.rerank for hit in found.hits] == [hit.score for hit in found.hits]
    assert found.cut == 2
    assert "rerank" in found.timings_ms
    assert all(hit.lexical and hit.dense for hit in found.hits)
    more = search(tmp_path / "rag", "tea rope", 60, rerank="backwards").hits
    assert len(more) == 60
    assert len(BackwardsReranker.asked[-1]) == 60


def test_a_reranker_reads_what_max_per_file_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragcli.retrieval.rerank.Reranker", BackwardsReranker)
    text = " ".join(f"Tea number {i} of the harbour." for i in range(80))
    write_files(tmp_path / "docs", {"a.md": text, "b.md": "Tea.", "c.md": "No tea today, sorry."})
    build(tmp_path / "rag", tmp_path / "docs", encoder="fake", chunk="sentences:1")
    hits = search(tmp_path / "rag", "tea", 5, rerank="backwards", max_per_file=1).hits
    assert [hit.path for hit in hits] == ["b.md", "c.md", "a.md"]


@pytest.mark.parametrize("fusion", ["mix", "rrf"])
@pytest.mark.parametrize("encoder", ["hash", "fake"])
@pytest.mark.usefixtures("fake")
def test_k_never_changes_the_order(tmp_path: Path, encoder: str, fusion: str) -> None:
    rng = np.random.default_rng(3)
    words = [f"w{n}" for n in range(40)]
    write_files(tmp_path / "docs", {
        f"{n}.txt": "\n\n".join(" ".join(rng.choice(words, 12)) for _ in range(20))
        for n in range(20)
    })  # fmt: skip
    build(tmp_path / ".rag", tmp_path / "docs", encoder=encoder, chunk="words:12")
    with Index.open(tmp_path / ".rag") as index:
        retriever = Retriever(index)
        for question in ("w1 w2", "w3", "w4 w5 w6 w7"):
            runs = [
                [
                    hit.chunk
                    for hit in retriever.search(SearchRequest(question, k, fusion=fusion)).hits
                ]
                for k in (5, 99, 101, 150, 222, 400)
            ]
            assert len(runs[-1]) > 101
            for shorter, longer in itertools.pairwise(runs):
                assert longer[: len(shorter)] == shorter
