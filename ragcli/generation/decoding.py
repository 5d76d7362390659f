"""Searching for an answer under a mixture of passages, and scoring one that is given.

    rag_token            greedy or beam search over the mixed next-token distribution
    rag_sequence         a beam search per passage gives candidates; thorough or fast weighs them
    fusion_in_decoder    one search, over all passages' encoder states at once
    score_answer         what both models say of a given text

Each takes a TokenModel and p_eta(z|x), (k,), and gives values. The model has begun with the k
prompts (but for `fusion_in_decoder`, which does it itself). The formulas are `marginal`'s; the
beams are `beams`'s. An answer ends with one of the model's end tokens, which is a part of it, or
is cut at the limit: over all of these the probabilities sum to 1.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from ragcli.errors import UsageError
from ragcli.generation.beams import Hypothesis, Mixture, search
from ragcli.generation.marginal import (
    TokenModel,
    mixture,
    posterior,
    sequence_log_likelihood,
    sequence_posterior,
    token_log_likelihood,
    token_posteriors,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Decoding = Literal["thorough", "fast"]

_TOGETHER = 64
"""Answers under a passage that are scored in one batch; each row has V numbers."""


@runtime_checkable
class FusingModel(Protocol):
    """A TokenModel that can read several passages apart and answer from all of them at once."""

    def fuse(self, prompts: Sequence[str]) -> None:
        """Read the prompts apart; to `logprobs` their states together are the one prompt 0."""


@dataclass(frozen=True, slots=True)
class AnswerToken:
    """One token of an answer.

    `text` is what it adds to the answer: "" for the end, and for a part of a character whose
    last part says it. `log_likelihood` is RAG-Token's log p(y_i|x, y_<i), and `posterior` its
    p(z|x,y_<=i) over the passages; None and () where the model does not choose token by token.
    """

    id: int
    text: str
    log_likelihood: float | None = None
    posterior: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that some passage's beam produced.

    `passages` is log p(y|x,z) under each, None where fast decoding takes it for nothing.
    """

    text: str
    tokens: tuple[int, ...]
    ended: bool
    log_likelihood: float
    passages: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, and what the mixture says of it.

    `model` is `rag-sequence`, `rag-token` or `fid`; `ended` is false for one that was cut at the
    limit. `log_likelihood` is log p(y|x), with fast decoding a lower bound. `posterior` is
    p(z|x,y); for RAG-Token, where each token has its own, their mean: the share of the answer's
    tokens that a passage is expected to have given. `candidates` are RAG-Sequence's, best first.
    `passes` counts the batches that the model ran, `rows` the distributions that they gave.
    """

    model: str
    text: str
    tokens: tuple[AnswerToken, ...]
    ended: bool
    log_likelihood: float
    posterior: tuple[float, ...]
    candidates: tuple[Candidate, ...]
    passes: int
    rows: int
    seconds: float


class _Counted:
    """A model's `logprobs`, and how much was asked of it."""

    def __init__(self, model: TokenModel) -> None:
        self.model = model
        self.ends = model.ends  # looked for in all the vocabulary, before the clock starts
        self.passes = self.rows = 0
        self._since = time.perf_counter()

    def logprobs(self, rows: Sequence[tuple[int, tuple[int, ...]]]) -> NDArray[np.float64]:
        self.passes += 1
        self.rows += len(rows)
        return self.model.logprobs(rows)

    def answer(
        self, model: str, tokens: Sequence[AnswerToken], log_likelihood: float,
        shares: Iterable[float], candidates: Sequence[Candidate] = (),
    ) -> Answer:  # fmt: skip
        ids = [token.id for token in tokens]
        return Answer(
            model=model, text=self.model.text(ids), tokens=tuple(tokens),
            ended=bool(ids) and ids[-1] in self.ends, log_likelihood=log_likelihood,
            posterior=tuple(map(float, shares)), candidates=tuple(candidates),
            passes=self.passes, rows=self.rows, seconds=time.perf_counter() - self._since,
        )  # fmt: skip


