"""A sentence to a question about it, by leaving words out and putting others in their place.

Owns the ways:
- `cloze`: the clause around the rarest word, with a question word for that;
- `cloze-masked`: the same without its rarest words, after a word of the text around it;
- `cloze-reworded`: as that with two such words, and with words in related forms instead;
- `heading`: what the part under a heading says about some words of the sentence.

Which sentences are asked about, and how often in which way, is `synthetic`'s.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragcli.evaluation.forms import Forms
from ragcli.evaluation.standalone import Sentence
from ragcli.evaluation.vocabulary import Vocabulary
from ragcli.store.languages import DEFAULT, FUNCTION_WORDS
from ragcli.store.terms import expand, surfaces

_CLAUSE = 10
"""Content words of the longest clause, the masked one left out."""

_MASKED = 0.6
"""The share of a clause's words, the rarest, that `cloze-masked` and `heading` leave out."""

_TOPIC = 8
"""Words, those that tell most of what is around a sentence, from which its topic is drawn."""

_FEWEST = 2
_PARTICLES = "的了是在和与及也都而或之于以为被把从对由等着个就并其这那"
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff]"
)
_PIECE = re.compile(
    rf"[\u3040-\u309f]+|[\u30a0-\u30ff]+|[{_PARTICLES}]|[^\u3040-\u30ff{_PARTICLES}]{{1,2}}"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

_WHAT = {
    "english": "what", "german": "was", "french": "quoi", "spanish": "qué", "italian": "cosa",
    "portuguese": "que", "dutch": "wat", "swedish": "vad", "danish": "hvad", "norwegian": "hva",
}  # fmt: skip
_ABOUT = {
    "english": "What does {} say about {}?",
    "german": "Was steht unter {} über {}?",
    "french": "Que dit {} sur {} ?",
    "spanish": "¿Qué dice {} sobre {}?",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text; `terms` are what the index has of it, `frequency` that of the rarest.

    A function word has no terms. `joined`: no space stands before it.
    """

    text: str
    start: int
    terms: tuple[str, ...]
    frequency: int
    joined: bool


@dataclass(frozen=True, slots=True)
class Masked:
    """A question about a sentence, and the text that it leaves out for an answer."""

    text: str
    kind: str
    answer: str | None


def tokens_of(text: str, language: str | None, vocabulary: Vocabulary) -> list[Token]:
    """The words of a text in order; a run of a script without spaces in short pieces."""
    stop = FUNCTION_WORDS.get(language or "", frozenset())
    found = []
    at = 0
    for surface in surfaces(text):
        at = text.index(surface, at)
        whole = not _UNSPACED.search(surface)
        for number, piece in enumerate([surface] if whole else _PIECE.findall(surface)):
            function = piece.lower() in stop if whole else _is_particle(piece)
            terms = () if function else tuple(expand(piece, language or DEFAULT, singles=False))
            frequency = min(map(vocabulary.frequency, terms), default=0)
            found.append(Token(piece, at, terms, frequency, number > 0))
            at += len(piece)
    return found


def _is_particle(piece: str) -> bool:
    return len(piece) == 1 or "\u3040" <= piece[0] <= "\u309f"


class Masker:
    """Makes questions of sentences; `draw` decides where there is a choice."""

    def __init__(self, vocabulary: Vocabulary, forms: Forms, draw: random.Random) -> None:
        self._vocabulary = vocabulary
        self._forms = forms
        self._draw = draw

    def question(self, sentence: Sentence, tokens: Sequence[Token], way: str) -> Masked | None:
        """A question about the sentence with these `tokens`; None where it cannot be made so.

        What is kept of its words tells it from the other passages, if words are independent.
        """
        if way == "heading":
            return self._about_heading(sentence, tokens)
        answer = _answer(tokens)
        if answer is None:
            return None
        clause = _clause(tokens, answer)
        language = sentence.language
        if way == "cloze":
            return self._masked(way, [], clause, answer, language)
        topic = self._topic(sentence, tokens)
        if way == "cloze-masked":
            kept = _without_rarest(clause, (answer,))
            return self._masked(way, topic[:1], kept, answer, language)
        related = [token for token in clause if token.terms and self._is_related(token, language)]
        if not related:
            return None
        kept = _without_rarest(clause, (answer, *related))
        reworded = [t if t is answer else self._reworded(t, language) for t in kept]
        topic.sort(key=lambda token: not self._is_related(token, language))
        also = [self._reworded(token, language) for token in topic[:2]]
        return self._masked(way, also, reworded, answer, language)

    def _masked(
        self,
        kind: str,
        topic: Sequence[Token],
        kept: Sequence[Token],
        answer: Token,
        language: str | None,
    ) -> Masked | None:
        words = [token for token in (*topic, *kept) if token.terms and token is not answer]
        if len(words) < _FEWEST or not self._tells(words):
            return None
        what = _WHAT.get(language or "", "…")
        shown = [replace(t, text=what, joined=False) if t is answer else t for t in kept]
        before = f"{' '.join(token.text for token in topic)}: " if topic else ""
        text = self._forms.abbreviated(f"{before}{_text(shown)}?")
        return None if _stands_in(answer, text) else Masked(text, kind, answer.text)

    def _about_heading(self, sentence: Sentence, tokens: Sequence[Token]) -> Masked | None:
        if sentence.heading is None:
            return None
        language = sentence.language
        heading = " ".join(sentence.heading.split())
        above = [t for t in tokens_of(heading, language, self._vocabulary) if t.terms]
        named = {term for token in above for term in token.terms}
        words = [token for token in tokens if token.terms and named.isdisjoint(token.terms)]
        common = [token for token in _without_rarest(words, ()) if token.terms]
        chosen = self._draw.sample(common, min(3, len(common)))
        chosen.sort(key=lambda token: token.start)
        if len(chosen) < _FEWEST or not self._tells([*above, *chosen]):
            return None
        asked = _text([self._reworded(token, language) for token in chosen])
        return Masked(_ABOUT.get(language or "", "{}: {}?").format(heading, asked), "heading", None)

    def _topic(self, sentence: Sentence, tokens: Sequence[Token]) -> list[Token]:
        """The words that tell most of the text around, and are not in the sentence, shuffled."""
        known = {term for token in tokens for term in token.terms}
        near = tokens_of(sentence.around, sentence.language, self._vocabulary)
        counts = Counter(token.terms for token in near)
        words = {t.terms: t for t in near if t.text.isalpha() and known.isdisjoint(t.terms)}
        telling = sorted(
            (word for word in words.values() if word.terms),
            key=lambda word: (-counts[word.terms] * self._information(word), word.start),
        )[:_TOPIC]
        return self._draw.sample(telling, len(telling))

    def _information(self, word: Token) -> float:
        return math.log(max(self._vocabulary.chunks, 1) / max(word.frequency, 1))

    def _tells(self, words: Iterable[Token]) -> bool:
        """Whether, were words independent, less than one chunk would have all of `words`."""
        return sum(map(self._information, words)) >= math.log(max(self._vocabulary.chunks, 1))

    def _is_related(self, token: Token, language: str | None) -> bool:
        return self._forms.related(token.text, language) is not None

    def _reworded(self, token: Token, language: str | None) -> Token:
        forms = self._forms
        other = forms.related(token.text, language) or forms.inflected(token.text, language)
        return replace(token, text=other) if other else token


def _answer(tokens: Sequence[Token]) -> Token | None:
    """The rarest word, a number too; None where too few words are left without it."""
    content = [token for token in tokens if token.terms]
    plain = [t for t in content if t.text.isalnum() or _NUMBER.fullmatch(t.text)]
    if not plain or len(content) <= _FEWEST:
        return None
    return min(plain, key=lambda token: (token.frequency, token.start))


def _clause(tokens: Sequence[Token], answer: Token) -> list[Token]:
    """The tokens around the answer, no more than `_CLAUSE` with terms, and no second answer."""
    content = [token for token in tokens if token.terms]
    at = next(i for i, token in enumerate(content) if token is answer)
    first = max(0, min(at - _CLAUSE // 2, len(content) - _CLAUSE - 1))
    clause = content[first : first + _CLAUSE + 1]
    return [
        token
        for token in tokens
        if clause[0].start <= token.start <= clause[-1].start
        and (token is answer or set(token.terms).isdisjoint(answer.terms))
    ]


def _without_rarest(tokens: Sequence[Token], spared: Iterable[Token]) -> list[Token]:
    """`tokens` without the rarest share of those with terms; the `spared` stay."""
    stays = {id(token) for token in spared}
    content = [token for token in tokens if token.terms and id(token) not in stays]
    rarest = sorted(content, key=lambda token: (token.frequency, token.start))
    gone = {id(token) for token in rarest[: round(_MASKED * len(rarest))]}
    return [token for token in tokens if id(token) not in gone]


def _stands_in(answer: Token, text: str) -> bool:
    return answer.text.casefold() in text.casefold()


def _text(tokens: Sequence[Token]) -> str:
    """The words with a space between two, but where they stood in one run."""
    text = ""
    end = -1
    for token in tokens:
        joined = token.joined and token.start == end
        text += token.text if joined or not text else f" {token.text}"
        end = token.start + len(token.text)
    return text
