"""Question and chunk read together by a cross-encoder (Nogueira & Cho 2019).

Scores texts; which texts are scored, and their order after it, is the retriever's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragcli.encoders.hub import quiet
from ragcli.encoders.torch_model import load_model
from ragcli.errors import ModelUnavailable


class Reranker:
    """A cross-encoder of sentence-transformers, by folder or by name on huggingface.co.

    `window` is the most tokens of a question and a text together, special ones counted.
    `cut` is how many texts of the last `score` were longer, so that their end was not read.
    """

    def __init__(self, name: str, device: str | None = None) -> None:
        """Load the model, which takes seconds, and fetch it if need be.

        Raises ModelUnavailable.
        """
        self.name = name
        self.cut = 0
        self._model: Any = load_model("CrossEncoder", name, device=device, fetch=True)
        if self._model.num_labels != 1:
            raise ModelUnavailable(
                f"{name} gives {self._model.num_labels} numbers for a text, not one score",
                "name a cross-encoder that was trained for ranking",
            )
        self.window: int = self._model.max_seq_length

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """A score for each text, higher for the better; not bounded, and not a probability.

        It is the model's raw number, with no activation: a sigmoid's is 1.0 for all good texts
        alike once the number is beyond 17.
        """
        from torch.nn import Identity

        pairs = [(question, text) for text in texts]
        with quiet():
            self.cut = self._longer(question, texts)
            scores = self._model.predict(
                pairs, activation_fn=Identity(), convert_to_numpy=True, show_progress_bar=False
            )
        return [float(score) for score in scores]

    def _longer(self, question: str, texts: Sequence[str]) -> int:
        """How many texts do not fit in the window beside the question."""
        if not texts:
            return 0
        tokens = self._model.tokenizer([question] * len(texts), list(texts), truncation=False)
        return sum(len(ids) > self.window for ids in tokens["input_ids"])
