"""Which passage holds a text: found by its words, sure by its characters.

Case and white space do not count. Knows no scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragcli.retrieval.asked import allowed_rows
from ragcli.retrieval.legs import LexicalLeg
from ragcli.retrieval.question import parse_question
from ragcli.store.contents import texts
from ragcli.store.index import Index

_CANDIDATES = 20
"""Passages with most of the words, beside whose followers a split text is looked for."""


@dataclass(frozen=True, slots=True)
class FoundText:
    """`chunks` hold the whole text; else `split` are two neighbours that hold it together."""

    chunks: tuple[int, ...] = ()
    split: tuple[int, ...] = ()


def find_text(index: Index, text: str, among: Iterable[int] | None) -> FoundText:
    """The chunks that hold `text`, of `among` (None: of all). White space in it stands for any."""
    wanted = _plain(text)
    allowed = None if among is None else set(among)
    segments = index.view().postings
    words = parse_question(text, index.languages())
    leg = LexicalLeg(segments, words, allowed_rows(segments, None))
    by_words = set(leg.holding_all().tolist())
    likely = by_words if allowed is None else by_words & allowed
    for candidates in (likely, allowed):  # a text may begin or end inside a word: then look at all
        holding = [chunk for chunk, held in texts(index, candidates) if wanted in _plain(held)]
        if holding:
            return FoundText(chunks=tuple(holding))
    best = [chunk for chunk, _ in leg.best(_CANDIDATES)]
    return FoundText(split=_split(index, wanted, best, allowed))


def _split(
    index: Index, wanted: str, candidates: list[int], allowed: set[int] | None
) -> tuple[int, ...]:
    """The first of `candidates` that holds the text together with the one before or behind it."""
    behind = index.followers(candidates) if candidates else {}
    before = index.preceders(candidates) if candidates else {}
    pairs = [*behind.items(), *((first, second) for second, first in before.items())]
    held = dict(texts(index, {chunk for pair in pairs for chunk in pair}))
    for first, second in pairs:
        inside = allowed is None or first in allowed or second in allowed
        if inside and wanted in _plain(f"{held[first]} {held[second]}"):
            return first, second
    return ()


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
