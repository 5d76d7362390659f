"""PowerPoint presentations (.pptx): a page per slide, its title as heading, its notes.

Needs the office extra.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers.archive import missing_extra, open_archive
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.source import Source
from ragcli.records import Document


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document. Raises UnreadableFile (`missing_extra` and others)."""
    open_archive(source).close()
    try:
        import pptx
    except ImportError:
        raise missing_extra() from None
    presentation = pptx.Presentation(io.BytesIO(source.data))
    assembly = Assembly()
    for number, slide in enumerate(presentation.slides, 1):
        assembly.page(str(number))
        title = slide.shapes.title
        assembly.heading(1, title.text_frame.text if title is not None else f"Slide {number}")
        for shape in _shapes(slide.shapes):
            if title is None or shape.shape_id != title.shape_id:
                _add_shape(assembly, shape)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            assembly.add(_clean(slide.notes_slide.notes_text_frame.text), "other")
    title = presentation.core_properties.title or assembly.headings.title
    yield assembly.document("pptx", title)


def _shapes(shapes: Any) -> Iterator[Any]:
    """Yield the shapes, those inside of groups as well."""
    for shape in shapes:
        inner = getattr(shape, "shapes", None)
        if inner is None:
            yield shape
        else:
            yield from _shapes(inner)


def _add_shape(assembly: Assembly, shape: Any) -> None:
    if shape.has_text_frame:
        paragraphs = [_clean(paragraph.text) for paragraph in shape.text_frame.paragraphs]
        kind = "item" if sum(map(bool, paragraphs)) > 1 else "paragraph"
        for text in paragraphs:
            assembly.add(text, kind)
    elif getattr(shape, "has_table", False):
        for row in shape.table.rows:
            cells = (" ".join(cell.text_frame.text.split()) for cell in row.cells)
            assembly.add(" | ".join(cells).strip(" |"), "table")
    elif getattr(shape, "has_chart", False) and shape.chart.has_title:
        assembly.add(_clean(shape.chart.chart_title.text_frame.text), "other")


def _clean(text: str) -> str:
    """Return text with the line breaks that PowerPoint writes as vertical tabs."""
    return text.replace("\v", "\n").strip()
