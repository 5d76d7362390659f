"""Which lines of the file a stretch of text touches, as an editor counts them.

A line ends at \\n (so at \\r\\n too); a lone \\r ends one only in a text without any \\n.
Form feeds and Unicode's other separators end none. Owns nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from ragcli.records import Document

Lines = Callable[[int, int], tuple[int, int] | None]


def line_counter(document: Document) -> Lines:
    """A function from (start, end) to the first and last line that `text[start:end]` touches.

    It gives None where the document says that lines mean nothing. The starts that it is asked
    for must not descend, and no stretch may be empty.
    """
    if document.line_anchors is None:
        return _own_lines(document.text)
    if not document.line_anchors:
        return lambda start, end: None
    offsets = [offset for offset, _ in document.line_anchors]
    numbers = [number for _, number in document.line_anchors]

    def line(offset: int) -> int:
        return numbers[max(bisect_right(offsets, offset) - 1, 0)]

    return lambda start, end: (line(start), line(end - 1))


def _own_lines(text: str) -> Lines:
    """Count the text's own line ends, from one start to the next."""
    line_end = "\n" if "\n" in text else "\r"
    counted, line = 0, 1

    def lines(start: int, end: int) -> tuple[int, int]:
        nonlocal counted, line
        line += text.count(line_end, counted, start)
        counted = start
        return line, line + text.count(line_end, start, end - 1)

    return lines
