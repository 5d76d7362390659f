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
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.cli.output import Output, counted, print_result, writing
from ragcli.errors import ModelUnavailable, NegativeResult
from ragcli.generation.citations import AnswerCheck, check
from ragcli.generation.generators import Usage, open_generator
from ragcli.generation.prompt import source
from ragcli.generation.visible import visible
from ragcli.records import Hit, Prompt

if TYPE_CHECKING:
    from ragcli.generation.generators import Generator


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
    generator: Generator, prompt: Prompt, hits: Sequence[Hit], root: Path | None, *, show: bool
) -> Answered:
    """The whole answer; with `show` each piece goes to stdout as it comes.

    Raises ModelUnavailable for a generator that fails; what it said before has been shown.
    """
    pieces: list[str] = []
    terminal = sys.stdout is not None and sys.stdout.isatty()
    try:
        with closing(_stream(generator, prompt.text)) as answer:
            for read in answer:
                piece = read if pieces else read.lstrip()  # models begin with a space
                if not piece:
                    continue
                pieces.append(piece)
                if show and sys.stdout is not None:
                    with writing():
                        sys.stdout.write(visible(piece, keep="\n\t") if terminal else piece)
                        sys.stdout.flush()
    finally:
        if show and pieces and not pieces[-1].endswith("\n"):
            print_result("")
    text = "".join(pieces)
    if not text.strip():
        raise ModelUnavailable(f"{generator.name} answered nothing", "try another generator")
    included = [hit for hit in hits if hit.rank in prompt.included]
    found = check(text, included, lambda path: _text_of(root, path))
    return Answered(generator.name, text, generator.usage(), found)


def _stream(generator: Generator, prompt: str) -> collections.abc.Generator[str, None, None]:
    """A generator of Python's, which can be closed."""
    yield from generator.stream(prompt)


def _text_of(root: Path | None, path: str) -> str | None:
    """A file as it is now, where it is text."""
    if root is None:
        return None
    try:
        return (root / path.partition("#")[0]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


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
    spent = answered.usage.prompt_tokens, answered.usage.answer_tokens
    if any(spent):
        output.remark(f"{answered.generator}: {spent[0]} tokens of prompt, {spent[1]} of answer")


def flagged(answered: Answered) -> list[str]:
    """What the check found wrong, the worst first."""
    found = answered.check
    lines = []
    if found.out_of_range:
        marks = dict.fromkeys(c.number for c in found.citations if c.rank is None)
        named = ", ".join(f"[{number}]" for number in marks)
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


def judge(answered: Answered) -> None:
    """Raises NegativeResult for an answer that cites or quotes what is not there."""
    if answered.check.out_of_range or answered.check.misquoted:
        raise NegativeResult(
            "the answer cites or quotes what the passages do not hold",
            "read it beside its sources; another generator, or a smaller -k, may do better",
        )
