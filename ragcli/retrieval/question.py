"""A question as the lexical index understands it: words, each with the terms it may stand as.

Stop words are dropped unless nothing else is left. A word is looked for under the stem of the
question's own language where its function words tell it, else under the stems of every
language in the index; those variants count as one word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragcli.store.languages import DEFAULT, FUNCTION_WORDS, detect
from ragcli.store.terms import expand, surfaces


@dataclass(frozen=True, slots=True)
class Word:
    """`text` as asked (of an identifier's part the stem); `variants` the terms that count as it."""

    text: str
    variants: tuple[str, ...]


def parse_question(question: str, languages: Sequence[str]) -> tuple[Word, ...]:
    """The words of `question`, each once, in order; `languages` are those of the index."""
    told = detect(question)
    among = (told,) if told and told in languages else tuple(languages) or (DEFAULT,)
    if DEFAULT not in among and told is None:
        among = (*among, DEFAULT)  # texts of no told language are stemmed as English
    stop = FUNCTION_WORDS[told or DEFAULT]
    every = surfaces(question)
    kept = [surface for surface in every if not _is_stop_word(surface, stop)]
    words: dict[str, Word] = {}
    for surface in kept or every:
        for word in _words(surface, among):
            words.setdefault(word.text, word)
    return tuple(words.values())


def _is_stop_word(surface: str, stop: frozenset[str]) -> bool:
    """`IT` and `WHO` in capitals are names; `it` and `who` are not."""
    return surface.lower() in stop and not (len(surface) > 1 and surface.isupper())


def _words(surface: str, languages: Sequence[str]) -> list[Word]:
    forms = [expand(surface, language, singles=False) for language in languages]
    first = forms[0]
    same = [form for form in forms if len(form) == len(first)]
    texts = [surface] if len(first) == 1 else first
    return [
        Word(text, tuple(dict.fromkeys(form[i] for form in same))) for i, text in enumerate(texts)
    ]
