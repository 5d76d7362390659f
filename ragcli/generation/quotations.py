"""What an answer quotes, and whether it stands there: in a passage, and in the file as it is now.

A quotation stands between “ ”, „ “, « », » «, ‹ ›, ‘ ’, 「 」, 『 』 or straight double quotes, in
one paragraph, outside code, and has at least three words (six characters in scripts written
without spaces); shorter ones are names and are not checked.

Verbatim means the same characters but for case, white space, the shape of quotes, dashes and wide
letters, characters that take no room, Markdown's `*` and backticks, and the punctuation right
before the closing quote. `…` and `...` stand for anything left out: the parts must come in their
order. Passages count as they are in the file and as the generator saw them (`hostile`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from ragcli.generation.hostile import neutralised, skeleton
from ragcli.generation.marks import MARK, Mark, Span, inside
from ragcli.records import Hit
from ragcli.store.terms import UNSPACED, surfaces

FEWEST_WORDS = 3
FEWEST_UNSPACED = 6

ReadFile = Callable[[Hit], str | None]
"""The text of a hit's file as it is now: empty where it is gone, None where nobody can tell."""

_LINES = r"|\n(?![^\S\n]*\n)"
_PAIRS = (("“", "”"), ("„", "“”"), ("«", "»"), ("»", "«"), ("‹", "›"), ("「", "」"), ("『", "』"))
_QUOTED = re.compile(
    "|".join(f"{a}((?:[^\n{a}{b}]{_LINES})+)[{b}]" for a, b in _PAIRS)
    + rf"|‘((?:[^\n‘’]|(?<=\w)’(?=\w){_LINES})+)’(?!\w)"
    + rf"|(?<![\w\"])\"(?=\S)((?:[^\n\"]{_LINES})+)(?<=\S)\"(?!\w)"
)
_LEFT_OUT = re.compile(r"[\[(]?(?:…|\.\.\.)[\])]?")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_SHAPES = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "*": "",
     "`": ""}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quotation:
    """`answer[start:end]` is the quoted text, its quotation marks left out.

    `cited` are the ranks cited beside it. `rank` is where it stands verbatim: one of `cited`, or
    without a citation any passage, None where it does not. `elsewhere` is the rank of a passage
    that was not cited and has it. `in_file` says whether the file of `rank` has it now, None where
    that cannot be told. `verdict` is `verbatim`, `misquoted` (no passage that it may rest on has
    it) or `changed` (the passage has it, its file no more).
    """

    start: int
    end: int
    cited: tuple[int, ...]
    rank: int | None
    elsewhere: int | None
    in_file: bool | None
    verdict: str


class Library:
    """The passages and their files, folded once each; a file is read where it is not as it was."""

    def __init__(self, hits: Iterable[Hit], read_file: ReadFile) -> None:
        self._hits = {hit.rank: hit for hit in hits}
        self._passages = {rank: _both(hit.text) for rank, hit in self._hits.items()}
        self._file = cache(lambda rank: self._read(read_file, self._hits[rank]))
        self.holders = cache(self._holders)

    @staticmethod
    def _read(read_file: ReadFile, hit: Hit) -> tuple[str, ...] | None:
        text = read_file(hit)
        return None if text is None else _both(text)

    def _holders(self, quoted: str) -> tuple[int, ...]:
        """The ranks of the passages that have `quoted`."""
        parts = _parts(quoted)
        return tuple(rank for rank, forms in self._passages.items() if _holds(forms, parts))

    def in_file(self, rank: int, quoted: str) -> bool | None:
        """Whether the file of a passage that has `quoted` has it now; None where nobody can tell.

        A file that is as it was indexed has what the passage has.
        """
        stale = self._hits[rank].stale
        if not stale:
            return None if stale is None else True
        forms = self._file(rank)
        return None if forms is None else _holds(forms, _parts(quoted))


def quoted_spans(answer: str, code: Sequence[Span]) -> list[Span]:
    """What stands between quotation marks in `answer` and is long enough to be checked."""
    found = []
    for match in _QUOTED.finditer(answer):
        start, end = match.span(match.lastindex or 0)
        if not inside(code, start) and _is_long(answer[start:end]):
            found.append((start, end))
    return found


def quotes_its_marks(quoted: str, library: Library) -> bool:
    """Whether the bracketed numbers in `quoted` are part of what is quoted."""
    return bool(MARK.search(quoted) and library.holders(quoted))


def verify(
    answer: str, span: Span, marks: Sequence[Mark], cited: Sequence[int], library: Library
) -> Quotation:
    """The quotation at `span`; `marks` are the answer's own, and those inside are left out."""
    start, end = span
    pieces = []
    for mark in marks:
        pieces.append(answer[start : mark.start])
        start = mark.end
    quoted = "".join([*pieces, answer[start:end]])
    holders = library.holders(quoted)
    right = [rank for rank in holders if not cited or rank in cited]
    if not right:
        return Quotation(*span, tuple(cited), None, next(iter(holders), None), None, "misquoted")
    told = [(rank, library.in_file(rank, quoted)) for rank in right]
    # The passage whose file still has it, before one whose file is unknown or has changed.
    rank, now = min(told, key=lambda each: (True, None, False).index(each[1]))
    verdict = "changed" if now is False else "verbatim"
    return Quotation(*span, tuple(cited), rank, None, now, verdict)


def folded(text: str) -> str:
    """`text` without what does not matter to being verbatim."""
    return " ".join(skeleton(text).translate(_SHAPES).casefold().split())


def _both(text: str) -> tuple[str, ...]:
    """The text folded, and folded as the generator saw it where that is another."""
    return tuple(dict.fromkeys((folded(text), folded(neutralised(text)))))


def _parts(quoted: str) -> list[str]:
    parts = [folded(part).strip(" ,;:") for part in _LEFT_OUT.split(quoted)]
    parts[-1] = parts[-1].rstrip(" .,;:!?。，、！？")
    return [part for part in parts if part]


def _holds(forms: Iterable[str], parts: Sequence[str]) -> bool:
    """Whether one of `forms` has all of `parts`, in their order and cut in no word."""
    return any(_in_order(text, parts) for text in forms)


def _in_order(text: str, parts: Sequence[str]) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at)
        while at >= 0 and not (_is_edge(text, at) and _is_edge(text, at + len(part))):
            at = text.find(part, at + 1)
        if at < 0:
            return False
        at += len(part)
    return bool(parts)


def _is_edge(text: str, at: int) -> bool:
    """Whether no word of a script with spaces goes on over `at`."""
    around = text[max(0, at - 1) : at + 1]
    return not (len(around) == 2 and around.isalnum() and not _UNSPACED.search(around))


def _is_long(quoted: str) -> bool:
    if len(_UNSPACED.findall(quoted)) >= FEWEST_UNSPACED:
        return True
    return len(surfaces(quoted[:1000])) >= FEWEST_WORDS
