"""reStructuredText: sections, directives, literal blocks, lists and tables, by an own scanner.

docutils reads less than 1 MB/s and needs every directive that Sphinx knows. This scanner takes
one stanza (lines between blank lines) at a time; levels of sections follow the order in which
their adornments appear, as in docutils.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragcli.corpus.readers.assembly import HeadingPath
from ragcli.corpus.readers.plain import PARAGRAPH
from ragcli.corpus.source import Source, lines_of
from ragcli.records import Block, Document

_HEAD = re.compile(r"(?:[^\r\n]+(?:\r\n?|\n)?){1,3}")
"""As many lines as a title may have with its adornments."""

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+$")
_ITEM = re.compile(
    r"^[ \t]*((?:[-*+•‣⁃]|(?:\d{1,3}|#|[A-Za-z])[.)]|\((?:\d{1,3}|#|[A-Za-z])\)"
    r"|:[^:\s`][^:\r\n`]*:)[ \t]+(?=\S))",
    re.MULTILINE,
)
_CODE = re.compile(
    r"\.\. +(?:code|code-block|sourcecode|parsed-literal|doctest|testcode|testsetup|testoutput"
    r"|productionlist|math|graphviz|raw|literalinclude|highlight|ipython|prompt)::"
)
_DIRECTIVE = re.compile(r"\.\. +(?:\|[^|]+\| +)?[\w:+.-]+::")
_GRID = re.compile(r"\+[-=+]+\+[ \t]*(?=[\r\n])")
_BORDER = re.compile(r"[ \t]*=+(?: +=+)+[ \t]*$", re.MULTILINE)
_TABLE_LIMIT = 50_000
"""How many characters below its first border the last border of a table is looked for."""

_ROLE = re.compile(r":[\w:+.-]+:(?=`)")
_TARGET = re.compile(r"`([^`<]+?)\s*<[^`]*>`_{0,2}")


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document; the title is its first section's."""
    text = source.text()
    scanner = _Scanner(text)
    scanner.run()
    yield Document(text, "rst", title=scanner.headings.title, blocks=tuple(scanner.blocks))


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks: list[Block] = []
        self.headings = HeadingPath()
        self.styles: list[tuple[str, bool]] = []  # adornments in order of appearance
        self.literal = -1  # after "::": what follows with more indent is code

    def run(self) -> None:
        position = 0
        while found := PARAGRAPH.search(self.text, position):
            position = self.take(*found.span())

    def take(self, lead: int, end: int) -> int:
        """Take the stanza that begins with its indent here; return where the next may begin."""
        start = self.body(lead)
        if self.literal >= 0:
            literal, self.literal = self.literal, -1
            if start - lead > literal:
                return self.code(lead, end, literal)
        indent = start - lead
        while not indent and (after := self.section(start, end)):
            start = self.body(after)
            indent = start - after
            if start >= end:
                return end
        return self.stanza(start, end, indent)

    def body(self, start: int) -> int:
        """Return where the indent that begins here ends."""
        while self.text[start : start + 1] in (" ", "\t"):
            start += 1
        return start

    def add(self, start: int, end: int, kind: str) -> int:
        """Append a block without the white space at its end, and return `end`."""
        body = self.text[start:end]
        if body[-1].isspace():
            body = body.rstrip()
        self.blocks.append(Block(start, start + len(body), kind, self.headings.path))
        return end

    def code(self, start: int, end: int, literal: int) -> int:
        """Append a code block that goes on as long as stanzas are indented more than `literal`."""
        while found := PARAGRAPH.search(self.text, end):
            lead = found.start()
            if self.body(lead) - lead <= literal:
                break
            end = found.end()
        return self.add(start, end, "code")

    def section(self, start: int, end: int) -> int:
        """Take a section's title off a stanza; return where it ends, 0 if there is none."""
        head = _HEAD.match(self.text, start, end)
        lines = lines_of(head[0]) if head else []
        marks = [_ADORNMENT.match(line.rstrip()) for line in lines]
        size = 0
        if len(lines) > 2 and marks[0] and marks[2] and marks[0][0] == marks[2][0]:
            title, style, size = lines[1], (marks[0][1], True), 3
        elif len(lines) > 1 and marks[1] and not marks[0] and not lines[0].startswith(".. "):
            title, style, size = lines[0].rstrip(), (marks[1][1], False), 2
            if len(marks[1][0]) < min(4, len(title)) or title[:2] in ("- ", "* ", "+ "):
                return 0
        if not size:
            return 0
        if style not in self.styles:
            self.styles.append(style)
        self.headings.enter(self.styles.index(style) + 1, _plain_title(title))
        return self.add(start, start + sum(map(len, lines[:size])), "heading")

    def stanza(self, start: int, end: int, indent: int) -> int:
        """Take any other stanza; return where the next one is looked for."""
        text = self.text
        first = text[start]
        if first == ".":
            if text.startswith(".. ", start):
                return self.explicit(start, end, indent)
        elif first == ">":
            if text.startswith(">>> ", start):
                return self.add(start, end, "code")
        elif first == "+":
            if _GRID.match(text, start, end):
                return self.add(start, end, "table")
        elif first == "=" and _BORDER.match(text, start, end):
            return self.add(start, self.table_end(end), "table")
        elif first != ":" and _ADORNMENT.match(text[start:end].rstrip()):
            return self.add(start, end, "other")
        content = indent
        if item := _ITEM.match(text, start - indent, end):
            content = len(item[0])
            start = self.items(start, end)
        self.add(start, end, "item" if item else "paragraph")
        if text.endswith("::", start, end):
            line = max(text.rfind("\n", start, end), text.rfind("\r", start, end)) + 1
            if line:
                content = len(text[line:end]) - len(text[line:end].lstrip())
            self.literal = content
        return end

    def items(self, start: int, end: int) -> int:
        """Append all items of a stanza but the last; return where that begins."""
        for item in _ITEM.finditer(self.text, start, end):
            if item.start(1) > start:
                self.add(start, item.start(), "item")
                start = item.start(1)
        return start

    def explicit(self, start: int, end: int, indent: int) -> int:
        """Take a directive, target or comment."""
        if _CODE.match(self.text, start):
            return self.code(start, end, indent)
        return self.add(start, end, "paragraph" if _DIRECTIVE.match(self.text, start) else "other")

    def table_end(self, end: int) -> int:
        """Return where a simple table ends whose first stanza ends here."""
        line = max(self.text.rfind("\n", 0, end), self.text.rfind("\r", 0, end)) + 1
        if _BORDER.match(self.text, line, end):
            return end
        border = _BORDER.search(self.text, end, end + _TABLE_LIMIT)
        return border.end() if border else end


def _plain_title(text: str) -> str:
    """Return a title without roles, targets and marks of emphasis."""
    text = _TARGET.sub(r"\1", _ROLE.sub("", text))
    return " ".join(text.replace("`", "").replace("**", "").split())
