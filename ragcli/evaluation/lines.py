"""Lines of a file that a person wrote, read one by one; the bad ones are told together."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from ragcli.errors import UsageError

_MARK = b"\xef\xbb\xbf"
_SHOWN = 3
_NUMBERED = 10
_REASON = 160
"""The most characters of a reason: what it quotes of a line may be of any length."""

Parsed = TypeVar("Parsed")


class BadLine(Exception):
    """What is wrong with a line, as the rest of a sentence: `is not JSON`."""


def read_lines(
    file: Path | None, parse: Callable[[int, str], Parsed | None], form: str
) -> list[Parsed]:
    """What `parse` makes of each line that is not blank, given its number from 1 and its text.

    None from `parse` is left out. `file` None is stdin; `form` is the hint that shows a good line.
    A byte order mark is left out. Raises UsageError for a file that cannot be read, and one for
    all lines that are not UTF-8 or for which `parse` raised BadLine.
    """
    parsed: list[Parsed] = []
    bad: list[tuple[int, str]] = []
    with _opened(file) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.removeprefix(_MARK if number == 1 else b"").decode("utf-8").rstrip()
                made = parse(number, line) if line else None
            except UnicodeDecodeError:
                bad.append((number, "is not UTF-8"))
            except BadLine as error:
                bad.append((number, str(error)))
            else:
                if made is not None:
                    parsed.append(made)
    if bad:
        raise _told(name_of(file), bad, form)
    return parsed


def name_of(file: Path | None) -> str:
    """What messages call the file."""
    return "stdin" if file is None else str(file)


@contextmanager
def _opened(file: Path | None) -> Iterator[BinaryIO]:
    if file is None:
        yield io.BytesIO() if sys.stdin is None else sys.stdin.buffer
        return
    try:
        with file.open("rb") as stream:
            yield stream
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", "give the name of a text file"
        ) from error


def _told(name: str, bad: list[tuple[int, str]], form: str) -> UsageError:
    """The first reasons in full, of the next the numbers, of the rest how many."""
    listed = "; ".join(f"line {number} {_cut(reason)}" for number, reason in bad[:_SHOWN])
    if len(bad) == 1:
        return UsageError(f"{name}: {listed}", form)
    numbers = [str(number) for number, _ in bad[_SHOWN:_NUMBERED]]
    if len(bad) > _NUMBERED:
        numbers.append(f"{len(bad) - _NUMBERED:,} more")
    also = f"; also lines {', '.join(numbers)}" if numbers else ""
    return UsageError(f"{name} has {len(bad):,} bad lines: {listed}{also}", form)


def _cut(reason: str) -> str:
    return reason if len(reason) <= _REASON else f"{reason[: _REASON - 1]}…"
