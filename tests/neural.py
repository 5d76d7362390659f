"""A tiny stand-in for a neural encoder, and how to make ragcli use it: `--encoder fake`.

A text's vector is the sum of its words' vectors (letters give them, signs and all), made unit
length and rounded to int8 as `QUANTUM · √dim` steps, with a factor of its own per row.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from ragcli import encoders
from ragcli.encoders import Encoded
from ragcli.indexing import analysis, run
from ragcli.records import Settings
from ragcli.retrieval import retriever

DIM = 16
_WORD = re.compile(r"\w+")
real = encoders.open_encoder


def vector(text: str) -> np.ndarray:
    """Unit length, or zeros where there is no word."""
    total = np.zeros(DIM)
    for word in _WORD.findall(text.lower()):
        total += np.random.default_rng(crc32(word[:4].encode())).standard_normal(DIM)
    return total / (np.linalg.norm(total) or 1.0)


class FakeEncoder:
    name = "fake"
    dim = DIM
    window: int | None = 64
    batch = 3
    inline = False
    weighted = False
    normalise = True
    dense_weight = 0.45
    words_only = False
    fingerprint = "fake/1"
    seconds = float(os.environ.get("FAKE_SECONDS", "0"))
    """How long a text takes."""

    texts: ClassVar[list[str]] = []
    """Every text that was encoded, by whichever encoder."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(text)]

    def count(self, text: str) -> int:
        return len(self.spans(text))

    def pieces(self, text: str) -> tuple[int, int]:
        words = _WORD.findall(text)
        return len(words), sum(1 + len(word) // 4 for word in words)

    def encode_documents(self, texts: Sequence[str]) -> Encoded:
        time.sleep(self.seconds * len(texts))
        self.texts += texts
        units = np.array([vector(text) for text in texts]).reshape(len(texts), DIM)
        factors = np.abs(units).max(axis=1, initial=1e-9) / 127
        codes = np.rint(units / factors[:, np.newaxis])
        return Encoded(codes.astype(np.int8), factors.astype(np.float32))

    def encode_query(self, text: str) -> np.ndarray:
        return vector(text)


def install(set_attribute: Callable[[Any, str, Any], None] = setattr) -> None:
    """From now on the encoder `fake` is there; `set_attribute` may be monkeypatch's."""

    def opened(settings: Settings, home: Path) -> Any:
        return FakeEncoder() if settings.encoder == "fake" else real(settings, home)

    set_attribute(FakeEncoder, "texts", [])
    for module in (encoders, analysis, run, retriever):
        set_attribute(module, "open_encoder", opened)
