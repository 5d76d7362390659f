"""Text that a command reads beside the index: stdin, templates, batches of questions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ragcli.cli.output import replace_surrogates
from ragcli.errors import UsageError

Asked = tuple["str | int", str]
"""A question's id and its text."""


def read_text(file: Path | None) -> str:
    """The UTF-8 text of `file`, or of stdin for None; a byte order mark is left out.

    Raises UsageError for a file that cannot be read.
    """
    if file is None:
        content = b"" if sys.stdin is None else sys.stdin.buffer.read()
    else:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise UsageError(
                f"{file} cannot be read: {error.strerror}", "give the name of a text file"
            ) from error
    return content.decode("utf-8", "replace").removeprefix("\ufeff")


def read_batch(file: Path | None) -> list[Asked]:
    """The questions of a file (None: stdin) of JSON lines with `question` and, at will, `id`.

    A question without an id has the number of its line for one. All lines are read and checked
    before any is asked. Raises UsageError that names the first bad line.
    """
    asked = [
        _asked(line, number)
        for number, line in enumerate(read_text(file).split("\n"), start=1)
        if line.strip()
    ]
    if not asked:
        raise UsageError("the batch holds no question", 'a line is {"id": "1", "question": "…"}')
    return asked


def _asked(line: str, number: int) -> Asked:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _bad(number, f"is not JSON: {error}") from error
    if not isinstance(entry, dict):
        raise _bad(number, "is not a JSON object")
    question, identity = entry.get("question"), entry.get("id", number)
    if not isinstance(question, str) or not question.strip():
        raise _bad(number, "has no question")
    if not isinstance(identity, (str, int)):
        raise _bad(number, "has an id that is neither text nor a whole number")
    return identity, replace_surrogates(question)


def _bad(number: int, why: str) -> UsageError:
    return UsageError(f"line {number} of the batch {why}", 'a line is {"id": "1", "question": "…"}')
