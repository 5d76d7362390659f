"""Where text goes: results to stdout, all else to stderr, and nothing a terminal would obey.

Owns the two streams and the shape of JSON and error lines. Does not lay out tables
(`render`) and does not know what a result holds (`jsonout`).
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ragcli.errors import RagcliError, UsageError
from ragcli.generation.visible import UNSEEN, visible

_SURROGATE = re.compile("[\ud800-\udfff]")


class OutputClosed(Exception):
    """Nobody reads what is written: the reader has what it wanted, as `head` has."""


class Output:
    """How one command was asked to speak: the options that all commands share."""

    def __init__(
        self,
        *,
        as_json: bool = False,
        quiet: bool = False,
        verbose: bool = False,
        no_color: bool = False,
    ) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = verbose
        self.no_color = no_color

    @property
    def color(self) -> bool:
        """Whether escapes may be written to a terminal; NO_COLOR wins."""
        return not self.no_color and not os.environ.get("NO_COLOR")

    def warn(self, line: str) -> None:
        """One line on stderr, unless `--quiet`."""
        if not self.quiet:
            print_message(line)

    def tell(self, line: str) -> None:
        """One line of a table on stderr, unless `--quiet`."""
        if not self.quiet:
            _tell(f"{line}\n")

    def remark(self, line: str) -> None:
        """One line on stderr under `--verbose`."""
        if self.verbose:
            print_message(line)


def prepare_streams() -> None:
    """Make both streams write what their encoding cannot hold as `?`, never fail on it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def writing() -> Iterator[None]:
    """Around writes to a stream: raises OutputClosed, or UsageError where it takes no more."""
    try:
        yield
    except BrokenPipeError as error:
        raise OutputClosed from error
    except OSError as error:
        raise UsageError(
            f"the output cannot be written: {error.strerror}", "look at where stdout goes"
        ) from error


def print_result(text: str) -> None:
    """`text` to stdout, ending in a new line; to a terminal with control characters shown."""
    if sys.stdout is None:
        return
    if sys.stdout.isatty():
        text = visible(text.replace("\r\n", "\n"), keep="\n\t")
    with writing():
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()


def print_json(value: Mapping[str, object]) -> None:
    """`value` to stdout as JSON on one line."""
    if sys.stdout is not None:
        print_result(to_json(value, sys.stdout.encoding))


def print_message(line: str) -> None:
    """`ragcli: line` to stderr; control characters are shown, so it stays one line."""
    _tell(f"ragcli: {visible(line)}\n")


def print_error(error: RagcliError, kind: str, *, as_json: bool) -> None:
    """An error to stderr: one line, a blank line and the hint, or one JSON object."""
    hint = error.hint
    if as_json:
        value = {
            "schema": "ragcli.error/1",
            "error": kind,
            "message": visible(error.message),
            "hint": hint,
            "exit_code": error.exit_code,
        }
        _tell(to_json(value, getattr(sys.stderr, "encoding", "utf-8")) + "\n")
    else:
        _tell(f"ragcli: {visible(error.message)}\n")
        if hint is not None:
            _tell(f"\nhint: {visible(hint)}\n")


def to_json(value: Mapping[str, object], encoding: str) -> str:
    """`value` as JSON on one line that `encoding` can hold and a terminal can show.

    Lone surrogates become U+FFFD: JSON cannot hold bytes that were no UTF-8.
    """
    text = replace_surrogates(json.dumps(value, ensure_ascii=False, allow_nan=False))
    text = UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    if encoding.lower().replace("-", "") != "utf8":
        text = json.dumps(json.loads(text))
    return text


def counted(number: int, noun: str) -> str:
    """`1 file`, `2,000 files`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def replace_surrogates(text: str) -> str:
    """`text` with what is not Unicode (bytes that were no UTF-8) as U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def _tell(text: str) -> None:
    if sys.stderr is not None:
        with writing():
            sys.stderr.write(text)
            sys.stderr.flush()
