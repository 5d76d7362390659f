"""PowerPoint presentations (.pptx): a page per slide, its title as heading, then its notes.

Charts, diagrams and comments of a slide are read as well; what stands on masters and layouts
alone is decoration and is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.elements import attribute, local_name
from ragcli.corpus.readers.ooxml import Package, paragraph_text, paragraphs, relation_id
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_SHAPES = ("{*}sp", "{*}graphicFrame", "{*}cxnSp")
_PAGE_FURNITURE = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document. Raises UnreadableFile as `Package` does."""
    with Package(source) as package:
        parts = package.related(package.main)
        assembly = Assembly()
        slides = package.xml(package.main).iterfind("{*}sldIdLst/{*}sldId")
        for number, entry in enumerate(slides, 1):
            label = str(number)
            assembly.page(label)
            relation = parts.get(relation_id(entry))
            try:
                if relation is None:
                    raise UnreadableFile("corrupt", "the slide is not in the file")
                _add_slide(assembly, package, relation.target, label)
            except UnreadableFile as error:
                source.problems.append((error.kind, error.message, label))
        title = package.title()
    yield assembly.document("pptx", title or assembly.headings.title)


def _add_slide(assembly: Assembly, package: Package, part: str, label: str) -> None:
    root = package.xml(part)
    for fallback in list(root.iter("{*}Fallback")):
        fallback.getparent().remove(fallback)
    shapes = list(root.iter(*_SHAPES))
    title = next((shape for shape in shapes if _placeholder(shape) in ("title", "ctrTitle")), None)
    heading = "" if title is None else " ".join(paragraphs(title))
    found = [*_shape_blocks(shapes, title), *((text, "table") for text in package.drawn(part))]
    if heading or found:
        assembly.heading(1, heading or f"Slide {label}")
    elif root.find(".//{*}pic") is not None:
        raise UnreadableFile("no_text", "the slide has no text, only pictures")
    for text, kind in found:
        assembly.add(text, kind)
    for _, notes in package.roots(part, "notesSlide"):
        for shape in notes.iter("{*}sp"):
            if _placeholder(shape) not in _PAGE_FURNITURE:
                assembly.add("\n".join(paragraphs(shape)), "other")
    for _, comments in package.roots(part, "comments"):
        for text in _comments(comments):
            assembly.add(text, "other")
    package.record_embedded(part, label)


def _placeholder(shape: Any) -> str:
    """Return what a shape is a placeholder for, "" if it is none."""
    found = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return "" if found is None else attribute(found, "type") or "body"


def _shape_blocks(shapes: Sequence[Any], title: Any) -> Iterator[tuple[str, str]]:
    """Yield text and kind of what the shapes of a slide say, beside its title and number."""
    for shape in shapes:
        if shape is title or _placeholder(shape) == "sldNum":
            continue
        if local_name(shape) == "graphicFrame":
            for row in shape.iter("{*}tr"):
                cells = (" ".join(" ".join(paragraphs(cell)).split()) for cell in row.iter("{*}tc"))
                yield " | ".join(cells).strip(" |"), "table"
            continue
        texts = [paragraph_text(p).strip() for p in shape.iterfind("{*}txBody/{*}p")]
        kind = "item" if sum(map(bool, texts)) > 1 else "paragraph"
        yield from ((text, kind) for text in texts if text)


def _comments(root: Any) -> Iterator[str]:
    """Yield the comments of a slide: those of old are one text each, the new ones paragraphs."""
    for text in root.iter("{*}text"):
        if text.text:
            yield text.text.strip()
    yield from paragraphs(root)
