"""`query -G`: real programs as generators, the check in the exit code, nothing left behind."""

from __future__ import annotations

import json
import os
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
    ],
)
def test_wrong_usage(work: Path, arguments: list[str], code: int, said: str) -> None:
    done = query(work, QUESTION, *arguments)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert said in done.stderr
    assert "hint: " in done.stderr


def test_the_mixture_by_the_command_line(work: Path, tmp_path: Path) -> None:
    """A tiny random model: what it says is noise, what is told of it must add up."""
    pytest.importorskip("torch", reason="the extra is not installed: pip install 'ragcli[st]'")
    from test_generation_huggingface import byte_tokenizer
    from transformers import GPT2Config, GPT2LMHeadModel

    model, tokenizer = tmp_path / "model", byte_tokenizer()
    shape = GPT2Config(
        vocab_size=len(tokenizer), n_positions=1024, n_embd=16, n_layer=2, n_head=2,
        eos_token_id=256, bos_token_id=256,
    )  # fmt: skip
    GPT2LMHeadModel(shape).save_pretrained(model)
    tokenizer.save_pretrained(model)
    for decode in ("rag-token", "rag-sequence"):
        done = query(
            work, "workers tea four", "-G", f"hf:{model}", "--decode", decode, "--json",
            "--template", str(short(work)), "--beams", "1",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)["mixture"]
        assert sum(found["prior"]) == pytest.approx(1)
        (answer,) = found["answers"]
        assert sum(answer["posterior"]) == pytest.approx(1)
        assert answer["log_likelihood"] < 0


def short(folder: Path) -> Path:
    (folder / "short.txt").write_text("{context}\n{question}\n")
    return folder / "short.txt"
