"""Intervals and tests against slow computations of another kind."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.evaluation import statistics

values = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=40)


def exact_bootstrap(sample: list[float]) -> tuple[float, float]:
    """The percentile interval over every possible resample, each as likely as the other."""
    means = Counter(
        round(sum(drawn) / len(sample), 9)
        for drawn in itertools.product(sample, repeat=len(sample))
    )
    total, below, ends = sum(means.values()), 0, []
    for mean in sorted(means):
        below += means[mean]
        while len(ends) < 2 and below / total >= (0.025, 0.975)[len(ends)]:
            ends.append(mean)
    return ends[0], ends[1]


@pytest.mark.parametrize("sample", [[0.0, 0.1, 0.5, 0.55, 0.9, 1.0], [0.0, 0.0, 0.0, 1.0, 0.5]])
def test_interval_is_near_that_over_every_resample(sample: list[float]) -> None:
    assert statistics.interval(sample) == pytest.approx(exact_bootstrap(sample), abs=0.04)


def test_interval_of_shares_is_the_binomial_one() -> None:
    # 60 of 200: quantiles of Binomial(200, .3) / 200, summed here term by term.
    chances = [math.comb(200, hits) * 0.3**hits * 0.7 ** (200 - hits) for hits in range(201)]
    sums = list(itertools.accumulate(chances))
    expected = [next(h for h, s in enumerate(sums) if s >= q) / 200 for q in (0.025, 0.975)]
    assert statistics.interval([1.0] * 60 + [0.0] * 140) == pytest.approx(expected, abs=0.0051)


def test_both_ways_of_resampling_have_the_same_distribution() -> None:
    """Many equal values are drawn by their counts; a jitter makes them all distinct."""
    sample = np.array([0.0] * 700 + [0.5] * 200 + [1.0] * 100)
    jitter = np.random.default_rng(1).uniform(-1e-7, 1e-7, 1000)
    by_counts = statistics.interval(sample)
    by_picks = statistics.interval(sample + jitter)
    spread = sample.std() / math.sqrt(1000)
    assert by_counts == pytest.approx(by_picks, abs=0.1 * spread)
    assert by_counts == pytest.approx(
        (sample.mean() - 1.96 * spread, sample.mean() + 1.96 * spread), abs=0.15 * spread
    )


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(150):
        low, high = statistics.interval(generator.random(40))
        covered += low <= 0.5 <= high
    assert 0.90 <= covered / 150 <= 0.99


@given(values, st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_interval_is_the_same_for_the_same_seed_and_holds_within_the_values(
    sample: list[float], seed: int
) -> None:
    low, high = statistics.interval(sample, seed)
    assert statistics.interval(sample, seed) == (low, high)
    assert min(sample) - 1e-9 <= low <= high <= max(sample) + 1e-9


def test_no_values_have_no_interval() -> None:
    with pytest.raises(ValueError, match="no values"):
        statistics.interval([])


def test_many_questions_need_little_memory() -> None:
    import tracemalloc

    sample = np.random.default_rng(1).random(10_000)
    tracemalloc.start()
    statistics.interval(sample)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # all at once it would be 800 MB


gaps = st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.1, 0.3, 0.5, 1.0]), max_size=12)


@given(gaps.filter(len))
@settings(max_examples=50, deadline=None)
def test_randomisation_is_exact_for_few_questions(sample: list[float]) -> None:
    """Every swap of a and b, ties swapped too, counted in whole hundredths."""
    hundredths = [round(100 * gap) for gap in sample]
    as_far = [
        abs(sum(sign * gap for sign, gap in zip(signs, hundredths, strict=True)))
        >= abs(sum(hundredths))
        for signs in itertools.product((-1, 1), repeat=len(sample))
    ]
    found = statistics.difference([1 + gap for gap in sample], [1.0] * len(sample))
    assert found.p == pytest.approx(sum(as_far) / len(as_far), abs=1e-12)


def test_randomisation_of_many_questions_is_near_the_sign_tests() -> None:
    # 40 gaps of one size: how far the sum is from 0 depends on the number of signs alone.
    won, lost = 27, 13
    tail = sum(math.comb(40, n) for n in range(won, 41)) / 2**40
    found = statistics.difference([1.0] * won + [0.0] * lost, [0.0] * won + [1.0] * lost)
    assert found.p == pytest.approx(2 * tail, abs=0.006)
    assert found.p < statistics.difference([1.0, 0.0] * 20, [0.0, 1.0] * 20).p == 1.0


def test_randomisation_is_rarely_significant_where_nothing_differs() -> None:
    generator = np.random.default_rng(7)
    chances = [
        statistics.difference(generator.random(25), generator.random(25), seed).p
        for seed in range(100)
    ]
    assert 0.35 < np.mean(chances) < 0.65
    assert np.mean(np.array(chances) < 0.05) < 0.13


def test_difference_says_who_won_each_question() -> None:
    found = statistics.difference([1, 0.1 + 0.2, 0, 1], [0, 0.3, 1, 0])
    assert (found.won, found.lost, found.tied) == (2, 1, 1)
    assert found.mean == 0.25
    assert found.low < 0.25 < found.high


def test_difference_of_equal_runs_is_none() -> None:
    assert statistics.difference([0.5] * 30, [0.5] * 30) == statistics.Difference(
        0.0, 0.0, 0.0, 1.0, 0, 0, 30
    )


def test_difference_turns_with_its_sides() -> None:
    generator = np.random.default_rng(2)
    a, b = generator.random(50), generator.random(50)
    there, back = statistics.difference(a, b), statistics.difference(b, a)
    assert (there.mean, there.p, there.won) == (-back.mean, back.p, back.lost)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=0.01)


def test_difference_refuses_runs_over_other_questions() -> None:
    with pytest.raises(ValueError, match="3 values against 2"):
        statistics.difference([1, 2, 3], [1, 2])


def test_quantile_interpolates() -> None:
    assert statistics.quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert statistics.quantile([5.0], 0.95) == 5.0


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 6))
def test_folds_share_out_either_class(labels: list[bool], number: int) -> None:
    of = np.array(labels)
    folds = statistics.stratified_folds(of, number, 3)
    for each in (True, False):
        sizes = np.bincount(folds[of == each], minlength=number)
        assert sizes.max() - sizes.min() <= 1


@given(st.lists(st.booleans(), min_size=1, max_size=40))
@settings(deadline=None)
def test_resamples_draw_as_many_of_either_class_as_there_are(labels: list[bool]) -> None:
    of = np.array(labels)
    counts = np.concatenate(list(statistics.stratified_counts(of, 50, 1)))
    assert counts.shape == (50, len(of))
    assert (counts[:, of].sum(axis=1) == of.sum()).all()
    assert (counts[:, ~of].sum(axis=1) == (~of).sum()).all()


def test_resamples_come_in_blocks_and_draw_each_question_alike() -> None:
    of = np.array([True] * 3000 + [False] * 1000)
    blocks = list(statistics.stratified_counts(of, 2000, 1))
    assert len(blocks) > 1
    counts = np.concatenate(blocks)
    assert counts.shape == (2000, 4000)
    assert counts.mean(axis=0).min() > 0.85
    assert counts.mean(axis=0).max() < 1.15
    # Of n drawn with replacement a question is missed (1 − 1/n)^n of the times.
    assert (counts == 0).mean() == pytest.approx(math.exp(-1), abs=0.01)
