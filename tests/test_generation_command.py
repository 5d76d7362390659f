"""A program as a generator: real children that answer, fail, hang, flood and leave children."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ragcli.errors import ModelUnavailable, UsageError
from ragcli.generation.generators import Usage, open_generator
from ragcli.generation.generators.command import Command


def python(code: str, *, limit: float = 20.0, env: Mapping[str, str] | None = None) -> Command:
    """A generator that is a Python program of these lines."""
    environment = {**os.environ, "RAGCLI_TIMEOUT": str(limit), **(env or {})}
    environment.pop("PYTHONUNBUFFERED", None)  # it writes the end of a line apart
    line = shlex.join([sys.executable, "-c", textwrap.dedent(code)])
    opened = open_generator(f"cmd:{line}", environment)
    assert isinstance(opened, Command)
    return opened


def failure(generator: Command, prompt: str = "hello") -> tuple[str, ModelUnavailable]:
    """What the generator said before it failed, and how it failed."""
    pieces = []
    with pytest.raises(ModelUnavailable) as caught:
        for piece in generator.stream(prompt):
            pieces.append(piece)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return "".join(pieces), caught.value


def gone(pid: int, within: float = 3.0) -> bool:
    """Whether a process has ended; one that only waits to be collected has."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            state = "?"
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def no_child_left() -> bool:
    """Whether this process has neither a running child nor one that was not waited for."""
    try:
        return os.waitpid(-1, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return True


def test_the_prompt_is_stdin_and_stdout_the_answer() -> None:
    generator = python("import sys; print(sys.stdin.read().upper(), end='')")
    assert "".join(generator.stream("größe ∑?")) == "GRÖSSE ∑?"
    assert generator.name.startswith("cmd:")
    assert (generator.window, generator.count("x"), generator.usage()) == (None, None, Usage())
    assert no_child_left()


def test_pieces_come_as_they_are_printed(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    generator = python(
        f"""
        import os, time
        print("a", flush=True)
        while not os.path.exists({str(seen)!r}):
            time.sleep(0.01)
        print("b", flush=True)
        """
    )
    answer = generator.stream("")
    assert next(answer) == "a\n"
    seen.touch()
    assert "".join(answer) == "b\n"


def test_words_are_split_as_by_a_shell_and_nothing_else_is_done(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:])"
    line = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} 'a b' $HOME '*' ';' \"q\\\"\" | x"
    answer = "".join(open_generator(f"cmd:{line}").stream(""))
    assert answer == "['a b', '$HOME', '*', ';', 'q\"', '|', 'x']\n"


