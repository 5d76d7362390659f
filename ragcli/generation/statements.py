"""An answer cut into sentences, each with the marks behind it, and what kind of sentence it is.

Sentences end where `corpus.sentences` says, at list items, headings and table rows, and never
inside a quotation. Marks right behind a full stop belong to the sentence before it, unless that
has marks of its own. Fenced code is no sentence.

Kinds: a `statement` needs a citation; a `refusal` says that the context does not tell; `other` is
what states nothing: headings, questions, what introduces a list (it ends in a colon), and words
such as "Yes".
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragcli.corpus.sentences import sentence_ends
from ragcli.generation.marks import Mark, Span, inside
from ragcli.generation.refusals import is_refusal

_BLOCK = re.compile(
    r"\n(?=[ \t>]*(?:[-*+•–]|\d{1,3}[.)]|\#{1,6}|\|)[ \t])"  # an item, a heading, a row begins
    r"|(?<=\n)(?=\n)"
    r"|^[ \t]{0,3}\#{1,6}[ \t][^\n]*(?:\n|$)",  # a heading ends with its line
    re.MULTILINE,
)
_LEAD = re.compile(r"[ \t>]*(?:(?:[-*+•–]|\d{1,3}[.)]|\#{1,6}|\|)[ \t]+)?\s*")
_HEADING = re.compile(r"[ \t]{0,3}\#{1,6}[ \t]|\s*\*\*[^*\n]+\*\*:?\s*$|\s*\|[\s|:-]+$")
_EMPTY_WORDS = frozenset(
    "yes no sure okay ok certainly correct answer ja nein oui non sí sim não да нет 是 不是 はい"
    .split()
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stretch:
    """`answer[start:end]` is a sentence without the white space around it, its marks with it."""

    start: int
    end: int
    marks: tuple[Mark, ...]
    kind: str


def sentences(
    answer: str, marks: Sequence[Mark], blocks: Sequence[Span], quoted: Sequence[Span]
) -> list[Stretch]:
    """The sentences of `answer`; `blocks` are its fenced code, `quoted` its quotations."""
    found: list[Span] = []
    cited = _Marks(marks)
    for start, end in _paragraphs(answer, blocks):
        first = len(found)
        for begin, stop in _trimmed(answer, _cut(answer, start, end, quoted)):
            lead = cited.run_at(answer, begin)
            only = not any(map(str.isalnum, answer[lead:stop]))
            if len(found) == first or not (only or (lead > begin and not cited.among(*found[-1]))):
                found.append((begin, stop))
                continue
            found[-1] = (found[-1][0], stop if only else lead)
            if not only:
                found += _trimmed(answer, [(lead, stop)])
    return [
        Stretch(start, end, own, _kind(answer, start, end, own))
        for start, end in found
        for own in (cited.among(start, end),)
    ]


class _Marks:
    """Marks in their order, for asking which lie where."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        self._marks = list(marks)
        self._starts = [mark.start for mark in marks]
        self._ends = {mark.start: mark.end for mark in marks}

    def among(self, start: int, end: int) -> tuple[Mark, ...]:
        return tuple(self._marks[bisect_left(self._starts, start) : bisect_left(self._starts, end)])

    def run_at(self, answer: str, start: int) -> int:
        """The end of the marks that stand one behind another from `start`, or `start`."""
        at = start
        while at in self._ends:
            start = at = self._ends[at]
            while answer[at : at + 1] in (" ", ",", ";", "\t") and at < len(answer):
                at += 1
        return start


def _paragraphs(answer: str, blocks: Sequence[Span]) -> Iterator[Span]:
    """What lies between fenced code, cut at empty lines, list items, headings and rows."""
    edges = [0, *(edge for block in blocks for edge in block), len(answer)]
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        begin = start
        for match in _BLOCK.finditer(answer, start, end):
            # A heading is cut off before and behind, all else at its one place.
            for cut in (match.start(), match.end()):
                if cut > begin:
                    yield begin, cut
                    begin = cut
        yield begin, end


def _cut(answer: str, start: int, end: int, quoted: Sequence[Span]) -> Iterator[Span]:
    for cut in sentence_ends(answer, start, end):
        if not inside(quoted, cut):
            yield start, cut
            start = cut
    yield start, end


def _trimmed(answer: str, spans: Sequence[Span] | Iterator[Span]) -> Iterator[Span]:
    """The spans without white space around them; those that hold nothing else are left out."""
    for start, end in spans:
        text = answer[start:end]
        if text.strip():
            yield end - len(text.lstrip()), start + len(text.rstrip())


def _kind(answer: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    said = without(answer, start, end, marks)
    plain = _LEAD.sub("", said, count=1).strip()
    words = re.findall(r"\w+", plain[:200].lower())
    if is_refusal(said):
        return "refusal"
    if (
        _HEADING.match(answer[start:end])
        or plain.endswith((":", "：", "?", "？"))
        or all(word in _EMPTY_WORDS for word in words)
    ):
        return "other"
    return "statement"


def without(answer: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    """`answer[start:end]` without its marks and the number of a list item."""
    pieces = []
    for mark in marks:
        pieces.append(answer[start : mark.start])
        start = mark.end
    return _LEAD.sub("", " ".join([*pieces, answer[start:end]]), count=1)
