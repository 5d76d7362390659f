"""P(answerable): features of real searches, the fit, the honest comparison, the model as data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.errors import IndexDamaged, UsageError
from ragcli.evaluation.calibration import (
    FEWEST,
    NAMES,
    Calibration,
    Model,
    features,
    fit,
    predicted,
    probability,
)
from ragcli.evaluation.logistic import PENALTY, Logistic, fitted
from ragcli.indexing import index_folder
from ragcli.records import Hit, Leg, SearchRequest, SearchResult, TermShare
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index

SHARED_EVAL = Path(__file__).resolve().parents[1].parent / "shared" / "eval"


def result(
    *hits: Hit, mode: str = "hybrid", chunks: int = 100, terms: tuple[str, ...] = ()
) -> SearchResult:
    return SearchResult("?", hits, mode, "mix", 0.45, terms, chunks, chunks, 0)


def hit(terms: tuple[TermShare, ...], lexical: float | None, dense: float | None) -> Hit:
    return Hit(
        1, 7, "a.md", 0, 4, "text", 0.9, 1.0,
        lexical=None if lexical is None else Leg(1, lexical),
        dense=Leg(1, dense),
        terms=terms,
    )  # fmt: skip


def idf(chunks: int, frequency: int) -> float:
    return math.log(1 + (chunks - frequency + 0.5) / (frequency + 0.5))


def test_features_of_the_first_hit_by_hand() -> None:
    terms = (TermShare("heron", 2, 3, 4.0), TermShare("port", 0, 20, 0.0))
    found = features(result(hit(terms, 4.0, 0.6), hit((), 1.0, 0.9)))
    assert found == pytest.approx(
        {
            "score": 0.9,
            "lexical": 4.0,
            "share": 4.0 / (idf(100, 3) + idf(100, 20)),
            "complete": 1 - idf(100, 20) / idf(100, 0),
            "dense": 0.6,
        }
    )


def test_a_word_that_no_passage_has_makes_a_hit_incomplete() -> None:
    known, unknown = TermShare("heron", 1, 3, 4.0), TermShare("oslo", 0, 0, 0.0)
    assert features(result(hit((known,), 4.0, 0.6)))["complete"] == 1.0
    assert features(result(hit((known, unknown), 4.0, 0.6)))["complete"] == 0.0


def test_no_hits_and_no_vector_have_the_lowest_features() -> None:
    assert features(result()) == {"lexical": 0.0, "share": 0.0, "complete": 0.0, "dense": 0.0}
    assert features(result(hit((), 4.0, None)))["dense"] == 0.0


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    folder = tmp_path_factory.mktemp("docs")
    for name in ("heron", "dipper", "wren", "swift"):
        (folder / f"{name}.md").write_text(
            f"# {name}\n\nThe {name} sensor has a battery for five years.\n\n"
            f"## Ports\n\nIts gateway listens on port {len(name)}020.\n",
            encoding="utf-8",
        )
    location = folder / ".rag"
    index_folder(location, [folder], {"encoder": "hash", "chunk": "sentences:1"})
    with Index.open(location) as index:
        yield Retriever(index)


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("lexical", {"score", "lexical", "share", "complete"}),
        ("dense", {"score", "dense"}),
        ("hybrid", {"score", *NAMES}),
    ],
)
def test_features_of_each_mode_and_whatever_k(
    retriever: Retriever, mode: str, names: set[str]
) -> None:
    for question in ("Which port does the heron listen on?", "Who pays for Oslo?", "zzz qqq"):
        asked = [retriever.search(SearchRequest(question, k, mode=mode)) for k in (1, 10)]
        one, ten = (features(each) for each in asked)
        assert one == ten
        assert set(one) == (names if asked[0].hits else names - {"score"})
        assert all(0 <= one[name] <= 1 for name in ("share", "complete") if name in one)


def made(
    distances: dict[str, float], answerable: int, unanswerable: int, seed: int
) -> tuple[list[dict[str, float]], list[bool]]:
    """Features of unit normals, those of the answerable so much higher."""
    generator = np.random.default_rng(seed)
    labels = [True] * answerable + [False] * unanswerable
    rows = [
        {name: float(generator.normal(apart * label)) for name, apart in distances.items()}
        for label in labels
    ]
    return rows, labels


def test_a_model_that_beats_the_score_is_kept_and_does_as_it_said() -> None:
    apart = {"score": 0.3, "share": 1.5, "complete": 1.0, "lexical": 0.0}
    found = fit(*made(apart, 150, 60, 1), way={"mode": "lexical"})
    assert found.kept
    assert found.sentence.startswith("kept: ")
    assert found.gain.low > 0
    assert found.brier < found.score_brier < found.base_brier
    assert found.model.way == {"mode": "lexical"}
    # The best there is on these normals: Φ(√(1.5² + 1²) / √2) = .899.
    rows, labels = made(apart, 3000, 3000, 2)
    chances = np.array(predicted(found.model, rows))
    good, bad = chances[labels], np.sort(chances[~np.array(labels)])
    fresh = float(np.searchsorted(bad, good).mean() / len(bad))
    assert fresh == pytest.approx(0.899, abs=0.02)
    assert found.auroc.low < fresh < found.auroc.high


def test_a_model_that_is_no_better_than_the_score_is_not_kept() -> None:
    """The score is all there is to know: a fit on noise beside it must not be kept."""
    kept = 0
    for seed in range(40):
        rows, labels = made({"score": 1.0, "share": 0.0, "complete": 0.0}, 60, 25, seed)
        found = fit([{**row, "lexical": row["score"]} for row in rows], labels, seed)
        kept += found.kept
        assert found.sentence.startswith("kept") is found.kept
    assert kept <= 2


def test_held_out_figures_do_not_leak() -> None:
    """Where nothing tells, the model must look like chance, and no better."""
    apart = dict.fromkeys(("score", *NAMES), 0.0)
    found = [fit(*made(apart, 30, 12, seed)) for seed in range(40)]
    assert np.mean([each.auroc.value for each in found]) < 0.53
    assert np.mean([each.brier for each in found]) > found[0].base_brier
    assert sum(each.kept for each in found) <= 2


def test_a_better_order_with_worse_probabilities_is_not_kept() -> None:
    """The score's order is reversed, so that any fit beats it; but nothing tells."""
    rows, labels = made({"score": -0.8, "share": 0.25}, 60, 60, 11)
    found = fit(rows, labels)
    assert found.gain.low > 0
    assert found.score_brier < found.brier
    assert not found.kept


