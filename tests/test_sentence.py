"""`st:NAME`: what is kept of a model gives what sentence-transformers gives, without torch."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from tiny_models import POSITIONS, WINDOW, needs_torch

from ragcli.encoders import Encoded, export, sentence
from ragcli.encoders.onnx_model import own_prompts
from ragcli.encoders.sentence import SentenceEncoder, open_sentence, prepare
from ragcli.errors import ModelUnavailable

TEXTS = (
    "the red fox jumps over the lazy dog",
    "who owns it",
    "",
    "Naïve CAFÉ, house of stone; 13 keys!",
    "谁负责 🙂 Кто",
    "maintained by the garden",
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tiny models by what is asked of them, each made once."""
    made: dict[str, Path] = {}

    def model(name: str = "plain", **how: Any) -> Path:
        key = repr((name, sorted(how.items())))
        if key not in made:
            made[key] = tiny_models.sentence_model(tmp_path_factory.mktemp("models") / name, **how)
        return made[key]

    return model


def ready(model: Path, home: Path, query_model: Path | None = None) -> SentenceEncoder:
    """The encoder of a model, prepared and opened."""
    question = str(query_model) if query_model else None
    prepare(str(model), question, home, device="cpu")
    return open_sentence(str(model), question, home, device="cpu")


def source(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "source.json").read_text(encoding="utf-8"))
    return found


