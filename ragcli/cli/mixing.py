"""`query -G … --decode rag-token|rag-sequence|fid`: the paper's mixture over the hits, in the open.

Owns the prompts, one per passage, and what is shown of where each word came from. The mathematics
are `ragcli.generation.decoding`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from ragcli.cli.reports.tables import aligned, cell
from ragcli.errors import UsageError
from ragcli.generation.decoding import (
    Answer,
    fusion_in_decoder,
    rag_sequence,
    rag_token,
    score_answer,
)
from ragcli.generation.marginal import TokenModel, passage_probabilities
from ragcli.generation.prompt import assemble, source
from ragcli.records import Hit

if TYPE_CHECKING:
    from ragcli.generation.generators import Generator

LIMIT = 256
"""Tokens of an answer."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """How to decode, and the answer to score instead where that is given."""

    decode: str
    decoding: str
    beams: int
    temperature: float
    scored: str | None


@dataclass(frozen=True, slots=True)
class Mixed:
    """The prior p(z|x) over the hits, and what each model answers or says of the answer given."""

    prior: tuple[float, ...]
    answers: tuple[Answer, ...]


def mix(
    generator: Generator, wanted: Mixture, question: str, hits: Sequence[Hit], template: str | None
) -> Mixed:
    """Decode over `hits`. Raises UsageError for a generator that is not a model in this process."""
    model = _model(generator, wanted)
    prompts = [assemble(question, [hit], template=template).text for hit in hits]
    prior = passage_probabilities([hit.score for hit in hits], wanted.temperature)
    answers: tuple[Answer, ...]
    if wanted.decode == "fid":
        answers = (fusion_in_decoder(model, prompts, limit=LIMIT, beams=wanted.beams),)
        return Mixed(tuple(prior.tolist()), answers)
    model.begin(prompts)
    limit = min(LIMIT, getattr(model, "room", None) or LIMIT)
    if wanted.scored is not None:
        answers = tuple(score_answer(model, prior, wanted.scored))
    elif wanted.decode == "rag-token":
        answers = (rag_token(model, prior, limit=limit, beams=wanted.beams),)
    else:
        decoding = cast("Literal['thorough', 'fast']", wanted.decoding)
        answers = (rag_sequence(model, prior, limit=limit, beams=wanted.beams, decoding=decoding),)
    return Mixed(tuple(prior.tolist()), answers)


def _model(generator: Generator, wanted: Mixture) -> TokenModel:
    model: Any = generator
    if not hasattr(model, "logprobs"):
        asked = "--score-answer" if wanted.scored is not None else f"--decode {wanted.decode}"
        raise UsageError(
            f"{asked} needs a model in this process, and {generator.name} is not",
            "use -G hf:NAME_OR_FOLDER or -G gguf:FILE",
        )
    return cast("TokenModel", model)


def lines(mixed: Mixed, hits: Sequence[Hit]) -> list[str]:
    """Per answer: its log-likelihood, what each passage gave to it, and each word's passage."""
    told: list[str] = []
    for answer in mixed.answers:
        rate = len(answer.tokens) / answer.seconds if answer.seconds else 0.0
        told.append(
            f"{answer.model}: log p(y|x) {answer.log_likelihood:.4f}, "
            f"{len(answer.tokens):,} tokens, {answer.passes:,} passes, {rate:.1f} tokens/s"
            + ("" if answer.ended else ", cut at the limit")
        )
        posterior = answer.posterior or [None] * len(hits)
        rows = [
            (hit.rank, before, after, source(hit))
            for hit, before, after in zip(hits, mixed.prior, posterior, strict=True)
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
