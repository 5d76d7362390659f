"""Hashed tf-idf: the encoder without a model, in the open.

    tokens  = [a-z0-9]+ of the lower-cased text, longer than one character, no stop words
    bucket  = crc32(token) mod D
    idf(b)  = ln((N + 1) / (df(b) + 1)) + 1, df(b) = chunks in which any token of bucket b stands
    vector  = count · idf, divided by its L2 norm

The encoder gives the counts, which depend on one text alone; `store.vectors` holds them and
weights them by the idf of the corpus as it is now. Owns no files and no corpus.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from ragcli.encoders.encoded import Encoded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TOKEN = re.compile("[a-z0-9]+")
_SPAN = re.compile("[A-Za-z0-9]+")
STOP_WORDS = frozenset(
    "a an and are at by does for from how in is it its of on or that the this to was what which"
    " who with".split()
)


def tokens(text: str) -> list[str]:
    """The tokens of `text`, in order, repeats kept."""
    return [
        token
        for token in _TOKEN.findall(text.lower())
        if len(token) > 1 and token not in STOP_WORDS
    ]


class HashingEncoder:
    """Counts per bucket; `window` is None: it reads texts of any length."""

    name = "hash"
    window: int | None = None
    batch = 4096
    inline = True
    weighted = True
    """Its vectors are weighted by the corpus' idf."""

    dense_weight = 0.2
    words_only = True
    """It knows no meaning: a passage that shares no word with the question is near it only where
    words share a bucket."""

    def __init__(self, dim: int = 1024, *, normalise: bool = True) -> None:
        self.dim = dim
        self.normalise = normalise
        self._buckets: dict[str, int] = {}

    @property
    def fingerprint(self) -> str:
        """Everything that shapes what `encode_documents` gives."""
        return f"hash/{self.dim}"

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of each token in `text`."""
        return [
            match.span()
            for match in _SPAN.finditer(text)
            if match.end() - match.start() > 1 and match.group().lower() not in STOP_WORDS
        ]

    def count(self, text: str) -> int:
        """How many tokens `text` has."""
        return len(tokens(text))

    def bucket(self, token: str) -> int:
        """crc32(token) mod D."""
        return crc32(token.encode("ascii")) % self.dim

    def encode_documents(self, texts: Sequence[str]) -> Encoded:
        """Counts per bucket, (len(texts), dim), capped at 65,535, in one byte each if they fit."""
        import numpy as np

        known = self._buckets
        keys: list[int] = []
        for row, text in enumerate(texts):
            base = row * self.dim
            for token in tokens(text):
                bucket = known.get(token)
                if bucket is None:
                    bucket = known[token] = self.bucket(token)
                keys.append(base + bucket)
        if len(known) > 500_000:
            known.clear()
        flat = np.bincount(np.array(keys, np.int64), minlength=len(texts) * self.dim)
        kind = np.uint8 if flat.max(initial=0) <= np.iinfo(np.uint8).max else np.uint16
        counts = np.minimum(flat, np.iinfo(kind).max).astype(kind)
        return Encoded(counts.reshape(len(texts), self.dim), None)

    def encode_query(self, text: str) -> NDArray[np.float64]:
        """Counts per bucket of the question, float64 (dim,): questions are read as documents."""
        import numpy as np

        return np.asarray(self.encode_documents([text]).codes[0], np.float64)
