"""The mixture's mathematics and its searches, against hand-worked digits and brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.errors import UsageError
from ragcli.generation.decoding import fusion_in_decoder, rag_sequence, rag_token, score_answer
from ragcli.generation.marginal import (
    passage_probabilities,
    posterior,
    sequence_log_likelihood,
    sequence_posterior,
    token_log_likelihood,
    token_posteriors,
)

PRIOR = np.array([0.7, 0.3])
BY_HAND = np.log([[0.9, 0.2], [0.1, 0.8]])
"""PAPER.md's p_theta of two tokens under two passages."""


class Table:
    """A TokenModel of random tables: what comes next hangs on all that stands before.

    Tokens are letters from `a`; the last `ends` of them end an answer.
    """

    def __init__(self, seed: int, vocabulary: int = 3, ends: int = 1, sharp: float = 2.0) -> None:
        self.seed = seed
        self.vocabulary = vocabulary
        self.ends = frozenset(range(vocabulary - ends, vocabulary))
        self.sharp = sharp
        self.asked: list[list[tuple[int, tuple[int, ...]]]] = []

    def tokens(self, text: str) -> list[int]:
        return [ord(letter) - ord("a") for letter in text]

    def text(self, tokens: Sequence[int]) -> str:
        return "".join(chr(ord("a") + token) for token in tokens if token not in self.ends)

    def begin(self, prompts: Sequence[str]) -> None:
        raise AssertionError("a decoder does not begin")

    def row(self, prompt: int, answer: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng([self.seed, prompt, len(answer), *answer])
        logits = self.sharp * rng.standard_normal(self.vocabulary)
        return np.asarray(logits - np.log(np.exp(logits).sum()))

    def logprobs(self, rows: Sequence[tuple[int, tuple[int, ...]]]) -> np.ndarray:
        assert len(set(rows)) == len(rows)
        self.asked.append(list(rows))
        return np.stack([self.row(*row) for row in rows])


def outcomes(model: Table, limit: int) -> Iterator[tuple[int, ...]]:
    """Every answer that ends within the limit, or is cut by it."""
    for length in range(1, limit + 1):
        for tokens in itertools.product(range(model.vocabulary), repeat=length):
            inner = all(token not in model.ends for token in tokens[:-1])
            if inner and (tokens[-1] in model.ends or length == limit):
                yield tokens


def probability(model: Table, prior: np.ndarray, tokens: tuple[int, ...], by_token: bool) -> float:
    """The paper's two formulas, written out with plain products and sums."""
    p = [
        [math.exp(model.row(z, tokens[:i])[token]) for i, token in enumerate(tokens)]
        for z in range(len(prior))
    ]
    if by_token:
        return math.prod(
            sum(w * row[i] for w, row in zip(prior, p, strict=True)) for i in range(len(tokens))
        )
    return sum(w * math.prod(row) for w, row in zip(prior, p, strict=True))


def a_prior(seed: int, k: int) -> np.ndarray:
    return passage_probabilities(np.random.default_rng(seed).standard_normal(k).tolist())


seeds = st.integers(0, 2**32 - 1)
passages = st.integers(1, 4)


def test_the_paper_by_hand() -> None:
    assert math.exp(sequence_log_likelihood(PRIOR, BY_HAND)) == pytest.approx(0.150, abs=1e-12)
    assert math.exp(token_log_likelihood(PRIOR, BY_HAND)) == pytest.approx(0.2508, abs=1e-12)
    assert f"{-token_log_likelihood(PRIOR, BY_HAND):.2f}" == "1.38"
    assert [f"{p:.2f}" for p in passage_probabilities([2.0, 1.15])] == ["0.70", "0.30"]
    # .126 and .024 of .150; .63 and .03 of .66; .14 and .24 of .38
    assert sequence_posterior(PRIOR, BY_HAND) == pytest.approx([0.84, 0.16])
    assert token_posteriors(PRIOR, BY_HAND) == pytest.approx(
        np.array([[0.63 / 0.66, 0.03 / 0.66], [0.14 / 0.38, 0.24 / 0.38]])
    )


def test_temperature() -> None:
    scores = [2.0, 1.15, -3.0]
    assert passage_probabilities(scores, 2.0) == pytest.approx(
        passage_probabilities([1.0, 0.575, -1.5])
    )
    assert passage_probabilities(scores, 1e-300) == pytest.approx([1, 0, 0])
    assert passage_probabilities(scores, 1e300) == pytest.approx([1 / 3] * 3)
    assert passage_probabilities([1e308, -1e308]) == pytest.approx([1, 0])
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="temperature"):
            passage_probabilities(scores, wrong)
    for none in ([], [1.0, math.nan], [math.inf, 0.0]):
        with pytest.raises(UsageError, match="passages"):
            passage_probabilities(none)


