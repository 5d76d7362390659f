"""Questions made from an index's own texts, without a model: for who has none to measure with.

Owns which of them are asked, that each has one place, and their written form. They are not what
people ask: they take their words from the passage, which flatters the lexical retriever, so they
may choose a chunk size but not a mode. How a sentence becomes a question is `masking`'s, which
sentences there are `standalone`'s business.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import chain, islice, product

from ragcli.evaluation.forms import Forms
from ragcli.evaluation.masking import Masked, Masker, Token, tokens_of
from ragcli.evaluation.questions import Gold, Question
from ragcli.evaluation.standalone import Sentence, stretches
from ragcli.evaluation.vocabulary import Vocabulary
from ragcli.store.index import Index

_TURNS = ("cloze-reworded", "heading", "cloze-masked", "cloze-reworded", "cloze-reworded", "cloze")
"""The ways in turn."""

_ELSE = ("cloze-masked", "cloze")
"""What stands in, the harder one first, where a stretch does not give a question in its way."""

_NEAR = 0.75
"""A sentence is left out where another passage has so much of it, weighted by idf."""

_LEARNT = 1000
"""Stretches, the first, in which other forms of words are looked for."""

_TRIED = 4
"""Sentences of a stretch that are tried."""


def make_questions(index: Index, number: int, seed: int = 0) -> tuple[Question, ...]:
    """No more than `number` questions, fewer where the texts do not give so many.

    The same for the same texts, chunking and `seed`, whatever the numbers of the chunks. Raises
    IndexUnavailable in its kinds.
    """
    return tuple(
        Question(
            id=f"syn-{line:04d}",
            text=masked.text,
            line=line,
            relevant=(Gold(sentence.path, span=(sentence.start, sentence.end)),),
            answers=() if masked.answer is None else (masked.answer,),
            kind=masked.kind,
            synthetic=True,
        )
        for line, (sentence, masked) in enumerate(islice(_made(index, seed), max(number, 0)), 1)
    )


def as_lines(questions: Iterable[Question]) -> Iterator[str]:
    """Each question as a line of a questions file, without the line's end."""
    for question in questions:
        fields: dict[str, object] = {
            "id": question.id,
            "kind": question.kind,
            "question": question.text,
            "relevant": [
                {"path": gold.path, "start": gold.span[0], "end": gold.span[1]}
                for gold in question.relevant
                if gold.span
            ],
        }
        if question.answers:
            fields["answers"] = list(question.answers)
        yield json.dumps({**fields, "synthetic": question.synthetic}, ensure_ascii=False)


def _made(index: Index, seed: int) -> Iterator[tuple[Sentence, Masked]]:
    """One question of each stretch that gives one, no text twice."""
    vocabulary = Vocabulary(index)
    forms = Forms()
    source = stretches(index, seed)
    first = list(islice(source, _LEARNT))
    for sentence in (found[0] for found in first if found):
        forms.learn(f"{sentence.text} {sentence.around}", sentence.language)
    masker = Masker(vocabulary, forms, random.Random(seed))
    texts: set[str] = set()
    for found in chain(first, source):
        wanted = _TURNS[len(texts) % len(_TURNS)]
        tried = [(s, tokens_of(s.text, s.language, vocabulary)) for s in found[:_TRIED]]
        for way, (sentence, tokens) in product((wanted, *_ELSE), tried):
            masked = masker.question(sentence, tokens, way)
            if masked and masked.text not in texts and _is_alone(vocabulary, sentence, tokens):
                texts.add(masked.text)
                yield sentence, masked
                break


def _is_alone(vocabulary: Vocabulary, sentence: Sentence, tokens: Iterable[Token]) -> bool:
    terms = {term for token in tokens for term in token.terms}
    return not vocabulary.elsewhere(terms, sentence.chunks, _NEAR)
