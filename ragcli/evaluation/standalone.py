"""Sentences of an index that can be understood alone, drawn from all over it.

Owns the order in which an index is sampled and what counts as a sentence worth asking about.
What is made of one is `masking`'s business. Reads stretches, never the whole index, and sees the
text as the document has it, whatever the chunks: a sentence cut by two of them is one here.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ragcli.corpus.sentences import sentence_ends
from ragcli.store.index import Index, display_path, heading_path
from ragcli.store.languages import FUNCTION_WORDS
from ragcli.store.terms import surfaces

STRETCH = 1000
"""Characters of a document from which one question may be made."""

_LONGEST = 400
"""Characters of the longest sentence, and of what counts as near it on either side."""

_BESIDE = 2 * _LONGEST
"""So many characters are read on both sides of a stretch."""

_SHORTEST = 6
"""Content words, at least, of a sentence worth asking about."""

_UNSPACED_WORD = 2
"""Characters of a word where a script has no spaces."""

_LONGEST_WORD = 18
"""Where words have more characters on average, they are not divided by spaces."""

_SYMBOLS = re.compile(r"[{}|<>=\\\[\]`~^_$#@/*]|https?:|www\.|\.{3}|…|::|\t|  |\ufffd")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MARKER = re.compile(r"(?:[-+•◦–—>]|\(?(?:\d{1,3}|[a-z])[.)])\s+")
_EMPHASIS = re.compile(r"\*\*?(?=\S)|(?<=\S)\*\*?")
_HEADING = 80
"""Characters of the longest heading; longer ones are paragraphs that look like one."""

_ENDS = tuple(".!。！।॥۔።")
_BACKWARD = frozenset(
    "he him his she her it its they them their this that these those such here there then thus so"
    " and but or nor yet also however therefore moreover instead otherwise still both neither"
    " i we you my our your er sie es ihr ihre ihm ihn sein seine dies diese dieser dieses das"
    " dabei damit dadurch dort und aber oder auch jedoch deshalb daher wir ich"
    " il elle ils elles ce cela cette ces mais et donc aussi nous je él ella ellos ellas esto esta"
    " este eso pero y también nosotros yo".split()
)
_BACKWARD_CHARACTERS = frozenset("这那它他她但而并此该其")
"""First words that point at what was said before, and characters that such words begin with."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` is its document's text from `start` to `end`; `language` is the document's.

    Where two chunks meet in it, a space stands for whatever white space does in the document.

    `around` is what stands before and behind it. `heading` is what it stands under, the title
    where there is none, None where that is not sure. `chunks` are those that hold some of it.
    """

    path: str
    start: int
    end: int
    text: str
    around: str
    language: str | None
    heading: str | None
    chunks: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Document:
    id: int
    path: str
    language: str | None
    title: str | None
    stretches: int


@dataclass(frozen=True, slots=True)
class _Piece:
    chunk: int
    start: int
    end: int
    text: str
    headings: tuple[str, ...]


def stretches(index: Index, seed: int) -> Iterator[tuple[Sentence, ...]]:
    """The sentences worth asking about of one stretch after the other, in a random order of each.

    Of every file first one stretch, then of every file a second one, until all are through; the
    kinds of files alternate by how many there are. The order depends on `seed`, paths, sizes and
    nothing else of the index.
    """
    turns = [_of_file(documents, f"{seed} {name}") for name, documents in _files(index, seed)]
    while turns:
        left = []
        for turn in turns:
            drawn = next(turn, None)
            if drawn is None:
                continue
            left.append(turn)
            document, number, draw = drawn
            found = _sentences(index, document, number)
            draw.shuffle(found)
            yield tuple(found)
        turns = left


def _of_file(
    documents: list[_Document], seed: str
) -> Iterator[tuple[_Document, int, random.Random]]:
    """Every stretch of a file once, in a random order."""
    draw = random.Random(seed)
    ends = list(accumulate(document.stretches for document in documents))
    for number in draw.sample(range(ends[-1]), ends[-1]):
        at = bisect_right(ends, number)
        yield documents[at], number - (ends[at] - documents[at].stretches), draw


def _files(index: Index, seed: int) -> list[tuple[str, list[_Document]]]:
    """The files with their documents; each kind is spread evenly over the list."""
    with index.reading() as connection:
        rows = connection.execute(
            "SELECT d.id, f.path, d.record, d.language, d.title, d.kind, max(c.end) AS end"
            " FROM chunks c JOIN documents d ON d.id = c.document JOIN files f ON f.id = d.file"
            " GROUP BY c.document"
        ).fetchall()
    named = [(display_path(row[1], row[2]), row) for row in rows]
    uses = Counter(path for path, _ in named)
    files: dict[bytes, list[_Document]] = defaultdict(list)
    kinds: dict[bytes, str] = {}
    for path, (number, file, _, language, title, kind, end) in sorted(
        named, key=lambda item: (item[1][1], item[0])
    ):
        # Else no path says, or none that can be written says, which of them is meant.
        if uses[path] == 1 and not _SURROGATE.search(path):
            files[file].append(_Document(number, path, language, title, 1 + (end - 1) // STRETCH))
            kinds.setdefault(file, kind)
    by_kind: dict[str, list[bytes]] = defaultdict(list)
    for file in files:
        by_kind[kinds[file]].append(file)
    placed = []
    for kind, members in sorted(by_kind.items()):
        random.Random(f"{seed} {kind}").shuffle(members)
        placed += [((i + 0.5) / len(members), kind, file) for i, file in enumerate(members)]
    return [(display_path(file, None), files[file]) for _, _, file in sorted(placed)]


def _sentences(index: Index, document: _Document, number: int) -> list[Sentence]:
    """The sentences worth asking about that begin in a stretch of the document."""
    low, high = number * STRETCH, (number + 1) * STRETCH
    pieces = _read(index, document.id, low - _BESIDE, high + _BESIDE)
    if not pieces:
        return []
    base, text = _joined(pieces, max(0, low - _BESIDE), high + _BESIDE)
    # The first end is where the sentence ends that the reading began in, but at the very start.
    first, last = max(0, low - _LONGEST - base), min(len(text), high + _LONGEST - base)
    bounds = [*([] if number else [0]), *sentence_ends(text, first, last)]
    found = []
    for begin, end in pairwise(bounds):
        start = _trimmed(text, begin, end)
        if not low <= base + start < high or not stands_alone(text[start:end], document.language):
            continue
        span = base + start, base + end
        holding = [piece for piece in pieces if piece.start < span[1] and piece.end > span[0]]
        found.append(
            Sentence(
                document.path, *span, text[start:end],
                _around(text, start, end),
                document.language,
                _heading(holding[0], text, base, start, document),
                frozenset(piece.chunk for piece in holding),
            )
        )  # fmt: skip
    return found


def _around(text: str, start: int, end: int) -> str:
    """What stands before and behind a sentence, in whole words where they have spaces."""
    before, behind = text[max(0, start - _LONGEST) : start], text[end : end + _LONGEST]
    return f"{before[before.find(' ') + 1 :]} {behind[: behind.rfind(' ')]}"


def _read(index: Index, document: int, low: int, high: int) -> list[_Piece]:
    """The chunks of a document that hold some of its text from `low` to `high`, in order."""
    pieces = []
    with index.reading() as connection:
        for chunk, start, end, text, headings in connection.execute(
            "SELECT id, start, end, text, heading FROM chunks WHERE document = ? AND start < ?"
            " ORDER BY start DESC, id DESC",
            (document, high),
        ):
            if end > low:
                pieces.append(_Piece(chunk, start, end, text, heading_path(index, chunk, headings)))
            if start <= low:
                break
    return pieces[::-1]


def _joined(pieces: list[_Piece], low: int, high: int) -> tuple[int, str]:
    """(offset, the document's text from there): between two chunks there is only white space.

    One character of it joins, more of it separates as a blank line does.
    """
    begin = max(low, pieces[0].start)
    parts = []
    at = begin
    for piece in pieces:
        gap = piece.start - at
        if gap > 0:
            parts.append(" " if gap == 1 else "\n\n" + " " * (gap - 2))
            at = piece.start
        if piece.end > at:
            part = piece.text[at - piece.start : max(0, high - piece.start)]
            parts.append(part)
            at += len(part)
    return begin, "".join(parts)


def _trimmed(text: str, start: int, end: int) -> int:
    """Where the sentence begins behind white space and the marker of a list's item."""
    while start < end and text[start].isspace():
        start += 1
    marker = _MARKER.match(text, start, end)
    return marker.end() if marker else start


def stands_alone(text: str, language: str | None) -> bool:
    """Whether `text` is a whole sentence of prose that needs none before it."""
    if len(text) > _LONGEST or not text.rstrip("\"'”’»)」』").endswith(_ENDS):
        return False
    if _SYMBOLS.search(_EMPHASIS.sub("", text)) or not (text[0].isalnum() or text[0] in '"“„«「'):
        return False
    words = surfaces(text)
    first = words[0].lower() if words else ""
    letters = sum(map(str.isalpha, text))
    if not words or text[0].islower() or letters < 0.7 * (len(text) - text.count(" ")):
        return False
    if first in _BACKWARD or first[0] in _BACKWARD_CHARACTERS:
        return False
    if len(text) > len(words) * _LONGEST_WORD:  # no spaces between the words
        return len(text) >= _SHORTEST * _UNSPACED_WORD
    stop = FUNCTION_WORDS.get(language or "", frozenset())
    content = {word.lower() for word in words if word.lower() not in stop}
    prose = any(word.lower() in stop for word in words) or not text.isascii()
    return prose and len(content) >= _SHORTEST


def _heading(piece: _Piece, text: str, base: int, start: int, document: _Document) -> str | None:
    """The innermost heading above the sentence; None where another may stand in between."""
    between = text[max(0, piece.start - base) : start]
    for paragraph in re.split(r"\n\s*\n", between):
        line = paragraph.strip("#=-~*^\"'+`: \t\r\n")
        known = any(line in heading or heading in line for heading in piece.headings)
        short = "\n" not in line and len(line) < 100 and not line.endswith((*_ENDS, ":", "?"))
        if line and short and not known:
            return None
    heading = piece.headings[-1] if piece.headings else document.title
    return heading if heading and len(heading) <= _HEADING else None
