"""Passages and questions to measure search engines with, the same for the same seed.

Made up, so that anyone can make them: words by Zipf and Mandelbrot's law, the commonest being
English's real stop words; each passage mixes the language at large with the few hundred words
of one of many topics, so that words come in bursts as they do in text. Or cut from real files.
Owns no engine and no clock.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.store.languages import FUNCTION_WORDS

if TYPE_CHECKING:
    import numpy as np

SEED = 20
TYPES = 270_000
"""Words of the language; 20 million drawn show 250,000 of them."""

EXPONENT, SHIFT = 1.12, 5.0
"""The r-th commonest word is drawn as often as 1 / (r + SHIFT) ** EXPONENT says."""

TOPICS, TOPIC_WORDS, TOPIC_SHARE = 2_000, 300, 0.6
"""So many topics of so many words, and the share of a passage's content words they supply."""

FILE_PASSAGES = 1_000
QUESTIONS = 200
STOP_WORDS = sorted(FUNCTION_WORDS["english"])
_BATCH = 5_000
_LONGEST = 1_500
"""Characters of a passage of real text, so that ragcli takes each record as one chunk."""


def write_source(
    folder: Path, more: Path, passages: int, spare_files: int, text: Path | None
) -> list[tuple[str, str]]:
    """Write `passages` as JSON Lines, 1,000 a file, to `folder`, and `spare_files` to `more`.

    Returns (id of a passage, question made of its words). `text`: a folder of real files.
    """
    rng = random.Random(SEED)
    total = passages + spare_files * FILE_PASSAGES
    made = iter(real_passages(text, total) if text else made_up_passages(total))
    asked = set(rng.sample(range(passages), QUESTIONS))
    questions = []
    for first in range(0, total, FILE_PASSAGES):
        target = folder if first < passages else more
        with (target / f"{first // FILE_PASSAGES:04}.jsonl").open("w", encoding="utf-8") as file:
            for number, passage in enumerate(islice(made, FILE_PASSAGES), first):
                file.write(json.dumps({"_id": str(number), "text": passage}) + "\n")
                if number in asked:
                    questions.append((str(number), question_of(passage, rng)))
    rng.shuffle(questions)
    return questions


def read_file(path: Path | str) -> Iterator[tuple[str, str]]:
    """The (id, text) of each passage of a file."""
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            yield record["_id"], record["text"]


def read_source(folder: Path | str) -> Iterator[tuple[str, str]]:
    """The (id, text) of each passage of every file."""
    for path in sorted(Path(folder).iterdir()):
        yield from read_file(path)


def question_of(passage: str, rng: random.Random) -> str:
    """Four to nine content words of `passage` with a few stop words between them."""
    found = dict.fromkeys(re.findall(r"\w+", passage.lower()))
    content = [word for word in found if word not in STOP_WORDS]
    words = rng.sample(content, min(len(content), rng.randint(4, 9)))
    words += rng.sample(STOP_WORDS, rng.randint(2, 4))
    rng.shuffle(words)
    return " ".join(words)


def content_words(question: str) -> list[str]:
    """The words of `question` that are no stop words."""
    return [word for word in re.findall(r"\w+", question.lower()) if word not in STOP_WORDS]


def made_up_passages(total: int) -> Iterator[str]:
    """`total` passages of 80 to 120 words."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    words = _language(rng)
    chance = (np.arange(1, TYPES + 1) + SHIFT) ** -EXPONENT
    at_large = np.cumsum(chance / chance.sum())
    content = np.cumsum(chance[len(STOP_WORDS) :])
    topics = len(STOP_WORDS) + np.searchsorted(
        content, rng.random((TOPICS, TOPIC_WORDS)) * content[-1]
    )
    within = np.cumsum((np.arange(TOPIC_WORDS) + 2.0) ** -1.1)
    for done in range(0, total, _BATCH):
        sizes = rng.integers(80, 121, min(_BATCH, total - done))
        size = int(sizes.sum())
        ranks = np.minimum(np.searchsorted(at_large, rng.random(size)), TYPES - 1)
        topic = np.repeat(rng.integers(0, TOPICS, len(sizes)), sizes)
        topical = topics[topic, np.searchsorted(within, rng.random(size) * within[-1])]
        of_topic = (ranks >= len(STOP_WORDS)) & (rng.random(size) < TOPIC_SHARE)
        chosen = [words[rank] for rank in np.where(of_topic, topical, ranks).tolist()]
        start = 0
        for size in sizes.tolist():
            yield _as_sentences(chosen[start : start + size])
            start += size


def _language(rng: np.random.Generator) -> list[str]:
    """The words of the language, commonest first: stop words, then roots and inflected forms."""
    syllables = [c + v + e for c in "bdfgklmnprstvz" for v in "aeiou" for e in ("", "n", "r", "s")]
    pairs = [a + b for a in syllables for b in syllables]
    rng.shuffle(pairs)
    roots = [*pairs, *(pair + syllable for pair in pairs for syllable in syllables[::40])]
    words = dict.fromkeys(str(word) for word in rng.permutation(STOP_WORDS))
    numbers = count()
    while len(words) < TYPES:
        group, place = divmod(next(numbers), 5)
        root = roots[3 * group + place] if place < 3 else roots[group]
        words[root + ("", "", "", "s", ("ed", "ing")[group % 2])[place]] = None
    return list(words)


def _as_sentences(words: list[str]) -> str:
    sentences = (words[i : i + 17] for i in range(0, len(words), 17))
    return " ".join(f"{' '.join(part).capitalize()}." for part in sentences)


def real_passages(folder: Path, total: int) -> Iterator[str]:
    """`total` passages of 100 words out of every UTF-8 file below `folder`.

    Where the text is used up, its sentences are shuffled and it is cut anew.
    """
    rng = random.Random(SEED)
    texts = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            texts.append(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
    sentences = [part.split() for text in texts for part in re.split(r"(?<=[.!?])\s+|\n\n+", text)]
    done = 0
    while done < total:
        words = [word for sentence in sentences for word in sentence]
        if not words:
            raise SystemExit(f"{folder} holds no UTF-8 text")
        for start in range(0, len(words), 100):
            yield " ".join(words[start : start + 100])[:_LONGEST]
            done += 1
        rng.shuffle(sentences)
