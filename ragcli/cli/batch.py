"""A batch of questions, read and answered; and the other text that a command reads."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.cli.output import counted, print_json, replace_surrogates
from ragcli.cli.wanted import Reply, Search, Wanted
from ragcli.errors import ModelUnavailable, RagcliError, UsageError

if TYPE_CHECKING:
    from ragcli.store.index import Index

Asked = tuple["str | int", str]
"""A question's id and its text."""

GIVEN_UP = 3
"""So many questions in a row without an answer, and the generator is asked no more."""


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


def reply_all(asked: Sequence[Asked], wanted: Wanted, search: Search, opened: Index | None) -> None:
    """One JSON object a line, each written as soon as it is known.

    A question that the generator fails at does not end the run, three in a row do. Raises at the
    end what the first of them failed of: UsageError or ModelUnavailable.
    """
    from ragcli.cli.jsonout import answer

    failed: list[RagcliError] = []
    in_a_row, left = 0, len(asked)
    for identity, question in asked:
        left -= 1
        each = _replied(question, wanted, search, opened)
        print_json(
            answer(each, explain=wanted.explain, refresh=wanted.refresh, identity={"id": identity})
        )
        if each.answered is not None:
            in_a_row = 0
        if each.failed is not None:
            failed.append(each.failed)
            in_a_row += 1
        if in_a_row == GIVEN_UP:
            break
    if failed:
        raise _summary(failed, len(asked), not_asked=left)


def _replied(question: str, wanted: Wanted, search: Search, opened: Index | None) -> Reply:
    """One question of a batch."""
    result = wanted.result(question, search)
    chance = wanted.chance(result, opened)
    prompt = answered = None
    try:
        prompt = wanted.prompt(result)
        if wanted.generator is not None and prompt and (prompt.included or opened is None):
            from ragcli.cli.answering import generate

            answered = generate(wanted.generator, prompt, result.hits, opened, show=False)
    except (ModelUnavailable, UsageError) as error:
        if wanted.generator is None:
            raise
        return Reply(result, prompt, chance, failed=error)
    return Reply(result, prompt, chance, answered)


def _summary(failed: Sequence[RagcliError], asked: int, *, not_asked: int) -> RagcliError:
    """What a batch ends with after failures."""
    first = failed[0]
    told = f"{len(failed):,} of {counted(asked, 'question')} could not be answered"
    if not_asked:
        told += f", the last {GIVEN_UP} in a row, and {not_asked:,} were not asked"
    kind = UsageError if isinstance(first, UsageError) else ModelUnavailable
    return kind(f"{told}: {first.message}", first.hint)
