"""What a sweep tries: `chunk=words:50,auto encoder=minilm,hash` to every combination of them.

Owns which settings can be swept and which combinations mean something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ragcli.corpus.chunking import parse_chunking
from ragcli.encoders import check_encoder
from ragcli.errors import UsageError
from ragcli.evaluation.run import Way
from ragcli.records import Settings
from ragcli.retrieval.retriever import FUSIONS, MODES

_OF_THE_INDEX = ("chunk", "encoder")


@dataclass(frozen=True, slots=True)
class Variant:
    """One combination: the `settings` of the index to change, and how it is then asked.

    `label` is what was written, as `chunk=words:50 encoder=hash`.
    """

    label: str
    settings: dict[str, str]
    asking: dict[str, Any]

    def way(self, base: Way) -> Way:
        """`base` with what this variant changes of it."""
        return replace(base, **self.asking)


def parse_sweep(texts: Sequence[str]) -> list[Variant]:
    """Every combination of the values that `texts`, each NAME=VALUE,VALUE…, give, in order.

    Combinations that are impossible are left out (vectors of `encoder=none`), and those that
    only differ in what has no effect are one (an alpha without two retrievers). Raises UsageError
    for a name or value that cannot be, is empty or comes twice, ModelUnavailable for an encoder.
    """
    dimensions: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if name not in _READERS or not equals:
            raise UsageError(
                f"{text!r} cannot be swept",
                f"NAME=VALUE,VALUE… with a NAME of {', '.join(_READERS)}",
            )
        if name in dimensions:
            raise UsageError(f"{name} is swept twice", f"name all values at once: {name}=A,B")
        dimensions[name] = _values(name, values)
    if not dimensions:
        raise UsageError("nothing to sweep", "--sweep chunk=words:50,words:100,auto")
    variants: dict[str, Variant] = {}
    for values_of in product(*dimensions.values()):
        said = _effective(dict(zip(dimensions, values_of, strict=True)))
        if said is not None:
            variant = _variant(said)
            variants[variant.label] = variant
    if not variants:
        raise UsageError("encoder=none has no vectors to ask", "mode=lexical")
    return list(variants.values())


def _values(name: str, text: str) -> list[str]:
    """The values as written; what two spellings of one value mean is compared."""
    known: dict[object, str] = {}
    for value in text.split(","):
        if not value:
            raise UsageError(f"{name}={text} has an empty value", f"{name}=VALUE,VALUE…")
        meaning = _READERS[name](value)
        if meaning in known:
            raise UsageError(
                f"{name}={value} comes twice", "leave one out"
                if known[meaning] == value else f"it is the same as {name}={known[meaning]}",
            )  # fmt: skip
        known[meaning] = value
    return list(known.values())


def _effective(said: Mapping[str, str]) -> dict[str, str] | None:
    """What of a combination has an effect; None where it cannot be."""
    without, mode = said.get("encoder") == "none", said.get("mode", "hybrid")
    if without and mode != "lexical" and "mode" in said:
        return None
    idle = set()
    if without or mode != "hybrid":
        idle = {"fusion", "alpha"}
    elif said.get("fusion") == "rrf":
        idle = {"alpha"}
    return {name: value for name, value in said.items() if name not in idle}


def _variant(said: Mapping[str, str]) -> Variant:
    return Variant(
        label=" ".join(f"{name}={value}" for name, value in said.items()),
        settings={name: value for name, value in said.items() if name in _OF_THE_INDEX},
        asking={
            name: float(value) if name == "alpha" else value
            for name, value in said.items()
            if name not in _OF_THE_INDEX
        },
    )


def _encoder(value: str) -> str:
    check_encoder(Settings(encoder=value))
    return value


def _one_of(name: str, allowed: Sequence[str]) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise UsageError(f"no {name} is named {value}", f"use {', '.join(allowed)}")
        return value

    return read


def _share(value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"alpha={value} is not between 0 and 1", "alpha=.3,.45,.6")
    return share


_READERS: dict[str, Callable[[str], object]] = {
    "chunk": parse_chunking,
    "encoder": _encoder,
    "mode": _one_of("mode", MODES),
    "fusion": _one_of("fusion", FUSIONS),
    "alpha": _share,
}
