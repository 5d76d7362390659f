"""Models of two layers with random weights, saved as the libraries save theirs.

Every weight is random, biases and gains too, and large: were one left out or given the wrong
place, the vectors would be others.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NEEDED = ("torch", "transformers", "sentence_transformers")

needs_torch = pytest.mark.skipif(
    any(find_spec(package) is None for package in NEEDED),
    reason="the extra is not installed: pip install 'ragcli[st]'",
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
POSITIONS = 64
WINDOW = 24
SPECIAL = ("[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]")
"""The padding is not the first, for RoBERTa counts its positions from there."""

WORDS = (
    "the a of who owns maintained by certificate expires red fox jumps over lazy dog house stone "
    "river key letter garden query passage search document"
).split()
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789.,:;?!'-_$"


def hush() -> None:
    """Let the libraries draw no bars while they save and load."""
    from huggingface_hub.utils import disable_progress_bars
    from transformers.utils import logging

    disable_progress_bars()
    logging.disable_progress_bar()


def tokenizer() -> Any:
    """WordPiece, lower case, over a vocabulary of a few words and every letter."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = [*SPECIAL, *ALPHABET, *(f"##{sign}" for sign in ALPHABET), *WORDS]
    wordpiece = Tokenizer(
        models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    wordpiece.normalizer = normalizers.BertNormalizer(lowercase=True)
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, pieces.index(name)) for name in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=wordpiece, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_max_length=POSITIONS - 2,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip


def _transformer(kind: str, seed: int, *, dim: int = 32, **more: Any) -> Any:
    """A model of transformers' class `kind`, or of its model class: `Bert`, `Roberta`."""
    import torch
    import transformers

    config_class = getattr(transformers, kind.replace("ForSequenceClassification", "") + "Config")
    model_class = getattr(transformers, kind if "For" in kind else f"{kind}Model")
    words = tokenizer()
    config = config_class(
        vocab_size=len(words), hidden_size=dim, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=2 * dim, max_position_embeddings=POSITIONS, type_vocab_size=2,
        pad_token_id=words.pad_token_id, **more,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = model_class(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(1.0 if name.endswith("LayerNorm.weight") else 0.0, 0.3)
    return model


def sentence_model(
    folder: Path,
    *,
    kind: str = "Bert",
    pooling: str = "mean",
    normalise: bool = True,
    prompts: Mapping[str, str] | None = None,
    similarity: str | None = None,
    window: int = WINDOW,
    dim: int = 32,
    seed: int = 0,
) -> Path:
    """A SentenceTransformer, saved to `folder`."""
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.sentence_transformer import modules
    except ImportError:  # before version 6
        from sentence_transformers import models as modules

    parts = folder.with_name(f"{folder.name}-transformer")
    hush()
    _transformer(kind, seed, dim=dim).save_pretrained(parts)
    tokenizer().save_pretrained(parts)
    chain = [
        modules.Transformer(str(parts), max_seq_length=window),
        modules.Pooling(dim, pooling_mode=pooling),
        *[modules.Normalize()] * normalise,
    ]
    model = SentenceTransformer(
        modules=chain,
        device="cpu",
        prompts=dict(prompts) if prompts else None,
        similarity_fn_name=similarity,
    )
    model.save(str(folder), create_model_card=False)
    return folder


def cross_encoder(folder: Path, *, labels: int = 1, seed: int = 0) -> Path:
    """A cross-encoder, saved to `folder` by transformers alone, as most of them were."""
    hush()
    model = _transformer("BertForSequenceClassification", seed, num_labels=labels)
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def publish(model: Path, cache: Path, owner: str, name: str) -> None:
    """Lay `model` into a local `cache` of huggingface.co, as if it had been fetched from there."""
    repository = cache / f"models--{owner}--{name}"
    shutil.copytree(model, repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
