"""What a fresh mind broke in the neural default, each with what is right."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import answers, build, write_files

from ragcli.encoders.minilm import FOLDER, open_minilm
from ragcli.encoders.onnx_model import OnnxEncoder
from ragcli.errors import ModelUnavailable, UsageError
from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index

FILES = {f"{i}.md": f"# Lamp {i}\n\nThe keeper of lamp {i} is called Ada." for i in range(6)}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    write_files(tmp_path / "docs", FILES)
    return tmp_path / "docs"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    shutil.copytree(FOLDER, tmp_path / "model")
    return tmp_path / "model"


def test_chunks_beyond_the_window_are_refused_before_anything_is_lost(
    docs: Path, tmp_path: Path
) -> None:
    (docs / "p.html").write_text("<p>Read by a child process.</p>")
    build(tmp_path / "rag", docs, encoder="minilm")
    before = answers(tmp_path / "rag", "keeper")
    with pytest.raises(UsageError, match="reads 254 tokens, chunks of 255"):
        build(tmp_path / "rag", chunk="tokens:255")
    assert answers(tmp_path / "rag", "keeper") == before
    assert build(tmp_path / "rag").chunks == 7


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tokenizer.json", "[]"),
        ("sentence_bert_config.json", "[]"),
        ("sentence_bert_config.json", '{"max_seq_length": "abc"}'),
        ("sentence_bert_config.json", '{"max_seq_length": -5}'),
        ("config_sentence_transformers.json", "[]"),
        ("config_sentence_transformers.json", '{"prompts": ["a"]}'),
        ("config_sentence_transformers.json", '{"prompts": {"query": 5}}'),
        ("model.onnx", "no graph"),
        ("model.onnx.data", "no weights"),
    ],
)
def test_a_broken_model_costs_nothing_of_the_index(
    docs: Path, model: Path, tmp_path: Path, name: str, text: str
) -> None:
    build(tmp_path / "rag", docs, encoder="minilm")
    before = answers(tmp_path / "rag", "keeper")
    (model / name).write_text(text)
    with pytest.raises(ModelUnavailable) as told:
        build(tmp_path / "rag", encoder=f"onnx:{model}")
    assert told.value.hint
    assert answers(tmp_path / "rag", "keeper") == before


def test_a_model_that_gives_no_numbers_is_refused(docs: Path, model: Path, tmp_path: Path) -> None:
    data = np.memmap(model / "model.onnx.data", np.uint8, "r+")
    data[:] = 0xFF
    data.flush()
    with pytest.raises(ModelUnavailable, match="no numbers"):
        build(tmp_path / "rag", docs, encoder=f"onnx:{model}")


def test_a_model_that_was_swapped_is_noticed_by_the_question(
    docs: Path, model: Path, tmp_path: Path
) -> None:
    build(tmp_path / "rag", docs, encoder=f"onnx:{model}")
    (model / ".DS_Store").write_bytes(b"no part of a model")
    assert len(answers(tmp_path / "rag", "keeper")) == 5
    (model / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    with pytest.raises(ModelUnavailable, match="has changed since"):
        answers(tmp_path / "rag", "keeper")
    assert len(answers(tmp_path / "rag", "keeper", mode="lexical")) == 5
    assert build(tmp_path / "rag").embedded == 6
    assert len(answers(tmp_path / "rag", "keeper")) == 5


def test_the_lexical_retriever_needs_no_model(docs: Path, model: Path, tmp_path: Path) -> None:
    build(tmp_path / "rag", docs, encoder=f"onnx:{model}")
    shutil.rmtree(model)
    with pytest.raises(ModelUnavailable):
        answers(tmp_path / "rag", "keeper")
    assert len(answers(tmp_path / "rag", "keeper", mode="lexical")) == 5
    with Index.open(tmp_path / "rag") as index:
        retriever = Retriever(index)
        retriever.search(SearchRequest("keeper", mode="lexical"))
        assert retriever.keep()


def test_a_long_question_is_read_eight_windows_far() -> None:
    encoder = open_minilm()
    words = " ".join(f"harbour{i % 7}" for i in range(30_000))
    vector = encoder.encode_query(words)
    spans = encoder.spans(words)
    window = encoder.window
    assert window == 254
    parts = [
        encoder.encode_query(words[spans[i][0] : spans[i + window - 1][1]])
        for i in range(0, 8 * window, window)
    ]
    mean = np.mean(parts, axis=0)
    assert float(vector @ mean / np.linalg.norm(mean)) == pytest.approx(1, abs=1e-6)


def test_a_tokenizer_that_is_not_berts_is_asked_for_the_whole_text(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "model.onnx").write_bytes(b"")
    encoder = OnnxEncoder(tmp_path, "onnx:bytes")
    for text in ("ab cde f", "ab", " é"):
        assert encoder.count(text) == len(text.encode())


def test_threads_open_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.12 on a cached property has no lock of its own."""
    import onnxruntime

    opened = []
    real = onnxruntime.InferenceSession

    def slow(*given: object, **how: object) -> object:
        opened.append(given)
        time.sleep(0.1)
        return real(*given, **how)

    monkeypatch.setattr(onnxruntime, "InferenceSession", slow)
    assert len(open_minilm().encode_documents(["tea"] * 8).codes) == 8
    assert len(opened) == 1
