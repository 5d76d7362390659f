"""Cross-encoders: scores against transformers' own logits, the cut that is said, the errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from tiny_models import POSITIONS, needs_torch

from ragcli.errors import ModelUnavailable
from ragcli.retrieval.rerank import Reranker

QUESTION = "who owns the certificate?"
TEXTS = (
    "the house is maintained by the fox",
    "",
    "river stone garden " * 30,
    "the key; the letter",
    "naïve 谁 🙂",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.cross_encoder(tmp_path_factory.mktemp("cross") / "model")


def logits(folder: Path, texts: tuple[str, ...]) -> list[float]:
    """Each pair on its own through transformers, cut to the tokenizer's own length."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tiny_models.hush()
    with torch.no_grad():
        words = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        # In lists, for an empty text that is given alone is taken for none.
        pairs = [words([QUESTION], [text], truncation=True, return_tensors="pt") for text in texts]
        return [float(model(**pair).logits[0, 0]) for pair in pairs]


@needs_torch
def test_scores_are_the_models_raw_numbers(folder: Path) -> None:
    reranker = Reranker(str(folder), device="cpu")
    scores = reranker.score(QUESTION, TEXTS)
    assert scores == pytest.approx(logits(folder, TEXTS), abs=1e-4)
    assert len(set(scores)) == len(TEXTS)
    assert max(scores) > 1 or min(scores) < 0  # no sigmoid


@needs_torch
def test_a_score_does_not_depend_on_order(folder: Path) -> None:
    reranker = Reranker(str(folder))
    forward = reranker.score(QUESTION, TEXTS)
    assert reranker.score(QUESTION, TEXTS[::-1])[::-1] == pytest.approx(forward, abs=1e-4)


@needs_torch
def test_what_is_cut_is_counted(folder: Path) -> None:
    reranker = Reranker(str(folder))
    assert reranker.window == POSITIONS - 2
    reranker.score(QUESTION, TEXTS)
    assert reranker.cut == 1
    # [CLS] who owns the certificate ? [SEP] … [SEP]
    room = reranker.window - 8
    reranker.score(QUESTION, ["fox " * room, "fox " * (room + 1)])
    assert reranker.cut == 1
    short, longer = reranker.score(QUESTION, ["fox " * room, "fox " * room + "stone"])
    assert short == pytest.approx(longer, abs=1e-4)  # the stone was not read
    reranker.score(QUESTION, ["fox"])
    assert reranker.cut == 0


@needs_torch
def test_no_texts_have_no_scores(folder: Path) -> None:
    reranker = Reranker(str(folder))
    assert reranker.score(QUESTION, []) == []
    assert reranker.cut == 0


@needs_torch
def test_nothing_is_printed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Reranker(str(folder)).score(QUESTION, TEXTS)
    assert capfd.readouterr() == ("", "")


@needs_torch
def test_a_classifier_is_no_reranker(tmp_path: Path) -> None:
    folder = tiny_models.cross_encoder(tmp_path / "three", labels=3)
    with pytest.raises(ModelUnavailable, match="3 numbers"):
        Reranker(str(folder))


@needs_torch
def test_a_sentence_model_is_no_reranker(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The library would give it a random head, and its scores would look like any other's."""
    folder = tiny_models.sentence_model(tmp_path / "sentences")
    capfd.readouterr()
    with pytest.raises(ModelUnavailable) as caught:
        Reranker(str(folder))
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert capfd.readouterr() == ("", "")


@needs_torch
def test_a_name_that_is_not_here_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    with pytest.raises(ModelUnavailable) as caught:
        Reranker("nobody/no-such-reranker")
    assert "nobody/no-such-reranker" in caught.value.message
    assert "HF_HUB_OFFLINE" in caught.value.message
    assert "\n" not in caught.value.message


@needs_torch
def test_a_name_is_found_in_the_local_cache(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Most of them were saved without the `modules.json` of sentence-transformers."""
    from huggingface_hub import constants

    tiny_models.publish(folder, tmp_path, "cross-encoder", "tiny")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    expected = pytest.approx(logits(folder, TEXTS), abs=1e-4)
    assert Reranker("cross-encoder/tiny").score(QUESTION, TEXTS) == expected


def test_without_the_extra_the_hint_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hide: Any = None
    monkeypatch.setitem(sys.modules, "sentence_transformers", hide)
    with pytest.raises(ModelUnavailable) as caught:
        Reranker("cross-encoder/ms-marco-MiniLM-L6-v2")
    assert caught.value.message == "sentence-transformers is not installed"
    assert caught.value.hint == "pip install 'ragcli[st]'"
