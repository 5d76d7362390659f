"""Word documents (.docx): paragraphs, headings by style, list items and tables, in order.

Inserted text of tracked changes is read, deleted text is not. What stands beside the text comes
after it: foot- and endnotes, comments, headers and footers, charts and diagrams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.elements import attribute, local_name
from ragcli.corpus.readers.ooxml import Package
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_HEADING = re.compile(r"heading (\d)$", re.IGNORECASE)
_LEFT_OUT = ("{*}Fallback", "{*}moveFrom", "{*}del")
"""What says a second time what stands elsewhere, or no longer stands."""

_Styles = dict[str, tuple[int | None, str]]


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document. Raises UnreadableFile as `Package` does."""
    with Package(source) as package:
        body = package.xml(package.main).find("{*}body")
        if body is None:
            raise UnreadableFile("corrupt", "a Word document without a body")
        _drop(body)
        styles: _Styles = {}
        for _, root in package.roots(package.main, "styles"):
            styles = {attribute(e, "styleId"): _level_and_kind(e) for e in root.iter("{*}style")}
        assembly = Assembly()
        _add_body(assembly, body, styles)
        _add_beside(assembly, package)
        package.record_embedded(package.main)
        title = package.title()
    yield assembly.document("docx", title or assembly.headings.title)


def _drop(root: Any) -> None:
    """Take away what is said twice or deleted."""
    for element in list(root.iter(*_LEFT_OUT)):
        element.getparent().remove(element)


def _add_body(assembly: Assembly, body: Any, styles: _Styles) -> None:
    for element in _outermost(body, "p", "tbl"):
        if local_name(element) == "tbl":
            for row in _outermost(element, "tr"):
                cells = (" ".join(_text(cell).split()) for cell in _outermost(row, "tc"))
                assembly.add(" | ".join(cells).strip(" |"), "table")
        else:
            _add_paragraph(assembly, element, styles)


def _level_and_kind(style: Any) -> tuple[int | None, str]:
    """Return the heading level of a style, 0 for the title and None for text, and its kind."""
    name = _value(style.find("{*}name"))
    if name.lower() == "title":
        return 0, "heading"
    if found := _HEADING.match(name):
        return int(found[1]), "heading"
    level = _value(style.find(".//{*}outlineLvl"))
    if level.isdigit() and int(level) < 9:
        return int(level) + 1, "heading"
    return None, "item" if name.lower().startswith("list") else "paragraph"


def _value(element: Any) -> str:
    """Return the attribute `val`, "" where there is no such element."""
    return "" if element is None else attribute(element, "val")


def _outermost(root: Any, *names: str) -> Iterator[Any]:
    """Yield what has one of these names and lies in nothing that has, in order.

    Content controls stand around paragraphs, tables, rows and cells alike.
    """
    for element in root.iter(*(f"{{*}}{name}" for name in names)):
        outer = element.getparent()
        while outer is not root and local_name(outer) not in names:
            outer = outer.getparent()
        if outer is root:
            yield element


def _add_paragraph(assembly: Assembly, element: Any, styles: _Styles) -> None:
    style = _value(element.find("{*}pPr/{*}pStyle"))
    level, kind = styles.get(style, (None, "paragraph"))
    text = _text(element).strip()
    if level is not None:
        assembly.heading(level, text)
    elif element.find("{*}pPr/{*}numPr") is not None:
        assembly.add(text, "item")
    else:
        assembly.add(text, kind)


def _text(element: Any) -> str:
    """Return the text inside an element, paragraphs inside it divided by a space."""
    marks = {"p": " ", "tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
    parts = []
    for node in element.iter("{*}t", *(f"{{*}}{name}" for name in marks)):
        name = local_name(node)
        if name == "t":
            parts.append(node.text or "")
        elif name != "tab" or local_name(node.getparent()) == "r":  # not a tab stop
            parts.append(marks[name])
    return "".join(parts)


def _add_beside(assembly: Assembly, package: Package) -> None:
    """Append the notes, comments, headers and footers, then charts and diagrams."""
    texts: list[str] = []
    drawn: list[str] = []
    for part, root in package.roots(
        package.main, "footnotes", "endnotes", "comments", "header", "footer"
    ):
        _drop(root)
        notes = list(root.iterchildren("{*}footnote", "{*}endnote", "{*}comment"))
        texts += map(_text, notes or [root])
        drawn += package.drawn(part)
    assembly.add_once(texts)
    for text in (*drawn, *package.drawn(package.main)):
        assembly.add(text, "other")