@pytest.mark.parametrize(("answerable", "unanswerable"), [(FEWEST - 1, 50), (50, FEWEST - 1)])
def test_too_few_of_either_class_are_refused_with_the_number_needed(
    answerable: int, unanswerable: int
) -> None:
    with pytest.raises(UsageError, match=f"at least {FEWEST} of either"):
        fit(*made({"score": 1.0, "dense": 1.0}, answerable, unanswerable, 1))


def test_as_many_as_are_needed_are_enough() -> None:
    found = fit(*made({"score": 1.0, "dense": 1.0}, FEWEST, FEWEST, 1))
    assert (found.answerable, found.unanswerable) == (FEWEST, FEWEST)


def test_a_feature_that_never_varies_and_questions_without_hits_do_no_harm() -> None:
    rows, labels = made({"score": 1.0, "share": 1.0}, 30, 20, 3)
    for row, label in zip(rows, labels, strict=True):
        row["complete"] = 1.0
        if not label and row["score"] < 0:
            del row["score"]
    found = fit(rows, labels)
    assert {each.name: each.weight for each in found.features}["complete"] == 0.0
    json.dumps(asdict(found), allow_nan=False)


def test_a_feature_that_some_questions_lack_is_left_out() -> None:
    rows, labels = made({"score": 1.0, "share": 1.0, "dense": 1.0}, 20, 20, 3)
    del rows[0]["dense"]
    assert fit(rows, labels).model.names == ("share",)


def test_the_same_seed_gives_the_same() -> None:
    questions = made({"score": 0.5, "share": 1.0}, 40, 20, 5)
    assert fit(*questions, seed=1) == fit(*questions, seed=1)
    assert fit(*questions, seed=1).model == replace(
        fit(*questions, seed=2).model, auroc=fit(*questions, seed=1).model.auroc
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-5, 5), st.floats(-1e3, 1e3, width=32), st.booleans()),
        min_size=3,
        max_size=30,
    ).filter(lambda rows: len({label for *_, label in rows}) == 2)
)
def test_the_fit_is_the_minimum(rows: list[tuple[int, float, bool]]) -> None:
    """Of the loss as written down, row by row: no step off it goes down."""
    values = np.array([row[:2] for row in rows], dtype=float)
    labels = np.array([label for *_, label in rows])
    found = fitted(values, labels)

    def loss(weights: list[float], intercept: float) -> float:
        total = PENALTY / 2 * sum(weight**2 for weight in weights)
        for row, label in zip(values.tolist(), labels, strict=True):
            standard = [
                (x - mean) / scale
                for x, mean, scale in zip(row, found.means, found.scales, strict=True)
            ]
            odds = intercept + sum(w * x for w, x in zip(weights, standard, strict=True))
            total += math.log1p(math.exp(-odds if label else odds))
        return total

    weights = found.weights.tolist()
    least = loss(weights, found.intercept)
    for off in (0.01, -0.01):
        assert loss(weights, found.intercept + off) > least
        assert loss([weights[0] + off, weights[1]], found.intercept) > least
        assert loss([weights[0], weights[1] + off], found.intercept) > least


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return fit(*made(dict.fromkeys(("score", *NAMES), 1.0), 40, 30, 1), way={"mode": "hybrid"})


