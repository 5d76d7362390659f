"""Excel workbooks (.xlsx): a page per sheet, a line of `column: value` per row.

Values are those last calculated; formulas are not read. Hidden sheets are read as the others.
Comments, text boxes and charts of a sheet come after its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers.archive import damage_told
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.elements import attribute, local_name
from ragcli.corpus.readers.ooxml import Package, paragraphs, relation_id
from ragcli.corpus.readers.sheets import COLUMNS, Sheet, SheetLimits, shown_number
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_COLUMN = re.compile("[A-Z]+")
_OWN_FORMATS = {9: "0%", 10: "0.00%", 14: "y", 15: "y", 16: "y", 17: "y", 18: "h", 19: "h"} | {
    **{20: "h", 21: "h", 22: "y h", 45: "h", 46: "[h]", 47: "h"},
    **dict.fromkeys((*range(27, 32), *range(34, 37), *range(50, 59)), "y"),
}
"""The built-in number formats that are not plain numbers, as far as their kind matters."""


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document. Raises UnreadableFile as `Package` does."""
    with Package(source) as package:
        book = package.xml(package.main)
        parts = package.related(package.main)
        since_1904 = any(
            attribute(e, "date1904") in ("1", "true") for e in book.iter("{*}workbookPr")
        )
        cells = _Cells(package, since_1904=since_1904)
        assembly, limits = Assembly(), SheetLimits(source)
        for entry in book.iterfind("{*}sheets/{*}sheet"):
            name = attribute(entry, "name")
            relation = parts.get(relation_id(entry))
            if relation is None or package.name_of(relation.target) is None:
                source.problems.append(("corrupt", "the sheet is not in the file", name))
                continue
            sheet = Sheet(assembly, limits, name)
            try:
                if relation.kind == "worksheet":
                    for row in cells.rows(relation.target):
                        if not sheet.add(row):
                            break
            except UnreadableFile as error:
                source.problems.append((error.kind, error.message, name))
            if cells.uncalculated:
                count = "1 formula" if cells.uncalculated == 1 else f"{cells.uncalculated} formulas"
                message = f"{count} without a stored value, not read"
                source.problems.append(("formula", message, name))
                cells.uncalculated = 0
            for text in _beside(package, relation.target):
                assembly.add(text, "other")
            package.record_embedded(relation.target, name)
        limits.record()
        title = package.title()
    yield assembly.document("xlsx", title)


class _Cells:
    """The rows of sheets as text; `uncalculated` counts formulas that nobody has calculated."""

    def __init__(self, package: Package, *, since_1904: bool) -> None:
        self._package = package
        self._since_1904 = since_1904
        self._strings: list[str] = []
        self._formats: list[str] = []
        self.uncalculated = 0
        for relation in package.related(package.main).values():
            if relation.kind == "sharedStrings" and package.name_of(relation.target):
                self._strings = [_rich(item) for item in self._elements(relation.target, "si")]
        for _, root in package.roots(package.main, "styles"):
            own = {
                attribute(e, "numFmtId"): attribute(e, "formatCode") for e in root.iter("{*}numFmt")
            }
            for style in root.iterfind("{*}cellXfs/{*}xf"):
                number = attribute(style, "numFmtId") or "0"
                known = _OWN_FORMATS.get(int(number), "") if number.isdigit() else ""
                self._formats.append(own.get(number, known))

    def rows(self, part: str) -> Iterator[list[str]]:
        """Yield each row that has a cell, shorter ones not filled up."""
        for row in self._elements(part, "row"):
            values: list[str] = []
            for cell in row.iterchildren("{*}c"):
                column = min(_column(attribute(cell, "r"), len(values)), COLUMNS)
                values += [""] * (column - len(values))
                values.append(self._value(cell))
            yield values

    def _elements(self, part: str, name: str) -> Iterator[Any]:
        """Yield the elements of a part one by one, so that it is never in memory as a whole."""
        import lxml.etree

        member = self._package.name_of(part) or part
        with damage_told(part), self._package.archive.open(member) as stream:
            events = lxml.etree.iterparse(
                stream, tag=f"{{*}}{name}", resolve_entities=False, no_network=True, huge_tree=False
            )
            for _, element in events:
                yield element
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]

    def _value(self, cell: Any) -> str:
        kind = attribute(cell, "t") or "n"
        if kind == "inlineStr":
            return " ".join(map(_rich, cell.iterchildren("{*}is"))).strip()
        stored = cell.findtext("{*}v")
        if not stored:
            self.uncalculated += cell.find("{*}f") is not None
            return ""
        if kind == "s":
            index = int(stored) if stored.strip().isdigit() else -1
            return self._strings[index].strip() if 0 <= index < len(self._strings) else ""
        if kind == "b":
            return "True" if stored.strip() == "1" else "False"
        if kind != "n":
            return str(stored).strip()
        style = attribute(cell, "s")
        index = int(style) if style.isdigit() else len(self._formats)
        pattern = self._formats[index] if index < len(self._formats) else ""
        return shown_number(stored.strip(), pattern, since_1904=self._since_1904)


def _column(reference: str, after: int) -> int:
    """Return the column of a cell from 0; without a reference it follows the last one."""
    found = _COLUMN.match(reference)
    if found is None:
        return after
    column = 0
    for letter in found[0][:4]:
        column = column * 26 + ord(letter) - 64
    return max(column - 1, after)


def _rich(item: Any) -> str:
    """Return the text of a string, without the reading aids that stand over East Asian words."""
    return "".join(
        text.text or "" for text in item.iter("{*}t") if local_name(text.getparent()) != "rPh"
    )


def _beside(package: Package, part: str) -> Iterator[str]:
    """Yield the comments, text boxes and charts of a sheet."""
    for _, root in package.roots(part, "comments"):
        for comment in root.iter("{*}comment"):
            yield _rich(comment).strip()
    for _, root in package.roots(part, "threadedComment"):
        for text in root.iter("{*}text"):
            yield (text.text or "").strip()
    for drawing, root in package.roots(part, "drawing"):
        yield from paragraphs(root)
        yield from package.drawn(drawing)
