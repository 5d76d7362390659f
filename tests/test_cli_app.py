"""The boundary: what an error looks like, which code a command ends with, how a stream fails."""

import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated

import pytest
import typer

from ragcli import errors
from ragcli.cli import app, options, output


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A command `try`, whose `error` a test sets."""
    module = ModuleType("ragcli.cli.try")
    module.app = options.command_app()

    @module.app.command(cls=options.Command, add_help_option=False)
    @dataclass(frozen=True)
    class Try(options.CommandLine):
        words: Annotated[list[str] | None, typer.Argument()] = None

        def run(self) -> None:
            raise module.error

    monkeypatch.setitem(sys.modules, "ragcli.cli.try", module)
    monkeypatch.setitem(app.COMMANDS, "try", "")
    return module


EVERY_ERROR = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.RagcliError)
]


@pytest.mark.parametrize("kind", EVERY_ERROR, ids=lambda kind: kind.__name__)
def test_an_error_is_one_line_a_blank_line_and_a_hint(command, capsys, kind) -> None:
    command.error = kind("what \x1b[31mhappened\nhere", "what to do")
    assert app.run(["try"]) == kind.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "ragcli: what \\x1b[31mhappened\\nhere\n\nhint: what to do\n"


@pytest.mark.parametrize("kind", EVERY_ERROR, ids=lambda kind: kind.__name__)
def test_with_json_an_error_is_one_object(command, capsys, kind) -> None:
    command.error = kind("what \udcff happened")
    assert app.run(["try", "--json"]) == kind.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    shown = json.loads(err)
    assert shown["schema"] == "ragcli.error/1"
    assert shown["message"] == "what \\xff happened"
    assert shown["hint"] is None
    assert shown["exit_code"] == kind.exit_code
    assert shown["error"].replace("_", "") == kind.__name__.lower()


def test_a_bug_ends_with_70_and_the_way_to_its_traceback(command, capsys, monkeypatch) -> None:
    monkeypatch.delenv("RAGCLI_DEBUG", raising=False)
    command.error = ValueError("bad")
    assert app.run(["try"]) == 70
    assert capsys.readouterr().err == (
        "ragcli: internal error: ValueError: bad\n\nhint: --debug shows the traceback\n"
    )


@pytest.mark.parametrize("by", ["option", "environment"])
def test_debug_shows_the_traceback_of_a_bug(command, capsys, monkeypatch, by: str) -> None:
    if by == "environment":
        monkeypatch.setenv("RAGCLI_DEBUG", "1")
    command.error = ValueError("bad")
    assert app.run(["try", "--debug"] if by == "option" else ["try"]) == 70
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):")
    assert "ragcli: internal error: ValueError: bad" in err


def test_debug_shows_no_traceback_of_what_is_no_bug(command, capsys) -> None:
    command.error = errors.UsageError("wrong")
    app.run(["try", "--debug"])
    assert "Traceback" not in capsys.readouterr().err


def test_a_pipe_that_breaks_inside_a_command_is_a_bug_not_an_end(command, capsys) -> None:
    command.error = BrokenPipeError(32, "Broken pipe")
    assert app.run(["try"]) == 70
    assert "internal error: BrokenPipeError" in capsys.readouterr().err


def test_a_terminal_gets_no_carriage_returns_and_no_escapes(monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    output.print_result("one\r\n\ttwo\rthree\x1b[0m")
    assert sys.stdout.getvalue() == "one\n\ttwo\\rthree\\x1b[0m\n"


def test_an_interrupt_ends_with_130(command, capsys) -> None:
    command.error = KeyboardInterrupt()
    assert app.run(["try"]) == 130
    assert capsys.readouterr().err.startswith("ragcli: interrupted\n\nhint: ")


def test_options_after_two_dashes_are_not_the_boundarys(command, capsys) -> None:
    command.error = errors.UsageError("wrong")
    app.run(["try", "--", "--json"])
    assert capsys.readouterr().err == "ragcli: wrong\n"


@pytest.mark.parametrize(
    ("arguments", "line", "hint"),
    [
        (["indx"], "no such command: indx", "ragcli --help lists the commands"),
        (["--nope"], "no such option: --nope", "ragcli --help"),
        (["query", "q", "--nope"], "no such option: --nope", "ragcli query --help"),
        (["query", "q", "--nope", "x"], "no such option: --nope", "ragcli query --help"),
        (["query", "two", "words"], "2 words where one question belongs",
         'put it in quotes: ragcli query "your question"'),
        (["query", "q", "-k"], "argument -k: expected one argument", "ragcli query --help"),
        (["query", "-k", "--", "q"], "argument -k: expected one argument", "ragcli query --help"),
        (["query", "q", "--path", "--explain"], "argument --path: expected one argument",
         "ragcli query --help"),
        (["query", "q", "--explain=1"], "option '--explain' does not take a value",
         "ragcli query --help"),
        (["query", "q", "-k", "-1"], "argument -k: -1 is not a whole number of at least 0",
         "ragcli query --help"),
        (["query", "q", "--mode", "x\ny"],
         r"argument --mode: x\ny is not one of hybrid, dense, lexical", "ragcli query --help"),
        (["query", "q", "--alpha", "nan"], "argument --alpha: nan is not a number from 0 to 1",
         "ragcli query --help"),
        (["query", "q", "--show", "table,x"], "argument --show: x is not one of table, prompt",
         "ragcli query --help"),
        (["index", "--max-file-size", "big"],
         "argument --max-file-size: big is not a size such as 500k, 64M or 2G",
         "ragcli index --help"),
        (["index", "--nope", "path"], "no such option: --nope", "ragcli index --help"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_ends_with_2(capsys, arguments, line, hint) -> None:
    assert app.run(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"ragcli: {line}\n\nhint: {hint}\n")
    if arguments[0] in app.COMMANDS:
        assert app.run([arguments[0], "--json", *arguments[1:]]) == 2
        assert json.loads(capsys.readouterr().err)["message"] == line


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_lists_the_commands(capsys, arguments) -> None:
    assert app.run(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for name, what in app.COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(what)}$", out, re.MULTILINE)


def test_version(capsys) -> None:
    from ragcli import __version__

    assert app.run(["--version"]) == 0
    assert capsys.readouterr().out == f"ragcli {__version__}\n"


@pytest.mark.parametrize("columns", ["40", "80", "200"])
@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_has_the_common_options_and_a_page_that_fits(
    capsys, monkeypatch, name: str, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert app.run([name, "--help"]) == 0
    page = capsys.readouterr().out
    for option in ("--index", "--json", "--quiet", "--verbose", "--no-color", "--help"):
        assert f"  {option} " in page
    assert "--debug" not in page
    if columns != "40":
        assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1000000", 10**6), ("500k", 512_000), ("64M", 64 << 20), ("64MiB", 64 << 20),
     ("2G", 2 << 30), ("1.5kb", 1536), ("1T", 1 << 40)],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert options.size_in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "k", "-1", "1e3", "1 000", "64X", "٣k"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(Exception, match="is not a size"):
        options.size_in_bytes(text)


@pytest.mark.parametrize("text", ["", "x", "1.0", "1_000", "٣", "9" * 30, "--1"])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(Exception, match="is not a whole number"):
        options.whole_number(0)(text)


def test_json_holds_no_surrogate_and_nothing_a_terminal_obeys() -> None:
    value = {"path": "a\udcff\x9b\u202e\x1b", "text": "é 🚀 数"}
    text = output.to_json(value, "utf-8")
    assert json.loads(text) == {"path": "a\ufffd\x9b\u202e\x1b", "text": "é 🚀 数"}
    assert "é 🚀 数" in text
    assert not set(text) & {"\udcff", "\x9b", "\u202e", "\x1b"}
    assert json.loads(output.to_json(value, "latin-1")) == json.loads(text)
    assert output.to_json(value, "latin-1").isascii()


def program(*arguments: str, flags: tuple[str, ...] = (), **more):
    return subprocess.run(
        [sys.executable, *flags, "-m", "ragcli", *arguments],
        check=False,
        capture_output=True,
        **more,
    )


def test_output_that_cannot_be_written_is_told() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ragcli", "query", "q", "-k", "0"],
            check=False, stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "ragcli: the output cannot be written: No space left on device\n\n"
        "hint: look at where stdout goes\n"
    )


def test_closed_streams_are_no_crash() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" -m ragcli query q -k 0 >&-; echo $?', sys.executable],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("0\n", "")
    done = subprocess.run(
        ["sh", "-c", '"$0" -m ragcli query "" 2>&-; echo $?', sys.executable],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    question = "word " * 20_000
    done = subprocess.run(
        ["bash", "-c", '"$0" -m ragcli query - -k 0 | head -1; echo ${PIPESTATUS[@]}',
         sys.executable],
        check=False, capture_output=True, text=True, input=question,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines()[1:] == ["0 0"]


def test_an_ascii_terminal_gets_question_marks() -> None:
    done = program("query", "é 🚀", "-k", "0", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.endswith(b"Question: ? ?\n")


@pytest.mark.parametrize("flags", [("-O",), ("-OO",), ("-W", "error", "-X", "dev")])
def test_it_runs_without_asserts_and_without_warnings(flags: tuple[str, ...]) -> None:
    done = program("query", "q", "-k", "0", flags=flags)
    assert (done.returncode, done.stderr) == (0, b"")
    assert program("query", "q", "--nope", flags=flags).returncode == 2
    assert program("--help", flags=flags).stdout.startswith(b"Usage: ragcli")


def test_a_profiler_gets_its_end() -> None:
    done = program("--version", flags=("-m", "cProfile"))
    assert done.stdout.startswith(b"ragcli ")
    assert b"function calls" in done.stdout


def test_ctrl_c_while_it_is_loaded_is_quiet() -> None:
    program = """
import sys
from importlib.abc import MetaPathFinder
class Interrupted(MetaPathFinder):
    def find_spec(self, name, *more):
        if name == "ragcli.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from ragcli.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