def test_probability_is_the_formula(calibration: Calibration, retriever: Retriever) -> None:
    model = calibration.model
    asked = retriever.search(SearchRequest("Which port does the wren have?", 3))
    found = features(asked)
    odds = model.intercept + sum(
        weight * (found[name] - mean) / scale
        for name, mean, scale, weight in zip(
            model.names, model.means, model.scales, model.weights, strict=True
        )
    )
    assert probability(model, asked) == pytest.approx(1 / (1 + math.exp(-odds)))
    assert probability(model, asked) > probability(model, replace(asked, hits=()))


def test_a_model_of_another_mode_is_refused(calibration: Calibration, retriever: Retriever) -> None:
    asked = retriever.search(SearchRequest("Which port does the wren have?", 3, mode="lexical"))
    with pytest.raises(ValueError, match="fitted on dense"):
        probability(calibration.model, asked)


def test_a_model_survives_json(calibration: Calibration) -> None:
    text = json.dumps(calibration.model.to_json(), allow_nan=False)
    assert Model.from_json(json.loads(text)) == calibration.model


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(value=anything)
def test_what_is_not_a_model_is_refused(value: object) -> None:
    with pytest.raises(IndexDamaged, match="calibration"):
        Model.from_json(value)


@settings(deadline=None)
@given(key=st.sampled_from([*Model.__dataclass_fields__, "schema"]), value=anything)
def test_a_part_that_is_nonsense_is_refused_or_gives_a_probability(
    calibration: Calibration, key: str, value: Any
) -> None:
    told = {**json.loads(json.dumps(calibration.model.to_json())), key: value}
    try:
        model = Model.from_json(told)
    except IndexDamaged:
        return
    row: dict[str, float] = dict.fromkeys(NAMES, 3.0)
    assert 0 <= predicted(model, [row])[0] <= 1
    json.dumps(model.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("names", ["lexical", "lexical", "share", "dense"]),
        ("names", ["dense", "complete", "share", "lexical"]),
        ("names", ["lexical", "share", "complete", "__class__"]),
        ("names", []),
        ("means", [0, 0, 0]),
        ("scales", [1, 1, 1, 0]),
        ("scales", [1, 1, 1, float("nan")]),
        ("weights", [1, 1, 1, 1e308]),
        ("weights", [1, 1, 1, 10**400]),
        ("weights", [1, 1, 1, True]),
        ("weights", "1111"),
        ("intercept", float("inf")),
        ("auroc", 1.5),
        ("answerable", -1),
        ("way", {"mode": ["hybrid"]}),
        ("way", "hybrid"),
        ("schema", "ragcli.calibration/2"),
    ],
)
def test_numbers_that_no_fit_has_are_refused(
    calibration: Calibration, key: str, value: object
) -> None:
    with pytest.raises(IndexDamaged, match="calibration"):
        Model.from_json({**calibration.model.to_json(), key: value})
    told = calibration.model.to_json()
    del told[key]
    with pytest.raises(IndexDamaged, match="calibration"):
        Model.from_json(told)


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4))
def test_the_largest_numbers_a_model_may_have_give_a_probability(extreme: list[float]) -> None:
    logistic = Logistic(
        np.array(extreme), np.full(4, 1e-9), np.full(4, 1e6) * np.sign(extreme), 1e6
    )
    assert 0 <= logistic.chances(np.zeros((1, 4)))[0] <= 1


@pytest.mark.shared
def test_questions_of_a_corpus_that_is_not_there(tmp_path: Path) -> None:
    """The financial reports left out: their questions have no answer in the other four."""
    corpora = SHARED_EVAL / "chroma_chunking" / "corpora"
    if not corpora.is_dir():
        pytest.skip("no evaluation folder beside the checkout")
    files = [file for file in corpora.iterdir() if file.stem != "finance"]
    index_folder(tmp_path / ".rag", files, {"encoder": "none"})
    lines = (corpora.parent / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines if line.strip()]
    with Index.open(tmp_path / ".rag") as index:
        retriever = Retriever(index)
        rows = [features(retriever.search(SearchRequest(q["question"], 1))) for q in questions]
    labels = np.array([q["corpus"] != "finance" for q in questions])
    halves = np.arange(len(labels)) % 2 == 0
    found = fit([row for row, half in zip(rows, halves, strict=True) if half], labels[halves])
    others = [row for row, half in zip(rows, halves, strict=True) if not half]
    chances = np.array(predicted(found.model, others))
    good, bad = chances[labels[~halves]], chances[~labels[~halves]]
    assert (good[:, None] > bad).mean() > 0.96
