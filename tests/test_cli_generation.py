"""`query -G`: real programs as generators, the check in the exit code, nothing left behind."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import build, write_files

QUESTION = "How many workers start?"
DOCS = {
    "setup.md": "# Setup\n\nRun the installer as root. It starts four workers.\n",
    "tea.txt": "Tea is served at four in the kitchen.\n",
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    write_files(tmp_path / "docs", DOCS)
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    return tmp_path


def program(code: str) -> str:
    return f"cmd:{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def says(text: str) -> str:
    return program(f"import sys; sys.stdin.read(); print({text!r})")


def query(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    quiet = {"RAGCLI_GENERATOR", "OPENBLAS_NUM_THREADS"}
    inherited = {name: value for name, value in os.environ.items() if name not in quiet}
    return subprocess.run(
        [sys.executable, "-m", "ragcli", "query", *arguments], cwd=folder, capture_output=True,
        text=True, check=False, env={**inherited, "HOME": str(folder), **environment},
    )  # fmt: skip


def test_an_answer_with_its_sources(work: Path) -> None:
    done = query(work, QUESTION, "-G", says("It starts four workers [1]."))
    assert (done.returncode, done.stdout) == (0, "It starts four workers [1].\n")
    assert "ragcli: [1] setup.md:1-3\n" in done.stderr
    assert "sentence" not in done.stderr


def test_the_blank_that_models_begin_with_is_not_shown(work: Path) -> None:
    code = "import sys; sys.stdin.read(); print('\\n  Four [1].')"
    assert query(work, QUESTION, "-G", program(code)).stdout == "Four [1].\n"


def test_the_prompt_is_what_the_program_reads(work: Path) -> None:
    prompt = query(work, QUESTION).stdout
    echoed = query(work, QUESTION, "-G", program("import sys; print(sys.stdin.read(), end='')"))
    assert echoed.stdout == prompt


def test_what_is_cited_and_not_there(work: Path) -> None:
    done = query(work, QUESTION, "-G", says("Four workers [1]. Ask Bob [7]."))
    assert done.returncode == 1
    assert done.stdout == "Four workers [1]. Ask Bob [7].\n"
    assert "the answer cites [7], which no passage of the prompt has" in done.stderr


def test_json_has_the_answer_and_its_check(work: Path) -> None:
    spec = says("It starts four workers [1]. They are made of brass.")
    done = query(work, QUESTION, "-G", spec, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["answer"].startswith("It starts four workers")
    (cited,) = found["citations"]
    assert (cited["path"], cited["lines"], cited["number"]) == ("setup.md", [1, 3], 1)
    assert found["check"]["generator"] == spec
    assert (found["check"]["cited"], found["check"]["uncited"]) == (1, 1)
    assert not found["check"]["well"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.stderr.write('no model\\n'); sys.exit(3)", "ended with exit code 3"),
        ("pass", "answered nothing"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    ],
)
def test_a_program_that_fails(work: Path, code: str, said: str) -> None:
    done = query(work, QUESTION, "-G", program(code))
    assert (done.returncode, done.stdout) == (6, "")
    assert said in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_environment_names_one_and_none_undoes_it(work: Path) -> None:
    spec = says("Four [1].")
    assert query(work, QUESTION, RAGCLI_GENERATOR=spec).stdout == "Four [1].\n"
    assert query(work, QUESTION, "-G", "none", RAGCLI_GENERATOR=spec).stdout.startswith("Answer")


def test_a_projects_own_file_names_none(work: Path) -> None:
    for place in (work / "docs" / "config.toml", work / "ragcli" / "config.toml"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"generator = {json.dumps(says('Owned [1].'))}\n")
    assert "Owned" not in query(work, QUESTION, XDG_CONFIG_HOME=".").stdout
    mine = work / "mine" / "ragcli"
    mine.mkdir(parents=True)
    (mine / "config.toml").write_text(f"generator = {json.dumps(says('Mine [1].'))}\n")
    assert query(work, QUESTION, XDG_CONFIG_HOME=str(work / "mine")).stdout == "Mine [1].\n"


def test_the_program_has_the_users_environment(work: Path) -> None:
    code = "import os, sys; sys.stdin.read(); print(os.environ.get('OPENBLAS_NUM_THREADS'), '[1]')"
    assert query(work, QUESTION, "-G", program(code)).stdout == "None [1]\n"


def test_nothing_found_asks_nobody(work: Path) -> None:
    touched = program("open('touched', 'w'); print('x')")
    done = query(work, "xylophone", "-G", touched)
    assert (done.returncode, done.stdout) == (1, "")
    assert not (work / "touched").exists()


def test_the_closed_book(work: Path) -> None:
    code = "import sys; print('none' if 'Context: (none)' in sys.stdin.read() else 'some')"
    done = query(work, QUESTION, "-k", "0", "-G", program(code))
    assert (done.returncode, done.stdout) == (0, "none\n")


def test_the_closed_book_beside_the_open_one(work: Path) -> None:
    code = "import sys; print('Twelve.' if 'Context: (none)' in sys.stdin.read() else 'Four [1].')"
    done = query(work, QUESTION, "-G", program(code), "--compare-closed-book")
    assert (done.returncode, done.stdout) == (
        0, "Four [1].\n\nwithout the passages:\nTwelve.\n"
    )  # fmt: skip
    assert "without the passages the answer is another one" in done.stderr
    found = json.loads(
        query(work, QUESTION, "-G", program(code), "--compare-closed-book", "--json").stdout
    )
    assert found["closed_book"] == {"answer": "Twelve.\n", "changed": True}
    alike = query(work, QUESTION, "-G", says("Four [1]."), "--compare-closed-book", "--json")
    assert not json.loads(alike.stdout)["closed_book"]["changed"]


def test_a_batch(work: Path) -> None:
    (work / "b.jsonl").write_text(
        '{"id": 1, "question": "workers"}\n{"id": 2, "question": "zzz"}\n'
    )
    done = query(work, "--batch", "b.jsonl", "--json", "-G", says("Four [1]."))
    answers = [json.loads(line)["answer"] for line in done.stdout.splitlines()]
    assert answers == ["Four [1].\n", None]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-G", "nonsense"], 2, "nonsense"),
        (["-G", "cmd:"], 2, "cmd:"),
        (["-G", "cmd:no-such-program-here"], 6, "no-such-program-here"),
        (["--decode", "rag-token"], 2, "with a generator"),
        (["-G", says("x"), "--decode", "rag-token"], 2, "needs a model in this process"),
        (["-G", says("x"), "--score-answer", "four"], 2, "--score-answer needs a model"),
        (["--temperature", "0"], 2, "--temperature"),
        (["--compare-closed-book"], 2, "with a generator"),
        (["-G", "gguf:nowhere.gguf"], 6, "gguf"),
        # told before the model is looked for
        (["-G", "gguf:no", "--decode", "fid", "--score-answer", "x"], 2, "fid is none"),
        (
            ["-G", "gguf:no", "--compare-closed-book", "--score-answer", "x"],
            2,
            "closed-book is for",
        ),
        (["-G", "gguf:no", "--beams", "2"], 2, "--beams are of"),
        (["-G", "gguf:no", "--score-answer", "x", "--beams", "2"], 2, "--beams are of"),
        (["--decoding", "fast"], 2, "--decoding is how"),
        (["-G", "gguf:no", "--decode", "rag-token", "--decoding", "fast"], 2, "--decoding is how"),
        (["-G", "gguf:no", "--decode", "fid", "--decoding", "fast"], 2, "--decoding is how"),
        (["-G", "gguf:no", "--temperature", "2"], 2, "--temperature is of p(z|x)"),
        (["-G", "gguf:no", "--decode", "fid", "--temperature", "2"], 2, "--temperature is of"),
        (["-G", "gguf:no", "--decode", "rag-token", "--order", "best"], 2, "without --order"),
        (["-G", "gguf:no", "--score-answer", "x", "--budget", "99"], 2, "without --order and --b"),
        (["-G", "gguf:no", "--decode", "rag-token", "-k", "0"], 2, "over passages"),
        (["-G", "gguf:no", "--template", "docs/tea.txt"], 2, "the template must hold"),
    ],
)
def test_wrong_usage(work: Path, arguments: list[str], code: int, said: str) -> None:
    done = query(work, QUESTION, *arguments)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert said in done.stderr
    assert "hint: " in done.stderr


QUOTED = {
    "page.html": "<p>It starts <b>four</b>\nworkers &amp; waits.</p>",
    "rows.jsonl": '{"id": "a", "text": "It starts four\\nworkers \\u0026 waits."}\n',
    "table.csv": 'name,what\na,"It starts four\nworkers & waits."\n',
    "letter.eml": "Subject: x\nContent-Transfer-Encoding: quoted-printable\n\n"
    "It starts four=\n workers =26 waits.\n",
    "book.ipynb": json.dumps(
        {"cells": [{"cell_type": "markdown", "source": ["It starts four\n", "workers & waits."]}],
         "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    ),
    "old.txt": "Es läuft. It starts four workers & waits.",
}  # fmt: skip
"""Files whose bytes are not their text."""

SAYS_SO = says('It says "it starts four workers & waits" [1].')


def quoted(work: Path, name: str, *arguments: str) -> tuple[int, str, bool | None]:
    """The exit code, the verdict over what is quoted, and whether the file has it now."""
    done = query(
        work, QUESTION, "-G", SAYS_SO, "--path", name, "--json", "--refresh", "never", *arguments
    )
    (found,) = json.loads(done.stdout)["check"]["quotations"]
    return done.returncode, found["verdict"], found["in_file"]


@pytest.fixture
def kinds(work: Path) -> Path:
    for name, text in QUOTED.items():
        (work / "docs" / name).write_bytes(text.encode("latin-1"))
    build(work / ".rag", work / "docs", encoder="none")
    return work


@pytest.mark.parametrize("name", QUOTED)
def test_what_is_quoted_stands_in_a_file_that_is_as_it_was(kinds: Path, name: str) -> None:
    assert quoted(kinds, name) == (0, "verbatim", True)


def test_a_file_that_is_no_more_as_it_was_is_read_again(kinds: Path) -> None:
    docs = kinds / "docs"
    for name in QUOTED:
        (docs / name).write_bytes((docs / name).read_bytes() + b"\n")
    for name in ("rows.jsonl", "table.csv", "book.ipynb", "old.txt"):
        assert quoted(kinds, name) == (0, "verbatim", True), name
    for name in ("page.html", "letter.eml"):  # read in a process of their own, which nobody starts
        assert quoted(kinds, name) == (0, "verbatim", None), name
    rows = docs / "rows.jsonl"
    rows.write_text(rows.read_text().replace("four", "five"))
    assert quoted(kinds, "rows.jsonl") == (0, "changed", False)
    (docs / "table.csv").unlink()
    assert quoted(kinds, "table.csv") == (0, "changed", False)


def test_a_file_outside_of_the_folder_is_not_read(kinds: Path) -> None:
    (kinds / "outside.txt").write_text("It starts six workers.")
    (kinds / "docs" / "old.txt").unlink()
    (kinds / "docs" / "old.txt").symlink_to(kinds / "outside.txt")
    assert quoted(kinds, "old.txt") == (0, "verbatim", None)


def test_the_closed_book_is_not_told_of_a_smaller_k(work: Path) -> None:
    done = query(work, QUESTION, "-k", "0", "-G", says("Four [1]."))
    assert done.returncode == 1
    assert "cites or quotes passages, and was given none" in done.stderr
    assert "-k" not in done.stderr.partition("hint: ")[2]


def test_the_prompt_beside_the_answer_is_for_stderr(work: Path) -> None:
    prompt = query(work, QUESTION).stdout
    done = query(work, QUESTION, "-G", says("Four [1]."), "--show", "prompt")
    assert done.stdout == "Four [1].\n"
    assert prompt in done.stderr
    quiet = query(work, QUESTION, "-G", says("Four [1]."), "--show", "prompt", "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("Four [1].\n", "")
    assert prompt not in query(work, QUESTION, "-G", says("Four [1].")).stderr


def test_an_answer_without_end_is_cut_off_and_its_program_ended(work: Path) -> None:
    endless = program(
        "import os; open('pid', 'w').write(str(os.getpid()))\nwhile True: print('four')"
    )
    done = query(work, QUESTION, "-G", endless)
    assert done.returncode == 6
    assert done.stdout == "four\n" * 200_000
    assert "the answer was cut off at 1,000,000 characters\n\nhint: " in done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int((work / "pid").read_text()), 0)


@pytest.mark.skipif(os.name == "nt", reason="needs a terminal to be")
def test_a_terminal_is_shown_line_ends_of_windows_as_line_ends(work: Path) -> None:
    import pty

    code = (
        "import sys, time; sys.stdin.read()\n"
        "for piece in (b'Four', b' [1].\\r', b'\\nAnd\\x1b[2J\\ra \\r', b'blank\\r\\n'):\n"
        "    sys.stdout.buffer.write(piece); sys.stdout.flush(); time.sleep(0.05)"
    )
    ours, theirs = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k != "RAGCLI_GENERATOR"}
    done = subprocess.run(
        [sys.executable, "-m", "ragcli", "query", QUESTION, "-G", program(code), "--show", "table"],
        cwd=work, stdout=theirs, stderr=subprocess.DEVNULL, check=False,
        env={**inherited, "HOME": str(work)},
    )  # fmt: skip
    os.close(theirs)
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert done.returncode == 0
    assert shown == "Four [1].\r\nAnd\\x1b[2J\\ra \\rblank\r\n"


FAILING = """
import sys
asked = sys.stdin.read()
if "tea" in asked.rpartition("Question:")[2]:
    sys.exit("out of tea")
