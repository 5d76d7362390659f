r"""Citation marks in an answer, and the stretches of it that are code.

A mark is one or more passage numbers in brackets: `[1]`, `[1, 3]`, `[2-4]`, `[1; 3-4]`, also
`[passage 2]`, with the brackets of other scripts, `【1】`, and with what some models put behind a
dagger, `【1†source】`, `[1†L2-L9]`. It is none
- in code: between backticks, or in a fenced block;
- as an index: right behind `argv`, `args`, `array`, `arr`, `buf`, `vec` or a single small letter,
  or where an expression goes on behind a word, as in `rows[1].name` and `rows[1] = 2`;
- in an address (`https://…[1]`);
- where all its numbers are years, from 1500 to 2199, as in `[2021]` and `[2019, 2021]`;
- with a number of more than three digits right behind a word, as in `name[4096]`.
`8443[1]` is a mark: models write it so. Whether a mark inside quotation marks is the answer's own
or part of what it quotes, `quotations` tells from the passages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_RANGE = r"\d{1,18}(?:[ ]?[-‐‑‒–—][ ]?\d{1,18})?"
_RANGES = rf"{_RANGE}(?:[ ]?[,;，、][ ]?{_RANGE}){{0,30}}"
MARK = re.compile(
    rf"[\[［【](?:(?:[Pp]assages?|[Ss]ources?) )?({_RANGES})(?:†[^\n\[\]【】]{{0,80}})?[\]］】]"
)
_PARTS = re.compile(r"(\d+)(?:[ ]?[-‐‑‒–—][ ]?(\d+))?")
_INDEXED = re.compile(r"(?:^|[^\w'’])(?:argv|args|array|arr|buf|vec|[a-z])(?:\[\w{1,3}\])*$")
_WORD = re.compile(r"[A-Za-z0-9_)]$")
_GOES_ON = re.compile(r"\.[a-z_]| ?[-+*/|&^%]?=")
_LARGEST = 999
"""Of the numbers that may stand right behind a word."""
_YEARS = range(1500, 2200)
_ADDRESS = re.compile(r"\b[a-z]{2,8}://\S*$")
_LONGEST = 80
"""So far back from a mark is looked for what it is glued to."""

_FENCE = re.compile(r"^[ \t>]{0,12}(`{3,}|~{3,})", re.MULTILINE)
_BACKTICKS = re.compile("`+")
_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n")

_BEYOND = 1 << 62
"""Above the end of every span."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """`answer[start:end]` is the mark; `ranges` are its numbers, (first, last), ascending each."""

    start: int
    end: int
    ranges: tuple[Span, ...]


def marks(answer: str, code: Sequence[Span]) -> list[Mark]:
    """The marks of `answer` in order; `code` is what `code_spans` gave."""
    return [
        Mark(match.start(), match.end(), _ranges(match[1]))
        for match in MARK.finditer(answer)
        if not inside(code, match.start()) and not _is_other(answer, match)
    ]


def fenced_blocks(answer: str) -> list[Span]:
    """The fenced blocks of code, fences with them; one that is not closed runs to the end."""
    found: list[Span] = []
    opened: tuple[int, str] | None = None
    for match in _FENCE.finditer(answer):
        if opened is None:
            opened = (match.start(), match[1])
        elif match[1].startswith(opened[1]):
            found.append((opened[0], match.end()))
            opened = None
    if opened is not None:
        found.append((opened[0], len(answer)))
    return found


def code_spans(answer: str, blocks: Sequence[Span]) -> list[Span]:
    """The fenced `blocks` and, between them, what stands between equally many backticks.

    A span does not go over an empty line.
    """
    found = list(blocks)
    edges = [0, *(edge for block in blocks for edge in block), len(answer)]
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        begin = start
        for gap in _EMPTY_LINE.finditer(answer, start, end):
            found += _backticked(answer, begin, gap.start())
            begin = gap.end()
        found += _backticked(answer, begin, end)
    return sorted(found)


def _backticked(answer: str, start: int, end: int) -> list[Span]:
    runs = [match.span() for match in _BACKTICKS.finditer(answer, start, end)]
    closers: dict[int, list[int]] = {}
    for i in range(len(runs) - 1, -1, -1):
        closers.setdefault(runs[i][1] - runs[i][0], []).append(i)
    found = []
    i = 0
    while i < len(runs):
        same = closers[runs[i][1] - runs[i][0]]
        while same and same[-1] <= i:
            same.pop()
        if same:
            found.append((runs[i][0], runs[same[-1]][1]))
            i = same[-1]
        i += 1
    return found


def inside(spans: Sequence[Span], offset: int) -> bool:
    """Whether `offset` lies in one of `spans`, which are ascending and apart."""
    i = bisect_right(spans, (offset, _BEYOND)) - 1
    return i >= 0 and offset < spans[i][1]


def _ranges(numbers: str) -> tuple[Span, ...]:
    pairs = [(int(a), int(b or a)) for a, b in _PARTS.findall(numbers)]
    return tuple((min(pair), max(pair)) for pair in pairs)


def _is_other(answer: str, match: re.Match[str]) -> bool:
    """Whether the brackets are a year's, an index's or an address's."""
    numbers = [int(digits) for digits in re.findall(r"\d+", match[1])]
    if all(number in _YEARS for number in numbers):
        return True
    lead = answer[max(0, match.start() - _LONGEST) : match.start()]
    if not lead[-1:].strip():
        return False
    return bool(
        ("://" in lead and _ADDRESS.search(lead))
        or _INDEXED.search(lead)
        or (_WORD.search(lead) and _GOES_ON.match(answer, match.end()))
        or (_WORD.search(lead) and max(numbers) > _LARGEST)
    )