@pytest.mark.parametrize("spec", ["cmd:", "cmd:   ", "cmd:'unclosed", "cmd:''", "cmd:a\0b"])
def test_a_line_that_is_no_command(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_generator(spec)
    assert caught.value.hint


def test_a_program_that_is_missing_or_may_not_be_run(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho hello\n")
    for program in ("no-such-program-at-all", str(script), str(tmp_path)):
        with pytest.raises(ModelUnavailable, match="no program that can be run"):
            open_generator(f"cmd:{program} x")
    script.chmod(0o755)
    assert "".join(open_generator(f"cmd:{script}").stream("")) == "hello\n"


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    said, error = failure(open_generator(f"cmd:{script}"))  # type: ignore[arg-type]
    assert said == ""
    assert "could not be started" in error.message


def test_the_path_searched_is_the_child_s(tmp_path: Path) -> None:
    script = tmp_path / "only-here"
    script.write_text('#!/bin/sh\necho "$WORD"\n')
    script.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/bin:/usr/bin", "WORD": "mine"}
    assert "".join(open_generator("cmd:only-here", environment).stream("")) == "mine\n"


def test_the_child_has_the_environment_given_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(os.environ)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    code = "import os; print(os.environ.get('OPENBLAS_NUM_THREADS', 'unset'))"
    line = shlex.join([sys.executable, "-c", code])
    expected = before.get("OPENBLAS_NUM_THREADS", "unset")
    assert "".join(open_generator(f"cmd:{line}", before).stream("")) == f"{expected}\n"
    assert "".join(open_generator(f"cmd:{line}").stream("")) == "1\n"


def test_an_exit_code_is_told_with_the_last_line_of_stderr() -> None:
    said, error = failure(
        python(
            r"""
            import sys
            print("half", flush=True)
            sys.stderr.write("first\nthe \x1b[31mmodel\x07 is not there\n\n")
            sys.exit(3)
            """
        )
    )
    assert said == "half\n"
    assert error.message.endswith(r"ended with exit code 3: the \x1b[31mmodel\x07 is not there")
    assert error.exit_code == 6


@pytest.mark.parametrize("code", ["", "print()", "print('  \\n\\t')"])
def test_nothing_printed_is_no_answer(code: str) -> None:
    _, error = failure(python(code))
    assert error.message.endswith("answered nothing")


def test_a_child_killed_by_a_signal() -> None:
    said, error = failure(
        python("import os; print('a', flush=True); os.kill(os.getpid(), 9)"),
    )
    assert said == "a\n"
    assert "was killed by SIGKILL" in error.message


def test_a_child_that_hangs_is_ended_and_its_child_too(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    generator = python(
        f"""
        import os, subprocess, time
        other = subprocess.Popen(["sleep", "60"])
        open({str(file)!r}, "w").write(f"{{os.getpid()}} {{other.pid}}")
        print("began", flush=True)
        time.sleep(60)
        """,
        limit=0.6,
    )
    began = time.monotonic()
    said, error = failure(generator)
    assert time.monotonic() - began < 6
    assert said == "began\n"
    assert "did nothing for 0.6 s and was ended" in error.message
    assert all(gone(int(pid)) for pid in file.read_text().split())
    assert no_child_left()


def test_a_child_that_speaks_now_and_then_does_not_hang() -> None:
    code = """
        import sys, time
        for i in range(4):
            time.sleep(0.3)
            print(i, file=(sys.stdout, sys.stderr)[i % 2], flush=True)
        """
    assert "".join(python(code, limit=1.0).stream("")) == "0\n2\n"


def test_a_child_that_only_complains_is_ended_in_the_end(tmp_path: Path) -> None:
    """Loading a model can take long and be told of; a spinner without end is no answer."""
    file = tmp_path / "pid"
    generator = python(
        f"""
        import os, sys, time
        open({str(file)!r}, "w").write(str(os.getpid()))
        while True:
            sys.stderr.write("still there"); sys.stderr.flush(); time.sleep(0.05)
        """,
        limit=0.5,
    )
    began = time.monotonic()
    said, error = failure(generator)
    assert 1.9 < time.monotonic() - began < 8
    assert said == ""
    assert "wrote to stderr alone for 2 s and was ended" in error.message
    assert gone(int(file.read_text()))


def test_a_group_that_ignores_the_first_signal_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    inner = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True);"
        "time.sleep(60)"
    )
    generator = python(
        f"""
        import os, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        other = subprocess.Popen([sys.executable, "-c", {inner!r}], stdout=subprocess.PIPE)
        other.stdout.readline()
        open({str(file)!r}, "w").write(f"{{os.getpid()}} {{other.pid}}")
        print("began", flush=True)
        time.sleep(60)
        """
    )
    answer = generator.stream("")
    assert next(answer) == "began\n"
    began = time.monotonic()
    generator.close()
    assert 1.5 < time.monotonic() - began < 5
    assert all(gone(int(pid)) for pid in file.read_text().split())
    assert no_child_left()


def test_closing_the_answer_ends_the_child() -> None:
    generator = python(
        "import os, time; print(os.getpid(), flush=True); time.sleep(60)",
    )
    answer = generator.stream("x" * 1_000_000)
    pid = int(next(answer))
    answer.close()  # type: ignore[attr-defined]
    assert gone(pid, within=0.1)
    assert no_child_left()
    generator.close()


def test_a_child_that_leaves_another_with_its_pipes_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    generator = python(
        f"""
        import subprocess
        other = subprocess.Popen(["sleep", "60"])
        open({str(file)!r}, "w").write(str(other.pid))
        print("done")
        """
    )
    began = time.monotonic()
    assert "".join(generator.stream("")) == "done\n"
    assert time.monotonic() - began < 5
    assert gone(int(file.read_text()))


def test_broken_utf_8_is_replaced_and_characters_cut_apart_are_not() -> None:
    code = r"""
        import sys, time
        for byte in "aé∑😀".encode() + b"\xff|\xc3":
            sys.stdout.buffer.write(bytes([byte])); sys.stdout.buffer.flush(); time.sleep(0.01)
        """
    assert "".join(python(code).stream("")) == "aé∑😀\ufffd|\ufffd"


def test_a_child_that_stops_reading_early() -> None:
    code = "import os; os.close(0); print('enough')"
    assert "".join(python(code).stream("x" * 5_000_000)) == "enough\n"


def test_a_child_that_ends_without_reading() -> None:
    assert "".join(python("print('enough')").stream("x" * 5_000_000)) == "enough\n"


def test_a_child_that_closes_its_stdout_early_is_waited_for() -> None:
    code = """
        import os, sys, time
        os.write(1, b"answer"); os.close(1); sys.stdin.read(); time.sleep(0.2); os._exit(4)
        """
    said, error = failure(python(code), "x" * 1_000_000)
    assert said == "answer"
    assert "exit code 4" in error.message


def test_ten_megabytes_there_and_back_at_once() -> None:
    code = """
        import sys
        while block := sys.stdin.buffer.read1(65536):
            sys.stdout.buffer.write(block); sys.stdout.buffer.flush()
        """
    prompt = "0123456789abcdéf" * (10 * 2**20 // 17)
    assert "".join(python(code).stream(prompt)) == prompt


def test_an_answer_of_megabytes_before_anything_is_read() -> None:
    code = "import sys; print('y' * 3_000_000, end=''); print(len(sys.stdin.read()))"
    answer = "".join(python(code).stream("x" * 3_000_000))
    assert answer == "y" * 3_000_000 + "3000000\n"


def test_a_flood_on_stderr_neither_blocks_nor_is_kept() -> None:
    code = """
        import sys
        for _ in range(300):
            sys.stderr.write("e" * 65536)
        sys.stderr.write("\\n" + "last " * 1000)
        print("answer", flush=True)
        sys.exit(1)
        """
    tracemalloc.start()
    said, error = failure(python(code))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5_000_000
    assert said == "answer\n"
    assert "exit code 1: last last" in error.message
    assert len(error.message) < 500


def test_a_lone_surrogate_in_the_prompt_is_no_error() -> None:
    assert "".join(python("print(ascii(input()))").stream("a\udc80b")) == "'a?b'\n"


def test_one_generator_answers_more_than_once() -> None:
    generator = python("print(input()[::-1])")
    assert ["".join(generator.stream(p)) for p in ("abc", "def")] == ["cba\n", "fed\n"]


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
from ragcli.generation.generators import open_generator
generator = open_generator(sys.argv[1])
try:
    for piece in generator.stream("x"):
        print(piece, end="", flush=True)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture
def started() -> object:
    """Start processes that are ended, with the test, by their own id."""
    children: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.wait()
        assert child.stdout
        child.stdout.close()


def test_ctrl_c_ends_the_child_and_its_children(
    started: Callable[..., subprocess.Popen[str]],
) -> None:
    code = (
        "import os, subprocess, time; other = subprocess.Popen(['sleep', '60']);"
        "print(os.getpid(), other.pid, flush=True); time.sleep(60)"
    )
    spec = f"cmd:{shlex.join([sys.executable, '-c', code])}"
    program = started(sys.executable, "-c", INTERRUPTED, spec)
    assert program.stdout
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert len(pids) == 2
    program.send_signal(signal.SIGINT)
    assert program.wait(20) == 130
    assert all(gone(pid) for pid in pids)
