"""Documents to chunks: the one place that knows what `--chunk` means.

Each way of chunking names stretches of the text; `splitting` then cuts those that are longer
than the encoder reads, so that no chunk is truncated, whichever the way.

Owns neither blocks (readers make them), nor what ends a sentence (`sentences`), nor what `auto`
keeps together (`sections`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragcli.corpus.lines import line_counter
from ragcli.corpus.sections import sections
from ragcli.corpus.sentences import sentence_ends
from ragcli.corpus.splitting import Splitter, Tokenizer, trimmed
from ragcli.errors import UsageError
from ragcli.records import Block, Chunk, Document

__all__ = ["AUTO_WORDS", "Chunking", "Tokenizer", "chunk", "parse_chunking"]

AUTO_WORDS = 150
"""The most words in a chunk of plain `auto`."""

_RECORD = 2
"""A record was made as a passage by whoever made the file: `auto` cuts it only where it is so
many times the target. SciFact's abstracts (200 words; BM25): nDCG@10 .66 cut, .68 whole."""

_LETTERS = 6
"""Characters of a word in `auto`, its space included, as in English: so that long words, code
and text without spaces are not taken for short."""

_HEADING = 300
"""The most characters of a heading above a chunk."""

_HEADINGS = 12
"""The most headings above a chunk, the outermost."""

_FORM = re.compile(r"(auto|words|sentences|tokens):([1-9][0-9]{0,5})(?:/([0-9]{1,6}))?")

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
)
_ANY_UNSPACED = re.compile(f"[{_UNSPACED}]")
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_LINE_END = re.compile(r"[\r\n]+")


def count_words(text: str) -> int:
    """Words as `words:N` counts them: each character of a script without spaces is one."""
    return len(text.split()) if text.isascii() else len(_WORD.findall(text))


@dataclass(frozen=True, slots=True)
class Chunking:
    """`kind` is `auto`, `words`, `sentences` or `tokens`; `size` is the most of them in a chunk.

    The size of `auto` is in words of six characters; `overlap`, of `tokens` only, in tokens.
    """

    kind: str
    size: int
    overlap: int = 0


def parse_chunking(text: str) -> Chunking:
    """The chunking that `text` names; raises UsageError where it names none."""
    match = _FORM.fullmatch(f"auto:{AUTO_WORDS}" if text == "auto" else text)
    if match:
        kind, size, overlap = match[1], int(match[2]), int(match[3] or 0)
        if match[3] is None or (kind == "tokens" and overlap < size):
            return Chunking(kind, size, overlap)
    raise UsageError(
        f"{text!r} is not a way of chunking",
        "use auto, auto:120, words:100, sentences:1 or tokens:200/20 (size/overlap)",
    )


def check_fits(chunking: Chunking, tokenizer: Tokenizer) -> None:
    """Raises UsageError where `tokens` asks for more than the encoder reads."""
    if chunking.kind != "tokens" or tokenizer.window is None or chunking.size <= tokenizer.window:
        return
    most = tokenizer.window
    raise UsageError(
        f"the encoder reads {most} tokens, chunks of {chunking.size} are too long for it",
        f"use --chunk tokens:{most} or less",
    )


def chunk(document: Document, chunking: Chunking, tokenizer: Tokenizer) -> list[Chunk]:
    """The chunks of `document`, in order, none empty and none with white space at an end.

    Every character that is not white space lies in a chunk, in one only but for the overlap of
    `tokens`. No chunk has more tokens than `tokenizer.window`, a single character excepted.
    Raises UsageError where `tokens` asks for more than that.
    """
    text, size = document.text, chunking.size
    blocks = _blocks_by_page(document)
    letters = size * _LETTERS if chunking.kind == "auto" else None
    if letters and document.record is not None:
        letters *= _RECORD
    check_fits(chunking, tokenizer)
    splitter = Splitter(text, blocks, tokenizer, letters)
    stretches: Iterable[tuple[int, int]]
    if letters is not None:
        stretches = sections(document, blocks, splitter.size, letters)
    elif chunking.kind == "words":
        stretches = _word_windows(text, size)
    elif chunking.kind == "sentences":
        stretches = _sentence_windows(text, blocks, size)
    else:
        stretches = _token_windows(text, tokenizer, size, chunking.overlap)
    pieces = (piece for start, end in stretches for piece in splitter.pieces(start, end))
    # Where windows overlap, two pieces may begin at one place: the later window goes on further.
    return _with_places(document, sorted(dict(pieces).items()))