print("Four [1].")
"""


def answered(work: Path, *questions: str, spec: str) -> tuple[list[Any], Any, int]:
    (work / "b.jsonl").write_text("".join(json.dumps({"question": q}) + "\n" for q in questions))
    done = query(work, "--batch", "b.jsonl", "--json", "-G", spec)
    error = json.loads(done.stderr) if done.stderr else None
    return [json.loads(line) for line in done.stdout.splitlines()], error, done.returncode


def test_a_batch_goes_on_after_a_failure(work: Path) -> None:
    lines, error, code = answered(
        work, "tea", "workers", "tea", "tea and workers", "zzz", "workers", spec=program(FAILING)
    )
    assert [line["answer"] for line in lines] == [
        None, "Four [1].\n", None, None, None, "Four [1].\n"
    ]  # fmt: skip
    told = [line["error"] for line in lines]
    assert [each is None for each in told] == [False, True, False, False, True, True]
    assert set(told[0]) == {"message", "hint", "exit_code"}
    assert told[0]["exit_code"] == code == error["exit_code"] == 6
    assert told[0]["message"].endswith("ended with exit code 1: out of tea")
    assert error["message"].startswith("3 of 6 questions could not be answered: ")


def test_three_failures_in_a_row_end_a_batch(work: Path) -> None:
    lines, error, code = answered(work, "workers", *["tea"] * 5, spec=program(FAILING))
    assert [line["error"] is None for line in lines] == [True, False, False, False]
    assert code == 6
    assert error["message"].startswith(
        "3 of 6 questions could not be answered, the last 3 in a row, and 2 were not asked: "
    )


@pytest.mark.slow
def test_the_example_asks_no_generator_of_the_environment(work: Path) -> None:
    example = Path(__file__).resolve().parents[1] / "examples" / "hot_swap.py"
    environment = {**os.environ, "RAGCLI_GENERATOR": program("open('touched', 'w')")}
    done = subprocess.run(
        [sys.executable, str(example)], cwd=work, capture_output=True, text=True, check=False,
        env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def saved_model(folder: Path, *, encoder_decoder: bool = False, window: int = 512) -> Path:
    """A tiny random model: what it says is noise, what is told of it must add up."""
    pytest.importorskip("torch", reason="the extra is not installed: pip install 'ragcli[st]'")
    import test_generation_huggingface as models
    from transformers import GPT2Config, GPT2LMHeadModel

    if encoder_decoder:
        models.t5().save_pretrained(folder)
        models.word_tokenizer().save_pretrained(folder)
        return folder
    tokenizer = models.byte_tokenizer()
    shape = GPT2Config(
        vocab_size=len(tokenizer), n_positions=window, n_embd=16, n_layer=2, n_head=2,
        eos_token_id=256, bos_token_id=256,
    )  # fmt: skip
    GPT2LMHeadModel(shape).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


KEYS = [
    "schema", "question", "hits", "prompt", "dropped", "answerable", "answer", "citations",
    "check", "closed_book", "mixture", "error", "index", "timings_ms",
]  # fmt: skip


def mixed(work: Path, model: Path, *arguments: str) -> dict[str, Any]:
    done = query(
        work, "workers tea four", "-G", f"hf:{model}", "--json", "--template", str(short(work)),
        *arguments,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert list(found) == KEYS
    assert (found["prompt"], found["dropped"], found["citations"]) == (None, [], [])
    assert (found["check"], found["closed_book"], found["error"]) == (None, None, None)
    assert found["index"]["chunks"] == 2
    assert len(found["mixture"]["prompts"]) == len(found["hits"]) == 2
    return found


@pytest.mark.parametrize("decode", ["rag-token", "rag-sequence"])
def test_the_mixture_by_the_command_line(work: Path, tmp_path: Path, decode: str) -> None:
    found = mixed(work, saved_model(tmp_path / "model"), "--decode", decode, "--beams", "1")
    mixture = found["mixture"]
    assert sum(mixture["prior"]) == pytest.approx(1)
    assert mixture["temperature"] == 1.0  # of an index without vectors
    (answer,) = mixture["answers"]
    assert answer["log_likelihood"] < 0
    assert sum(answer["posterior"]) == pytest.approx(1)
    assert found["answer"] == answer["text"]


def test_fusion_in_the_decoder_has_no_prior(work: Path, tmp_path: Path) -> None:
    model = saved_model(tmp_path / "model", encoder_decoder=True)
    mixture = mixed(work, model, "--decode", "fid")["mixture"]
    assert (mixture["prior"], mixture["temperature"]) == ([], None)
    (answer,) = mixture["answers"]
    assert (answer["model"], answer["posterior"]) == ("fid", [])


def test_a_candidate_that_only_a_passage_of_no_weight_has(work: Path, tmp_path: Path) -> None:
    """Its logarithm is of 0, which JSON has not."""
    mixture = mixed(
        work, saved_model(tmp_path / "model"), "--decode", "rag-sequence", "--decoding", "fast",
        "--temperature", "0.00001", "--beams", "2",
    )["mixture"]  # fmt: skip
    assert mixture["prior"] == [1.0, 0.0]
    candidates = mixture["answers"][0]["candidates"]
    assert None in [each["log_likelihood"] for each in candidates]
    assert candidates[0]["log_likelihood"] is not None


def test_a_score_is_the_result(work: Path, tmp_path: Path) -> None:
    model = saved_model(tmp_path / "model")
    arguments = ["workers", "-G", f"hf:{model}", "--template", str(short(work))]
    done = query(work, *arguments, "--score-answer", "four", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert "rag-sequence: log p(y|x) -" in done.stdout
    assert "rag-token: log p(y|x) -" in done.stdout
    one = query(work, *arguments, "--score-answer", "four", "--decode", "rag-token", "--quiet")
    assert "rag-sequence" not in one.stdout
    assert one.stdout.splitlines()[1].split(",")[0] in done.stdout
    found = mixed(work, model, "--score-answer", "four")
    assert found["answer"] is None
    assert found["mixture"]["scored"] == "four"
    assert [each["model"] for each in found["mixture"]["answers"]] == ["rag-sequence", "rag-token"]
    assert [each["text"] for each in found["mixture"]["answers"]] == ["four", "four"]


def test_a_passage_that_leaves_no_room_is_named(work: Path, tmp_path: Path) -> None:
    model = saved_model(tmp_path / "model", window=1024)
    long = " ".join(["tea at four"] * 90)  # 1,079 bytes, each a token to this model
    write_files(tmp_path / "docs", {"long.txt": long})
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none", chunk="words:400")
    arguments = ["tea four", "-G", f"hf:{model}", "--template", str(short(work))]
    done = query(work, *arguments, "--decode", "rag-token")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(r"passage \[\d\], long.txt:1, makes a prompt of 1,\d{3} tokens", done.stderr)
    assert "ragcli index --chunk" in done.stderr
    scored = query(work, *arguments, "--path", "tea.txt", "--score-answer", "x" * 900)
    assert "leaves hf:" in scored.stderr
    assert "no room for an answer of 901" in scored.stderr


def test_what_does_not_fit_in_the_window_is_left_out_and_said(work: Path, tmp_path: Path) -> None:
    model = saved_model(tmp_path / "model", window=1024)
    long = " ".join(["workers and tea at four"] * 12)  # 287 bytes, each a token to this model
    write_files(tmp_path / "docs", {f"{name}.txt": f"{name} {long}" for name in "abc"})
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    done = query(work, "tea", "-G", f"hf:{model}", "--template", str(short(work)), "-k", "3")
    assert "left out of the prompt for the window of 1,024 tokens that hf:" in done.stderr
    assert done.stderr.count(": [2], [3]\n") + done.stderr.count(": [3]\n") == 1
    assert done.returncode == 0, done.stderr


def test_a_budget_that_no_passage_fits_asks_nobody(work: Path) -> None:
    touched = program("open('touched', 'w'); print('x')")
    done = query(work, QUESTION, "-G", touched, "--budget", "120")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no passage fits into a prompt of 120 tokens" in done.stderr
    assert not (work / "touched").exists()


def short(folder: Path) -> Path:
    (folder / "short.txt").write_text("{context}\n{question}\n")
    return folder / "short.txt"
