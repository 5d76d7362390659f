"""Models run by sentence-transformers: found on this machine first, quietly, each failure one line.

Owns loading and running; what of a model is kept with an index is `sentence`'s. Torch is
imported inside, and takes seconds. A model never runs code of its own.
"""

from __future__ import annotations

import importlib
import os
import re
import textwrap
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcli.encoders.encoded import Encoded
from ragcli.encoders.hub import absence, line, quiet, unavailable
from ragcli.encoders.onnx_model import ModelFolder, folder_fingerprint
from ragcli.encoders.quantising import quantise
from ragcli.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ORGANISATIONS = {"SentenceTransformer": "sentence-transformers", "CrossEncoder": "cross-encoder"}
"""Whose model a name without an owner is."""

_NEW_WEIGHT = re.compile(r"^([\w.]+)\s*\| MISSING", re.MULTILINE)


def load_model(
    kind: str, name: str, *, device: str | None, fetch: bool, revision: str | None = None
) -> Any:
    """A `SentenceTransformer` or `CrossEncoder` by folder or by name on huggingface.co.

    What lies in the local cache is used as it is. Only what does not is fetched, and only with
    `fetch` and without HF_HUB_OFFLINE. Raises ModelUnavailable.
    """
    with quiet() as messages:
        library = _library()
        why_not = None if Path(name).is_dir() else _absence(kind, name, fetch)
        try:
            model = getattr(library, kind)(
                name, device=device, revision=revision, local_files_only=why_not != ""
            )
        except Exception as error:  # four libraries' errors share no class but Exception
            whole = "check that it is a whole model"
            raise unavailable(name, why_not, device, error, whole=whole) from error
        if model.device.type == "cpu":
            model.float()  # halves are slower there, and coarser
    new = sorted({found for text in messages for found in _NEW_WEIGHT.findall(text)})
    if any(not weight.startswith("pooler.") for weight in new):
        # The library would fill them with random numbers, and any answer would look like one.
        raise ModelUnavailable(
            f"{name} lacks weights that a {kind} needs: {textwrap.shorten(', '.join(new), 100)}",
            f"name a model that was trained as a {kind}",
        )
    return model


def _library() -> Any:
    try:
        return importlib.import_module("sentence_transformers")
    except ImportError as error:
        missing = error.name == "sentence_transformers"
        raise ModelUnavailable(
            "sentence-transformers is not installed"
            if missing
            else f"sentence-transformers cannot be imported: {line(error)}",
            "pip install 'ragcli[st]'",
        ) from error


def _names(kind: str, name: str) -> list[str]:
    return [name] if "/" in name else [f"{_ORGANISATIONS[kind]}/{name}", name]


def _cached(kind: str, name: str, file: str) -> Any:
    """The path of a model's file in the local cache; None where nobody knows if it has one."""
    from huggingface_hub import try_to_load_from_cache

    cache = os.getenv("SENTENCE_TRANSFORMERS_HOME")
    found = (try_to_load_from_cache(each, file, cache) for each in _names(kind, name))
    return next(filter(None, found), None)


def revision_of(kind: str, name: str) -> str | None:
    """The commit of a model in the local cache."""
    found = (_cached(kind, name, file) for file in ("modules.json", "config.json"))
    return next((Path(path).parent.name for path in found if isinstance(path, str)), None)


def _absence(kind: str, name: str, fetch: bool) -> str | None:
    """As `absence` says it. Known to be here or not to be: a model that was fetched in part must
    not be taken for one without this file, and be given a pooling that is not its own.
    """
    return absence(
        _names(kind, name), lambda: bool(_cached(kind, name, "modules.json")), fetch=fetch
    )


def run(model: Any, texts: Sequence[str], prompt: str, *, normalise: bool) -> NDArray[np.float64]:
    """A SentenceTransformer's vectors of `texts`, (n, dim); what is beyond its window is cut."""
    import numpy as np

    with quiet():
        rows = model.encode(
            list(texts),
            prompt=prompt,
            # In a batch a text is filled up to the longest, and its last digits depend on that.
            batch_size=1 if model.device.type == "cpu" else 32,
            normalize_embeddings=normalise,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
    return np.asarray(rows, np.float64)


class TorchEncoder(ModelFolder):
    """A model that torch must run; its folder holds all but the weights."""

    def __init__(self, folder: Path, name: str, source: dict[str, Any], device: str | None) -> None:
        """`source`: the folder's `source.json`, which says where the weights are."""
        super().__init__(folder, name)
        self._source = source
        self._device = device

    @cached_property
    def _model(self) -> Any:
        where, fingerprint = self._source["folder"], self._source["fingerprint"]
        if where and Path(where).is_dir() and folder_fingerprint(Path(where)) != fingerprint:
            raise ModelUnavailable(f"{where} has changed since it was indexed with", "ragcli index")
        return load_model(
            "SentenceTransformer",
            where or self._source["model"],
            device=self._device,
            fetch=False,
            revision=self._source["revision"],
        )

    def encode_documents(self, texts: Sequence[str]) -> Encoded:
        """A row per text."""
        import numpy as np

        if not texts:
            return quantise(np.empty((0, self._source["dim"])), normalise=self.normalise)
        vectors = run(self._model, texts, self.document_prompt, normalise=self.normalise)
        return quantise(vectors, normalise=self.normalise)

    def encode_query(self, text: str) -> NDArray[np.float64]:
        """The question's vector; one beyond the window is the mean of its parts."""
        import numpy as np

        spans = self.spans(text)
        parts = [spans[start : start + self.window] for start in range(0, len(spans), self.window)]
        texts = [text[part[0][0] : part[-1][1]] for part in parts] if len(parts) > 1 else [text]
        weights = [len(part) for part in parts] or [1]
        vectors = run(self._model, texts, self.query_prompt, normalise=self.normalise)
        vector = np.average(vectors, axis=0, weights=weights)
        length = float(np.sqrt(np.square(vector).sum())) if self.normalise else 1.0
        return np.asarray(vector / (length or 1.0))
