"""What `auto` keeps together: a document's text by headings and pages.

A section is a heading with what stands under it before the next heading. Here sections become
stretches; those that are too long are cut by `splitting`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ragcli.records import Block, Document

_SMALL = 6
"""Less than this part of the target is too small to stand alone: 25 words of 150."""


@dataclass(slots=True)
class _Section:
    """One section or more; `bare` while there are only headings; `page` counts pages begun."""

    start: int
    end: int
    headings: tuple[str, ...]
    page: int
    bare: bool

    def is_above(self, other: _Section) -> bool:
        """Whether `other` stands on the same page, below this heading."""
        return other.page == self.page and other.headings[: len(self.headings)] == self.headings

    def is_beside(self, other: _Section) -> bool:
        """Whether `other` stands below the heading that this one stands below."""
        above = self.headings[:-1]
        return other.headings[: len(above)] == above

    def absorb(self, other: _Section) -> None:
        """Take in the section that follows; what was bare is called after it."""
        self.end = other.end
        if self.bare:
            self.headings, self.bare = other.headings, other.bare


def sections(
    document: Document, blocks: Sequence[Block], size: Callable[[int, int], int], target: int
) -> list[tuple[int, int]]:
    """(start, end) of stretches that cover the document, each to become one chunk or more.

    A section with everything below it is one stretch where that is at most `target` by `size`.
    Small sections are put together with their neighbours under the same heading if they fit. A
    heading without text goes with what follows, at the end of a page with what precedes. No
    stretch crosses a page.
    """
    packer = _Packer(size, target)
    stretches: list[_Section] = []
    for section in packer.branches(list(_by_heading(document, blocks))):
        if stretches and packer.leads(stretches[-1], section):
            stretches[-1].absorb(section)
        else:
            stretches.append(section)
    kept: list[_Section] = []
    for section in stretches:
        if kept and packer.trails(kept[-1], section):
            kept[-1].absorb(section)
        else:
            kept.append(section)
    return [(section.start, section.end) for section in kept]


def _by_heading(document: Document, blocks: Sequence[Block]) -> Iterator[_Section]:
    """The sections one by one; each ends where the next begins."""
    pages = [page.start for page in document.pages]
    ends = [block.start for block in blocks[1:]]
    ends.append(len(document.text))
    section = None
    for block, end in zip(blocks, ends, strict=True):
        page = bisect_right(pages, block.start)
        heading = block.kind == "heading"
        if section is None or heading or block.headings != section.headings or page != section.page:
            if section is not None:
                yield section
            section = _Section(block.start, end, block.headings, page, heading)
        else:
            section.end = end
            section.bare = False
    if section is not None:
        yield section


class _Packer:
    """Decides which neighbours share a stretch of at most `target`."""

    def __init__(self, size: Callable[[int, int], int], target: int) -> None:
        self._size = size
        self._target = target

    def branches(self, single: Sequence[_Section]) -> Iterator[_Section]:
        """The sections, each with all that lies below it on its page where that fits."""
        i = 0
        while i < len(single):
            top, after = single[i], i + 1
            while after < len(single) and top.is_above(single[after]):
                if not self._fit(top, single[after]):
                    after = i + 1
                    break
                after += 1
            top.end = single[after - 1].end
            top.bare = all(section.bare for section in single[i:after])
            yield top
            i = after

    def leads(self, last: _Section, section: _Section) -> bool:
        """Whether `last` is too little to stand alone and goes with `section`, which follows."""
        if last.page != section.page or not (last.bare or self._is_small(last)):
            return False
        if last.bare or last.is_above(section):
            return True
        return last.is_beside(section) and self._fit(last, section)

    def trails(self, last: _Section, section: _Section) -> bool:
        """Whether `section` is too little to stand alone and goes with `last`, before it."""
        if last.page != section.page:
            return False
        small = self._is_small(section) and last.is_beside(section)
        return section.bare or (small and self._fit(last, section))

    def _is_small(self, section: _Section) -> bool:
        return self._size(section.start, section.end) * _SMALL < self._target

    def _fit(self, first: _Section, last: _Section) -> bool:
        return self._size(first.start, last.end) <= self._target
