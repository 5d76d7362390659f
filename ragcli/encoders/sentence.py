"""`st:NAME`: a model of sentence-transformers, kept with the index so that torch is done with.

`prepare` loads the model once and writes a folder, its home:

    source.json                         what it was made from, and whether torch must serve it
    tokenizer.json                      with these texts are cut and counted without torch
    sentence_bert_config.json           the window
    config_sentence_transformers.json   prompts, similarity
    modules.json                        whether vectors are normalised
    model.onnx                          where `bert_graph` gives what the model gives
    question/                           the same for the question's own encoder (DPR)

Writing the files of one model is `export`'s; running is `onnx_model`'s and `torch_model`'s.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcli.encoders.encoded import Encoded
from ragcli.encoders.export import SETTINGS, export
from ragcli.encoders.onnx_model import ModelFolder, OnnxEncoder, folder_fingerprint
from ragcli.encoders.torch_model import TorchEncoder
from ragcli.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SAID = {"model", "folder", "revision", "fingerprint", "dim", "torch"}
"""What a `source.json` must say to be of use."""


class SentenceEncoder:
    """Two encoders of one space, for documents and for questions; often they are the same."""

    weighted = False
    words_only = False
    inline = False
    batch = ModelFolder.batch
    dense_weight = ModelFolder.dense_weight

    def __init__(
        self, documents: OnnxEncoder | TorchEncoder, questions: OnnxEncoder | TorchEncoder,
        *, dim: int, fingerprint: str,
    ) -> None:  # fmt: skip
        """`dim` and `fingerprint` are those that were written down when the model was loaded."""
        self._documents = documents
        self._questions = questions
        self.name = documents.name
        self.dim = dim
        self.normalise = documents.normalise
        self.document_prompt = documents.document_prompt
        self.query_prompt = questions.query_prompt
        self.fingerprint = fingerprint

    @property
    def window(self) -> int:
        """The most tokens of a document's text that the model reads."""
        return self._documents.window

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of each token of `text` as the documents' encoder cuts it."""
        return self._documents.spans(text)

    def count(self, text: str) -> int:
        """How many tokens `text` has, special ones left out."""
        return self._documents.count(text)

    def pieces(self, text: str) -> tuple[int, int]:
        """(words of four letters and more, the tokens that they are cut into)."""
        return self._documents.pieces(text)

    def encode_documents(self, texts: Sequence[str]) -> Encoded:
        """A row per text. Raises ModelUnavailable."""
        return self._documents.encode_documents(texts)

    def encode_query(self, text: str) -> NDArray[np.float64]:
        """The question's vector, float64 (dim,). Raises ModelUnavailable."""
        return self._questions.encode_query(text)


def open_sentence(
    name: str, query_model: str | None, home: Path, *, device: str | None
) -> SentenceEncoder:
    """The encoder in `home`; torch is loaded where something must be encoded that needs it.

    Raises ModelUnavailable where `home` was not prepared for these names.
    """
    sources = _sources(name, query_model, home)
    if sources is None:
        raise ModelUnavailable(f"st:{name} is not prepared for this index", "ragcli index")
    documents, *questions = (
        OnnxEncoder(folder, f"st:{name}")
        if source["torch"] is None and device in (None, "cpu")
        else TorchEncoder(folder, f"st:{name}", source, device)
        for folder, source in sources
    )
    digest = blake2b(digest_size=12)
    for folder, source in sources:
        digest.update(f"{source['fingerprint']}\n".encode() + (folder / SETTINGS).read_bytes())
    return SentenceEncoder(
        documents,
        questions[0] if questions else documents,
        dim=sources[0][1]["dim"],
        fingerprint=f"st/{digest.hexdigest()}",
    )


def prepare(
    name: str, query_model: str | None, home: Path, *, device: str | None, fetch: bool = True
) -> None:
    """Make `home` what `open_sentence` needs, at once where it is: seconds, as torch is loaded.

    A model that was a folder is looked at again, and made anew where it has changed. One writer
    at a time, which the index's lock sees to. Raises ModelUnavailable.
    """
    sources = _sources(name, query_model, home)
    if sources is not None and all(_is_current(source) for _, source in sources):
        return
    unfinished = home.with_name(home.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        documents = export(name, unfinished, device=device, fetch=fetch)
        if query_model is not None:
            question = export(
                query_model, unfinished / "question", device=device,
                fetch=fetch, similarity=documents["similarity"],
            )  # fmt: skip
            if question["dim"] != documents["dim"]:
                raise ModelUnavailable(
                    f"{query_model} gives vectors of {question['dim']} numbers, "
                    f"{name} of {documents['dim']}",
                    "name the question encoder that was trained with it",
                )
        if home.exists():
            shutil.rmtree(home)
        unfinished.rename(home)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _sources(
    name: str, query_model: str | None, home: Path
) -> list[tuple[Path, dict[str, Any]]] | None:
    """(folder, source.json) of the documents' encoder and of the question's own, if it has one.

    None where they were made for other names, or a file is gone or damaged.
    """
    wanted = [(home, name)] + [(home / "question", query_model)] * (query_model is not None)
    found = []
    for folder, model in wanted:
        try:
            source = json.loads((folder / "source.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(source, dict) or not source.keys() >= _SAID:
            return None
        files = ["tokenizer.json", SETTINGS] + ["model.onnx", "model.onnx.data"] * (
            source["torch"] is None
        )
        if source["model"] != model or not all((folder / file).is_file() for file in files):
            return None
        found.append((folder, source))
    alone = not (home / "question").exists()
    return found if alone == (query_model is None) else None


def _is_current(source: dict[str, Any]) -> bool:
    folder = source["folder"]
    if folder is None or not Path(folder).is_dir():
        return True  # what is kept serves on
    return bool(folder_fingerprint(Path(folder)) == source["fingerprint"])