def oracle(model: Path, texts: Any, prompt: str = "", *, normalise: bool = True) -> np.ndarray:
    """Each text on its own through sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(str(model), device="cpu")
    return np.array(
        [
            loaded.encode(
                text, prompt=prompt, normalize_embeddings=normalise, show_progress_bar=False
            )
            for text in texts
        ],
        np.float64,
    )


def vectors(encoded: Encoded) -> np.ndarray:
    assert encoded.factors is not None
    return encoded.codes.astype(float) * encoded.factors[:, np.newaxis].astype(float)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def one_line(error: ModelUnavailable) -> str:
    assert error.hint and "\n" not in error.message and len(error.message) < 500
    return error.message


GRAPHS = {
    "mean": {},
    "cls": {"pooling": "cls"},
    "without Normalize": {"normalise": False},
    "roberta": {"kind": "Roberta"},
    "xlm-roberta, cls": {"kind": "XLMRoberta", "pooling": "cls"},
    "prompts": {"prompts": {"query": "query: ", "passage": "passage: "}},
}


@needs_torch
@pytest.mark.parametrize("how", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_gives_what_the_model_gives(models: Any, how: Any, tmp_path: Path) -> None:
    model = models(**how)
    encoder = ready(model, tmp_path / "home")
    assert source(tmp_path / "home")["torch"] is None
    assert (tmp_path / "home" / "model.onnx").is_file()
    prompts = how.get("prompts", {"query": "", "passage": ""})
    assert (encoder.query_prompt, encoder.document_prompt) == tuple(prompts.values())
    expected = oracle(model, TEXTS, prompts["query"])
    questions = np.array([encoder.encode_query(text) for text in TEXTS])
    assert np.allclose(questions, expected, atol=1e-5)
    expected = oracle(model, TEXTS, prompts["passage"])
    rows = vectors(encoder.encode_documents(TEXTS))
    assert cosines(rows, expected).min() > 0.999  # one byte per number
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert encoder.dim == 32


TORCH = {
    "architecture": ({"kind": "MPNet"}, "architecture is mpnet"),
    "pooling": ({"pooling": "max"}, "pooling"),
}


@needs_torch
@pytest.mark.parametrize(("how", "why"), TORCH.values(), ids=TORCH)
def test_what_has_no_graph_is_served_by_torch(
    models: Any, how: Any, why: str, tmp_path: Path
) -> None:
    model = models(**how)
    encoder = ready(model, tmp_path / "home")
    assert why in source(tmp_path / "home")["torch"]
    assert not (tmp_path / "home" / "model.onnx").exists()
    expected = oracle(model, TEXTS)
    questions = np.array([encoder.encode_query(text) for text in TEXTS])
    assert np.allclose(questions, expected, atol=1e-5)
    together = encoder.encode_documents(TEXTS)
    assert cosines(vectors(together), expected).min() > 0.999
    for i, text in enumerate(TEXTS):
        assert np.array_equal(encoder.encode_documents([text]).codes[0], together.codes[i])
    assert encoder.encode_documents([]).codes.shape == (0, 32)


@needs_torch
def test_a_graph_that_is_not_the_model_is_not_kept(
    models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = export.build

    def wrong(path: Path, weights: Any, config: Any, **how: Any) -> None:
        name = "encoder.layer.1.output.dense.bias"
        build(path, {**weights, name: 2 * weights[name]}, config, **how)

    monkeypatch.setattr(export, "build", wrong)
    encoder = ready(models(), tmp_path / "home")
    assert "not the model's" in source(tmp_path / "home")["torch"]
    assert not list((tmp_path / "home").glob("model.onnx*"))
    (expected,) = oracle(models(), TEXTS[:1])
    assert np.allclose(encoder.encode_query(TEXTS[0]), expected, atol=1e-5)


@needs_torch
@pytest.mark.parametrize("kind", ["Bert", "MPNet"])
def test_prompt_and_special_tokens_count_against_the_window(
    models: Any, kind: str, tmp_path: Path
) -> None:
    prompts = {"query": "search the query: ", "document": "passage: "}
    model = models("prompted", kind=kind, prompts=prompts)
    encoder = ready(model, tmp_path / "home")
    assert (source(tmp_path / "home")["torch"] is None) == (kind == "Bert")
    assert encoder.window == WINDOW - 2 - len(encoder.spans("search the query:"))
    fits = "fox " * encoder.window
    whole, cut = oracle(model, [fits, "fox " * (2 * WINDOW)], prompts["query"])
    assert np.allclose(encoder.encode_query(fits), whole, atol=1e-5)
    # A question beyond the window is the mean of its parts, and so not cut.
    long = encoder.encode_query(fits + "stone")
    parts = oracle(model, [fits, "stone"], prompts["query"])
    mean = np.average(parts, axis=0, weights=[encoder.window, 1])
    assert np.allclose(long, mean / np.linalg.norm(mean), atol=1e-5)
    assert not np.allclose(long, cut, atol=1e-3)


@needs_torch
@pytest.mark.parametrize("kind", ["Bert", "Roberta"])
def test_the_window_is_not_beyond_the_models_positions(
    models: Any, kind: str, tmp_path: Path
) -> None:
    encoder = ready(models("wide", kind=kind, window=9999), tmp_path / "home")
    unused = 2 if kind == "Roberta" else 0
    assert encoder.window <= POSITIONS - unused - 2
    text = "fox " * encoder.window
    encoder.encode_documents([text])
    assert len(encoder.spans(text)) == encoder.window


@needs_torch
def test_tokens_are_the_models_own(models: Any, tmp_path: Path) -> None:
    encoder = ready(models(), tmp_path / "home")
    words = tiny_models.tokenizer()
    assert encoder.window == WINDOW - 2
    for text in (*TEXTS, "fox " * 100):
        expected = words(
            text, add_special_tokens=False, return_offsets_mapping=True, truncation=False
        )
        assert encoder.spans(text) == [tuple(span) for span in expected["offset_mapping"]]
    assert encoder.pieces("the house of zzzz") == (2, 5)


@needs_torch
def test_two_encoders_of_one_space_keep_the_dot_product(models: Any, tmp_path: Path) -> None:
    """As DPR: a model each for documents and questions, no Normalize, the longer the better."""
    context = models("context", normalise=False, similarity="dot", pooling="cls", seed=1)
    question = models("question", normalise=False, pooling="cls", seed=2)
    encoder = ready(context, tmp_path / "home", question)
    for folder in (tmp_path / "home", tmp_path / "home" / "question"):
        assert source(folder)["torch"] is None
    documents = oracle(context, TEXTS, normalise=False)
    asked = oracle(question, TEXTS, normalise=False)
    assert not encoder.normalise
    lengths = np.linalg.norm(documents, axis=1)
    assert lengths.min() > 1.5 and lengths.std() > 0.01
    rows = vectors(encoder.encode_documents(TEXTS))
    assert np.allclose(np.linalg.norm(rows, axis=1), lengths, rtol=1e-5)
    assert cosines(rows, documents).min() > 0.999
    questions = np.array([encoder.encode_query(text) for text in TEXTS])
    assert np.allclose(questions, asked, atol=1e-4)
    assert np.allclose(questions @ rows.T, asked @ documents.T, rtol=0.02, atol=0.5)


@needs_torch
def test_a_pair_by_its_name_is_made_for_the_dot_product(models: Any, tmp_path: Path) -> None:
    """The published DPR models do not state it in their settings."""
    context, question = (
        shutil.copytree(models(normalise=False, seed=seed), tmp_path / f"facebook-dpr-{side}")
        for seed, side in enumerate(("ctx_encoder-tiny", "question_encoder-tiny"), 1)
    )
    settings = "config_sentence_transformers.json"
    (context / settings).write_text('{"__version__": {"sentence_transformers": "2.0.0"}}')
    encoder = ready(context, tmp_path / "home", question)
    assert not encoder.normalise
    (asked,) = oracle(question, TEXTS[:1], normalise=False)
    assert np.allclose(encoder.encode_query(TEXTS[0]), asked, atol=1e-4)


@needs_torch
def test_a_pair_of_two_dimensions_is_none(models: Any, tmp_path: Path) -> None:
    wide = models("wider", dim=64)
    with pytest.raises(ModelUnavailable) as caught:
        prepare(str(models()), str(wide), tmp_path / "home", device="cpu")
    assert "64" in one_line(caught.value) and "32" in caught.value.message
    assert list(tmp_path.iterdir()) == []


CARDS = {
    "multilingual-e5-small": ("query: ", "passage: "),
    "e5-base-v2": ("query: ", "passage: "),
    "bge-small-en-v1.5": ("Represent this sentence for searching relevant passages: ", ""),
    "nomic-embed-text-v1.5": ("search_query: ", "search_document: "),
    "bge-m3": ("", ""),
    "multilingual-e5-large-instruct": ("", ""),
}


@needs_torch
@pytest.mark.parametrize(("name", "prompts"), CARDS.items(), ids=CARDS)
def test_prompts_of_the_card(
    models: Any, name: str, prompts: tuple[str, str], tmp_path: Path
) -> None:
    encoder = ready(models(name, window=POSITIONS), tmp_path / "home")
    assert (encoder.query_prompt, encoder.document_prompt) == prompts
    (expected,) = oracle(models(name, window=POSITIONS), ["who owns it"], prompts[0])
    assert np.allclose(encoder.encode_query("who owns it"), expected, atol=1e-5)


@needs_torch
def test_a_models_own_prompts_come_before_the_cards(models: Any, tmp_path: Path) -> None:
    model = models("e5-small-v2", prompts={"query": "the query ", "document": "the document "})
    encoder = ready(model, tmp_path / "home")
    assert (encoder.query_prompt, encoder.document_prompt) == ("the query ", "the document ")


WITHOUT_TORCH = """
    import sys
    from pathlib import Path

    class Refuse:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {"torch", "transformers", "sentence_transformers", "onnx"}:
                raise ImportError(name)

    sys.meta_path.insert(0, Refuse())
    from ragcli.encoders.sentence import open_sentence, prepare

    name, home = sys.argv[1], Path(sys.argv[2])
    prepare(name, None, home, device=None)
    encoder = open_sentence(name, None, home, device=None)
    print(encoder.fingerprint, encoder.window, encoder.dim, len(encoder.spans("the fox")))
    if sys.argv[3:]:
        print(*encoder.encode_query(sys.argv[3]))
