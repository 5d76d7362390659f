"""How far the words of a sentence stand in the passages that it cites: lexical, not truth.

The measure is the share of the sentence's content words whose index terms (`store.terms`:
stemmed, identifiers also in parts, pairs of characters in unspaced scripts) stand in the cited
passages, their headings, titles or paths. Function words of the sentence's language do not count;
each word counts once and all alike. A sentence can share every word with a passage and say the
contrary, and a good paraphrase can share few: the measure finds what to look at. Where sentence
and passages are in different languages or scripts it says nothing.

Figures are looked at apart: a number above 12 or with decimals that stands in none of the cited
passages is named, whatever the share.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from ragcli.generation.hostile import skeleton
from ragcli.records import Hit
from ragcli.store.languages import DEFAULT, FUNCTION_WORDS, detect
from ragcli.store.terms import expand, surfaces

THRESHOLD = 0.5
"""Below this share a sentence is `unsupported`."""

_GROUPED = re.compile(r"(?<=\d)[,.'’\u00a0\u202f\u2009](?=\d{3}(?!\d))")
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_SPELT = 12
"""Whole numbers up to this are often written as words."""


@dataclass(frozen=True, slots=True)
class Support:
    """`share` of the content words that stand in the passages, None where that says nothing.

    `missing` are the words, as written, that do not; `figures` the numbers that do not.
    """

    share: float | None
    missing: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


class Vocabulary:
    """The terms and figures of the passages by rank, read when they are first asked for."""

    def __init__(self, answer: str, hits: Iterable[Hit]) -> None:
        self._hits = {hit.rank: hit for hit in hits}
        self._tongue = tongue(answer)
        known = self._tongue in FUNCTION_WORDS
        self._language = self._tongue if known else DEFAULT
        self._stop = FUNCTION_WORDS[self._language]
        self._of = cache(self._passage)
        self._expand = cache(self._terms)

    def content(self, sentence: str) -> list[str]:
        """The content words of a sentence as written, each once."""
        words = surfaces(skeleton(sentence))
        return list(dict.fromkeys(word for word in words if word.lower() not in self._stop))

    def support(self, sentence: str, words: Sequence[str], ranks: Sequence[int]) -> Support:
        """How far `words`, the content words of `sentence`, stand in the passages `ranks`."""
        passages = [self._of(rank) for rank in ranks]
        if not words or not passages:
            return Support(None)
        figures = tuple(
            figure
            for figure in dict.fromkeys(_figures(sentence))
            if _counts(figure) and not any(figure in passage.figures for passage in passages)
        )
        if all(_differ(self._tongue, passage.tongue) for passage in passages):
            return Support(None, (), figures)
        shares = [self._share(word, passages) for word in words]
        missing = tuple(word for word, share in zip(words, shares, strict=True) if share < 0.5)
        return Support(sum(shares) / len(shares), missing, figures)

    def _share(self, word: str, passages: Sequence[_Passage]) -> float:
        """1 where the whole word stands in a passage, else the share of its parts that do."""
        terms = self._expand(word)
        found = [any(term in passage.terms for passage in passages) for term in terms]
        if not found or (found[0] and word.isascii()):
            return 1.0
        return sum(found) / len(found)

    def _terms(self, word: str) -> list[str]:
        return expand(word, self._language, singles=False)

    def _passage(self, rank: int) -> _Passage:
        hit = self._hits[rank]
        numbers = map(str, hit.lines or ())
        place = [*hit.heading, hit.title or "", hit.path, hit.page or "", *numbers]
        text = "\n".join([hit.text, *place])
        words = dict.fromkeys(surfaces(skeleton(text)))
        terms = {term for word in words for term in expand(word, self._language)}
        return _Passage(frozenset(terms), frozenset(_figures(text)), tongue(hit.text))


@dataclass(frozen=True, slots=True)
class _Passage:
    terms: frozenset[str]
    figures: frozenset[str]
    tongue: str


def tongue(text: str) -> str:
    """The language of `text` where its function words tell, else the name of its script."""
    language = detect(text)
    if language is not None:
        return language
    scripts = Counter(
        unicodedata.name(character, "?").split()[0]
        for character in text[:1000]
        if character.isalpha()
    )
    return scripts.most_common(1)[0][0] if scripts else "LATIN"


def _differ(one: str, other: str) -> bool:
    """Whether two tongues are surely not the same."""
    if one in FUNCTION_WORDS and other in FUNCTION_WORDS:
        return one != other
    return _script(one) != _script(other)


def _script(name: str) -> str:
    if name in FUNCTION_WORDS:
        return "LATIN"
    # Japanese is written in several at once.
    return "CJK" if name in ("HIRAGANA", "KATAKANA") else name


def _figures(text: str) -> list[str]:
    """The numbers of a text, without what groups their thousands, decimals after a point."""
    return [
        figure.replace(",", ".") for figure in _FIGURE.findall(_GROUPED.sub("", skeleton(text)))
    ]


def _counts(figure: str) -> bool:
    return not figure.isdigit() or len(figure) > 2 or int(figure) > _SPELT
