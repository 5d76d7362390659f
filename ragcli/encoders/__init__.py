"""Text to vectors. An encoder knows texts, never files, chunks or the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ragcli.encoders.encoded import Encoded
from ragcli.encoders.hashing import HashingEncoder
from ragcli.errors import UsageError
from ragcli.records import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Encoded",
    "Encoder",
    "HashingEncoder",
    "WordTokenizer",
    "open_encoder",
    "open_tokenizer",
]


class Encoder(Protocol):
    """What the index asks of an encoder.

    `encode_documents` gives a row per text, which depends on that text alone: where `weighted`,
    a row's vector is its codes weighted per column by idf and, if `normalise`, divided by its
    L2 norm; else it is codes · factor. `encode_query` gives the question (before weighting),
    float64 (dim,). `batch`: how many texts it is best given at once. `inline`: cheap enough to
    run beside reading; any other runs after the lexical commit, and while a question waits.
    `dense_weight` is the dense share of the hybrid mix that was measured best for this encoder.
    `words_only`: it knows words and no meaning. `fingerprint` names everything that shaped the
    rows. `window` and `spans` count in the encoder's own tokens.
    """

    name: str
    dim: int
    window: int | None
    batch: int
    inline: bool
    weighted: bool
    normalise: bool
    dense_weight: float
    words_only: bool

    @property
    def fingerprint(self) -> str:
        """What shaped the rows."""
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of each token."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Encoded:
        """A row for each text."""
        ...

    def encode_query(self, text: str) -> NDArray[np.float64]:
        """The question's row."""
        ...


class WordTokenizer:
    """Tokens for an index without an encoder: runs of characters that are not white space."""

    window: int | None = None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of each word in `text`."""
        import re

        return [match.span() for match in re.finditer(r"\S+", text)]


def open_encoder(settings: Settings) -> Encoder | None:
    """The encoder that `settings` name, None for `none`.

    Raises UsageError for a name or dimension that means nothing.
    """
    if settings.encoder == "none":
        return None
    if settings.encoder == "hash":
        if settings.dim < 1:
            raise UsageError(f"--dim {settings.dim} is not a dimension", "use --dim 1024")
        return HashingEncoder(settings.dim, normalise=settings.normalise)
    raise UsageError(f"no encoder is named {settings.encoder}", "use --encoder hash or none")


def open_tokenizer(settings: Settings) -> Encoder | WordTokenizer:
    """Who counts tokens under `settings`: the encoder, or words where there is none."""
    return open_encoder(settings) or WordTokenizer()
