"""What readers share: the path of headings, and putting together a text that is not the file's.

Owns the exactness of the offsets of assembled documents. Knows no format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ragcli.records import Block, Document, Page


class HeadingPath:
    """The headings above the place that a reader has come to.

    `path` is outermost first; `title` is the first heading of level 1 or above, None before it.
    """

    def __init__(self) -> None:
        self.path: tuple[str, ...] = ()
        self.title: str | None = None
        self._levels: list[int] = []

    def enter(self, level: int, text: str) -> None:
        """Go on below a heading of this level: 1 the highest, 0 a title above all of them."""
        while self._levels and self._levels[-1] >= level:
            self._levels.pop()
        self._levels.append(level)
        self.path = (*self.path[: len(self._levels) - 1], text)
        if level <= 1 and self.title is None:
            self.title = text


class Assembly:
    """Collects blocks, one after the other, into one text.

    Blocks are divided by a blank line, list items and the rows of a table by a line end.
    Lines that are given for blocks count only with `lines`: where the file has lines.
    """

    def __init__(self, *, lines: bool = False) -> None:
        self.headings = HeadingPath()
        self._lines = lines
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._pages: list[Page] = []
        self._anchors: list[tuple[int, int]] = []

    def add(self, text: str, kind: str = "paragraph", line: int | None = None) -> None:
        """Append one block; `line` is where it begins in the file. Blank text is left out."""
        start = self._place(text, kind)
        if start is None:
            return
        self._blocks.append(Block(start, self._length, kind, self.headings.path))
        last = self._anchors[-1][1] if self._anchors else 0
        if self._lines and line is not None and line > last:
            self._anchors.append((start, line))

    def heading(self, level: int, text: str, line: int | None = None) -> None:
        """Append a heading, 1 the highest; what follows lies below it."""
        text = " ".join(text.split())
        if text:
            self.headings.enter(level, text)
            self.add(text, "heading", line)

    def page(self, label: str) -> None:
        """Begin a page, slide or sheet where the next block will start."""
        start = self._length if self._pages else 0
        self._pages.append(Page(start, label))

    def add_blocks(self, text: str, blocks: Callable[[str], Iterable[Block]]) -> None:
        """Append a text of several blocks, which `blocks` finds in it."""
        start = self._place(text, "")
        if start is not None:
            text = self._parts[-1]
            self._blocks += [
                Block(start + found.start, start + found.end, found.kind, found.headings)
                for found in blocks(text)
            ]

    def add_once(self, texts: Iterable[str]) -> None:
        """Append what stands beside the text, such as headers: each once, no bare page number."""
        for text in dict.fromkeys(" ".join(text.split()) for text in texts):
            if any(map(str.isalpha, text)):
                self.add(text, "other")

    def _place(self, text: str, kind: str) -> int | None:
        """Append text and return its offset, None if it is blank."""
        text = text.strip("\r\n").rstrip()
        if not text or text.isspace():
            return None
        if self._blocks:
            rows = kind in ("item", "table") and self._blocks[-1].kind == kind
            self._parts.append("\n" if rows else "\n\n")
            self._length += len(self._parts[-1])
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        return start

    def document(
        self,
        kind: str,
        title: str | None = None,
        problems: Iterable[tuple[str, str, str | None]] = (),
    ) -> Document:
        """Return what was collected."""
        return Document(
            text="".join(self._parts),
            kind=kind,
            title=title or None,
            blocks=tuple(self._blocks),
            pages=tuple(self._pages),
            line_anchors=tuple(self._anchors),
            problems=tuple(problems),
        )
