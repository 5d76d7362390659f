"""Markdown: the blocks of CommonMark with tables and front matter, by an own line scanner.

markdown-it-py reads 3.7 MB/s with its block rules alone, this scanner ten times that; the
library is the oracle of its tests. Containers are kept as far as they decide what a line is:
list items as a stack of indents, quotations as one block each. HTML and comments stay text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragcli.corpus.readers.assembly import HeadingPath
from ragcli.corpus.source import Source, lines_of
from ragcli.records import Block, Document

_FRONT_MATTER = re.compile(
    r"\s*(---|\+\+\+)[ \t]*(?:\r\n?|\n)(?=[\w\"'#-]+[ \t]*[:=\s])(?:.*?(?:\r\n?|\n))??"
    r"(?:\1|\.\.\.)[ \t]*(?:[\r\n]|\Z)",
    re.DOTALL,
)
_FRONT_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*([\"']?)(.+?)\1[ \t]*\r?$", re.MULTILINE)

_ATX = re.compile(r"(#{1,6})(?:[ \t]+|$)(.*?)(?:(?:^|[ \t]+)#+)?[ \t]*$")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_SETEXT = re.compile(r"(=+|-+)[ \t]*$")
_ITEM = re.compile(r"([-+*]|(\d{1,9})[.)])(?:([ \t]+)(?=\S)|[ \t]*$)")
_TABLE_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?|===)[ \t]+[\w\"]")

_RAW_HTML = re.compile(r"<(?:(script|pre|style|textarea)(?=[\s>]|$)|!--|\?|!\[CDATA\[)", re.I)
_HTML_ENDS = {"<!--": "-->", "<?": "?>", "<![cdata[": "]]>"}
_HTML_HEADING = re.compile(r"<h([1-6])(?:\s[^<>]*)?>(.+)</h\1>$", re.I)
_HTML = re.compile(
    r"</?(?:address|article|aside|base|blockquote|body|caption|center|col|colgroup|dd|details"
    r"|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head"
    r"|header|hr|html|iframe|legend|li|link|main|menu|menuitem|meta|nav|noframes|ol|optgroup"
    r"|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)"
    r"(?:[\s>]|/>|$)|<![A-Z]",
    re.I,
)
_ANY_TAG = re.compile(r"</?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>[ \t]*$")

_ATTRIBUTES = re.compile(r"[ \t]*\{[ \t]*[#.:][^{}]*\}[ \t]*$")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")

_STARTERS = frozenset("#>`~-*+=_|:<0123456789!?")
"""What a line begins with that may be more than another line of a paragraph."""


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document; the title is the front matter's or the first h1."""
    text = source.text()
    headings = HeadingPath()
    front = _FRONT_MATTER.match(text)
    title = _FRONT_TITLE.search(text, 0, front.end()) if front else None
    blocks = scan(text, headings, front.end() if front else 0)
    if front:
        start = front.start(1)
        blocks.insert(0, Block(start, start + len(text[start : front.end()].rstrip()), "other"))
    name = title[2].strip() if title else headings.title
    yield Document(text, "markdown", title=name, blocks=tuple(blocks))


def scan(text: str, headings: HeadingPath, start: int = 0) -> list[Block]:
    """Return the blocks of `text[start:]`; `headings` is where it goes on from, and moves."""
    return _Scanner(text, headings, start).run()


def plain_heading(text: str) -> str:
    """Return a heading's text without links, tags, attributes and marks of emphasis."""
    text = _ATTRIBUTES.sub("", text)
    if "[" in text:
        text = _LINK.sub(r"\1", text)
    if "<" in text:
        text = _TAG.sub("", text)
    return " ".join(text.replace("`", "").replace("**", "").split())


