"""Loading a transformers model that writes: found on this machine first, each failure one line.

Owns which folder or name is loaded, and that it is safe and whole: weights as safetensors alone,
no code of the model's own, no weight left to chance. Reading and writing is `huggingface`'s.
"""

from __future__ import annotations

import importlib
import os
import textwrap
from pathlib import Path
from typing import Any

from ragcli.encoders.hub import absence, line, quiet, unavailable
from ragcli.errors import ModelUnavailable

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


class Weights:
    """A model by folder or by name on huggingface.co: its settings and words, then its weights.

    What lies in the local cache is used as it is; what does not is fetched, unless
    HF_HUB_OFFLINE is set. It runs on RAGCLI_DEVICE, or the CPU.
    """

    def __init__(self, name: str) -> None:
        """Load all but the weights. Raises ModelUnavailable."""
        self.name = name
        self.device = os.getenv("RAGCLI_DEVICE") or "cpu"
        with quiet():
            self._library = _library()
            self._absence = (
                None if Path(name).is_dir() else absence([name], lambda: _has_weights(name))
            )
            self.config: Any = self._load("AutoConfig")
            self.tokenizer: Any = self._load("AutoTokenizer")

    @property
    def kind(self) -> str:
        """The class of transformers that loads it."""
        seq2seq = self.config.is_encoder_decoder
        return "AutoModelForSeq2SeqLM" if seq2seq else "AutoModelForCausalLM"

    def model(self) -> Any:
        """The model, ready to run; takes seconds. Raises ModelUnavailable."""
        if any(each.endswith("ForMaskedLM") for each in self.config.architectures or ()):
            # Transformers would let it write, from left to right, what it never learnt to.
            raise ModelUnavailable(
                f"{self.name} fills gaps in a text and cannot write one",
                "name a model that was trained to generate",
            )
        with quiet():
            model, said = self._load(
                self.kind,
                use_safetensors=True,
                output_loading_info=True,
                # Halves are slower on a CPU, and coarser.
                dtype="float32" if self.device == "cpu" else "auto",
            )
            try:
                model = model.to(self.device).eval()
            except Exception as error:  # by device AssertionError, RuntimeError or others
                raise self._unavailable(error) from error
        if missing := sorted(said["missing_keys"]):
            # The library would fill them with random numbers, and an answer would still come.
            raise ModelUnavailable(
                f"{self.name} lacks weights that it needs to write: "
                f"{textwrap.shorten(', '.join(missing), 100)}",
                "name a model that was trained to generate",
            )
        return model

    def _load(self, kind: str, **how: Any) -> Any:
        try:
            return getattr(self._library, kind).from_pretrained(
                self.name,
                local_files_only=self._absence != "",
                trust_remote_code=False,
                **how,
            )
        except Exception as error:  # the libraries' errors share no class but Exception
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> ModelUnavailable:
        whole = "check that it is a whole model, with its weights in .safetensors"
        return unavailable(self.name, self._absence, self.device, error, whole=whole)


def _library() -> Any:
    try:
        importlib.import_module("torch")
        return importlib.import_module("transformers")
    except ImportError as error:
        missing = error.name in {"torch", "transformers"}
        raise ModelUnavailable(
            f"{error.name} is not installed"
            if missing
            else f"transformers cannot be imported: {line(error)}",
            "pip install 'ragcli[st]'",
        ) from error


def _has_weights(name: str) -> bool:
    """Whether the local cache has them: what was fetched without is not here."""
    from huggingface_hub import try_to_load_from_cache

    return any(isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS)
