"""Source code and configuration: blocks are definitions, headings the names that enclose them.

A block begins after a blank line where a line is not indented, and at each definition inside a
top-level one, so that a function stays together. Names are told by keywords, not by a parser:
what is missed costs a heading, never text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragcli.corpus.readers.plain import PARAGRAPH
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Block, Document

# Comments, decorators and attributes may stand above the line that defines.
_DEFINITION = re.compile(
    r"(?:[ \t]*[@#*/;\[\"'-][^\n]*\n)*([ \t]*)"
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub"
    r"|pub\([a-z]+\)|unsafe|virtual|override|open|sealed|data|partial|const|inline|declare|suspend"
    r"|CREATE|create|OR|or|REPLACE|replace)[ \t]+)*"
    r"(?:def|class|fn|func|function|fun|interface|struct|enum|trait|impl|module|namespace|object"
    r"|record|protocol|extension|sub|type|TABLE|VIEW|FUNCTION|PROCEDURE|TRIGGER|table|view"
    r"|procedure|trigger)\b\*?(?:[ \t]*\([^()\n]*\)(?=[ \t]*\w))?[ \t]+"
    r"([\w$.:~?!]*[\w$?!])"
    r"(?=[ \t]*(?:[(:{<=\[;]|extends\b|implements\b|for\b|where\b|struct\b|interface\b|$|[\r\n]))"
)

_DATA = frozenset({".json", ".yaml", ".yml", ".json5", ".jsonc", ".geojson", ".css", ".scss"})
"""What has no definitions."""

_MINIFIED = frozenset({".js", ".mjs", ".cjs", ".css", ".json", ".map"})
_LONG_LINES = 500
_LOCK_FILES = frozenset(
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml composer.lock poetry.lock"
    " pipfile.lock uv.lock pdm.lock cargo.lock gemfile.lock go.sum flake.lock packages.lock.json"
    " mix.lock pubspec.lock podfile.lock".split()
)
_DEPTH = 2
"""How deep a definition may lie and still begin a block: a method does, a closure does not."""


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document.

    Raises UnreadableFile (`generated` or `minified`, to be skipped) for lock files and for code
    whose lines are 500 characters long on average: no person wrote them, none asks for them.
    """
    if source.path.lower().rpartition("/")[2] in _LOCK_FILES:
        raise UnreadableFile("generated", "a lock file of a package manager", skip=True)
    text = source.text()
    if source.suffix in _MINIFIED and len(text) > 4 * _LONG_LINES:
        lines = text.count("\n") + text.count("\r") + 1
        if len(text) > _LONG_LINES * lines:
            raise UnreadableFile("minified", "minified: lines without end", skip=True)
    yield Document(text, "code", blocks=tuple(blocks_of(text, source.suffix not in _DATA)))


def blocks_of(text: str, definitions: bool = True) -> Iterator[Block]:
    """Yield the blocks of code, with the names of definitions as headings if there are any."""
    names: list[tuple[int, str]] = []  # the open definitions: indent and name
    path: tuple[str, ...] = ()
    start = end = 0  # of the open block
    for stanza in PARAGRAPH.finditer(text):
        begin, stop = stanza.span()
        head = text[begin : begin + 400]
        indent = len(head) - len(head.lstrip(" \t"))
        found = _DEFINITION.match(text, begin, stop) if definitions else None
        outer = [name for name in names if name[0] < indent]
        if not indent or (found and len(outer) < _DEPTH):
            if end > start:
                yield Block(start, end, "code", path)
            names = [*outer, (indent, found[2])] if found else outer
            path = tuple(name for _, name in names)
            start = begin
        end = stop
    if end > start:
        yield Block(start, end, "code", path)
