"""Which passage holds a text: found by its words, sure by its characters.

Case and white space do not count. Knows no scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragcli.records import Chunk
from ragcli.retrieval.asked import allowed_rows
from ragcli.retrieval.legs import LexicalLeg
from ragcli.retrieval.question import parse_question
from ragcli.store.contents import texts
from ragcli.store.index import Index

_CANDIDATES = 20
"""Passages with most of the words, beside whose neighbours a split text is looked for."""

_SPAN = 4
"""So many passages on either side are joined."""


@dataclass(frozen=True, slots=True)
class FoundText:
    """`chunks` hold the whole text; else `split` are those in a row that hold it together.

    `elsewhere` holds it outside the chunks that were asked for.
    """

    chunks: tuple[int, ...] = ()
    split: tuple[int, ...] = ()
    elsewhere: int | None = None


def find_text(index: Index, text: str, among: Iterable[int] | None) -> FoundText:
    """The chunks that hold `text`, of `among` (None: of all). White space in it stands for any.

    As words; where it stands nowhere so, also inside longer words.
    """
    wanted = _plain(text)
    allowed = None if among is None else set(among)
    segments = index.view().postings
    words = parse_question(text, index.languages())
    leg = LexicalLeg(segments, words, allowed_rows(segments, None))
    by_words = set(leg.holding_all().tolist())
    likely = by_words if allowed is None else by_words & allowed
    for candidates in (likely, allowed):
        holding = [chunk for chunk, held in texts(index, candidates) if wanted in _plain(held)]
        if holding:
            return FoundText(chunks=tuple(holding))
    best = [chunk for chunk, _ in leg.best(_CANDIDATES)]
    if allowed is not None:
        best = [*(chunk for chunk in best if chunk in allowed), *sorted(allowed)[:_CANDIDATES]]
    for chunk in dict.fromkeys(best):
        split = _split(index, wanted, _around(index, chunk))
        if split and (allowed is None or allowed.intersection(split)):
            return FoundText(split=split)
    outside = [chunk for chunk, held in texts(index, by_words) if wanted in _plain(held)]
    return FoundText(elsewhere=outside[0] if outside else None)


def _around(index: Index, chunk: int) -> list[int]:
    """`chunk` among its neighbours in the document, in order."""
    row = [chunk]
    for _ in range(_SPAN):
        row += index.followers(row[-1:]).values()
        row[:0] = index.preceders(row[:1]).values()
    return list(dict.fromkeys(row))


def _split(index: Index, wanted: str, row: Sequence[int]) -> tuple[int, ...]:
    """The fewest chunks of `row`, neighbours in order, that hold the text only together."""
    stored = index.chunks(row)
    held = [stored[chunk].chunk for chunk in row]
    for length in range(1, len(row) + 1):
        for start in range(len(row) - length + 1):
            if wanted in _plain(_joined(held[start : start + length])):
                return tuple(row[start : start + length]) if length > 1 else ()
    return ()


def _joined(chunks: Sequence[Chunk]) -> str:
    """Their text as the document has it: overlaps once, a gap is white space."""
    text, end = "", chunks[0].start
    for chunk in chunks:
        text += " " * (chunk.start > end) + chunk.text[max(0, end - chunk.start) :]
        end = max(end, chunk.end)
    return text


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