"""


def without_torch(*arguments: str) -> list[str]:
    """The lines of a fresh process that cannot import torch."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_TORCH), *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@needs_torch
def test_later_runs_need_no_torch(models: Any, tmp_path: Path) -> None:
    encoder = ready(models(), tmp_path / "home")
    facts, vector = without_torch(str(models()), str(tmp_path / "home"), "the red fox")
    assert facts == f"{encoder.fingerprint} {WINDOW - 2} 32 2"
    (expected,) = oracle(models(), ["the red fox"])
    assert np.allclose([float(number) for number in vector.split()], expected, atol=1e-5)


@needs_torch
def test_torch_is_loaded_for_encoding_alone(models: Any, tmp_path: Path) -> None:
    model = models(pooling="max")
    encoder = ready(model, tmp_path / "home")
    (facts,) = without_torch(str(model), str(tmp_path / "home"))
    assert facts == f"{encoder.fingerprint} {WINDOW - 2} 32 2"


@needs_torch
def test_a_fingerprint_names_all_that_shapes_the_vectors(models: Any, tmp_path: Path) -> None:
    cases = [
        (models(), None),
        (models("other", seed=1), None),
        (models("prompted", prompts={"query": "query: "}), None),
        (models(), models("other", seed=1)),
        (models(), models("third", seed=3)),
    ]
    found = [ready(a, tmp_path / f"{i}", b).fingerprint for i, (a, b) in enumerate(cases)]
    assert len(set(found)) == len(cases)
    again = [ready(a, tmp_path / f"b{i}", b).fingerprint for i, (a, b) in enumerate(cases)]
    assert again == found


