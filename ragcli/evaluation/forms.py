"""Other ways in which a corpus writes its words: inflected, derived, abbreviated, as a number.

Found in the texts that are shown; no dictionary. What is made of them is `masking`'s business.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from ragcli.store.languages import DEFAULT
from ragcli.store.terms import expand, surfaces

_BEGINNING = 5
"""Two words of one family have so many first characters in common."""

_SURE = 6
"""So many in common are enough; with fewer, one word must be the other's beginning."""

_ALIKE = 0.65
"""The share of the longer word that the two have in common."""

_ABBREVIATION = re.compile(r"(?<=\s)\(([A-Z]{2,7})s?\)")
_EXPANSION = 100
"""Characters before an abbreviation in which its expansion stands."""

_NUMBERS = {
    "english": "zero one two three four five six seven eight nine ten eleven twelve".split(),
    "german": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split(),
    "french": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze".split(),
    "spanish": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce".split(),
}


class Forms:
    """The words of the texts that were shown to it."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._families: dict[tuple[str, str], list[str]] = {}
        self._short: dict[str, str] = {}
        self._long: dict[str, str] = {}

    def learn(self, text: str, language: str | None) -> None:
        """Take in the words of a text and the abbreviations that it explains."""
        self._families = {}
        self._counts.update(
            (language or DEFAULT, word.lower()) for word in surfaces(text)
            if len(word) >= _BEGINNING and word.isalpha() and (word.islower() or word.istitle())
        )  # fmt: skip
        for match in _ABBREVIATION.finditer(text):
            short, before = match[1], text[max(0, match.start() - _EXPANSION) : match.start()]
            words = before.split()[-len(short) :]
            if [word[0].upper() for word in words] == list(short):
                long = " ".join(words)
                self._short.setdefault(long, short)
                self._long.setdefault(short, long)

    def related(self, word: str, language: str | None) -> str | None:
        """Another word for it with another stem: of its family, in digits, or written out."""
        if word in self._long:
            return self._long[word]
        names = _NUMBERS.get(language or DEFAULT, [])
        if word.lower() in names[2:]:  # "one" is more often no number
            return str(names.index(word.lower()))
        if word.isascii() and word.isdecimal() and 2 <= int(word[:4]) < len(names):
            return names[int(word)]
        return self._relative(word, language or DEFAULT, same_stem=False)

    def inflected(self, word: str, language: str | None) -> str | None:
        """Another form with the same stem."""
        return self._relative(word, language or DEFAULT, same_stem=True)

    def abbreviated(self, text: str) -> str:
        """`text` with the names in it that have an abbreviation given as that."""
        for long, short in self._short.items():
            text = text.replace(long, short)
        return text

    def _relative(self, word: str, language: str, *, same_stem: bool) -> str | None:
        """The commonest word of the same family that has the same stem, or has not."""
        lower = word.lower()
        if not word.isalpha() or len(word) < _BEGINNING:
            return None
        stem = expand(lower, language)
        for other in self._family(language, lower[:_BEGINNING]):
            if other != lower and (expand(other, language) == stem) is same_stem and (
                same_stem or _alike(lower, other)
            ):  # fmt: skip
                return other.title() if word.istitle() else other
        return None

    def _family(self, language: str, beginning: str) -> list[str]:
        """The words that begin so, commonest first."""
        if not self._families:
            grouped: dict[tuple[str, str], list[str]] = defaultdict(list)
            for tongue, word in sorted(self._counts, key=lambda item: (-self._counts[item], item)):
                grouped[tongue, word[:_BEGINNING]].append(word)
            self._families = dict(grouped)
        return self._families.get((language, beginning), [])


def _alike(a: str, b: str) -> bool:
    """Whether two words seem to be derived from one."""
    shorter = min(len(a), len(b))
    common = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    return (common == shorter or common >= _SURE) and common >= _ALIKE * max(len(a), len(b))
