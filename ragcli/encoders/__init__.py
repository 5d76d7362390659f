"""Text to vectors. An encoder knows texts, never files, chunks or the index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
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
    "check_encoder",
    "open_encoder",
    "open_tokenizer",
    "prepare_encoder",
]

NAMES = "minilm, hash, none, st:NAME or onnx:DIR"


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
    batch: int
    inline: bool
    weighted: bool
    normalise: bool
    dense_weight: float
    words_only: bool

    @property
    def dim(self) -> int:
        """Columns of a row."""
        ...

    @property
    def window(self) -> int | None:
        """The most tokens of a text that it reads, None for no limit."""
        ...

    @property
    def fingerprint(self) -> str:
        """What shaped the rows."""
        ...

    def count(self, text: str) -> int:
        """How many tokens `text` has."""
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

    def count(self, text: str) -> int:
        """How many words `text` has."""
        return len(text.split())


def open_encoder(settings: Settings, home: Path) -> Encoder | None:
    """The encoder that `settings` name, None for `none`.

    `home` is the folder beside the index where `st:` keeps what it needs (see `prepare`).
    Raises UsageError for a name or dimension that means nothing, ModelUnavailable for a model
    that is not there.
    """
    kind, _, model = settings.encoder.partition(":")
    if settings.encoder == "none":
        return None
    if settings.encoder == "minilm":
        from ragcli.encoders.minilm import open_minilm

        return open_minilm()
    if settings.encoder == "hash":
        if settings.dim < 1:
            raise UsageError(f"--dim {settings.dim} is not a dimension", "use --dim 1024")
        return HashingEncoder(settings.dim, normalise=settings.normalise)
    if kind == "onnx" and model:
        from ragcli.encoders.onnx_model import OnnxEncoder

        return OnnxEncoder(Path(model), settings.encoder)
    if kind == "st" and model:
        from ragcli.encoders.sentence import open_sentence

        return open_sentence(model, settings.query_model, home, device=settings.device)
    raise UsageError(f"no encoder is named {settings.encoder}", f"use {NAMES}")


def prepare_encoder(settings: Settings, home: Path, *, fetch: bool) -> None:
    """Load what `open_encoder` then finds in `home`: the model of `st:NAME`, once.

    `fetch`: it may be fetched if it is not on this machine. Raises ModelUnavailable.
    """
    kind, _, model = settings.encoder.partition(":")
    if kind == "st" and model:
        from ragcli.encoders.sentence import prepare

        prepare(model, settings.query_model, home, device=settings.device, fetch=fetch)


def check_encoder(settings: Settings) -> None:
    """Raises UsageError or ModelUnavailable for an encoder that cannot be, loading no model."""
    kind, _, model = settings.encoder.partition(":")
    if kind == "st" and model:
        return
    for name in ("query_model", "device"):
        if getattr(settings, name) is not None:
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option} is for --encoder st:NAME, and this is {settings.encoder}",
                f"--{option} '' forgets it",
            )
    open_encoder(settings, Path())


def open_tokenizer(settings: Settings, home: Path) -> Encoder | WordTokenizer:
    """Who counts tokens under `settings`: the encoder, or words where there is none."""
    return open_encoder(settings, home) or WordTokenizer()
