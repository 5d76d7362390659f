"""`ragcli query` on a real index: hostile questions, JSON that others build on, streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcli.cli.app import run

FILES = {
    "install.md": "# Install\n\nRun the installer as root. It starts four workers.\n",
    "ports.md": "# Ports\n\nThe dashboard listens on port 8443. Set `max_workers` with care.\n",
    "crane.txt": "The harbour crane lifts forty tonnes.\n\nCranes close at night.\n",
    "zh.txt": "数据库在夜间关闭。\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index of both retrievers."""
    here = tmp_path_factory.mktemp("query")
    for name, text in FILES.items():
        (here / "docs" / name).parent.mkdir(exist_ok=True)
        (here / "docs" / name).write_text(text, encoding="utf-8")
    index = ["index", str(here / "docs"), "--index", str(here / ".rag"), "--chunk", "sentences:1"]
    assert run([*index, "--quiet"]) == 0
    return here


@pytest.fixture(autouse=True)
def _there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("RAGCLI_INDEX", raising=False)


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]):
    def asked(*arguments: str) -> tuple[int, str, str]:
        code = run(["query", *arguments])
        return code, *capsys.readouterr()

    return asked


def test_json_has_the_fields_that_others_build_on(ask, folder: Path) -> None:
    code, out, err = ask("dashboard port", "-k", "2", "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    result = json.loads(out)
    assert list(result) == [
        "schema", "question", "hits", "prompt", "dropped", "answerable", "answer", "citations",
        "check", "closed_book", "mixture", "error", "index", "timings_ms",
    ]  # fmt: skip
    assert result["schema"] == "ragcli.query/1"
    refresh = {
        "changed": 0, "came": 0, "went": 0, "taken": False, "busy": False, "left": 0, "failed": 0,
        "away": False,
    }  # fmt: skip
    assert result["index"] == {
        "chunks": 9, "embedded": 9, "embedded_now": 0, "problems": 0, "refresh": refresh,
    }  # fmt: skip
    assert result["timings_ms"]["total"] > 0
    first = result["hits"][0]
    assert list(first) == [
        "rank", "path", "record", "start", "end", "lines", "page", "heading", "score", "scores",
        "weight", "text", "stale",
    ]  # fmt: skip
    assert first["path"] == "ports.md"
    assert FILES["ports.md"][first["start"] : first["end"]] == first["text"]
    line = FILES["ports.md"][: first["start"]].count("\n") + 1
    assert first["lines"] == [line, line]
    assert first["heading"] == ["Ports"]
    assert first["scores"].keys() == {"lexical", "dense", "neighbour", "rerank"}
    assert first["stale"] is False
    assert sum(hit["weight"] for hit in result["hits"]) == pytest.approx(1)
    assert first["text"] in result["prompt"]


def test_json_explains(ask) -> None:
    _, out, _ = ask("dashboard port", "-k", "1", "--json", "--explain")
    explained = json.loads(out)["hits"][0]["explain"]
    assert explained["lexical"]["rank"] == 1
    assert explained["dense"].keys() == {"rank", "score"}
    assert {term["term"] for term in explained["terms"]} == {"port", "dashboard"}
    assert explained["terms"][0].keys() == {"term", "count", "frequency", "score"}
    lexical = sum(term["score"] for term in explained["terms"])
    assert lexical == pytest.approx(explained["lexical"]["score"])


def test_the_prompt_is_that_of_the_json(ask) -> None:
    _, prompt, err = ask("workers", "-k", "3")
    _, out, _ = ask("workers", "-k", "3", "--json")
    assert (prompt, err) == (json.loads(out)["prompt"] + "\n", "")


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_each_mode_shows_the_retrievers_that_ran(ask, mode: str) -> None:
    code, out, err = ask("workers", "--mode", mode, "--show", "table")
    assert (code, err) == (0, "")
    head = out.splitlines()[0].split()
    assert ("lexical" in head, "dense" in head) == (mode != "dense", mode != "lexical")


def test_path_and_max_per_file_limit_the_hits(ask) -> None:
    _, out, _ = ask("crane port", "--path", "*.md", "--json")
    assert {hit["path"] for hit in json.loads(out)["hits"]} <= {"install.md", "ports.md"}
    _, out, _ = ask("crane tonnes night", "--max-per-file", "1", "--json")
    paths = [hit["path"] for hit in json.loads(out)["hits"]]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("share", ["0", "1"])
def test_alpha_is_the_dense_share(ask, share: str) -> None:
    mode = "dense" if share == "1" else "lexical"
    _, mixed, _ = ask("the crane", "--alpha", share, "--json", "-k", "1")
    _, alone, _ = ask("the crane", "--mode", mode, "--json", "-k", "1")
    assert json.loads(mixed)["hits"][0]["path"] == json.loads(alone)["hits"][0]["path"]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
@pytest.mark.parametrize(
    "question",
    [
        'NOT "port" * OR (8443) AND NEAR/3 {x} [y] \\ \' ^~ port:8443',
        '"', "*", "()", "--", "%s %d {context}", "a" * 100_000, "port " * 20_000, "数据库",
        "é\u0301 🚀 \x1b[31m port", "what is the of", "?!…", "\u202e", "\ufffd", "port\x00port",
        "1.0.21 ERR_4012 max_workers",
    ],
    ids=lambda question: question[:12].encode("unicode_escape").decode(),
)  # fmt: skip
def test_any_question_gets_an_answer_or_one_clear_line(ask, question: str, mode: str) -> None:
    code, out, err = ask("--json", "--mode", mode, "-k", "3", "--", question)
    result = json.loads(out)
    assert result["question"] == question
    if code == 0:
        assert err == ""
        assert result["hits"]
        return
    assert code == 1
    told = json.loads(err)
    assert told["message"].startswith("nothing found")
    assert told["hint"]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(st.characters(codec=None), min_size=1, max_size=60).filter(lambda text: text != "-"))
