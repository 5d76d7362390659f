"""Text to index terms: the one tokenizer of the lexical index, for chunks and questions alike.

What becomes a term:
- each Unicode word (combining marks are part of a word), lower-cased, stemmed by Snowball:
  Latin script by the document's language, other scripts by the stemmer of the script;
- an identifier whole and in its parts: `max_workers` → max_workers, max, worker;
  `camelCase` → camelcase, camel, case; `ERR-4012` → err-4012, err, 4012;
  `v1.0.21` → v1.0.21, 1.0.21, v1, 0, 21; `lantern.toml` → lantern.toml, lantern, toml;
- in scripts written without spaces (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar) each
  pair of neighbours and each character; a question asks for pairs where it has them.

Owns no files and no scores; `lexical` counts what comes out of here.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from ragcli.store.languages import DEFAULT

if TYPE_CHECKING:
    import numpy as np

    from ragcli.store.lexical import Postings

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3031-\u3035"
    "\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003134f"
)
"""Scripts written without spaces, and Hangul, as ranges of a character class."""

_BLOCKS_WITH_MARKS = (
    range(0x300, 0x1E00), range(0x20D0, 0x2100), range(0x2CE0, 0x2E00), range(0x3020, 0x30A0),
    range(0xA660, 0xAC00), range(0xFB00, 0xFE30), range(0x101F0, 0x12000),
    range(0x13430, 0x13460), range(0x16AF0, 0x17000), range(0x1BC90, 0x1BCA0),
    range(0x1CF00, 0x1D250), range(0x1DA00, 0x1E960),
)  # fmt: skip
"""Where combining marks are, so that the rest need not be looked at with each start."""


@lru_cache(maxsize=1)
def _marks() -> str:
    """Every combining mark as ranges of a character class: `\\w` leaves them out."""
    ranges: list[list[int]] = []
    for code in chain.from_iterable(_BLOCKS_WITH_MARKS):
        if unicodedata.category(chr(code)) in ("Mn", "Mc"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges)


@lru_cache(maxsize=1)
def _surface() -> re.Pattern[str]:
    """Words with their marks, joined by single `. - '` inside."""
    # Marks last and behind a cheap test: their class is slow, and most words end at a space.
    return re.compile(rf"\w+(?:(?:[.\-'’‘‐‑](?=\w)|(?![\0-\u02ff])[{_marks()}]+)\w*)*")


@lru_cache(maxsize=1)
def _unspaced() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """One character of unspaced script; a run of it or of anything else. 7 ms to compile."""
    return re.compile(rf"[{UNSPACED}]"), re.compile(rf"[{UNSPACED}]+|[^{UNSPACED}]+")


_ASCII_SURFACE = re.compile(r"[A-Za-z0-9_]+(?:[.\-'][A-Za-z0-9_]+)*")
_APOSTROPHE = re.compile("['’‘]")
_PART = re.compile(r"[._\-‐‑]+")
_CAMEL = re.compile(r"(?<=[a-zß-öø-ÿ0-9])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])")
_NUMBERS = re.compile(r"\d+(?:\.\d+)+")
_MAX_TERM = 80
"""Longer runs (encoded data) are cut to this: nobody asks for them whole."""

_MAX_SURFACES = 300_000

SCRIPT_STEMMERS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)


@lru_cache(maxsize=64)
def _stemmer(language: str):  # type: ignore[no-untyped-def]
    import Stemmer

    stemmer = Stemmer.Stemmer(language)
    stemmer.maxCacheSize = 0
    return stemmer.stemWord


def _stem(word: str, language: str) -> str:
    first = word[0]
    if first >= "\u0370":
        for low, high, script in SCRIPT_STEMMERS:
            if low <= first <= high:
                language = script
                break
    stemmed: str = _stemmer(language)(word)
    return stemmed or word


def surfaces(text: str) -> list[str]:
    """The words of `text` as written, in order: identifiers and hyphenated words whole.

    What stands between two spaces in unspaced script is one surface.
    """
    if text.isascii():
        return _ASCII_SURFACE.findall(text)
    return _surface().findall(text)


def expand(surface: str, language: str = DEFAULT, *, singles: bool = True) -> list[str]:
    """The index terms of one surface: of an identifier the whole first, then its parts.

    A run of unspaced script gives its pairs of neighbours and, with `singles`, its characters;
    a run of one character gives that.
    """
    if surface.isascii():
        if surface.isalpha() and (surface.islower() or surface.istitle()):
            word = surface.lower()[:_MAX_TERM]
            return [_stemmer(language)(word) or word]
        return _expand_spaced(surface, language)
    surface = unicodedata.normalize("NFKC", surface)
    unspaced, runs = _unspaced()
    if not unspaced.search(surface):
        return _expand_spaced(surface, language)
    found: list[str] = []
    for run in runs.findall(surface):
        if unspaced.match(run):
            found += map(str.__add__, run, run[1:])
            if singles or len(run) == 1:
                found += run
        else:
            found += _expand_spaced(run, language)
    return found


def _expand_spaced(surface: str, language: str) -> list[str]:
    pieces = [surface]
    if _APOSTROPHE.search(surface):
        pieces = _APOSTROPHE.split(surface)
        pieces = [piece for piece in pieces if len(piece) > 1] or pieces[:1]
    found: dict[str, None] = {}
    for piece in pieces:
        if piece.isalpha() and (piece.islower() or piece.istitle()):
            found[_stem(piece.lower()[:_MAX_TERM], language)] = None
        else:
            _expand_piece(piece, language, found)
    return list(found)


def _expand_piece(piece: str, language: str, found: dict[str, None]) -> None:
    whole = piece.lower()[:_MAX_TERM]
    parts = [piece] if piece.isalnum() else _PART.split(piece)
    if not piece.islower():
        parts = [part for joined in parts for part in _CAMEL.split(joined)]
    if len(parts) > 1:
        if "-" not in piece or not all(part.isalpha() for part in parts):
            found[whole] = None
        if "." in piece:
            found.update(dict.fromkeys(_NUMBERS.findall(whole)))
    for part in parts:
        if part:
            lowered = part.lower()[:_MAX_TERM]
            found[lowered if lowered.isdigit() else _stem(lowered, language)] = None


class Analyzer:
    """Texts to postings, remembering each surface it has met: one per process and run.

    Not safe to share between threads.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._surfaces: dict[str, _Surfaces] = {}
        self._terms_known = _Terms()
        self._starts = array("q", [0])
        self._terms = array("q")

    def _add(self, surface: str, language: str) -> int:
        self._terms.extend(map(self._terms_known.__getitem__, expand(surface, language)))
        self._starts.append(len(self._terms))
        return len(self._starts) - 2

    def postings(self, texts: Sequence[str], languages: Iterable[str]) -> Postings:
        """The postings of `texts` (rows in their order), each in its language."""
        import numpy as np

        from ragcli.store.lexical import Postings

        if len(self._starts) > _MAX_SURFACES:
            self._forget()
        found: list[int] = []
        sizes: list[int] = []
        for text, language in zip(texts, languages, strict=True):
            known = self._surfaces.get(language)
            if known is None:
                known = self._surfaces[language] = _Surfaces(self, language)
            before = len(found)
            found.extend(map(known.__getitem__, surfaces(text)))
            sizes.append(len(found) - before)
        return Postings.count(*self._terms_by_row(np.array(found, np.int64), sizes), len(texts))

    def _terms_by_row(
        self, found: np.ndarray, sizes: list[int]
    ) -> tuple[list[str], np.ndarray, np.ndarray]:
        """(sorted names, term number, row) of every occurrence, rows ascending."""
        import numpy as np

        starts = np.frombuffer(self._starts, np.int64)
        flat = np.frombuffer(self._terms, np.int64) if self._terms else np.empty(0, np.int64)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        width = (starts[1:] - starts[:-1])[found]
        offset = np.cumsum(width) - width
        inside = np.arange(int(width.sum())) - np.repeat(offset, width)
        terms = flat[np.repeat(starts[found], width) + inside]
        known = list(self._terms_known)
        used = np.flatnonzero(np.bincount(terms, minlength=len(known))).tolist()
        used.sort(key=known.__getitem__)
        place = np.empty(len(known), np.int64)
        place[used] = np.arange(len(used))
        return [known[i] for i in used], place[terms], np.repeat(rows, width)


class _Terms(dict[str, int]):
    """Term to its number, in the order of first sight."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class _Surfaces(dict[str, int]):
    """Surface to its number for one language; a new one is analysed on first sight."""

    def __init__(self, analyzer: Analyzer, language: str) -> None:
        super().__init__()
        self._analyzer = analyzer
        self._language = language

    def __missing__(self, surface: str) -> int:
        number = self[surface] = self._analyzer._add(surface, self._language)
        return number