@needs_torch
def test_what_is_prepared_is_not_prepared_again(
    models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shutil.copytree(models(), tmp_path / "model")
    before = ready(model, tmp_path / "home")
    (expected,) = oracle(model, TEXTS[:1])
    with monkeypatch.context() as patched:
        patched.setattr(sentence, "export", lambda *_, **__: pytest.fail("it was loaded again"))
        assert ready(model, tmp_path / "home").fingerprint == before.fingerprint
        shutil.move(model, tmp_path / "elsewhere")  # what is kept serves on
        assert np.allclose(
            ready(model, tmp_path / "home").encode_query(TEXTS[0]), expected, atol=1e-5
        )
    shutil.copytree(models("other", seed=1), model)
    after = ready(model, tmp_path / "home")
    assert after.fingerprint != before.fingerprint
    (expected,) = oracle(model, TEXTS[:1])
    assert np.allclose(after.encode_query(TEXTS[0]), expected, atol=1e-5)


@needs_torch
def test_torch_does_not_serve_another_model_than_was_indexed_with(
    models: Any, tmp_path: Path
) -> None:
    model = shutil.copytree(models(pooling="max"), tmp_path / "model")
    encoder = ready(model, tmp_path / "home")
    shutil.rmtree(model)
    shutil.copytree(models("other", pooling="max", seed=1), model)
    with pytest.raises(ModelUnavailable) as caught:
        encoder.encode_query("fox")
    assert "changed" in one_line(caught.value)
    assert caught.value.hint == "ragcli index"


@needs_torch
def test_a_failed_preparation_leaves_what_was_there(models: Any, tmp_path: Path) -> None:
    home = tmp_path / "home"
    ready(models(), home)
    before = {path: path.read_bytes() for path in home.rglob("*")}
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelUnavailable):
        prepare(str(models("other", seed=1)), str(tmp_path / "empty"), home, device="cpu")
    assert {path: path.read_bytes() for path in home.rglob("*")} == before
    assert not home.with_name("home.unfinished").exists()


