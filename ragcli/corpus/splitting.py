"""Cutting a stretch of text that is too long, at the best boundary at hand.

Two limits make a stretch too long: the size that `auto` aims at, and the tokens that the
encoder reads. The pieces come out about equal, so that no crumb is left at the end. A boundary
is looked for only around the place where an equal piece would end, on a ladder: a block's
start, a blank line, a sentence's end, a line's end, a clause's end, white space, and where
there is none of these, between two characters. So the time is linear whatever the text.

Knows blocks by their starts and kinds, no headings and no pages.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Protocol
from unicodedata import category

from ragcli.corpus.sentences import sentence_ends
from ragcli.records import Block

_DENSE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+")
_DENSE_LETTERS = 3
"""Letters that a Han or kana character stands for: translations of the FastAPI documentation
are as long as the English where a Chinese one counts 3.5 and a Japanese one 2.2."""

_LEAST = 0.5
"""The least length of a piece, and of what is left behind it, as a share of an equal piece."""

_CONTEXT = 64
"""How many characters before and behind a boundary are looked at to judge it."""

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_LINE_END = re.compile(r"[\r\n]+")
_CLAUSE_END = re.compile(r"[,;:)\]–—](?=\s)|[、，；：]")
_SPACE = re.compile(r"\s+")


class Tokenizer(Protocol):
    """Who counts tokens: the encoder.

    It may also have `pieces(text) -> (words, pieces)`: how many words the text has, and into how
    many pieces the tokenizer cuts them. An encoder that is out of its depth cuts them small.
    """

    @property
    def window(self) -> int | None:
        """The most tokens that it reads, None for no limit."""
        ...

    def count(self, text: str) -> int:
        """How many tokens `text` has."""
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of each token, in order."""
        ...


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """`start` and `end` moved inwards past the white space of `text[start:end]`."""
    inner = text[start:end].lstrip()
    return end - len(inner), end - len(inner) + len(inner.rstrip())


class Splitter:
    """Cuts stretches of one text into pieces that fit.

    `letters` is the most letters in a piece, None where only the tokenizer's window counts.
    `blocks` are in order and at least one.
    """

    def __init__(
        self, text: str, blocks: Sequence[Block], tokenizer: Tokenizer, letters: int | None
    ) -> None:
        self._text = text
        self._blocks = blocks
        self._starts = [block.start for block in blocks]
        self._tokenizer = tokenizer
        self._letters = letters
        self._dense = letters is not None and not text.isascii() and _DENSE.search(text) is not None

    def size(self, start: int, end: int) -> int:
        """The letters in `text[start:end]`: characters, Han and kana counted for more."""
        if not self._dense:
            return end - start
        dense = sum(map(len, _DENSE.findall(self._text, start, end)))
        return end - start + (_DENSE_LETTERS - 1) * dense

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """`text[start:end]` in pieces that fit, without white space around them.

        Nothing where there is only white space. A single character is never cut, and is given
        even if its tokens are more than the window.
        """
        start, end = trimmed(self._text, start, end)
        limit = self._limit(start, end)
        if end - start <= limit:
            if start < end:
                yield start, end
            return
        while end - start > limit:
            cut = self._cut(start, end, limit)
            yield from self.pieces(start, cut)
            start = cut
        yield from self.pieces(start, end)

    def _limit(self, start: int, end: int) -> int:
        """The most characters of a piece: all of them if the stretch fits, at least one."""
        length = end - start
        if self._letters is not None:
            size = self.size(start, end)
            if size > self._letters:
                return max(1, length * self._letters // size)
        window = self._tokenizer.window
        if window is None:
            return length
        piece = self._text[start:end]
        # No token is shorter than a byte, so that a short piece needs no tokenizer.
        if len(piece.encode("utf-8", "surrogatepass")) <= window:
            return length
        tokens = self._tokenizer.count(piece)
        return length if tokens <= window else max(1, length * window // tokens)

    def _cut(self, start: int, end: int, limit: int) -> int:
        """Where to end a piece of at most `limit` characters that begins at `start`."""
        equal = (end - start) / -(-(end - start) // limit)
        least = int(equal * _LEAST)
        low, ideal, high = start + least, start + int(equal), min(start + limit, end - least)
        spaces: list[int] = []
        for boundaries in self._ladder(start, low, ideal, high):
            free = [offset for offset in boundaries if not self._cuts_off_heading(offset)]
            if free:
                return min(free, key=lambda offset: abs(offset - ideal))
            spaces = boundaries
        if spaces:
            return min(spaces, key=lambda offset: abs(offset - ideal))
        for offset in range(ideal, low, -1):
            if not _inside_character(self._text, offset):
                return offset
        return ideal

    def _ladder(self, start: int, low: int, ideal: int, high: int) -> Iterator[list[int]]:
        """The boundaries in (low, high], best kind first, white space last."""
        text, starts = self._text, self._starts
        inner = range(bisect_right(starts, low), bisect_right(starts, high))
        yield [starts[i] for i in inner if not self._leans(i)]
        yield [starts[i] for i in inner]
        yield [match.start() for match in _BLANK_LINE.finditer(text, low + 1, high)]
        if self._blocks[bisect_right(starts, ideal) - 1].kind not in ("code", "table"):
            first, last = max(start, low - _CONTEXT), high + _CONTEXT
            ends = sentence_ends(text, first, min(last, len(text)))
            yield [offset for offset in ends if low < offset <= high]
        yield [match.start() for match in _LINE_END.finditer(text, low + 1, high)]
        yield [match.end() for match in _CLAUSE_END.finditer(text, low, high)]
        yield [match.start() for match in _SPACE.finditer(text, low + 1, high)]

    def _cuts_off_heading(self, offset: int) -> bool:
        """Whether the text before `offset` is a heading's, or all of it."""
        return self._blocks[bisect_left(self._starts, offset) - 1].kind == "heading"

    def _leans(self, i: int) -> bool:
        """Whether block `i` is announced by the block before it: by a colon or by its indent."""
        before, block = self._blocks[i - 1], self._blocks[i]
        if self._text.startswith(":", before.end - 1):
            return True
        indent = self._indent(block.start)
        return indent > 0 and indent > self._indent(before.start)

    def _indent(self, offset: int) -> int:
        if not self._text[offset - 1 : offset].isspace() or self._text[offset - 1] == "\n":
            return 0
        lead = self._text[max(0, offset - _CONTEXT) : offset].rpartition("\n")[2]
        return len(lead) if lead.isspace() else 0


def _inside_character(text: str, offset: int) -> bool:
    """Whether a cut at `offset` would part what a reader sees as one character."""
    after = text[offset]
    return (
        category(after)[0] == "M"
        or "\u200d" in (after, text[offset - 1])
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )
