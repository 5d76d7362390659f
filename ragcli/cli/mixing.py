"""`query -G … --decode rag-token|rag-sequence|fid`: the paper's mixture over the hits, in the open.

Owns the prompts, one per passage, and what is shown of where each word came from. The mathematics
are `ragcli.generation.decoding`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragcli.cli.reports.tables import aligned, cell
from ragcli.errors import UsageError
from ragcli.generation.decoding import (
    Answer,
    Decoding,
    fusion_in_decoder,
    rag_sequence,
    rag_token,
    score_answer,
)
from ragcli.generation.generators import ANSWER_LIMIT
from ragcli.generation.marginal import passage_probabilities
from ragcli.generation.prompt import assemble, source
from ragcli.records import Hit, SearchResult

if TYPE_CHECKING:
    from ragcli.generation.marginal import TokenModel

_TEMPERATURES = {"mix": 0.1, "rrf": 0.001, "dense": 0.05, "lexical": 1.0}
"""By what made the scores, where the right passages are likeliest (benchmarks/temperature.py).
The paper's 1 is for dot products of vectors of any length, and here for a reranker's logits."""


@dataclass(frozen=True, slots=True)
class MixtureRequest:
    """How to decode, or the answer to score instead; `decode` is `concat` for both mixtures."""

    decode: str
    decoding: Decoding
    beams: int
    temperature: float | None
    scored: str | None


@dataclass(frozen=True, slots=True)
class Mixed:
    """The prompts, the prior p(z|x) over the hits, and what each model says.

    That is its answer, or what it says of the answer that was given. Fusion-in-Decoder has no
    prior, and no temperature of one.
    """

    generator: str
    scored: str | None
    prompts: tuple[str, ...]
    temperature: float | None
    prior: tuple[float, ...]
    answers: tuple[Answer, ...]


def prompts_of(result: SearchResult, template: str | None) -> tuple[str, ...]:
    """The prompt of each hit alone."""
    return tuple(assemble(result.question, [hit], template=template).text for hit in result.hits)


def mix(
    model: TokenModel, wanted: MixtureRequest, result: SearchResult, prompts: tuple[str, ...]
) -> Mixed:
    """Decode over the hits, or score. Raises UsageError for a passage that leaves no room."""
    limit = _limit(model, wanted, result.hits, prompts)
    if wanted.decode == "fid":
        fused = fusion_in_decoder(model, prompts, limit=limit, beams=wanted.beams)
        return Mixed(model.name, None, prompts, None, (), (fused,))
    temperature = wanted.temperature or _temperature(result)
    prior = passage_probabilities([hit.score for hit in result.hits], temperature)
    model.begin(prompts)
    answers: tuple[Answer, ...]
    if wanted.scored is not None:
        both = score_answer(model, prior, wanted.scored)
        answers = tuple(each for each in both if wanted.decode in ("concat", each.model))
    elif wanted.decode == "rag-token":
        answers = (rag_token(model, prior, limit=limit, beams=wanted.beams),)
    else:
        answers = (
            rag_sequence(model, prior, limit=limit, beams=wanted.beams, decoding=wanted.decoding),
        )
    return Mixed(model.name, wanted.scored, prompts, temperature, tuple(prior.tolist()), answers)


def _limit(
    model: TokenModel, wanted: MixtureRequest, hits: Sequence[Hit], prompts: Sequence[str]
) -> int:
    """The most tokens of an answer, which must have room behind each passage's prompt."""
    needed = 1 if wanted.scored is None else len(model.tokens(wanted.scored)) + 1
    limit = ANSWER_LIMIT
    for hit, prompt in zip(hits, prompts, strict=True):
        room = model.room(prompt)
        if room is None:
            continue
        if room < needed:
            raise UsageError(
                f"passage [{hit.rank}], {source(hit)}, makes a prompt of {model.count(prompt):,} "
                f"tokens, which leaves {model.name} no room for an answer"
                + (f" of {needed:,}" if wanted.scored is not None else ""),
                "smaller passages (ragcli index --chunk), a shorter --template, or a model that "
                "reads more",
            )
        limit = min(limit, room)
    return limit


def _temperature(result: SearchResult) -> float:
    if any(hit.rerank is not None for hit in result.hits):
        return 1.0
    return _TEMPERATURES[result.fusion if result.mode == "hybrid" else result.mode]


def lines(mixed: Mixed, hits: Sequence[Hit]) -> list[str]:
    """Per answer: its log-likelihood, what each passage gave to it, and each word's passage."""
    told = []
    if mixed.temperature is not None:
        told.append(f"p(z|x): the softmax of score / {mixed.temperature:g}")
    for answer in mixed.answers:
        rate = len(answer.tokens) / answer.seconds if answer.seconds else 0.0
        told.append(
            f"{answer.model}: log p(y|x) {answer.log_likelihood:.4f}, "
            f"{len(answer.tokens):,} tokens, {answer.passes:,} passes, {rate:.1f} tokens/s"
            + ("" if answer.ended else ", cut at the limit")
        )
        if answer.posterior:
            rows = [
                (hit.rank, before, after, source(hit))
                for hit, before, after in zip(hits, mixed.prior, answer.posterior, strict=True)
            ]
            told += aligned(["#", "p(z|x)", "p(z|x,y)", "passage"], rows)
        words = [
            (cell(token.text) or "(end)", token.log_likelihood, hits[_best(token.posterior)].rank,
             max(token.posterior))
            for token in answer.tokens
            if token.posterior
        ]  # fmt: skip
        if words:
            heads = ["token", "log p", "passage", "p(z|x,y)"]
            told += aligned(heads, words, left=(0,), ragged=False)
        told.append("")
    return told[:-1]


def _best(posterior: Sequence[float]) -> int:
    return max(range(len(posterior)), key=posterior.__getitem__)
