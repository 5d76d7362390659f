"""Plain text, and light markup whose headings one pattern tells: Org, wiki, man, INI, TOML…

Paragraphs are divided by blank lines, list items begin their own block. A paragraph of any
length stays one block: dividing it is the chunker's work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragcli.corpus.readers.assembly import HeadingPath
from ragcli.corpus.source import Source
from ragcli.records import Block, Document

PARAGRAPH = re.compile(r"(?:^[ \t]+)?\S[^\r\n]*(?:(?:\r\n?|\n)[^\S\r\n]*\S[^\r\n]*)*", re.MULTILINE)
"""Lines up to a blank one, with the indent of the first; linear on any text."""

_ITEM = re.compile(r"^[ \t]*((?:[-*+•‣◦▪]|\d{1,3}[.)])[ \t]+\S)", re.MULTILINE)

_SECTION = re.compile(r"^(\[)\[?([^\[\]\r\n]+)\]{1,2}[ \t]*(?:[#;][^\r\n]*)?\r?$", re.MULTILINE)
# By suffix: group 1 is as long as the heading is deep, group 2 its text.
_HEADINGS = {
    **dict.fromkeys((".ini", ".cfg", ".conf", ".toml", ".editorconfig"), _SECTION),
    ".org": re.compile(r"^(\*{1,6})[ \t]+(\S[^\r\n]*)", re.MULTILINE),
    ".mediawiki": re.compile(r"^(={1,6})[ \t]*([^=\s][^\r\n]*?)[ \t]*=+[ \t]*\r?$", re.MULTILINE),
    ".adoc": re.compile(r"^(={1,6})[ \t]+(\S[^\r\n]*)", re.MULTILINE),
    ".man": re.compile(r"^\.S([HS])[ \t]+(\S[^\r\n]*)", re.MULTILINE),
}


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document."""
    text = source.text()
    yield Document(text, "text", blocks=tuple(_blocks(text, _HEADINGS.get(source.suffix))))


def paragraphs(text: str, start: int, end: int, path: tuple[str, ...] = ()) -> Iterator[Block]:
    """Yield the paragraphs and list items of `text[start:end]`, all below the headings `path`."""
    for found in PARAGRAPH.finditer(text, start, end):
        begin, kind = found.start(), "paragraph"
        for item in _ITEM.finditer(text, begin, found.end()):
            yield from _trimmed(text, begin, item.start(), kind, path)
            begin, kind = item.start(), "item"
        yield from _trimmed(text, begin, found.end(), kind, path)


def _trimmed(text: str, start: int, end: int, kind: str, path: tuple[str, ...]) -> Iterator[Block]:
    """Yield `text[start:end]` as a block without the white space around it, unless it is blank."""
    body = text[start:end]
    lead = len(body) - len(body.lstrip())
    if lead < len(body):
        yield Block(start + lead, start + len(body.rstrip()), kind, path)


def _blocks(text: str, heading: re.Pattern[str] | None) -> Iterator[Block]:
    path = HeadingPath()
    done = 0
    for found in heading.finditer(text) if heading else ():
        yield from paragraphs(text, done, found.start(), path.path)
        mark = found[1]
        path.enter(2 if mark == "S" else len(mark), found[2].strip().strip('"'))
        yield Block(found.start(), found.end(), "heading", path.path)
        done = found.end()
    yield from paragraphs(text, done, len(text), path.path)
