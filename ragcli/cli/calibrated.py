"""P(answerable) of a question, where the index was calibrated for the way in which it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragcli.errors import NegativeResult, UsageError
from ragcli.generation.prompt import source
from ragcli.records import SearchResult

if TYPE_CHECKING:
    from ragcli.store.index import Index


def way_of(index: Index, result: SearchResult, rerank: str | None) -> dict[str, str]:
    """What a calibration belongs to: asked otherwise, scores mean something else."""
    return {
        "mode": result.mode,
        "fusion": result.fusion,
        "alpha": "" if result.alpha is None else f"{result.alpha:.3f}",
        "rerank": rerank or "",
        "encoder": index.encoder or index.settings.encoder,
        "chunk": index.settings.chunk,
    }


def answerable(index: Index, result: SearchResult, rerank: str | None) -> float | None:
    """P(answerable); None where the index has no calibration for this way to ask.

    Raises IndexDamaged for a calibration that cannot be used.
    """
    stored = index.calibration
    if stored is None:
        return None
    from ragcli.evaluation.calibration import Model, probability

    model = Model.from_json(stored)
    if model.way != way_of(index, result, rerank):
        return None
    return probability(model, result)


def abstain(chance: float | None, least: float, result: SearchResult) -> None:
    """Raises NegativeResult where an answer is less likely than `least`; names the nearest miss."""
    if chance is None:
        raise UsageError(
            "--abstain needs an index that was calibrated for this way to ask",
            "ragcli eval questions.jsonl --calibrate",
        )
    if chance < least:
        nearest = f"; the nearest is {source(result.hits[0])}" if result.hits else ""
        raise NegativeResult(
            f"not in here, most likely: P(answerable) is {chance:.2f}, below {least:g}{nearest}",
            "ask in other words, or with a smaller --abstain",
        )