def rag_token(
    model: TokenModel,
    prior: NDArray[np.float64],
    *,
    limit: int,
    beams: int = 1,
    length_penalty: float = 0.0,
) -> Answer:
    """RAG-Token: search over the next token's mixture, all passages in one batch.

    At most `limit` tokens; one beam is greedy search. Answers are compared by log p(y|x) /
    length**`length_penalty`. Raises UsageError for a beam or a limit below 1.
    """
    counted = _Counted(model)
    everything = Mixture(tuple(range(len(prior))), prior)
    [found] = search(counted, [everything], counted.ends, limit, beams, length_penalty)
    return _by_token(counted, prior, found[0].tokens, _table(found[0]))


def rag_sequence(
    model: TokenModel,
    prior: NDArray[np.float64],
    *,
    limit: int,
    beams: int = 4,
    decoding: Decoding = "thorough",
    length_penalty: float = 0.0,
) -> Answer:
    """RAG-Sequence: a beam search per passage, then every candidate weighed over the passages.

    `thorough` scores each candidate under each passage, with extra passes where its beam did not
    produce it; `fast` takes p(y|x,z) for 0 there, so that its log-likelihoods are never above
    thorough's. Raises UsageError for a beam or a limit below 1.
    """
    counted = _Counted(model)
    alone = [Mixture((z,)) for z in range(len(prior))]
    found = search(counted, alone, counted.ends, limit, beams, length_penalty)
    scores = {
        (z, each.tokens): each.log_likelihood for z, beam in enumerate(found) for each in beam
    }
    answers = list(dict.fromkeys(tokens for _, tokens in scores))
    if decoding == "thorough":
        missing = [(z, y) for y in answers for z in range(len(prior)) if (z, y) not in scores]
        for pair, logprobs in zip(missing, _score(counted, missing), strict=True):
            scores[pair] = float(logprobs.sum())
    candidates = [_candidate(model, prior, y, scores) for y in answers]
    candidates.sort(key=lambda each: (-each.log_likelihood / _length(each, length_penalty),
                                      each.tokens))  # fmt: skip
    best = candidates[0]
    return counted.answer(
        "rag-sequence", _spelt(model, best.tokens), best.log_likelihood,
        posterior(prior, _logarithms(best.passages)), candidates,
    )  # fmt: skip


def fusion_in_decoder(
    model: TokenModel,
    prompts: Sequence[str],
    *,
    limit: int,
    beams: int = 1,
    length_penalty: float = 0.0,
) -> Answer:
    """Fusion-in-Decoder (Izacard & Grave 2021): passages encoded apart, one decoder over all.

    There is no mixture in it, so no posterior. Raises UsageError for a model without an encoder,
    and for a beam or a limit below 1.
    """
    if not isinstance(model, FusingModel):
        raise UsageError(
            "--decode fid needs an encoder-decoder model: it joins encoder states, and a causal "
            "model has none, for each passage's states rest on what stands before it",
            "name one such as hf:google/flan-t5-small, or use --decode rag-token",
        )
    counted = _Counted(model)
    model.fuse(prompts)
    [found] = search(counted, [Mixture((0,))], counted.ends, limit, beams, length_penalty)
    return counted.answer("fid", _spelt(model, found[0].tokens), found[0].log_likelihood, shares=())


def score_answer(model: TokenModel, prior: NDArray[np.float64], text: str) -> tuple[Answer, Answer]:
    """What RAG-Sequence and RAG-Token say of the answer `text`, from the same passes.

    The end token is a part of the answer; of several, each model takes the likeliest.
    """
    counted = _Counted(model)
    body = tuple(model.tokens(text))
    answers = [(*body, end) for end in sorted(model.ends)] or [body]
    pairs = [(z, y) for y in answers for z in range(len(prior))]
    rows = iter(_score(counted, pairs))
    tables = [_stack(next(rows) for _ in prior) for _ in answers]

    whole = max(range(len(answers)), key=lambda i: sequence_log_likelihood(prior, tables[i]))
    by_token = max(range(len(answers)), key=lambda i: token_log_likelihood(prior, tables[i]))
    sequence = counted.answer(
        "rag-sequence", _spelt(model, answers[whole]),
        sequence_log_likelihood(prior, tables[whole]), sequence_posterior(prior, tables[whole]),
    )  # fmt: skip
    return sequence, _by_token(counted, prior, answers[by_token], tables[by_token])


