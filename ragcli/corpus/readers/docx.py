"""Word documents (.docx): paragraphs, headings by style, list items and tables, in order.

Needs the office extra. Inserted text of tracked changes is read, deleted text is not.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers.archive import local_name, missing_extra, open_archive
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.source import Source
from ragcli.records import Document

_HEADING = re.compile(r"heading (\d)$", re.IGNORECASE)
_LEFT_OUT = ("{*}Fallback", "{*}moveFrom", "{*}del")
"""What says a second time what stands elsewhere, or no longer stands."""


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document. Raises UnreadableFile (`missing_extra` and others)."""
    open_archive(source).close()
    try:
        import docx
    except ImportError:
        raise missing_extra() from None
    document = docx.Document(io.BytesIO(source.data))
    body = document.element.body
    for element in list(body.iter(*_LEFT_OUT)):
        element.getparent().remove(element)
    styles = {style.style_id: _level_and_kind(style) for style in document.styles}
    assembly = Assembly()
    for element in _content(body):
        if local_name(element) == "tbl":
            for row in element.iterchildren("{*}tr"):
                cells = (" ".join(_text(cell).split()) for cell in row.iterchildren("{*}tc"))
                assembly.add(" | ".join(cells).strip(" |"), "table")
        else:
            _add_paragraph(assembly, element, styles)
    for note in _notes(document):
        assembly.add(" ".join(_text(note).split()), "other")
    title = document.core_properties.title or assembly.headings.title
    yield assembly.document("docx", title)


def _level_and_kind(style: Any) -> tuple[int | None, str]:
    """Return the heading level of a style, 0 for the title and None for text, and its kind."""
    name = style.name or ""
    if name.lower() == "title":
        return 0, "heading"
    if found := _HEADING.match(name):
        return int(found[1]), "heading"
    outline = style.element.find(".//{*}outlineLvl")
    if outline is not None and _value(outline).isdigit() and int(_value(outline)) < 9:
        return int(_value(outline)) + 1, "heading"
    return None, "item" if name.lower().startswith("list") else "paragraph"


def _value(element: Any) -> str:
    """Return the attribute `val` of any namespace."""
    return next((value for name, value in element.items() if name.endswith("}val")), "")


def _content(body: Any) -> Iterator[Any]:
    """Yield paragraphs and tables in order, those inside of content controls as well."""
    for element in body.iter("{*}p", "{*}tbl"):
        outer = element.getparent()
        while outer is not body and local_name(outer) not in ("p", "tbl"):
            outer = outer.getparent()
        if outer is body:
            yield element


def _add_paragraph(
    assembly: Assembly, element: Any, styles: dict[str, tuple[int | None, str]]
) -> None:
    style = element.find("{*}pPr/{*}pStyle")
    level, kind = styles.get("" if style is None else _value(style), (None, "paragraph"))
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


def _notes(document: Any) -> Iterator[Any]:
    """Yield the footnotes and endnotes."""
    import lxml.etree

    parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True)
    for relation in document.part.rels.values():
        if relation.reltype.endswith(("/footnotes", "/endnotes")):
            root = lxml.etree.fromstring(relation.target_part.blob, parser)
            yield from root.iterchildren("{*}footnote", "{*}endnote")
