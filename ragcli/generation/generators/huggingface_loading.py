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

from ragcli.encoders.torch_model import quiet
from ragcli.errors import ModelUnavailable

_PATIENCE = 10.0
"""Seconds for the first answer of huggingface.co; its client alone would try for a minute."""

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
            self._absence = None if Path(name).is_dir() else _absence(name)
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
        if "trust_remote_code" in str(error):
            return ModelUnavailable(
                f"{self.name} would run code of its own, which ragcli does not allow",
                "name a model whose architecture transformers knows",
            )
        if self._absence and isinstance(error, OSError):
            return ModelUnavailable(
                f"{self.name} is not a folder, and not in the local cache of models: "
                f"{self._absence}",
                "name a folder with a model, or let it be fetched once with the network on",
            )
        return ModelUnavailable(
            f"{self.name} cannot be loaded: {line(error)}",
            "check that it is a whole model, with its weights in .safetensors"
            if self.device == "cpu"
            else f"check that it is a whole model, and that torch can use {self.device} here",
        )


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


def _absence(name: str) -> str | None:
    """Why a model that is not a folder cannot be fetched; "" where it can, None if it is here."""
    from huggingface_hub import HfApi, constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        # A model of which the weights never came must not be taken for one that is here.
        here = [isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS]
    except HFValidationError:
        return "no model can have that name"
    if any(here):
        return None
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        HfApi().model_info(name, timeout=_PATIENCE)
    except RepositoryNotFoundError:
        return "huggingface.co has none of that name, or keeps it private"
    except Exception as error:  # noqa: BLE001 - by version httpx's or requests' errors
        return f"huggingface.co cannot be reached ({line(error)})"
    return ""


def line(error: Exception) -> str:
    """An error's first line."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return textwrap.shorten(first, 200)
