"""P(answerable) of a question, where the index was calibrated for the way in which it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ragcli.errors import IndexDamaged, NegativeResult, UsageError
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
        "passages": str(result.chunks),
    }


def answerable(index: Index, result: SearchResult, rerank: str | None) -> float | None:
    """P(answerable); None where the index has no calibration for this way to ask.

    Nor where the index has become another one since: a tenth more or fewer passages. Raises
    IndexDamaged for a calibration that cannot be used.
    """
    if index.calibration is None:
        return None
    from ragcli.evaluation.calibration import Model, probability

    model = Model.from_json(index.calibration)
    if not belongs(model.way, way_of(index, result, rerank)):
        return None
    try:
        return probability(model, result)
    except ValueError as error:
        raise IndexDamaged(
            f"the calibration in the index cannot be used: {error}",
            "fit it again: ragcli eval FILE --calibrate",
        ) from error


def belongs(way: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a calibration made in one way says something of another."""
    before, passages = way.get("passages", ""), int(now["passages"])
    same = {**way, "passages": now["passages"]} == dict(now)
    return same and before.isdigit() and abs(int(before) - passages) * 10 <= passages


def abstain(index: Index, chance: float | None, least: float, result: SearchResult) -> None:
    """Raises NegativeResult where an answer is less likely than `least`; names the nearest miss."""
    if chance is None:
        other = "; it was for another way, or other passages" if index.calibration else ""
        raise UsageError(
            f"--abstain needs an index that was calibrated for this way to ask{other}",
            "ragcli eval questions.jsonl --calibrate, with the same options",
        )
    if chance < least:
        nearest = f"; the nearest is {source(result.hits[0])}" if result.hits else ""
        raise NegativeResult(
            f"not in here, most likely: P(answerable) is {chance:.2f}, below {least:g}{nearest}",
            "ask in other words, or with a smaller --abstain",
        )
