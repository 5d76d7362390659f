"""OpenDocument files: texts (.odt), spreadsheets (.ods), presentations (.odp),
drawings (.odg), and their flat XML.

Sheets and slides are pages. Deleted text of tracked changes is not read; notes, comments, text
boxes, headers and footers are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers.archive import open_archive, parse_xml, read_xml
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.elements import attribute, local_name
from ragcli.corpus.readers.sheets import COLUMNS, EQUAL_ROWS, Sheet, SheetLimits
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_MARKS = {"s": " ", "tab": "\t", "line-break": "\n", "soft-page-break": " "}
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_KINDS = {"text": "odt", "spreadsheet": "ods", "presentation": "odp", "drawing": "odg"}
_TEXT = ("{*}h", "{*}p", "{*}table-row")


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document. Raises UnreadableFile (`password`, `corrupt` and others)."""
    root, styles, meta = _parts(source)
    body = root.find("{*}body")
    if body is None:
        raise UnreadableFile("corrupt", "an OpenDocument file without a body")
    content = next((part for part in body if local_name(part) in _KINDS), body)
    _plain_text(root)
    assembly = Assembly()
    kind = _KINDS.get(local_name(content), "odt")
    if kind == "ods":
        _add_sheets(assembly, source, content)
    elif kind in ("odp", "odg"):
        _add_slides(assembly, content)
    else:
        _add_text(assembly, content)
    if styles is not None:
        _plain_text(styles)
        headers = styles.iter("{*}header", "{*}footer", "{*}header-left", "{*}footer-left")
        assembly.add_once(_text(paragraph) for part in headers for paragraph in part.iter("{*}p"))
    title = "" if meta is None else meta.findtext(f".//{_TITLE}") or ""
    yield assembly.document(kind, " ".join(title.split()) or assembly.headings.title)


def _parts(source: Source) -> tuple[Any, Any, Any]:
    """Return the roots of content, styles and properties; of flat XML they are one."""
    if not source.data.startswith(b"PK"):
        root = parse_xml(source.data, "the file", source)
        return root, root, root
    with open_archive(source) as archive:
        names = archive.namelist()
        if "META-INF/manifest.xml" in names:
            manifest = read_xml(archive, "META-INF/manifest.xml")
            if any(True for _ in manifest.iter("{*}encryption-data")):
                raise UnreadableFile("password", "password-protected")
        objects = {name.partition("/")[0] for name in names if name.startswith("Object ")}
        for name in sorted(objects):
            source.problems.append(("attachment", f"embedded {name!r} was not read", None))
        return (
            read_xml(archive, "content.xml", source),
            read_xml(archive, "styles.xml") if "styles.xml" in names else None,
            read_xml(archive, "meta.xml") if "meta.xml" in names else None,
        )


def _plain_text(root: Any) -> None:
    """Turn elements that stand for white space into it, and drop what is not of the text."""
    for name in ("tracked-changes", "forms"):
        for element in list(root.iter(f"{{*}}{name}")):
            element.getparent().remove(element)
    for element in root.iter("{*}annotation", "{*}creator", "{*}date", "{*}p", "{*}h"):
        # A note follows its mark without a space; comments and text boxes stand apart.
        if not _names_above(element, root).isdisjoint(("annotation", "frame", "text-box")):
            element.text = f" {element.text or ''}"
            element.tail = f" {element.tail or ''}"
    for mark, text in _MARKS.items():
        for element in root.iter(f"{{*}}{mark}"):
            count = attribute(element, "c") if mark == "s" else ""
            element.text = text * (min(int(count), 100) if count.isdigit() else 1)


def _add_text(assembly: Assembly, root: Any) -> None:
    """Append headings, paragraphs, items and rows in order; notes are part of their paragraph."""
    for element in root.iter(*_TEXT):
        name = local_name(element)
        above = _names_above(element, root)
        if not above.isdisjoint(("table-row", "note", "annotation", "p", "h")):
            continue  # its row or its paragraph has it
        if name == "h":
            level = attribute(element, "outline-level")
            assembly.heading(int(level) if level.isdigit() else 1, _text(element))
        elif name == "table-row":
            assembly.add(" | ".join(map(_cell, _cells(element))).strip(" |"), "table")
        else:
            assembly.add(_text(element), "item" if "list-item" in above else "paragraph")


def _add_sheets(assembly: Assembly, source: Source, root: Any) -> None:
    limits = SheetLimits(source)
    for table in root.iterchildren("{*}table"):
        sheet = Sheet(assembly, limits, attribute(table, "name"))
        for row in table.iter("{*}table-row"):
            values = _values(row)
            repeated = attribute(row, "number-rows-repeated")
            times = int(repeated) if repeated.isdigit() and any(values) else 1
            limits.repeated |= times > EQUAL_ROWS
            if not all(sheet.add(values) for _ in range(min(times, EQUAL_ROWS))):
                break
        for shapes in table.iterchildren("{*}shapes"):
            _add_text(assembly, shapes)
    limits.record()


def _add_slides(assembly: Assembly, root: Any) -> None:
    for number, page in enumerate(root.iterchildren("{*}page"), 1):
        assembly.page(str(number))
        frames = page.iter("{*}frame")
        title = next(
            (f for f in frames if attribute(f, "class") in ("title", "outline-title")), None
        )
        text = "" if title is None else " ".join(map(_text, title.iter("{*}p")))
        assembly.heading(1, text.strip() or f"Slide {number}")
        if title is not None:
            title.getparent().remove(title)
        for frame in list(page.iter("{*}frame")):
            if attribute(frame, "class") in ("page-number", "date-time", "page"):
                frame.getparent().remove(frame)
        _add_text(assembly, page)


def _names_above(element: Any, root: Any) -> set[str]:
    names = set()
    for outer in element.iterancestors():
        if outer is root:
            break
        names.add(local_name(outer))
    return names


def _text(element: Any) -> str:
    return "".join(element.itertext()).strip()


def _cells(row: Any) -> Iterator[Any]:
    yield from row.iterchildren("{*}table-cell", "{*}covered-table-cell")


def _cell(cell: Any) -> str:
    return " ".join(" ".join(map(_text, cell.iter("{*}p", "{*}h"))).split())


def _values(row: Any) -> list[str]:
    """Return the cells of a row of a sheet; repeated ones are repeated, but not to the edge."""
    values: list[str] = []
    for cell in _cells(row):
        text = _cell(cell)
        repeated = attribute(cell, "number-columns-repeated")
        times = int(repeated) if repeated.isdigit() else 1
        values += [text] * min(times, COLUMNS + 1 - min(len(values), COLUMNS))
    while values and not values[-1]:
        values.pop()
    return values
