"""Which words of a passage the question matched, and the stretch of it that shows most of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragcli.store.languages import DEFAULT
from ragcli.store.terms import expand, surfaces

Span = tuple[int, int]
"""Character offsets, half-open."""


def matched_spans(text: str, words: Iterable[str], languages: Sequence[str]) -> list[Span]:
    """Where `text` holds one of `words` in a form that the lexical index takes for the same.

    `languages` are those of the index, which may know none. The spans ascend and do not overlap.
    """

    def terms(surface: str) -> set[str]:
        return {term for language in (*languages, DEFAULT) for term in expand(surface, language)}

    wanted = {term for word in words for surface in surfaces(word) for term in terms(surface)}
    found: list[Span] = []
    at = 0
    for surface in surfaces(text):
        at = text.index(surface, at)
        if not wanted.isdisjoint(terms(surface)):
            found += _inside(surface, at, wanted)
        at += len(surface)
    return found


def _inside(surface: str, at: int, wanted: set[str]) -> list[Span]:
    """The spans of a surface that matched: the whole, or the characters asked for.

    In scripts without spaces (none of which has capitals) a surface is a whole clause, and its
    terms are pairs of neighbours and, failing them, single characters.
    """
    if not surface.isascii() and surface.lower() == surface.upper():
        for length in (2, 1):
            hit = {
                position + step
                for position in range(len(surface) - length + 1)
                if surface[position : position + length] in wanted
                for step in range(length)
            }
            if hit:
                return _runs(sorted(at + position for position in hit))
    return [(at, at + len(surface))]


def _runs(positions: Sequence[int]) -> list[Span]:
    """Ascending positions as spans of neighbours."""
    spans: list[Span] = []
    for position in positions:
        if spans and spans[-1][1] == position:
            spans[-1] = (spans[-1][0], position + 1)
        else:
            spans.append((position, position + 1))
    return spans


def densest(text: str, spans: Sequence[Span], size: int) -> Span:
    """The stretch of `text` of at most `size` characters that shows the most of `spans`.

    Begins and ends between words where there is room to.
    """
    if len(text) <= size:
        return 0, len(text)
    lead = size // 6
    starts = [max(0, start - lead) for start, _ in spans] or [0]
    best = max(starts, key=lambda start: sum(start <= a and b <= start + size for a, b in spans))
    start = min(best, len(text) - size)
    end = start + size
    if start:
        start = text.find(" ", start, start + lead) + 1 or start
    if end < len(text):
        end = text.rfind(" ", end - lead, end) if " " in text[end - lead : end] else end
    return start, end