@given(seed=seeds, k=st.integers(1, 6), n=st.integers(1, 6), scale=st.floats(0.1, 2000))
def test_posteriors_sum_to_one(seed: int, k: int, n: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    logprobs = -scale * rng.exponential(size=(k, n))
    prior = passage_probabilities((scale * rng.standard_normal(k)).tolist())
    assert sequence_posterior(prior, logprobs).sum() == pytest.approx(1, abs=1e-12)
    assert token_posteriors(prior, logprobs).sum(axis=1) == pytest.approx(np.ones(n), abs=1e-12)
    # Far below what a product of probabilities could hold
    assert math.isfinite(sequence_log_likelihood(prior, logprobs))


def test_what_no_passage_could_give_leaves_the_prior() -> None:
    impossible = np.array([[-np.inf], [-np.inf]])
    assert posterior(PRIOR, impossible)[:, 0] == pytest.approx(PRIOR)
    assert sequence_log_likelihood(PRIOR, impossible) == -np.inf
    one = np.array([[-np.inf], [-800.0]])
    assert sequence_posterior(PRIOR, one) == pytest.approx([0, 1])
    assert sequence_log_likelihood(PRIOR, one) == pytest.approx(math.log(0.3) - 800)


@given(seed=seeds, k=passages, n=st.integers(1, 5))
def test_with_one_token_or_one_passage_the_two_agree(seed: int, k: int, n: int) -> None:
    logprobs = -np.random.default_rng(seed).exponential(size=(k, n))
    prior = a_prior(seed, k)
    first = logprobs[:, :1]
    assert sequence_log_likelihood(prior, first) == pytest.approx(
        token_log_likelihood(prior, first)
    )
    alone = logprobs[:1]
    assert sequence_log_likelihood(np.ones(1), alone) == pytest.approx(
        token_log_likelihood(np.ones(1), alone)
    )


@given(seed=seeds, k=passages, vocabulary=st.integers(2, 3), ends=st.integers(1, 2))
def test_the_outcomes_are_a_distribution(seed: int, k: int, vocabulary: int, ends: int) -> None:
    model = Table(seed, vocabulary + 1, ends)
    prior = a_prior(seed, k)
    for by_token in (False, True):
        every = [probability(model, prior, tokens, by_token) for tokens in outcomes(model, 3)]
        assert sum(every) == pytest.approx(1)


@given(seed=seeds, k=passages, ends=st.integers(1, 2), limit=st.integers(1, 3))
def test_a_wide_beam_finds_what_brute_force_finds(seed: int, k: int, ends: int, limit: int) -> None:
    model = Table(seed, 4, ends)
    prior = a_prior(seed, k)
    every = list(outcomes(model, limit))
    wide = model.vocabulary**limit

    found = rag_sequence(model, prior, limit=limit, beams=wide)
    exact = {tokens: probability(model, prior, tokens, False) for tokens in every}
    assert {each.tokens for each in found.candidates} == set(every)
    for each in found.candidates:
        assert math.exp(each.log_likelihood) == pytest.approx(exact[each.tokens])
        assert each.ended == (each.tokens[-1] in model.ends)
    assert tuple(token.id for token in found.tokens) == max(exact, key=lambda y: exact[y])

    token = rag_token(model, prior, limit=limit, beams=wide)
    exact = {tokens: probability(model, prior, tokens, True) for tokens in every}
    best = max(exact, key=lambda y: exact[y])
    assert tuple(each.id for each in token.tokens) == best
    assert math.exp(token.log_likelihood) == pytest.approx(exact[best])


@given(seed=seeds, k=passages, beams=st.integers(1, 4), limit=st.integers(1, 6))
def test_fast_is_never_above_thorough(seed: int, k: int, beams: int, limit: int) -> None:
    model = Table(seed, 4)
    prior = a_prior(seed, k)
    thorough = rag_sequence(model, prior, limit=limit, beams=beams)
    fast = rag_sequence(model, prior, limit=limit, beams=beams, decoding="fast")
    exact = {each.tokens: each for each in thorough.candidates}
    assert {each.tokens for each in fast.candidates} == set(exact)
    for each in fast.candidates:
        whole = exact[each.tokens]
        assert each.log_likelihood <= whole.log_likelihood + 1e-12
        assert None not in whole.passages
        assert math.exp(whole.log_likelihood) == pytest.approx(
            probability(model, prior, each.tokens, False)
        )
        for known, own in zip(each.passages, whole.passages, strict=True):
            assert known is None or known == pytest.approx(own)
    assert fast.passes <= thorough.passes
    assert fast.rows <= thorough.rows
    assert sum(fast.posterior) == pytest.approx(1)


def test_fast_makes_no_extra_passes() -> None:
    model = Table(3, 4)
    prior = a_prior(3, 3)
    fast = rag_sequence(model, prior, limit=5, beams=2, decoding="fast")
    assert fast.passes == len(model.asked) <= 5
    assert any(None in each.passages for each in fast.candidates)
    model.asked.clear()
    thorough = rag_sequence(model, prior, limit=5, beams=2)
    assert thorough.passes == len(model.asked) > fast.passes
    assert thorough.rows == sum(map(len, model.asked))


@given(seed=seeds, k=passages, limit=st.integers(1, 6))
def test_one_beam_is_greedy(seed: int, k: int, limit: int) -> None:
    model = Table(seed, 5)
    prior = a_prior(seed, k)
    tokens: tuple[int, ...] = ()
    while len(tokens) < limit and not (tokens and tokens[-1] in model.ends):
        mixed = sum(w * np.exp(model.row(z, tokens)) for z, w in enumerate(prior))
        tokens = (*tokens, int(np.argmax(mixed)))
    found = rag_token(model, prior, limit=limit)
    assert tuple(each.id for each in found.tokens) == tokens
    assert found.ended == (tokens[-1] in model.ends)
    assert found.passes == len(tokens)
    assert found.rows == k * len(tokens)  # all passages in one batch


@given(seed=seeds, k=passages, beams=st.integers(1, 4))
def test_scoring_says_what_decoding_says(seed: int, k: int, beams: int) -> None:
    model = Table(seed, 4, sharp=1.0)
    prior = a_prior(seed, k)
    for decoded, place in (
        (rag_sequence(model, prior, limit=8, beams=beams), 0),
        (rag_token(model, prior, limit=8, beams=beams), 1),
    ):
        if decoded.ended:
            scored = score_answer(model, prior, decoded.text)[place]
            assert scored.model == decoded.model
            assert scored.log_likelihood == pytest.approx(decoded.log_likelihood)
            assert scored.posterior == pytest.approx(decoded.posterior)
            for ours, theirs in zip(scored.tokens, decoded.tokens, strict=True):
                assert (ours.id, ours.text) == (theirs.id, theirs.text)
                assert ours.posterior == pytest.approx(theirs.posterior)


@given(seed=seeds, k=passages)
def test_scoring_takes_the_likeliest_end(seed: int, k: int) -> None:
    model = Table(seed, 5, ends=3)
    prior = a_prior(seed, k)
    for scored, by_token in zip(score_answer(model, prior, "ab"), (False, True), strict=True):
        exact = {end: probability(model, prior, (0, 1, end), by_token) for end in model.ends}
        assert scored.tokens[-1].id == max(exact, key=lambda end: exact[end])
        assert math.exp(scored.log_likelihood) == pytest.approx(max(exact.values()))


def test_a_tokens_posterior_and_the_answers() -> None:
    found = rag_token(Table(5, 6), PRIOR, limit=6)
    for each in found.tokens:
        assert sum(each.posterior) == pytest.approx(1)
    mean = np.mean([each.posterior for each in found.tokens], axis=0)
    assert found.posterior == pytest.approx(mean)
    assert sum(each.log_likelihood or 0 for each in found.tokens) == pytest.approx(
        found.log_likelihood
    )
    assert "".join(each.text for each in found.tokens) == found.text


def test_a_length_penalty_prefers_the_longer() -> None:
    lengths = []
    for penalty in (0.0, 1.0):
        found = [
            rag_token(Table(seed, 4), PRIOR, limit=6, beams=4**6, length_penalty=penalty)
            for seed in range(3)
        ]
        lengths.append(sum(len(each.tokens) for each in found))
    assert lengths[0] < lengths[1]


@given(seed=seeds, penalty=st.floats(0, 2), beams=st.integers(1, 3))
def test_stopping_early_loses_nothing(seed: int, penalty: float, beams: int) -> None:
    """A search that never stops before the limit finds nothing better with the same beam."""
    from ragcli.generation import beams as module

    model = Table(seed, 4)
    early = rag_token(model, PRIOR, limit=5, beams=beams, length_penalty=penalty)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module._Search, "_can_improve", lambda self, live: bool(live))
        late = rag_token(model, PRIOR, limit=5, beams=beams, length_penalty=penalty)
    assert late.tokens == early.tokens
    assert late.passes >= early.passes


