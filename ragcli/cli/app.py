"""The one boundary: arguments in, an exit code out, and each error as stderr's one line and hint.

Owns which commands there are and what an error looks like. The commands are modules of their
own, imported when they are invoked: `--help` loads none of them.
"""

from __future__ import annotations

import importlib
import itertools
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from ragcli import __version__
from ragcli.cli.options import CommandLine, DebugOption, HelpOption, parsing
from ragcli.cli.output import OutputClosed, prepare_streams, print_error, print_result
from ragcli.errors import RagcliError, UsageError

COMMANDS = {
    "index": "read a folder into the index, or bring the index up to date",
    "query": "find the passages that answer a question, and assemble the prompt",
    "eval": "measure how well the index answers a file of questions",
    "inspect": "look into the index: what it holds, and why a passage was missed",
}

# \b keeps a paragraph's lines as they are.
_DESCRIPTION = """\
Ask a folder, and see why it answered.

\b
ragcli index ./docs              once
ragcli query "question" -k 5     ever after
ragcli inspect --why "question" guide.md:120"""

_EPILOG = """\
\b
Exit codes:
  0 done · 1 nothing found, or a check failed · 2 wrong usage
  3 no index, or not readable · 4 busy · 5 files failed (--strict)
  6 no such model · 70 a bug · 130 interrupted (143 by SIGTERM)"""

_ENDING_SECONDS = 5.0
"""So long a signal has before the next one of its kind counts."""


class InternalError(RagcliError):
    """Anything that is not a RagcliError: a bug."""


class Interrupted(RagcliError):
    """Ctrl-C, or another signal that asks for an end; the exit code is 128 and its number."""

    def __init__(self, number: int | None, hint: str) -> None:
        by = "" if number is None else f" by {signal.Signals(number).name}"
        super().__init__(f"interrupted{by}", hint)
        self.exit_code = 128 + (number or signal.SIGINT)


class Ending:
    """SIGTERM and SIGHUP raise KeyboardInterrupt while it is entered, as SIGINT does by itself.

    Who closes a terminal or stops a service may send several, and those must not cut short what
    the first one ends: for some seconds only Ctrl-C does. What is ignored (`nohup`) stays so.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._outside: dict[int, Any] = {}
        self._again = 0.0

    def __enter__(self) -> Ending:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                    self._outside[number] = signal.signal(number, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._outside.items():
            signal.signal(number, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() >= self._again:
            self._again = time.monotonic() + _ENDING_SECONDS
            self.number = number
            raise KeyboardInterrupt


class CommandGroup(TyperGroup):
    """The commands by name, each imported from `ragcli.cli.NAME` when it is invoked."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what stands before the command."""
        with parsing(ctx):
            return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name. Raises UsageError."""
        if cmd_name not in COMMANDS:
            raise UsageError(f"no such command: {cmd_name}", "ragcli --help lists the commands")
        return typer.main.get_command(importlib.import_module(f"ragcli.cli.{cmd_name}").app)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list on the help page, without importing the commands."""
        with formatter.section("Commands (ragcli COMMAND --help)"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_result(f"ragcli {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, add_help_option=False, help=_DESCRIPTION, epilog=_EPILOG)
def program(
    context: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="print the version"),
    ] = False,
    help: HelpOption = False,
    debug: DebugOption = False,
) -> None:
    """What stands before a command; without a command, the help page."""
    if context.invoked_subcommand is None:
        print_result(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program's name); the exit code.

    Reads `--json` and `--debug` from the arguments themselves: an error can come before they
    are parsed.
    """
    prepare_streams()
    flags = set(itertools.takewhile(lambda argument: argument != "--", arguments))
    try:
        with Ending() as ending:
            return _outcome(arguments, flags, ending)
    except OutputClosed:
        # Nothing more may be written to that pipe, not even at the end of the process.
        devnull = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(devnull, stream.fileno())
        return 0


def _outcome(arguments: Sequence[str], flags: set[str], ending: Ending) -> int:
    try:
        command = _parse(arguments)
        if command is not None:
            command.run()
    except OutputClosed:
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 -- the boundary
        shown = _shown(error, ending)
        if isinstance(shown, InternalError) and (
            "--debug" in flags or os.environ.get("RAGCLI_DEBUG")
        ):
            import traceback

            traceback.print_exception(error)
        with suppress(UsageError):  # the terminal may be gone, and then nobody can be told
            print_error(shown, _kind(shown), as_json="--json" in flags)
        return shown.exit_code
    return 0


def _parse(arguments: Sequence[str]) -> CommandLine | None:
    """The command with its options; None where the line asked for a page and has it."""
    group = typer.main.get_command(app)
    try:
        with group.make_context("ragcli", list(arguments)) as context:
            return cast("CommandLine | None", group.invoke(context))
    except typer.Exit:
        return None


def _shown(error: BaseException, ending: Ending) -> RagcliError:
    """What the user is told of an error; after a signal, whatever it led to is its doing."""
    if isinstance(error, KeyboardInterrupt) or ending.number is not None:
        told = str(error) if isinstance(error, KeyboardInterrupt) else ""
        return Interrupted(ending.number, told or "the same command starts again")
    if isinstance(error, RagcliError):
        return error
    if isinstance(error, FileNotFoundError) and not _has_working_folder():
        return UsageError("the working folder is not there any more", "cd to one that is")
    return InternalError(
        f"internal error: {type(error).__name__}: {error}", "--debug shows the traceback"
    )


def _has_working_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _kind(error: RagcliError) -> str:
    """The name of an error in JSON: IndexNotFound is `index_not_found`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