def _by_token(
    counted: _Counted,
    prior: NDArray[np.float64],
    tokens: Sequence[int],
    logprobs: NDArray[np.float64],
) -> Answer:
    """RAG-Token's answer; `logprobs` (k, n) is each token's under each passage."""
    posteriors = token_posteriors(prior, logprobs)
    spelt = [
        AnswerToken(plain.id, plain.text, float(own), tuple(map(float, shares)))
        for plain, own, shares in zip(
            _spelt(counted.model, tokens), mixture(prior, logprobs), posteriors, strict=True
        )
    ]
    shares = posteriors.mean(axis=0) if len(tokens) else prior
    return counted.answer("rag-token", spelt, token_log_likelihood(prior, logprobs), shares)


def _score(
    model: _Counted, pairs: Sequence[tuple[int, tuple[int, ...]]]
) -> list[NDArray[np.float64]]:
    """log p(y_i | x, z, y_<i), (n,), of each (passage, answer); a beginning that two share, once.

    Token by token, so that a model goes on from what it has kept of the one before.
    """
    import numpy as np

    found: list[NDArray[np.float64]] = []
    for start in range(0, len(pairs), _TOGETHER):
        batch = pairs[start : start + _TOGETHER]
        scores = [np.zeros(len(answer)) for _, answer in batch]
        for i in range(max(len(answer) for _, answer in batch)):
            rows = list(dict.fromkeys((z, y[:i]) for z, y in batch if len(y) > i))
            table = model.logprobs(rows)
            place = {row: at for at, row in enumerate(rows)}
            for (z, answer), own in zip(batch, scores, strict=True):
                if len(answer) > i:
                    own[i] = table[place[z, answer[:i]], answer[i]]
        found.extend(scores)
    return found


def _candidate(
    model: TokenModel,
    prior: NDArray[np.float64],
    tokens: tuple[int, ...],
    scores: dict[tuple[int, tuple[int, ...]], float],
) -> Candidate:
    passages = tuple(scores.get((z, tokens)) for z in range(len(prior)))
    return Candidate(
        text=model.text(tokens), tokens=tokens, ended=tokens[-1] in model.ends,
        log_likelihood=float(mixture(prior, _logarithms(passages))), passages=passages,
    )  # fmt: skip


def _length(candidate: Candidate, penalty: float) -> float:
    return float(len(candidate.tokens) ** penalty)


def _logarithms(passages: Sequence[float | None]) -> NDArray[np.float64]:
    """`passages` (k,) with what was not scored as log 0."""
    import numpy as np

    return np.array([-np.inf if each is None else each for each in passages], np.float64)


def _table(hypothesis: Hypothesis) -> NDArray[np.float64]:
    """(k, n) of a hypothesis."""
    import numpy as np

    return np.asarray(np.array(hypothesis.terms, np.float64).T)


def _stack(rows: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    import numpy as np

    return np.stack(list(rows))


def _spelt(model: TokenModel, tokens: Sequence[int]) -> list[AnswerToken]:
    """Each token with what it adds to the text."""
    spelt: list[AnswerToken] = []
    shown = ""
    for i, token in enumerate(tokens):
        text = model.text(tokens[: i + 1])
        if i + 1 < len(tokens):
            text = text.rstrip("\ufffd")  # a character whose other bytes are still to come
        spelt.append(AnswerToken(token, text[len(shown) :]))
        shown = text if len(text) > len(shown) else shown
    return spelt