def test_equals_go_to_the_earlier_token() -> None:
    class Even(Table):
        def row(self, prompt: int, answer: tuple[int, ...]) -> np.ndarray:
            return np.full(self.vocabulary, -math.log(self.vocabulary))

    found = rag_token(Even(0, 4), PRIOR, limit=3, beams=2)
    again = rag_token(Even(0, 4), PRIOR, limit=3, beams=2)
    assert found.tokens == again.tokens
    assert rag_sequence(Even(0, 4), PRIOR, limit=2, beams=2).text == "aa"


def test_a_character_of_several_tokens_is_said_by_its_last() -> None:
    class Bytes(Table):
        def text(self, tokens: Sequence[int]) -> str:
            said = bytes("aé"[:2], "utf-8")
            return bytes(said[t] for t in tokens if t < 3).decode("utf-8", "replace")

        def row(self, prompt: int, answer: tuple[int, ...]) -> np.ndarray:
            return np.log(np.where(np.arange(4) == len(answer), 0.97, 0.01))

    found = rag_token(Bytes(0, 4), PRIOR, limit=9)
    assert [each.text for each in found.tokens] == ["a", "", "é", ""]
    assert found.text == "aé"


@pytest.mark.parametrize("decoder", [rag_token, rag_sequence])
def test_no_beam_and_no_room(decoder: object) -> None:
    for wrong in ({"limit": 0}, {"limit": 3, "beams": 0}, {"limit": 3, "length_penalty": -1.0}):
        with pytest.raises(UsageError):
            decoder(Table(0), PRIOR, **wrong)  # type: ignore[operator]


def test_fusion_needs_an_encoder() -> None:
    with pytest.raises(UsageError, match="encoder-decoder"):
        fusion_in_decoder(Table(0), ["a", "b"], limit=3)