def test_any_text_at_all_is_a_question(capsys, question: str) -> None:
    code = run(["query", "--json", "--", question])
    out, err = capsys.readouterr()
    out.encode()
    if not question.strip():
        assert code == 2
        return
    assert code in (0, 1), err
    assert json.loads(out)["hits"] or code == 1


@pytest.mark.parametrize("question", [b"caf\xe9 port", b"\xff\xfe", b"port \xed\xa0\x80"])
def test_bytes_that_are_no_utf8_are_a_question(question: bytes, folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    for more in ([], ["--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "ragcli", "query", question, *more],
            cwd=folder, env=environment, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1)
        assert b"internal error" not in done.stderr
        assert "\ufffd" in done.stdout.decode() or done.returncode == 1


@pytest.mark.parametrize("question", ["", " ", "\n\t ", "\u3000"])
def test_an_empty_question_is_one_line(ask, question: str) -> None:
    assert ask(question) == (
        2, "", 'ragcli: the question is empty\n\nhint: ragcli query "your question"\n',
    )  # fmt: skip


def test_nothing_is_read_from_stdin_unless_asked_to(folder: Path) -> None:
    """A pipe that nobody writes to and nobody closes would hang a reader."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    reading, writing = os.pipe()
    try:
        subprocess.run(
            [sys.executable, "-m", "ragcli", "query", "port"], cwd=folder, env=environment,
            stdin=reading, stdout=subprocess.DEVNULL, timeout=30, check=True,
        )  # fmt: skip
    finally:
        os.close(reading)
        os.close(writing)


def test_options_may_stand_anywhere(ask) -> None:
    wanted = ask("port", "-k", "1")[1]
    for arguments in (
        ["-k", "1", "port"], ["-k1", "port"], ["-k=1", "port"], ["-k", "1", "--", "port"],
    ):  # fmt: skip
        assert ask(*arguments)[1] == wanted
    for question in ("--", "-k 1", "-k", "--json", "- a port"):
        assert ask("-k", "0", "--", question)[1].endswith(f"Question: {question}\n")
    for question in ("--how it is", "- a book", "-ask me", "words", "k"):
        assert ask(question, "-k", "0")[1].endswith(f"Question: {question}\n")
    assert ask("-k 0", "--path", "-a b", "port")[1].endswith("Question: port\n")


def test_explain_and_show_choose_the_streams(ask) -> None:
    prompt = ask("port", "-k", "1")[1]
    _, out, err = ask("port", "-k", "1", "--explain")
    assert out == prompt
    assert "in passage" in err
    _, out, err = ask("port", "-k", "1", "--show", "prompt", "--explain")
    assert (out, err) == (prompt, "")
    _, out, err = ask("port", "-k", "1", "--show", "prompt,table")
    assert out == prompt
    assert err.startswith("#  score")
    _, out, err = ask("port", "-k", "1", "--show", "table")
    assert out.startswith("#  score")
    assert err == ""


def test_json_tells_what_the_budget_left_out(ask) -> None:
    _, out, err = ask("workers port crane", "-k", "4", "--json", "--budget", "230")
    result = json.loads(out)
    assert err == ""
    assert result["dropped"]
    for hit in result["hits"]:
        assert (f"[{hit['rank']}] ---" in result["prompt"]) != (hit["rank"] in result["dropped"])


def test_verbose_tells_the_times(ask) -> None:
    _, _, err = ask("port", "--verbose")
    assert err.startswith("ragcli: ")
    assert " ms" in err


def test_a_batch_answers_as_single_questions_do(ask, tmp_path: Path) -> None:
    questions = ["dashboard port", "nothing of the kind xylophone", "crane"]
    file = tmp_path / "batch.jsonl"
    lines = [json.dumps({"id": f"q{i}", "question": q}) for i, q in enumerate(questions)]
    file.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    code, out, err = ask("--batch", str(file), "--json", "-k", "2")
    assert (code, err) == (0, "")
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer.pop("id") for answer in answers] == ["q0", "q1", "q2"]
    for question, answer in zip(questions, answers, strict=True):
        alone = json.loads(ask(question, "--json", "-k", "2")[1])
        del answer["timings_ms"], alone["timings_ms"]
        assert answer == alone


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 of the batch is not JSON"),
        ("[]", "line 2 of the batch is not a JSON object"),
        ("{}", "line 2 of the batch has no question"),
        ('{"question": 7}', "line 2 of the batch has no question"),
        ('{"question": "q", "id": [1]}', "line 2 of the batch has an id that is neither"),
    ],
)
def test_a_bad_line_of_a_batch_is_named_before_anything_is_asked(
    ask, tmp_path: Path, line: str, told: str
) -> None:
    file = tmp_path / "batch.jsonl"
    file.write_text('{"question": "port"}\n' + line)
    code, out, err = ask("--batch", str(file), "--json")
    assert (code, out) == (2, "")
    assert json.loads(err)["message"].startswith(told)


def test_an_index_is_found_from_below_by_option_and_by_environment(
    ask, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ask("port", "-k", "1")[1]
    monkeypatch.chdir(folder / "docs")
    assert ask("port", "-k", "1")[1] == wanted
    monkeypatch.chdir(tmp_path)
    assert ask("port")[0] == 3
    assert ask("port", "-k", "1", "--index", str(folder / ".rag"))[1] == wanted
    monkeypatch.setenv("RAGCLI_INDEX", str(folder / ".rag"))
    assert ask("port", "-k", "1")[1] == wanted


def test_half_a_surrogate_pair_is_a_question(capsys) -> None:
    assert run(["query", "\ud800 harbour", "-k", "0"]) == 0
    assert "Question: \ufffd harbour" in capsys.readouterr().out
