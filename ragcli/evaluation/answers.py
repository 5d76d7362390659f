"""Texts of answers: alike but for case, punctuation and articles, and where they stand.

The normal form is SQuAD's (Rajpurkar et al. 2016), in scripts beyond ASCII as MLQA has it (Lewis
et al. 2020): punctuation is all of Unicode's, and in scripts written without spaces each character
is a word.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache, reduce
from itertools import pairwise

import numpy as np

from ragcli.retrieval.question import Word, parse_question
from ragcli.store.contents import texts
from ragcli.store.index import Index
from ragcli.store.lexical import find
from ragcli.store.rows import OpenSegment
from ragcli.store.terms import UNSPACED

_UNSPACED = re.compile(f"[{UNSPACED}]")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_BEYOND_MARKS = 0x20000
"""From here on Unicode has characters of Han, and none of punctuation."""

_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)

_LIKELY = 50
"""So many chunks that have an answer's words are looked at before all are."""


def normalised(text: str) -> str:
    """The words of `text` in lower case between single blanks, without punctuation and articles."""
    lowered = text.lower()
    if lowered.isascii():
        bare = lowered.translate(_ASCII_PUNCTUATION)
    else:
        bare = _UNSPACED.sub(r" \g<0> ", lowered.translate(_punctuation()))
    return " ".join(_ARTICLE.sub(" ", bare).split())


@lru_cache(maxsize=1)
def _punctuation() -> dict[int, None]:
    """What `str.translate` drops."""
    marks = [code for code in range(_BEYOND_MARKS) if unicodedata.category(chr(code))[0] == "P"]
    return dict.fromkeys([*marks, *map(ord, string.punctuation)])


def holds(text: str, answers: Iterable[str]) -> bool:
    """Whether `text` has the words of one of `answers` in a row; all in their normal form."""
    padded = f" {text} "
    return any(f" {answer} " in padded for answer in answers if answer)


def answered(index: Index, asked: Mapping[str, Iterable[str]]) -> set[str]:
    """Which of `asked` (answers by the question's id) have an answer that some live chunk holds.

    The terms of the index find most at once. They are not those of the normal form (`U.S.` is
    `us`), so for the rest each chunk is read, once for all.
    """
    askers: dict[str, set[str]] = {}
    for question, answers in asked.items():
        for answer in filter(None, map(normalised, answers)):
            askers.setdefault(answer, set()).add(question)
    found: set[str] = set()
    languages = index.languages()
    for answer, asking in askers.items():
        if not asking <= found:
            likely = _likely(index.view().postings, parse_question(answer, languages))
            if any(holds(normalised(text), [answer]) for _, text in texts(index, likely)):
                found |= asking
    rest = {answer: asking - found for answer, asking in askers.items()}
    return found | _read(index, {answer: asking for answer, asking in rest.items() if asking})


def _likely(segments: Iterable[OpenSegment], words: Iterable[Word]) -> list[int]:
    """Some of the live chunks that have all of `words`."""
    ordered = sorted(words, key=lambda word: -len(word.text))  # the rarest first, mostly
    chunks: list[int] = []
    for segment in segments if ordered else ():
        found = (find(segment.postings, word.variants, segment.live).rows for word in ordered)
        rows = reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), found)
        chunks += segment.chunks[rows[:_LIKELY]].tolist()
    return chunks[:_LIKELY]


def _read(index: Index, askers: Mapping[str, set[str]]) -> set[str]:
    """The askers of those answers that a live chunk holds, by reading all chunks if need be."""
    waiting: set[str] = set().union(*askers.values())
    by_words: dict[tuple[str, ...], set[str]] = {}
    for answer in askers:
        words = answer.split()
        keys: list[tuple[str, ...]] = [*pairwise(words)] or [(answer,)]
        by_words.setdefault(max(keys, key=lambda key: len("".join(key))), set()).add(answer)
    for _, text in texts(index) if waiting else ():
        held = normalised(text)
        words = held.split()
        for key in by_words.keys() & {*pairwise(words), *((word,) for word in words)}:
            for answer in [each for each in by_words[key] if holds(held, [each])]:
                waiting -= askers[answer]
                by_words[key].discard(answer)
            if not by_words[key]:
                del by_words[key]
        if not waiting:
            break
    return set().union(*askers.values()) - waiting
