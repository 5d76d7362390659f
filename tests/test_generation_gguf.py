"""gguf: models: what llama.cpp's own Python calls give is the oracle, on a tiny random model.

The tiny model is written by `tiny_gguf`; RAGCLI_TEST_GGUF names a real one. All but the first
tests need llama-cpp-python, the extra `llm`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_gguf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcli.errors import ModelUnavailable, UsageError
from ragcli.generation.generators import gguf, llama_library, llama_sequences, open_generator
from ragcli.generation.generators.gguf import GgufModel, open_gguf

PROMPTS = ("Is it wet? Yes.", "Who leads?", "x")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf.write_tiny(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """llama.cpp's threads wait in a spin: beside other tests they would wait for each other."""
    monkeypatch.setattr(llama_sequences, "_processors", lambda: 1)


@pytest.fixture
def model(tiny: Path) -> Iterator[GgufModel]:
    pytest.importorskip("llama_cpp", reason="needs llama-cpp-python, the extra llm")
    opened = open_gguf(str(tiny))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def oracle(tiny: Path) -> Iterator[Any]:
    """llama-cpp-python's own class: one sequence, every logit kept."""
    library = pytest.importorskip("llama_cpp", reason="needs llama-cpp-python, the extra llm")
    opened = library.Llama(
        str(tiny), n_ctx=tiny_gguf.WINDOW, n_threads=1, n_threads_batch=1,
        logits_all=True, verbose=False,
    )  # fmt: skip
    yield opened
    opened.close()


def told(error: ModelUnavailable | UsageError) -> str:
    assert "\n" not in error.message
    return error.message


def template_tokens(oracle: Any, prompt: str) -> list[int]:
    """The prompt as `create_chat_completion` would read it."""
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    formatter = Jinja2ChatFormatter(tiny_gguf.TEMPLATE, eos_token="</s>", bos_token="<s>")
    text = formatter(messages=[{"role": "user", "content": prompt}]).prompt
    return list(oracle.tokenize(text.encode(), add_bos=False, special=True))


def expected(oracle: Any, tokens: list[int]) -> np.ndarray:
    """log p of the next token, with nothing remembered from before."""
    oracle.reset()
    oracle.eval(tokens)
    scores = oracle.scores[len(tokens) - 1].astype(np.float64)
    return scores - np.log(np.exp(scores - scores.max()).sum()) - scores.max()


# Without llama-cpp-python


