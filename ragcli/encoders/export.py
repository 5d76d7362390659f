"""What is kept of one model of sentence-transformers, written to a folder (see `sentence`).

Prompts are the model's own. Three families state theirs on their card alone; where such a model
(by its name, or its folder's) has none of its own, it is given those of the card. The same holds
for the dot product, which families called `dpr` and `dot` are made for.

`model.onnx` is written only where it is proved: a few texts must get the vectors that torch
gives them. Else `source.json` says why torch must serve.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcli.encoders.bert_graph import build, first_position, supports
from ragcli.encoders.onnx_model import OnnxEncoder, folder_fingerprint, own_prompts
from ragcli.encoders.torch_model import load_model, revision_of, run
from ragcli.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SETTINGS = "config_sentence_transformers.json"

_KIND = "SentenceTransformer"
_CARDS = (
    (re.compile(r"(^|-)e5-(small|base|large)(-v2|-unsupervised)?$"), ("query: ", "passage: ")),
    (
        re.compile(r"^bge-(small|base|large)-en(-v1\.5)?$"),
        ("Represent this sentence for searching relevant passages: ", ""),
    ),
    (re.compile(r"^nomic-embed-text-v"), ("search_query: ", "search_document: ")),
)
"""Prompts before a question and before a document: Wang et al. 2022; Xiao et al. 2023; Nussbaum
et al. 2024."""

_DOT = re.compile(r"(^|-)dpr-|-dot-")
_NO_WINDOW = 1 << 20
"""Tokenizers say so much and more where there is none."""

_LARGEST = 2_000_000_000
"""Bytes of weights that one ONNX file can hold."""

_PROBES = (
    "fox",
    "The Quick Brown Fox jumps over 13 lazy dogs; O'Neill's naïve café costs $4.50!",
    "Wer unterhält die Schnittstelle, und wann läuft das Zertifikat ab?",
    "谁负责维护这个接口？ Кто отвечает за сервис? من المسؤول؟ 🙂",
    "",
)
_COSINE = 0.9999
_LENGTH = 1e-3


def export(
    name: str, folder: Path, *, device: str | None, fetch: bool, similarity: str | None = None
) -> dict[str, Any]:
    """Load a model and write what is kept of it to the new `folder`; what `source.json` says.

    `similarity` overrules the model's own. Raises ModelUnavailable.
    """
    model = load_model(_KIND, name, device=device, fetch=fetch)
    folder.mkdir(parents=True)
    similarity = similarity or _similarity(model, name)
    query, document = _prompts(model, name)
    types = [f"{type(module).__module__}.{type(module).__name__}" for module in model]
    _write_tokenizer(model, folder, name)
    _write(folder / "sentence_bert_config.json", {"max_seq_length": _window(model)})
    _write(folder / "modules.json", [{"idx": i, "type": kind} for i, kind in enumerate(types)])
    _write(
        folder / SETTINGS,
        {"prompts": {"query": query, "document": document}, "similarity_fn_name": similarity},
    )
    place = Path(name).resolve() if Path(name).is_dir() else None
    revision = None if place else revision_of(_KIND, name)
    source = {
        "model": name,
        "folder": place and str(place),
        "revision": revision,
        "fingerprint": folder_fingerprint(place) if place else f"{name}@{revision}",
        "dim": run(model, ["a"], "", normalise=False).shape[1],
        "similarity": similarity,
        "torch": _why_not(model, prompted=bool(query or document)) or _write_graph(model, folder),
    }
    _write(folder / "source.json", source)
    return source


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _write_tokenizer(model: Any, folder: Path, name: str) -> None:
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    if not isinstance(backend, Tokenizer):
        raise ModelUnavailable(
            f"{name} has a tokenizer that cannot be kept: {type(model.tokenizer).__name__}",
            "name a model with a tokenizer.json",
        )
    copy = Tokenizer.from_str(backend.to_str())
    copy.no_truncation()
    copy.no_padding()
    copy.save(str(folder / "tokenizer.json"))


def _similarity(model: Any, name: str) -> str:
    # Only the attribute behind the property tells "not said" from "cosine".
    stated = getattr(model, "_similarity_fn_name", None)
    return str(stated or ("dot" if _DOT.search(_short(name)) else "cosine"))


def _prompts(model: Any, name: str) -> tuple[str, str]:
    own = own_prompts(model.prompts or {}, model.default_prompt_name)
    if any(own):
        return own
    return next((prompts for card, prompts in _CARDS if card.search(_short(name))), own)


def _short(name: str) -> str:
    return Path(name).name.lower()


def _window(model: Any) -> int | None:
    """The most tokens with the special ones; None where the model has no limit."""
    limits = [model.max_seq_length]
    config = _config(model)
    if "max_position_embeddings" in config:
        limits.append(config["max_position_embeddings"] - first_position(config))
    return min((int(limit) for limit in limits if limit and limit < _NO_WINDOW), default=None)


def _config(model: Any) -> dict[str, Any]:
    """The `config.json` of the transformer; empty for a model that has none."""
    transformer = getattr(model[0], "auto_model", None)
    return {} if transformer is None else dict(transformer.config.to_dict())


def _why_not(model: Any, *, prompted: bool) -> str | None:
    """Why a model has no graph of ours; None where one can be tried."""
    kinds = [type(module).__name__ for module in model]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        return f"it is made of {', '.join(kinds)}"
    config, pooling = _config(model), model[1].get_config_dict()
    obstacles = {
        f"its architecture is {config.get('model_type')}": not supports(config),
        "its pooling is neither mean nor cls": _pooling(pooling) is None,
        "its pooling leaves out the prompt": prompted and not pooling.get("include_prompt", True),
        "its vectors are cut": bool(getattr(model, "truncate_dim", None)),
        "it is larger than an ONNX file can be": _size(model) > _LARGEST,
        "the package onnx is not installed": find_spec("onnx") is None,
    }
    return next((reason for reason, holds in obstacles.items() if holds), None)


def _size(model: Any) -> int:
    return sum(4 * weight.numel() for weight in model[0].parameters())


def _pooling(config: Mapping[str, Any]) -> str | None:
    """`mean` or `cls`; None for any other. Until version 6 it was one switch for each mode."""
    switches = [key for key, on in config.items() if key.startswith("pooling_mode_") and on is True]
    modes = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    mode = config.get("pooling_mode") or (modes.get(switches[0]) if len(switches) == 1 else None)
    return mode if mode in ("mean", "cls") else None


def _write_graph(model: Any, folder: Path) -> str | None:
    """Write `model.onnx`; what speaks against it, if anything does, and then it is not there."""
    state = model[0].auto_model.state_dict()
    weights = {key: value.detach().float().cpu().numpy() for key, value in state.items()}
    pooling = _pooling(model[1].get_config_dict())
    try:
        build(
            folder / "model.onnx", weights, _config(model),
            pooling=pooling or "", normalise=len(model) == 3, int8=False,
        )  # fmt: skip
    except KeyError as error:
        return f"it has no weight {error}"
    encoder = OnnxEncoder(folder, "st:")
    for text in (*_PROBES, " ".join(_PROBES * encoder.window)):
        spans = encoder.spans(text)[: encoder.window]  # what is beyond, torch does not read
        read = text[: spans[-1][1]] if spans else text
        ours = encoder.encode_query(read)
        (theirs,) = run(model, [read], encoder.query_prompt, normalise=encoder.normalise)
        if not _agree(ours, theirs):
            for name in ("model.onnx", "model.onnx.data"):
                (folder / name).unlink(missing_ok=True)
            return f"the graph's vector of {text[:30]!r} is not the model's"
    return None


def _agree(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> bool:
    import numpy as np

    norm, wanted = float(np.linalg.norm(ours)), float(np.linalg.norm(theirs))
    cosine = float(ours @ theirs) / (norm * wanted or 1.0)
    return cosine > _COSINE and abs(norm - wanted) <= _LENGTH * wanted
