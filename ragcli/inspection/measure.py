"""How long a text is: in words as `--chunk words:N` counts them, and in the encoder's tokens."""

from __future__ import annotations

from collections.abc import Callable

from ragcli.corpus.chunking import count_words
from ragcli.encoders import WordTokenizer, open_tokenizer
from ragcli.errors import ModelUnavailable
from ragcli.store.folder import ENCODER
from ragcli.store.index import Index


class Measure:
    """Counts for one index; of its model only the tokenizer is loaded.

    `missing` says why there are no tokens to count, None where there are.
    """

    def __init__(self, index: Index) -> None:
        self.missing: str | None = None
        self._count: Callable[[str], int] | None = None
        try:
            tokenizer = open_tokenizer(index.settings, index.path / ENCODER)
            tokenizer.count("a")  # a model's folder is read when it is used
        except ModelUnavailable as error:
            self.missing = error.message
            return
        if isinstance(tokenizer, WordTokenizer):
            self.missing = "no encoder"
        else:
            self._count = tokenizer.count

    @staticmethod
    def words(text: str) -> int:
        """Runs of characters without white space; in scripts without spaces each character."""
        return count_words(text)

    def tokens(self, text: str) -> int | None:
        """The encoder's own tokens; None where they are `missing`."""
        return None if self._count is None else self._count(text)
