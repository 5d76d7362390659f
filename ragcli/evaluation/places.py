"""Where the targets of questions stand in the index, and why one of them does not.

Reads the catalogue in a few scans, however many targets there are; never the text of a chunk.
Which of it is relevant at which level is `gold`'s business.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ragcli.evaluation.questions import Gold
from ragcli.store.contents import Outlined, StoredFile, documents, files, outlines, problems
from ragcli.store.index import Index, display_path

_NUMBER = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Place:
    """A target in the index: `rows` are the chunks that it touches, in the order of their text.

    `path` is the document's, or the file's where a file of records is meant as a whole. `lines`,
    `page` and `span` are the target's; none of them where it is the whole.
    """

    file: str
    path: str
    rows: Sequence[Outlined]
    lines: tuple[int, int] | None = None
    page: str | None = None
    span: tuple[int, int] | None = None


class Nowhere(Exception):
    """A target that the index does not have, with the reason."""


@dataclass(frozen=True, slots=True)
class _Named:
    """A file, or a record of it, and the target with the part that is meant."""

    file: StoredFile
    record: str | None
    part: Gold

    @property
    def key(self) -> tuple[int, str | None]:
        return self.file.id, self.record


class Places:
    """Finds each of `golds`: `of` gives its place."""

    def __init__(self, index: Index, golds: Collection[Gold]) -> None:
        self._index = index
        self._files = {file.path: file for file in files(index)}
        self._documents: dict[tuple[int, str | None], list[int]] = {}
        self._files_with: dict[str, set[int]] = {}
        self._read_documents(golds)
        self._named = {gold: self._name(gold) for gold in golds}
        named = [each for each in self._named.values() if isinstance(each, _Named)]
        self._rows = self._read_rows({each.key for each in named})

    def _read_documents(self, golds: Collection[Gold]) -> None:
        """The documents of each file or record that is named, and the files with each bare id.

        The key of a file as a whole has None for the record.
        """
        for gold in golds:
            for text, _ in _readings(gold):
                for path, record in _splits(text):
                    if path in self._files:
                        self._documents[self._files[path].id, record] = []
            if gold.record_only:
                self._files_with[gold.path] = set()
        for document, file, record in documents(self._index):
            if record is not None and record in self._files_with:
                self._files_with[record].add(file)
                self._documents.setdefault((file, record), [])
            for key in {(file, record), (file, None)} & self._documents.keys():
                self._documents[key].append(document)

    def _read_rows(
        self, keys: Collection[tuple[int, str | None]]
    ) -> dict[tuple[int, str | None], list[Outlined]]:
        wanted = {key: sorted(self._documents[key]) for key in keys}
        rows = outlines(self._index, {number for each in wanted.values() for number in each})
        return {
            key: [row for number in numbers for row in rows.get(number, ())]
            for key, numbers in wanted.items()
        }

    def of(self, gold: Gold) -> Place:
        """The place of one of the golds. Raises Nowhere."""
        named = self._named[gold]
        if isinstance(named, str):
            raise Nowhere(named)
        rows: Sequence[Outlined] = self._rows[named.key]
        lines, page, span = named.part.lines, named.part.page, named.part.span
        if not rows:
            raise Nowhere(": ".join(["has no passage", *self._lost(named.file, None)]))
        if lines is not None:
            rows = _at_lines(lines, rows)
        elif span is not None:
            rows = _at_characters(span, rows)
        elif page is not None:
            rows, page = self._on_page(page, rows, named.file)
        path = named.file.path
        return Place(path, display_path(path, named.record), rows, lines, page, span)

    def _name(self, gold: Gold) -> _Named | str:
        """What the target names, read as the index has it, the longest path first; or why not."""
        why = None
        for text, part in _readings(gold):
            for path, record in _splits(text):
                file = self._files.get(path)
                if file is None:
                    continue
                if file.state != "indexed":
                    return f"{file.state}: {file.reason}"
                if record is None or self._documents[file.id, record]:
                    return _Named(file, record, part)
                why = why or f"{path} has no record {record}"
        if gold.record_only:
            return self._name_by_id(gold)
        return why or self._unknown(gold.path)

    def _name_by_id(self, gold: Gold) -> _Named | str:
        """The document whose record has the bare id, whatever file it is in; or why not."""
        holding = self._files_with[gold.path]
        found = sorted(
            (file for file in self._files.values() if file.id in holding), key=lambda f: f.path
        )
        if len(found) > 1:
            paths = ", ".join(file.path for file in found[:3])
            return f"{len(found)} files have a record of that id: {paths}"
        return _Named(found[0], gold.path, gold) if found else "no record has that id"

    def _lost(self, file: StoredFile, page: str | None) -> list[str]:
        """What the ledger has of a page, or of what is no page's."""
        lines = problems(self._index, file.id)
        return [problem.message for problem, _ in lines if problem.page == page]

    def _unknown(self, path: str) -> str:
        alike = self._alike(path)
        if alike:
            return f"not in the index; did you mean {alike}?"
        where = self._index.source(path)
        if where is not None and os.path.lexists(where):
            return "is there, but not in the index: ragcli inspect says why"
        return "not in the index"

    def _alike(self, path: str) -> str | None:
        """The one file that differs in case or by `./`, or else the one of that name."""
        wanted = _plain(path.partition("#")[0])
        for key in (wanted, wanted.rpartition("/")[2]):
            paths = self._by_plain_name.get(key, [])
            if len(paths) == 1:
                return paths[0]
        return None

    @cached_property
    def _by_plain_name(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for path in self._files:
            plain = _plain(path)
            for key in {plain, plain.rpartition("/")[2]}:
                names.setdefault(key, []).append(path)
        return names

    def _on_page(
        self, page: str, rows: Sequence[Outlined], file: StoredFile
    ) -> tuple[Sequence[Outlined], str | None]:
        """The chunks that begin on the page, and the page.

        Of a page on which none begins, the one that begins before it and runs past it, and the page
        on which that begins; a page of the ledger has no text that could be in it.
        """
        here = [row for row in rows if row.page == page]
        if here:
            return here, page
        if all(row.page is None for row in rows):
            raise Nowhere("the file has no pages")
        lost = self._lost(file, page)
        if lost:
            raise Nowhere(": ".join(["the page has no passage", *lost]))
        for before, after in pairwise(rows):
            if _is_between(before.page, page, after.page):
                return [before], before.page
        raise Nowhere("the page has no passage")


def _readings(gold: Gold) -> Iterator[tuple[str, Gold]]:
    """The ways to read a target: its whole text as a name, or a name and the part meant."""
    if gold.lines is not None or gold.page is not None:
        yield gold.written, Gold(gold.written)
    yield gold.path, gold


def _splits(text: str) -> Iterator[tuple[str, str | None]]:
    """The ways to read a name as a path and perhaps a record, the longest path first."""
    yield text, None
    at = text.rfind("#")
    while at > 0:
        yield text[:at], text[at + 1 :]
        at = text.rfind("#", 0, at)


def _plain(path: str) -> str:
    return os.path.normpath(path.replace("\\", "/")).casefold()


def _at_lines(lines: tuple[int, int], rows: Sequence[Outlined]) -> Sequence[Outlined]:
    """The rows that touch the lines. Both ends of rows ascend, also from record to record."""
    spans = [row.lines for row in rows if row.lines is not None]
    if len(spans) < len(rows):
        raise Nowhere("the file has no lines" + ("; name a page of it" if rows[0].page else ""))
    first = bisect_left(spans, lines[0], key=lambda span: span[1])
    end = bisect_right(spans, lines[1], key=lambda span: span[0])
    if first < end:
        return rows[first:end]
    if first == len(rows):
        raise Nowhere(f"the last line with text is {spans[-1][1]}")
    raise Nowhere("no text stands at these lines")


def _at_characters(span: tuple[int, int], rows: Sequence[Outlined]) -> Sequence[Outlined]:
    if rows[0].record != rows[-1].record:
        raise Nowhere(f"each record has its own characters: name one, as #{rows[0].record}")
    if span[1] > rows[-1].end:
        raise Nowhere(f"the text ends at character {rows[-1].end} (characters count, not bytes)")
    first = bisect_right(rows, span[0], key=lambda row: row.end)
    end = bisect_left(rows, span[1], key=lambda row: row.start)
    if first == end:
        raise Nowhere("only white space stands at these characters")
    return rows[first:end]


def _is_between(before: str | None, page: str, after: str | None) -> bool:
    labels = [label for label in (before, page, after) if label and _NUMBER.fullmatch(label)]
    return len(labels) == 3 and int(labels[0]) < int(labels[1]) < int(labels[2])