@needs_torch
def test_a_home_for_other_names_says_index(models: Any, tmp_path: Path) -> None:
    home = tmp_path / "home"
    other = str(models("other", seed=1))
    ready(models(), home)
    for name, question in ((other, None), (str(models()), other)):
        with pytest.raises(ModelUnavailable) as caught:
            open_sentence(name, question, home, device=None)
        assert "not prepared" in one_line(caught.value)
        assert caught.value.hint == "ragcli index"
    prepare(str(models()), other, home, device="cpu")
    with pytest.raises(ModelUnavailable):
        open_sentence(str(models()), None, home, device=None)


@pytest.mark.parametrize(
    ("prompts", "default", "expected"),
    [
        ({}, None, ("", "")),
        ({"query": "q: ", "document": "d: "}, None, ("q: ", "d: ")),
        ({"query": "q: ", "document": "", "passage": "p: "}, None, ("q: ", "p: ")),
        ({"query": "q: ", "document": ""}, "query", ("q: ", "")),
        ({"query": "q: ", "document": None}, None, ("q: ", "")),
        ({"all": "a: "}, "all", ("a: ", "a: ")),
        ({"all": "a: "}, None, ("", "")),
    ],
)
def test_which_prompts_are_a_models_own(prompts: Any, default: Any, expected: Any) -> None:
    assert own_prompts(prompts, default) == expected