def test_the_missing_library_is_one_line(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(ModelUnavailable) as caught:
        open_gguf(str(tiny))
    assert told(caught.value) == "llama-cpp-python is not installed"
    assert caught.value.hint == "pip install 'ragcli[llm]'"


def test_a_file_that_is_no_model_is_refused_before_the_library_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    (tmp_path / "text.gguf").write_text("GGML, not that")
    (tmp_path / "empty.gguf").touch()
    for name, said in (
        ("none.gguf", "No such file"),
        ("", "Is a directory"),
        ("text.gguf", "not a GGUF file"),
        ("empty.gguf", "not a GGUF file"),
    ):
        with pytest.raises(ModelUnavailable, match=said) as caught:
            open_gguf(str(tmp_path / name))
        assert str(tmp_path) in told(caught.value)


# What llama.cpp is given and what it says


def test_a_cut_or_broken_file_is_one_line_and_nothing_else_is_written(
    model: GgufModel, tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tiny.read_bytes()
    for size in (8, 40, 5000, len(data) - 1000):
        (tmp_path / "cut.gguf").write_bytes(data[:size])
        with pytest.raises(
            ModelUnavailable, match=r"llama\.cpp cannot load .*cut\.gguf: "
        ) as caught:
            open_gguf(str(tmp_path / "cut.gguf"))
        told(caught.value)
    assert capfd.readouterr() == ("", "")


def test_the_terminal_stays_clean(tiny: Path, model: GgufModel) -> None:
    program = (
        "import sys; from ragcli.generation.generators import open_generator\n"
        "model = open_generator('gguf:' + sys.argv[1])\n"
        "sys.exit(0 if list(model.stream('Who?')) else 3)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tiny)], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_prompt_is_read_as_the_template_has_it(model: GgufModel, oracle: Any) -> None:
    for prompt in (*PROMPTS, "  two\n\nlines \n", "naïve 水 \U0001f30a"):
        assert model._read(prompt) == template_tokens(oracle, prompt)
        assert model.count(prompt) == len(template_tokens(oracle, prompt))


@given(
    st.lists(st.sampled_from(["<|user|>", "<|model|>", "</s>", "<s>", "a", "\n", " "])).map("".join)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_passage_can_write_a_marker_of_the_template(model: GgufModel, text: str) -> None:
    markers = {1, 2, 3, 4}
    tokens = model._read(f"Say {text} now")
    assert [token for token in tokens if token in markers] == [1, 3, 4]
    assert model.text(model.tokens(text)) == text


def test_a_model_without_a_template_goes_on_with_the_text_for_a_line(
    model: GgufModel, oracle: Any, tmp_path: Path
) -> None:
    base = open_gguf(str(tiny_gguf.write_tiny(tmp_path / "base.gguf", template=None)))
    try:
        assert base._read("Who?") == list(oracle.tokenize(b"Who?\n\nAnswer:", add_bos=True))
        assert {base.text([end]) for end in base.ends} == {""}
        assert base.ends == model.ends | set(base.tokens("\n"))
    finally:
        base.close()


def test_a_template_that_fails_is_one_line(model: GgufModel, tmp_path: Path) -> None:
    for template in (
        "{{ raise_exception('no\\nno') }}",
        "{% if %}",
        "{{ 1 / 0 }}",
        "nothing of the prompt",
    ):
        file = tiny_gguf.write_tiny(tmp_path / "bad.gguf", template=template)
        with pytest.raises(ModelUnavailable, match="chat template") as caught:
            open_gguf(str(file))
        told(caught.value)


# A whole answer


def test_an_answer_is_the_likeliest_token_each_time(
    model: GgufModel, oracle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf, "ANSWER_LIMIT", 40)
    for prompt in PROMPTS:
        tokens = template_tokens(oracle, prompt)
        answer: list[int] = []
        while len(answer) < 40:
            token = int(expected(oracle, tokens + answer).argmax())
            if token in model.ends:
                break
            answer.append(token)
        assert "".join(model.stream(prompt)) == model.text(answer)
        usage = model.usage()
        assert (usage.prompt_tokens, usage.answer_tokens) == (len(tokens), len(answer))


def test_usage_says_whether_the_answer_ended(
    model: GgufModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf, "ANSWER_LIMIT", 7)
    list(model.stream("Who leads?"))
    assert (model.usage().answer_tokens, model.usage().finished) == (7, False)
    monkeypatch.setattr(model, "_ends", lambda token: True)
    assert list(model.stream("Who leads?")) == []
    assert (model.usage().answer_tokens, model.usage().finished) == (0, True)


def test_the_same_prompt_gives_the_same_answer(model: GgufModel) -> None:
    first, second = ("".join(model.stream("Who leads?")) for _ in range(2))
    assert first == second


def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers(model: GgufModel) -> None:
    fits = "a" * (model.window - model.count(""))
    for prompt, size in ((fits, model.window + 1), (fits + "aa", model.window + 3)):
        with pytest.raises(UsageError, match=rf"{size} tokens .*{model.window}") as caught:
            next(model.stream(prompt))
        told(caught.value)
    assert [model.room(prompt) for prompt in (fits, fits + "aa", "")] == [
        0, -2, model.window - model.count("")
    ]  # fmt: skip
    assert model.count(fits[:-1]) + 1 == model.window
    assert len(list(model.stream(fits[:-1]))) <= 1
    model.begin(["x", fits[:-1]])
    model.logprobs([(1, (300,))])
    with pytest.raises(UsageError, match=f"{model.window + 1} tokens .*{model.window}"):
        model.logprobs([(1, (300, 300))])


# Signals, which Python handles wherever it runs: inside of what llama.cpp calls back, too


class Ended(BaseException):
    """What a program makes of a signal, whatever that is."""


@pytest.fixture(params=["SIGINT", "SIGTERM", "SIGHUP"])
def ending(request: pytest.FixtureRequest) -> Iterator[int]:
    number = getattr(signal, request.param)

    def end(*_: object) -> None:
        raise Ended

    before = signal.signal(number, end)
    yield number
    assert signal.getsignal(number) is end
    signal.signal(number, before)


def comes_in_a_callback(
    monkeypatch: pytest.MonkeyPatch, module: Any, number: int, after: int
) -> list[bool]:
    """Let a signal come at the callback of this number; what the callbacks have answered."""
    asked: list[bool] = []

    def interrupted() -> bool:
        if len(asked) == after:
            signal.raise_signal(number)
        asked.append(llama_library.interrupted())
        return asked[-1]

    monkeypatch.setattr(module, "interrupted", interrupted)
    return asked


def test_a_signal_ends_the_loading(
    tiny: Path, model: GgufModel, monkeypatch: pytest.MonkeyPatch, ending: int
) -> None:
    asked = comes_in_a_callback(monkeypatch, gguf, ending, after=0)
    with pytest.raises(Ended):
        open_gguf(str(tiny))
    assert asked == [True]  # and llama.cpp went no further


def test_a_signal_ends_the_reading_and_the_model_can_go_on(
    model: GgufModel, monkeypatch: pytest.MonkeyPatch, ending: int
) -> None:
    expected = "".join(model.stream("Who leads?"))
    for after in (0, 500):
        asked = comes_in_a_callback(monkeypatch, llama_sequences, ending, after)
        with pytest.raises(Ended):
            "".join(model.stream("Who leads?"))
        assert asked[after:] == [True]
    monkeypatch.undo()
    monkeypatch.setattr(llama_sequences, "_processors", lambda: 1)
    assert "".join(model.stream("Who leads?")) == expected


def test_a_signal_that_is_ignored_ends_nothing(
    model: GgufModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        asked = comes_in_a_callback(monkeypatch, llama_sequences, signal.SIGHUP, after=3)
        assert "".join(model.stream("Who leads?"))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert len(asked) > 3
    assert not any(asked)


# Token by token under several prompts

answers = st.lists(st.sampled_from([263, 264, 300]), max_size=5).map(tuple)
rows = st.lists(st.tuples(st.integers(0, 2), answers), min_size=1, max_size=6)


@given(steps=st.lists(rows, min_size=1, max_size=5))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
def test_a_row_does_not_depend_on_what_was_asked_before(
    model: GgufModel, oracle: Any, steps: list[list[tuple[int, tuple[int, ...]]]]
) -> None:
    model.begin(PROMPTS)
    for step in steps:
        found = model.logprobs(step)
        assert found.dtype == np.float64
        assert found.shape == (len(step), model.vocabulary)
        assert np.abs(np.log(np.exp(found).sum(axis=1))).max() < 1e-12
        for row, (number, answer) in zip(found, step, strict=True):
            alone = expected(oracle, [*template_tokens(oracle, PROMPTS[number]), *answer])
            assert np.abs(row - alone).max() < 2e-3


def beam_steps(model: GgufModel) -> list[np.ndarray]:
    """What a search of three beams under each prompt asks for, one beam branching each time."""
    model.begin(PROMPTS)
    beams: list[tuple[int, ...]] = [()]
    found = []
    for step in range(6):
        found.append(model.logprobs([(z, beam) for z in range(len(PROMPTS)) for beam in beams]))
        beams = [(*beams[0], 263 + step), (*beams[0], 300), (*beams[-1], 264)]
    return found


def test_the_same_rows_give_the_same_digits(model: GgufModel) -> None:
    for one, other in zip(beam_steps(model), beam_steps(model), strict=True):
        assert np.array_equal(one, other)


def test_a_step_reads_its_new_tokens_alone_and_in_one_batch(
    model: GgufModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    decode = model._library.llama_decode

    def counting(context: Any, batch: Any) -> int:
        read.append(batch.n_tokens)
        return int(decode(context, batch))

    monkeypatch.setattr(model._library, "llama_decode", counting)
    beam_steps(model)
    prompts = sum(model.count(prompt) - 1 for prompt in PROMPTS)
    assert read == [prompts, 3, 9, 9, 9, 9, 9]


def test_answers_that_outgrow_their_room_are_read_again(
    model: GgufModel, oracle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf, "_ROOM", 4)
    model.begin(PROMPTS)
    answer = tuple(263 + n % 7 for n in range(300))
    for size in (0, 1, 2, 290, 291, 300):
        found = model.logprobs([(z, answer[:size]) for z in range(3)])
    alone = expected(oracle, [*template_tokens(oracle, PROMPTS[2]), *answer])
    assert np.abs(found[2] - alone).max() < 2e-3


def test_more_rows_than_run_together_take_turns(
    model: GgufModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [(z, (263 + n,)) for n in range(20) for z in range(3)]
    model.begin(PROMPTS)
    together = model.logprobs(wanted)
    monkeypatch.setattr(gguf, "_TOGETHER", 1)
    model.begin(PROMPTS)
    assert np.abs(model.logprobs(wanted) - together).max() < 2e-3


def test_more_prompts_than_llama_holds_are_refused(model: GgufModel) -> None:
    with pytest.raises(ModelUnavailable, match="cannot hold 5000 prompts"):
        model.begin(["x"] * 5000)


def test_a_closed_model_says_so(model: GgufModel) -> None:
    model.close()
    model.close()
    with pytest.raises(ModelUnavailable, match="closed"):
        next(model.stream("x"))
    with pytest.raises(ModelUnavailable, match="closed"):
        model.begin(["x"])


# A real model


@pytest.mark.slow
def test_a_real_model_answers_from_its_passage() -> None:
    file = os.environ.get("RAGCLI_TEST_GGUF")
    if not file:
        pytest.skip("RAGCLI_TEST_GGUF names no model")
    pytest.importorskip("llama_cpp", reason="needs llama-cpp-python, the extra llm")
    real = open_generator(f"gguf:{file}")
    try:
        for name in ("Priti Deshmukh", "Marek Zielinski"):
            prompt = f"Context: {name} leads the Headwater team.\n\nQuestion: Who leads Headwater?"
            assert name in "".join(real.stream(prompt))
            assert real.usage().prompt_tokens == real.count(prompt)
    finally:
        real.close()