def _blocks_by_page(document: Document) -> Sequence[Block]:
    """The blocks, none across the start of a page; one paragraph where there are none."""
    blocks = document.blocks or (Block(0, len(document.text), "paragraph"),)
    pages = [page.start for page in document.pages]
    parts: list[Block] = []
    for block in blocks if pages else ():
        inner = pages[bisect_right(pages, block.start) : bisect_left(pages, block.end)]
        for start, end in zip([block.start, *inner], [*inner, block.end], strict=True):
            parts.append(Block(start, end, block.kind, block.headings))
    return parts or blocks


def _word_windows(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Disjoint windows of `size` words, blind to structure, as in Lewis et al. 2020.

    A word is a run of characters that are not white space; in scripts written without spaces
    (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar) each character is a word.
    """
    word, gap = r"\S+", r"\s+"
    if _ANY_UNSPACED.search(text):
        word, gap = rf"(?:[{_UNSPACED}]|[^\s{_UNSPACED}]+)", r"\s*"
    for match in re.finditer(f"{word}(?:{gap}{word}){{0,{size - 1}}}", text):
        yield match.span()


def _sentence_windows(text: str, blocks: Sequence[Block], size: int) -> Iterator[tuple[int, int]]:
    """Windows of `size` sentences, running over the whole document."""
    sentences = list(_sentences(text, blocks))
    for window in (sentences[i : i + size] for i in range(0, len(sentences), size)):
        yield window[0][0], window[-1][1]


def _sentences(text: str, blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Each sentence; a heading counts as one, as does each line of code and row of a table."""
    following = [block.start for block in blocks[1:]]
    for block, end in zip(blocks, [*following, len(text)], strict=True):
        ends: Iterable[int]
        if block.kind == "heading":
            ends = ()
        elif block.kind in ("code", "table"):
            ends = (match.start() for match in _LINE_END.finditer(text, block.start, end))
        else:
            ends = sentence_ends(text, block.start, end)
        start = block.start
        for stop in (*ends, end):
            sentence = trimmed(text, start, stop)
            if sentence[0] < sentence[1]:
                yield sentence
            start = stop


def _token_windows(
    text: str, tokenizer: Tokenizer, size: int, overlap: int
) -> Iterator[tuple[int, int]]:
    """Windows of `size` tokens; what lies between two tokens goes with the first of them."""
    starts = [start for start, _ in tokenizer.spans(text)]
    starts[:1] = [0]
    for first in range(0, len(starts), size - overlap):
        if first + size >= len(starts):
            yield starts[first], len(text)
            return
        yield starts[first], starts[first + size]


def _short(headings: tuple[str, ...]) -> tuple[str, ...]:
    """A path of headings that each chunk may carry: a file may call a megabyte its heading."""
    if len(headings) <= _HEADINGS and all(len(part) <= _HEADING for part in headings):
        return headings
    return tuple(
        part if len(part) <= _HEADING else f"{part[: _HEADING - 1]}…"
        for part in headings[:_HEADINGS]
    )


def _with_places(document: Document, pieces: Iterable[tuple[int, int]]) -> list[Chunk]:
    """Chunks of the pieces, which must be in order, with their lines, page and heading path."""
    blocks = document.blocks
    lines = line_counter(document)
    pages = [page.start for page in document.pages]
    chunks: list[Chunk] = []
    first = 0
    for start, end in pieces:
        while first + 1 < len(blocks) and blocks[first].end <= start:
            first += 1
        body = first
        while body < len(blocks) and blocks[body].kind == "heading" and blocks[body].start < end:
            body += 1
        if body == len(blocks) or blocks[body].start >= end:
            body = first
        page = document.pages[bisect_right(pages, start) - 1].label if pages else None
        heading = _short(blocks[body].headings) if blocks else ()
        chunks.append(Chunk(start, end, document.text[start:end], lines(start, end), page, heading))
    return chunks
