"""`query -G`: the prompt to a generator, its answer streamed, its citations checked.

Owns the order of things on the screen. Generators are `ragcli.generation`'s, as is what is checked.
"""

from __future__ import annotations

import collections.abc
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ragcli.cli.output import Output, counted, print_result, writing
from ragcli.errors import ModelUnavailable, NegativeResult, UnreadableFile
from ragcli.generation.citations import AnswerCheck, check
from ragcli.generation.generators import Usage, open_generator
from ragcli.generation.prompt import source
from ragcli.generation.visible import visible
from ragcli.records import Hit, Prompt

if TYPE_CHECKING:
    from ragcli.generation.generators import Generator
    from ragcli.generation.quotations import ReadFile
    from ragcli.store.index import Index

LONGEST = 1_000_000
"""Characters of an answer; one that is longer has no end."""

CHECKED_BYTES = 16 * 1024 * 1024
"""Quotations are not looked for in larger files."""

_NAMED = 10
"""So many marks that are out of range are named."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a generator made of a prompt, and what the check found."""

    generator: str
    text: str
    usage: Usage
    check: AnswerCheck


@contextmanager
def generating(spec: str, environment: Mapping[str, str]) -> Iterator[Generator]:
    """The generator of `spec`, closed afterwards; a program is started with `environment`.

    Raises UsageError and ModelUnavailable.
    """
    generator = open_generator(spec, environment)
    try:
        yield generator
    finally:
        generator.close()


def generate(
    generator: Generator, prompt: Prompt, hits: Sequence[Hit], index: Index | None, *, show: bool
) -> Answered:
    """The whole answer; with `show` each piece goes to stdout as it comes.

    Raises ModelUnavailable for a generator that fails, or whose answer does not end within
    LONGEST characters; what it said before has been shown.
    """
    pieces: list[str] = []
    length = 0
    screen = _Screen() if show else None
    try:
        with closing(_stream(generator, prompt.text)) as answer:
            for read in answer:
                piece = read if pieces else read.lstrip()  # models begin with a space
                piece = piece[: LONGEST - length]
                if piece:
                    pieces.append(piece)
                    length += len(piece)
                    if screen is not None:
                        screen.show(piece)
                if length == LONGEST:
                    raise ModelUnavailable(
                        f"{visible(generator.name)}: the answer was cut off at {LONGEST:,} "
                        "characters",
                        "try another generator; this one may repeat itself",
                    )
    finally:
        if screen is not None:
            screen.end()
    text = "".join(pieces)
    if not text.strip():
        raise ModelUnavailable(f"{generator.name} answered nothing", "try another generator")
    included = [hit for hit in hits if hit.rank in prompt.included]
    found = check(text, included, _reading(index))
    return Answered(generator.name, text, generator.usage(), found)


def _stream(generator: Generator, prompt: str) -> collections.abc.Generator[str, None, None]:
    """A generator of Python's, which can be closed."""
    yield from generator.stream(prompt)


class _Screen:
    """stdout while an answer comes; a terminal is shown it as `print_result` shows text."""

    def __init__(self) -> None:
        self._terminal = sys.stdout is not None and sys.stdout.isatty()
        self._held = ""
        self._last = "\n"

    def show(self, piece: str) -> None:
        """Write a piece; a carriage return waits for the line feed that may come behind it."""
        text = self._held + piece
        self._held = "\r" if self._terminal and text.endswith("\r") else ""
        self._write(text.removesuffix("\r") if self._held else text)

    def end(self) -> None:
        """End the line that was begun."""
        self._write(self._held)
        if self._last != "\n":
            print_result("")

    def _write(self, text: str) -> None:
        if not text or sys.stdout is None:
            return
        self._last = text[-1]
        shown = visible(text.replace("\r\n", "\n"), keep="\n\t") if self._terminal else text
        with writing():
            sys.stdout.write(shown)
            sys.stdout.flush()


def _reading(index: Index | None) -> ReadFile:
    """How a hit's file is read as it is now: by the reader that indexing has for it.

    Only by those that are safe in any process; what is in other files nobody can tell.
    """

    @cache
    def text_of(path: str) -> str | None:
        from ragcli.corpus.readers import is_plain, read_document
        from ragcli.corpus.source import Source
        from ragcli.indexing.analysis import read_bytes

        where = None if index is None else index.source(path)
        if where is None:
            return None
        try:
            data, _, _ = read_bytes(str(where), CHECKED_BYTES)
            documents = read_document(Source(path, data)) if is_plain(path) else None
        except UnreadableFile as error:
            return "" if error.kind == "vanished" else None
        return None if documents is None else "\n".join(each.text for each in documents)

    return lambda hit: text_of(
        hit.path if hit.record is None else hit.path.removesuffix(f"#{hit.record}")
    )


def same(first: str, second: str) -> bool:
    """Whether two answers say the same but for case, marks and punctuation."""
    return _folded(first) == _folded(second)


def _folded(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"\[[\d, -]+\]", " ", text).casefold())


def tell(answered: Answered, hits: Sequence[Hit], output: Output) -> None:
    """The sources that were cited, and what the check flags, a line each on stderr."""
    by_rank = {hit.rank: hit for hit in hits}
    cited = dict.fromkeys(c.rank for c in answered.check.citations if c.rank is not None)
    for rank in sorted(cited):
        hit = by_rank[rank]
        page = "" if hit.page is None else f", p. {hit.page}"
        output.warn(f"[{rank}] {source(hit)}{page}" + (" (changed since)" if hit.stale else ""))
    for line in flagged(answered):
        output.warn(line)
    if not answered.usage.finished:
        output.warn("the answer stops at the generator's limit of tokens")
    usage = answered.usage
    spent = [("prompt", usage.prompt_tokens), ("answer", usage.answer_tokens)]
    told = [f"{number:,} tokens of {what}" for what, number in spent if number]
    if told:
        output.remark(f"{answered.generator}: {', '.join(told)}")


def flagged(answered: Answered) -> list[str]:
    """What the check found wrong, the worst first."""
    found = answered.check
    lines = []
    if found.out_of_range:
        marks = dict.fromkeys(c.number for c in found.citations if c.rank is None)
        named = ", ".join(f"[{number}]" for number in list(marks)[:_NAMED])
        named += f" and {len(marks) - _NAMED:,} more" if len(marks) > _NAMED else ""
        lines.append(f"the answer cites {named}, which no passage of the prompt has")
    for count, told in (
        (found.misquoted, "quoted that stands in no passage cited"),
        (found.changed, "quoted that the file has no more"),
    ):
        if count:
            lines.append(f"{counted(count, 'text')} {told}")
    for count, told in (
        (found.uncited, "without a citation"),
        (found.unsupported, "whose words hardly stand in what they cite (by words, not by sense)"),
        (found.figures, "with a number that no passage cited has"),
    ):
        if count:
            lines.append(f"{counted(count, 'sentence')} {told}")
    return lines


def judge(answered: Answered, hits: Sequence[Hit]) -> None:
    """Raises NegativeResult for an answer that cites or quotes what is not there."""
    if not (answered.check.out_of_range or answered.check.misquoted):
        return
    if not hits:
        raise NegativeResult(
            "the answer cites or quotes passages, and was given none",
            "another generator may do better, or a question that asks for none",
        )
    raise NegativeResult(
        "the answer cites or quotes what the passages do not hold",
        "read it beside its sources; another generator, or a smaller -k, may do better",
    )
