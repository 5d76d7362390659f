"""Options: the parser of a command, the options that all commands share, values read from text.

A command is a frozen dataclass. typer reads its fields as it reads the parameters of a function
and calls it with the values, so that each option stands in one place and the command line is a
value before anything runs. Parsing and running are two steps: `app` takes both.

Without `from __future__ import annotations`, here and in the commands: typer evaluates an
annotation of a field that was inherited among the names of the module that inherits it.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from ragcli.cli.output import Output, print_result, replace_surrogates
from ragcli.errors import UsageError

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_ALL_COMMANDS = "All commands"
_ARGUMENTS = "Arguments"
_common = partial(typer.Option, rich_help_panel=_ALL_COMMANDS)

# typer has public names for some of what it raises for a line that it cannot parse, not for the
# whole: that is UsageError of the click inside it (of click itself before typer 0.26).
_WrongUsage: type[Exception] = typer.BadParameter.__bases__[0]


@contextmanager
def parsing(context: Any) -> Iterator[None]:
    """Around typer's parsing for a click context: what is wrong is raised as our UsageError."""
    try:
        yield
    except _WrongUsage as error:
        parameter, told = getattr(error, "param", None), str(getattr(error, "message", error))
        if parameter is None:
            told = told[:1].lower() + told[1:].rstrip(".")
        else:
            told = f"argument {parameter.opts[0]}: {told}"
        raise UsageError(told, f"{context.command_path} --help") from error


class Command(TyperCommand):
    """The parser of a command: what is a word and what a value, and a help page by sections."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command's own arguments. Raises UsageError."""
        with parsing(ctx):
            return super().parse_args(ctx, self._arranged(args, ctx))

    def _arranged(self, args: list[str], context: Any) -> list[str]:
        """The arguments put so that click takes them as they are meant.

        A word with a space in it is text, though it begins with a dash: it goes behind `--`.
        The name of an option is not the value of the one before. `-k=3` is `-k 3`.
        """
        options = [param for param in self.params if isinstance(param, TyperOption)]
        known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
        valued = {name for option in options if not option.is_flag for name in option.opts}
        end = args.index("--") if "--" in args else len(args)
        given: list[str] = []
        texts: list[str] = []
        wanting: str | None = None
        for word in args[:end]:
            name, equals, value = word.partition("=")
            if wanting is not None:
                if name in known:
                    break
                given.append(word)
                wanting = None
            elif equals and len(name) == 2 and name in known:
                given += [name, value]
            elif word.startswith("-") and " " in word and known.isdisjoint((name, word[:2])):
                texts.append(word)
            else:
                given.append(word)
                wanting = word if word in valued else None
        if wanting is not None:
            raise UsageError(
                f"argument {wanting}: expected one argument", f"{context.command_path} --help"
            )
        words = [*texts, *args[end + 1 :]]
        return [*given, "--", *words] if words else given

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The page's lists, by `rich_help_panel`; typer makes one of all without rich."""
        sections: dict[str, list[tuple[str, str]]] = {_ARGUMENTS: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                title = getattr(parameter, "rich_help_panel", None) or _ARGUMENTS
                sections.setdefault(title, []).append(record)
        sections[_ALL_COMMANDS] = sections.pop(_ALL_COMMANDS)  # inherited, so the first
        for title, records in sections.items():
            if not records:
                continue
            with formatter.section(title):
                formatter.write_dl(records)


def command_app() -> typer.Typer:
    """An app for a module's one command."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _print_help(context: typer.Context, wanted: bool) -> None:
    """typer's own `--help` prints past the streams' boundary."""
    if wanted:
        print_result(context.get_help())
        raise typer.Exit


HelpOption = Annotated[
    bool, _common("--help", is_eager=True, callback=_print_help, help="show this page")
]
DebugOption = Annotated[bool, typer.Option("--debug", hidden=True)]


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """A parsed command line: the options that every command has, and what running it does."""

    index: Annotated[
        Path | None,
        _common(
            parser=Path,  # everywhere: typer's own refuses what it cannot read, before we are asked
            metavar="DIR",
            help="the index, instead of RAGCLI_INDEX or the .rag found by walking up",
        ),
    ] = None
    as_json: Annotated[bool, _common("--json", help="print one JSON object")] = False
    quiet: Annotated[bool, _common("--quiet", help="only the result and errors")] = False
    verbose: Annotated[bool, _common("--verbose", help="say more on stderr")] = False
    no_color: Annotated[bool, _common("--no-color", help="no styles or links (NO_COLOR)")] = False
    help: HelpOption = False
    debug: DebugOption = False

    @property
    def output(self) -> Output:
        """How to speak, as the common options say."""
        return Output(
            as_json=self.as_json, quiet=self.quiet, verbose=self.verbose, no_color=self.no_color
        )

    def run(self) -> None:
        """Do what the command line says; raises RagcliError."""
        raise NotImplementedError


def as_given(word: str) -> str:
    """An argument read as UTF-8: under LC_ALL=C Python itself does not."""
    try:
        return os.fsencode(word).decode("utf-8", "replace")
    except UnicodeEncodeError:  # half a surrogate pair, which no shell can pass
        return replace_surrogates(word)


def whole_number(least: int) -> Callable[[str | int], int]:
    """Reads an integer of at least `least`; typer has its defaults read too."""

    def read(text: str | int) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,18}", str(text).strip()) and int(text) >= least:
            return int(text)
        raise typer.BadParameter(f"{text} is not a whole number of at least {least}")

    return read


def share(text: str) -> float:
    """Reads a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"{text} is not a number from 0 to 1")
    return value


def positive(text: str | float) -> float:
    """Reads a finite number above 0; typer has its defaults read too."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"{text} is not a number above 0")
    return value


def size_in_bytes(text: str) -> int:
    """Reads `500k`, `64M`, `2G` or `1000000` as bytes; the units are powers of 1,024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text} is not a size such as 500k, 64M or 2G")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def one_of(*allowed: str) -> Callable[[str], str]:
    """Reads one of `allowed`."""

    def read(text: str) -> str:
        if text not in allowed:
            raise typer.BadParameter(f"{text} is not one of {', '.join(allowed)}")
        return text

    return read


class Values(tuple[Any, ...]):
    """Values of one option; of a plain tuple typer would take as many arguments as it is long."""


def several(read: Callable[[str], Any]) -> Callable[[str], Values]:
    """Reads values with commas between, each once, in order."""
    return lambda text: Values(dict.fromkeys(read(part.strip()) for part in text.split(",")))


def list_of(*allowed: str) -> Callable[[str], frozenset[str]]:
    """Reads some of `allowed`, with commas between."""
    read = one_of(*allowed)
    return lambda text: frozenset(read(part.strip()) for part in text.split(","))
