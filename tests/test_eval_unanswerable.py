"""AUROC, curve and threshold against counting pairs and questions one by one."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.evaluation.unanswerable import Refusal, auroc, refusal

question = st.tuples(
    st.one_of(st.none(), st.integers(0, 5).map(float)), st.booleans(), st.booleans()
)
some = st.lists(question, min_size=2, max_size=25).filter(
    lambda asked: len({answerable for _, answerable, _ in asked}) == 2
)


def measured(asked: list[tuple[float | None, bool, bool]]) -> Refusal | None:
    scores, answerable, found = zip(*asked, strict=True)
    return refusal(scores, answerable, found)


def number(score: float | None) -> float:
    return -1.0 if score is None else score


@settings(max_examples=60, deadline=None)
@given(some)
def test_figures_equal_counting_one_by_one(asked: list[tuple[float | None, bool, bool]]) -> None:
    result = measured(asked)
    scores = sorted({score for score, _, _ in asked if score is not None})
    if not scores:
        assert result is None
        return
    assert result is not None
    good = [number(score) for score, answerable, _ in asked if answerable]
    bad = [number(score) for score, answerable, _ in asked if not answerable]
    pairs = [(g > b) + (g == b) / 2 for g in good for b in bad]
    assert result.auroc.value == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)

    def youden(cut: float) -> float:
        return sum(g >= cut for g in good) / len(good) - sum(b >= cut for b in bad) / len(bad)

    best = max(map(youden, scores))
    assert youden(result.threshold.value) == pytest.approx(best, abs=1e-9)
    assert result.answered - result.let_through == pytest.approx(best, abs=1e-9)
    assert [point.threshold for point in result.curve] == scores[::-1]
    for point in result.curve:
        above = [a and f for s, a, f in asked if number(s) >= point.threshold]
        assert point.coverage == pytest.approx(len(above) / len(asked))
        assert point.risk == pytest.approx(above.count(False) / len(above))
    json.dumps(asdict(result), allow_nan=False)


@given(some, st.integers(1, 9))
def test_only_the_order_of_scores_matters(
    asked: list[tuple[float | None, bool, bool]], factor: int
) -> None:
    scores = np.array([number(score) for score, _, _ in asked])
    labels = np.array([answerable for _, answerable, _ in asked])
    area = float(auroc(scores, labels)[0])
    assert float(auroc(factor * scores + 3, labels)[0]) == area
    assert float(auroc(-scores, labels)[0]) == pytest.approx(1 - area, abs=1e-12)


def test_auroc_of_a_resample_is_that_of_the_questions_drawn() -> None:
    generator = np.random.default_rng(3)
    scores = generator.integers(0, 8, 30).astype(float)
    labels = generator.random(30) < 0.6
    counts = generator.integers(0, 4, (5, 30))
    for row, area in zip(counts, auroc(scores, labels, counts), strict=True):
        drawn, of = np.repeat(scores, row), np.repeat(labels, row)
        assert area == pytest.approx(float(auroc(drawn, of)[0]), abs=1e-12)


def normal(distance: float, answerable: int, unanswerable: int, seed: int) -> Refusal:
    generator = np.random.default_rng(seed)
    scores = [*generator.normal(distance, 1, answerable), *generator.normal(0, 1, unanswerable)]
    labels = [True] * answerable + [False] * unanswerable
    result = refusal(scores, labels, labels)
    assert result is not None
    return result


def test_what_chance_explains_is_said_to_separate_nothing() -> None:
    """The best J on chance alone is 0.2 and more: it must not count as separating."""
    alike = [normal(0.0, 60, 20, seed) for seed in range(60)]
    assert sum(each.separates for each in alike) <= 4
    assert np.mean([each.answered - each.let_through for each in alike]) > 0.15
    assert np.mean([each.youden.value for each in alike if each.youden]) < 0.05
    for each in alike:
        assert each.sentence.startswith("no threshold") is not each.separates


def test_a_score_that_separates_is_said_to_with_its_threshold() -> None:
    """Two unit normals 2 apart: J is best at 1, there .683, and P(X > Y) = Φ(√2) = .921."""
    results = [normal(2.0, 200, 60, seed) for seed in range(30)]
    for result in results:
        assert result.separates
        assert f"score of the first hit of {result.threshold.value:.3g} or more" in result.sentence
    for name, truth in (("auroc", 0.921), ("threshold", 1.0), ("youden", 0.683)):
        figures = [getattr(result, name) for result in results]
        assert sum(each.low <= truth <= each.high for each in figures) >= 24
        assert np.mean([each.value for each in figures]) == pytest.approx(truth, abs=0.1)


def test_interval_of_auroc_is_near_hanley_and_mcneils() -> None:
    result = normal(1.0, 150, 50, 4)
    area = result.auroc.value
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    spread = (area * (1 - area) + 149 * (q1 - area**2) + 49 * (q2 - area**2)) / (150 * 50)
    half = 1.96 * spread**0.5
    assert (result.auroc.low, result.auroc.high) == pytest.approx(
        (area - half, area + half), abs=0.02
    )


def test_a_score_the_wrong_way_round_does_not_separate() -> None:
    result = normal(-2.0, 60, 30, 1)
    assert not result.separates
    assert result.auroc.high < 0.5


def test_one_class_alone_or_no_hits_is_nothing_to_measure() -> None:
    assert refusal([1.0, 2.0], [True, True], [True, True]) is None
    assert refusal([1.0, 2.0], [False, False], [False, False]) is None
    assert refusal([None, None], [True, False], [False, False]) is None
    assert refusal([], [], []) is None


def test_scores_of_two_values_separate_wholly() -> None:
    """A held-out score that equals the threshold is above it, as it is when a question is asked."""
    labels = [True] * 20 + [False] * 20
    result = refusal([float(label) for label in labels], labels, labels)
    assert result is not None
    assert result.threshold.value == result.auroc.value == 1.0
    assert result.youden is not None
    assert (result.youden.value, result.answered, result.let_through) == (1.0, 1.0, 0.0)


def test_one_question_without_an_answer_is_too_few_to_say() -> None:
    result = refusal([2.0, 3.0, 1.0], [True, True, False], [True, True, False])
    assert result is not None
    assert result.youden is None
    assert not result.separates


def test_the_same_seed_gives_the_same() -> None:
    assert normal(1.0, 40, 20, 2) == normal(1.0, 40, 20, 2)


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    result = normal(1.0, 900, 100, 5)
    assert len(result.curve) == 200
    assert result.curve[0].coverage == 1 / 1000
    assert result.curve[-1].coverage == 1.0
    assert result.curve[-1].risk == 0.1