def test_a_home_that_was_never_prepared_says_index(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        open_sentence("e5-small", None, tmp_path / "home", device=None)
    assert one_line(caught.value) == "st:e5-small is not prepared for this index"
    assert caught.value.hint == "ragcli index"


def test_without_the_extra_the_hint_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide: Any = None
    monkeypatch.setitem(sys.modules, "sentence_transformers", hide)
    with pytest.raises(ModelUnavailable) as caught:
        prepare("all-MiniLM-L6-v2", None, tmp_path / "home", device=None)
    assert one_line(caught.value) == "sentence-transformers is not installed"
    assert caught.value.hint == "pip install 'ragcli[st]'"
    assert list(tmp_path.iterdir()) == []


def broken(models: Any, folder: Path, file: str, content: bytes | None) -> Path:
    """A model one of whose files is other, or gone."""
    shutil.copytree(models(), folder)
    path = folder / file
    path.unlink() if content is None else path.write_bytes(content)
    return folder


BROKEN = {
    "weights cut off": ("model.safetensors", b"\x10\0\0\0\0\0\0\0{"),
    "weights gone": ("model.safetensors", None),
    "config is no JSON": ("config.json", b"{"),
    "config gone": ("config.json", None),
    "modules are no JSON": ("modules.json", b"["),
    "tokenizer is no JSON": ("tokenizer.json", b"{"),
    "tokenizer gone": ("tokenizer.json", None),
}


@needs_torch
@pytest.mark.parametrize(("file", "content"), BROKEN.values(), ids=BROKEN)
def test_a_corrupt_model_is_one_line(
    models: Any, file: str, content: bytes | None, tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    model = broken(models, tmp_path / "model", file, content)
    capfd.readouterr()
    with pytest.raises(ModelUnavailable) as caught:
        prepare(str(model), None, tmp_path / "home", device="cpu")
    assert str(model) in one_line(caught.value)
    assert not (tmp_path / "home").exists()
    assert capfd.readouterr() == ("", "")


@needs_torch
def test_a_model_without_some_weights_is_refused(models: Any, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    model = shutil.copytree(models(), tmp_path / "model")
    (path,) = model.rglob("model.safetensors")
    weights = load_file(path)
    gone = next(name for name in weights if name.endswith("layer.1.output.dense.weight"))
    save_file({k: v for k, v in weights.items() if k != gone}, path, {"format": "pt"})
    with pytest.raises(ModelUnavailable, match=re.escape(gone)):
        prepare(str(model), None, tmp_path / "home", device="cpu")


@needs_torch
def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelUnavailable) as caught:
        prepare(str(tmp_path / "empty"), None, tmp_path / "home", device="cpu")
    assert str(tmp_path / "empty") in one_line(caught.value)


@needs_torch
@pytest.mark.parametrize("device", ["cuda", "abacus"])
def test_a_device_that_is_not_here_is_one_line(
    models: Any, device: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    model = models()
    capfd.readouterr()
    with pytest.raises(ModelUnavailable) as caught:
        prepare(str(model), None, tmp_path / "home", device=device)
    one_line(caught.value)
    assert caught.value.hint is not None and device in caught.value.hint
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local cache of huggingface.co, which itself is not to be reached."""
    from huggingface_hub import HfApi

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no network\nin this test")

    monkeypatch.setattr(HfApi, "model_info", refuse)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path / "hub"))
    return tmp_path / "hub"


@needs_torch
@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_name_is_found_in_the_local_cache(
    models: Any, hub: Path, pooling: str, tmp_path: Path
) -> None:
    tiny_models.publish(models(pooling=pooling), hub, "somebody", "tiny")
    prepare("somebody/tiny", None, tmp_path / "home", device="cpu")
    found = source(tmp_path / "home")
    assert (found["model"], found["folder"]) == ("somebody/tiny", None)
    assert found["fingerprint"] == f"somebody/tiny@{tiny_models.COMMIT}"
    encoder = open_sentence("somebody/tiny", None, tmp_path / "home", device="cpu")
    assert encoder.name == "st:somebody/tiny"
    (expected,) = oracle(models(pooling=pooling), TEXTS[:1])
    assert np.allclose(encoder.encode_query(TEXTS[0]), expected, atol=1e-5)


@needs_torch
def test_a_short_name_is_of_sentence_transformers(models: Any, hub: Path, tmp_path: Path) -> None:
    tiny_models.publish(models(), hub, "sentence-transformers", "tiny")
    prepare("tiny", None, tmp_path / "home", device="cpu")
    assert source(tmp_path / "home")["fingerprint"] == f"tiny@{tiny_models.COMMIT}"


@needs_torch
@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("name", ["nobody/none", "none", "no such / name", "../gone", "a//b"])
def test_a_name_that_cannot_be_had_is_one_line(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        prepare(name, None, tmp_path / "home", device="cpu")
    assert one_line(caught.value).startswith(f"{name} ")
    assert capfd.readouterr() == ("", "")


@needs_torch
@pytest.mark.usefixtures("hub")
def test_offline_nothing_is_asked_of_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelUnavailable, match="HF_HUB_OFFLINE is set"):
        prepare("nobody/none", None, tmp_path / "home", device="cpu")


@needs_torch
@pytest.mark.slow
def test_nothing_reaches_the_terminal(models: Any, tmp_path: Path) -> None:
    """In a fresh process, where the libraries say what they say once."""
    for model in (models(), models(pooling="max")):
        home = tmp_path / model.parent.name
        program = f"""
            from pathlib import Path
            from ragcli.encoders.sentence import open_sentence, prepare
            prepare({str(model)!r}, None, Path({str(home)!r}), device=None)
            encoder = open_sentence({str(model)!r}, None, Path({str(home)!r}), device="cpu")
            encoder.encode_documents(["the fox", "fox " * 500])
            encoder.encode_query("fox " * 500)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True, text=True, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_torch
@pytest.mark.slow
def test_the_real_minilm(tmp_path: Path) -> None:
    import test_minilm

    from ragcli.encoders.minilm import open_minilm

    encoder = ready(test_minilm.official(), tmp_path / "home")
    assert source(tmp_path / "home")["torch"] is None
    texts = test_minilm.passages()
    ours = vectors(encoder.encode_documents(texts))
    shipped = open_minilm()
    found = cosines(ours, vectors(shipped.encode_documents(texts)))
    assert found.mean() >= 0.99
    assert cosines(ours, oracle(test_minilm.official(), texts)).min() > 0.999
    assert encoder.window == shipped.window == 254
    assert all(encoder.spans(text) == shipped.spans(text) for text in texts)