class _Scanner:
    """One pass over the lines. A block is open while `kind` is set."""

    def __init__(self, text: str, headings: HeadingPath, start: int) -> None:
        self.text = text
        self.lines = lines_of(text[start:])
        self.headings = headings
        self.blocks: list[Block] = []
        self.offset = start  # of the current line
        self.index = 0
        self.kind = ""  # of the open block; "html" and "quote" become paragraphs
        self.start = 0
        self.end = 0
        self.previous = 0  # where the last line of the open block begins
        self.containers: list[int] = []  # content indents of the open list items

    def run(self) -> list[Block]:
        lines = self.lines
        while self.index < len(lines):
            line = lines[self.index]
            body = line.strip()
            if not body:
                self.close()
                self.index += 1
                self.offset += len(line)
                continue
            if self.kind == "html":
                self.extend(line, body)
            elif body[0] in _STARTERS or self.containers or line[0] in " \t":
                self.decide(line, body)
            elif self.kind:
                self.extend(line, body)
            else:
                self.open("paragraph", line, body)
        self.close()
        return self.blocks

    def close(self) -> None:
        """End the open block."""
        if self.kind:
            kind = "paragraph" if self.kind in ("html", "quote") else self.kind
            self.blocks.append(Block(self.start, self.end, kind, self.headings.path))
            self.kind = ""

    def open(self, kind: str, line: str, body: str) -> None:
        """Begin a block at the first character of this line that is not white space."""
        self.close()
        self.kind = kind
        self.start = self.offset + line.index(body[0])
        self.extend(line, body)

    def extend(self, line: str, body: str) -> None:
        """Take the current line into the open block."""
        self.previous = self.offset
        self.end = self.offset + line.index(body[0]) + len(body)
        self.index += 1
        self.offset += len(line)

    def decide(self, line: str, body: str) -> None:
        """Take a line that is indented, in a list, or begins like something special."""
        indent = _indent(line, body)
        inside = [content for content in self.containers if content <= indent]
        if indent - (inside[-1] if inside else 0) >= 4:
            if self.kind:
                self.extend(line, body)
            else:
                self.containers = inside
                self.indented_code(inside[-1] if inside else 0)
        elif body[0] in _STARTERS and self.special(line, body, indent, inside):
            pass
        elif self.kind:
            self.extend(line, body)
        else:
            self.containers = inside
            self.open("paragraph", line, body)

    def special(self, line: str, body: str, indent: int, inside: list[int]) -> bool:
        """Take the line if it begins or ends a block, and tell whether it did."""
        first = body[0]
        if first == "#":
            return self.atx(line, body, inside)
        if first in "`~":
            return self.fence(line, body, body, inside)
        if first == "<":
            return self.html(line, body, inside)
        if first == ">":
            if self.kind == "quote":
                self.extend(line, body)
            else:
                self.containers = inside
                self.open("quote", line, body)
            return True
        if first in "!?=" and _ADMONITION.match(body):
            self.open("paragraph", line, body)
            self.containers = [*inside, indent + 4]
            return True
        return (
            (first in "-=" and self.setext(line, body, inside))
            or (first in "|:-" and self.table(line, body))
            or (first in "-*_" and self.rule(line, body, inside))
            or (first in "-+*0123456789" and self.item(line, body, indent, inside))
        )

    def atx(self, line: str, body: str, inside: list[int]) -> bool:
        """A heading after number signs."""
        found = _ATX.match(body)
        if found is None:
            return False
        self.open("heading", line, body)
        self.containers = inside
        self.headings.enter(len(found[1]), plain_heading(found[2]))
        self.close()
        return True

    def setext(self, line: str, body: str, inside: list[int]) -> bool:
        """A line below a paragraph that makes it a heading."""
        if self.kind != "paragraph" or inside != self.containers or not _SETEXT.match(body):
            return False
        title = self.text[self.start : self.end]
        self.extend(line, body)
        self.kind = "heading"
        self.headings.enter(1 if body[0] == "=" else 2, plain_heading(title))
        self.close()
        return True

    def table(self, line: str, body: str) -> bool:
        """A line below the header of a table: the last line of the open paragraph."""
        header = self.text[self.previous : self.end]
        if self.kind != "paragraph" or "|" not in body or "|" not in header:
            return False
        if not _TABLE_RULE.match(body):
            return False
        start = self.end - len(header.lstrip())
        if start > self.start:
            self.end = self.start + len(self.text[self.start : start].rstrip())
            self.close()
        self.kind, self.start = "table", start
        self.extend(line, body)
        return True

    def rule(self, line: str, body: str, inside: list[int]) -> bool:
        """A line across the page."""
        if not _RULE.match(body):
            return False
        self.containers = inside
        self.open("other", line, body)
        self.close()
        return True

    def item(self, line: str, body: str, indent: int, inside: list[int]) -> bool:
        """The first line of a list item, which may begin a fence."""
        found = _ITEM.match(body)
        if found is None:
            return False
        marker, number, space = found[1], found[2], found[3]
        if self.kind and inside == self.containers and (number not in (None, "1") or not space):
            return False  # a paragraph goes on: its line only looks like an item
        width = len(space.expandtabs(4)) if space else 1
        content = [*inside, indent + len(marker) + (width if width <= 4 else 1)]
        if not self.fence(line, body, body[found.end() :], content):
            self.open("item", line, body)
            self.containers = content
        return True

    def fence(self, line: str, body: str, opening: str, inside: list[int]) -> bool:
        """A fenced code block, to its closing fence or the end of its container."""
        found = _FENCE.match(opening)
        if found is None:
            return False
        mark = found[1] or found[2]
        base = inside[-1] if inside else 0
        self.open("code", line, body)
        self.containers = inside
        while self.index < len(self.lines):
            line = self.lines[self.index]
            body = line.strip()
            if not body:
                self.index += 1
                self.offset += len(line)
                continue
            indent = _indent(line, body)
            if indent < base:
                break
            self.extend(line, body)
            if body.startswith(mark) and not body.strip(mark[0]) and indent < base + 4:
                break
        self.close()
        return True

    def indented_code(self, base: int) -> None:
        """A code block that is told by its indent; it keeps that of its first line."""
        line = self.lines[self.index]
        self.open("code", line, line.strip())
        self.start = self.previous
        while self.index < len(self.lines):
            line = self.lines[self.index]
            body = line.strip()
            if not body:
                self.index += 1
                self.offset += len(line)
            elif _indent(line, body) < base + 4:
                break
            else:
                self.extend(line, body)
        self.close()

    def html(self, line: str, body: str, inside: list[int]) -> bool:
        """HTML: to its end tag or mark, or to a blank line; a heading if it is one line of it."""
        if raw := _RAW_HTML.match(body):
            end = f"</{raw[1]}>".lower() if raw[1] else _HTML_ENDS[raw[0].lower()]
            self.open("html", line, body)
            seen = end in body[raw.end() :].lower()
            while not seen and self.index < len(self.lines):
                line = self.lines[self.index]
                if body := line.strip():
                    self.extend(line, body)
                    seen = end in body.lower()
                else:
                    self.index += 1
                    self.offset += len(line)
            self.close()
        elif heading := _HTML_HEADING.match(body):
            self.open("heading", line, body)
            self.headings.enter(int(heading[1]), plain_heading(heading[2]))
            self.close()
        elif _HTML.match(body) or (not self.kind and _ANY_TAG.match(body)):
            self.open("html", line, body)
        else:
            return False
        self.containers = inside
        return True


def _indent(line: str, body: str) -> int:
    """Return how many columns stand before the body of a line, a tab going on to the next four."""
    lead = line.index(body[0])
    return len(line[:lead].expandtabs(4)) if "\t" in line[:lead] else lead
