"""Makes the corpus' PDF, DOCX, PPTX, XLSX and EPUB files from the texts in sources/.

The texts use a small markup, so that they can be read and corrected without an office:

    # heading        ## smaller heading        - item of a list        | cell | cell
    note: words that a speaker says             a blank line ends a paragraph
    === page | drawing | chapter TITLE | sheet TITLE | slide TITLE

Run it again after a change: `python make_binary.py`. It needs reportlab, python-docx,
python-pptx and openpyxl. Dates are fixed, so the same libraries make the same bytes.
"""

from __future__ import annotations

import datetime
import html
import io
import re
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "sources"
CORPUS = HERE / "corpus"
WHEN = datetime.datetime(2025, 3, 21, 9, 0, 0)
AUTHOR = "Tarnbeck"

# source name → made file; the kind is the suffix
MADE = {
    "dipper-d3-datasheet": "product/dipper-d3-datasheet.pdf",
    "heron-h1-manual": "product/heron-h1-manual.pdf",
    "drift-white-paper": "product/drift-white-paper.pdf",
    "field-safety": "handbook/field-safety.docx",
    "field-guide": "handbook/field-guide.epub",
    "pricing": "product/pricing.xlsx",
    "roadmap-2025": "product/roadmap-2025.pptx",
}
TWO_COLUMNS = {"drift-white-paper"}


@dataclass(frozen=True)
class Block:
    """One piece of a source: `kind` is h1, h2, p, list, table, note, or the word after ===."""

    kind: str
    text: str = ""
    items: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def parse(source: str) -> list[Block]:
    """Reads the small markup of the sources."""
    blocks = []
    for piece in re.split(r"\n\s*\n", source.strip()):
        lines = piece.strip().split("\n")
        first = lines[0]
        if first.startswith("=== "):
            kind, _, title = first[4:].partition(" ")
            blocks.append(Block(kind, title))
        elif first.startswith("## "):
            blocks.append(Block("h2", first[3:]))
        elif first.startswith("# "):
            blocks.append(Block("h1", first[2:]))
        elif first.startswith("- "):
            blocks.append(Block("list", items=tuple(line[2:] for line in lines)))
        elif first.startswith("| "):
            rows = tuple(tuple(cell.strip() for cell in line[1:].split("|")) for line in lines)
            blocks.append(Block("table", rows=rows))
        elif first.startswith("note: "):
            blocks.append(Block("note", first[6:]))
        else:
            blocks.append(Block("p", " ".join(lines)))
    return blocks


def parts(blocks: list[Block], kind: str) -> list[tuple[str, list[Block]]]:
    """Cuts the blocks at every `=== kind TITLE`; what stands before the first is left out."""
    found: list[tuple[str, list[Block]]] = []
    for block in blocks:
        if block.kind == kind:
            found.append((block.text, []))
        elif found:
            found[-1][1].append(block)
    return found


# --- PDF ------------------------------------------------------------------------------------


def make_pdf(blocks: list[Block], *, two_columns: bool) -> bytes:
    """A4 pages with a running foot; a `drawing` page has lines and no text at all."""
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.units import mm
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate

    title = blocks[0].text
    width, height = A4
    left, bottom, gap = 20 * mm, 22 * mm, 8 * mm
    inner, tall = width - 2 * left, height - 2 * bottom

    def foot(canvas, _document) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(left, 12 * mm, f"{AUTHOR} · {title}")
        canvas.drawRightString(width - left, 12 * mm, str(canvas.getPageNumber()))

    def drawing(canvas, _document) -> None:
        draw_dipper(canvas, width / 2, height / 2)

    if two_columns:
        half = (inner - gap) / 2
        frames = [
            Frame(left, bottom, half, tall, id="left"),
            Frame(left + half + gap, bottom, half, tall, id="right"),
        ]
    else:
        frames = [Frame(left, bottom, inner, tall, id="text")]
    buffer = io.BytesIO()
    document = BaseDocTemplate(buffer, pagesize=A4, title=title, author=AUTHOR, invariant=1)
    document.addPageTemplates(
        [
            PageTemplate("text", frames, onPage=foot),
            PageTemplate("drawing", [Frame(left, bottom, inner, tall)], onPage=drawing),
        ]
    )
    document.build(list(pdf_flow(blocks)))
    return buffer.getvalue()


def pdf_flow(blocks: list[Block]):
    """The blocks as reportlab's flowables, in order."""
    from reportlab.lib.colors import Color
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import NextPageTemplate, PageBreak, Paragraph, Spacer, Table

    text = ParagraphStyle("text", fontName="Times-Roman", fontSize=11.5, leading=16, spaceAfter=9)
    bullet = ParagraphStyle("bullet", text, leftIndent=12, bulletIndent=2, spaceAfter=3)
    cell = ParagraphStyle("cell", text, fontSize=9.5, leading=12, spaceAfter=0)
    h1 = ParagraphStyle("h1", fontName="Helvetica-Bold", fontSize=19, leading=24, spaceAfter=8)
    h2 = ParagraphStyle(
        "h2",
        fontName="Helvetica-Bold",
        fontSize=12.5,
        leading=16,
        spaceBefore=8,
        spaceAfter=4,
        keepWithNext=True,
    )
    styles = {"h1": h1, "h2": h2, "p": text}
    for block in blocks:
        if block.kind in styles:
            yield Paragraph(html.escape(block.text), styles[block.kind])
        elif block.kind == "list":
            for item in block.items:
                yield Paragraph(html.escape(item), bullet, bulletText="–")
            yield Spacer(1, 5)
        elif block.kind == "table":
            wide = max(len(row) for row in block.rows)
            rows = [
                [Paragraph(html.escape(text), cell) for text in row] + [""] * (wide - len(row))
                for row in block.rows
            ]
            yield Table(
                rows,
                colWidths=[480 / wide] * wide,
                hAlign="LEFT",
                spaceAfter=9,
                style=[
                    ("GRID", (0, 0), (-1, -1), 0.4, Color(0.6, 0.6, 0.6)),
                    ("BACKGROUND", (0, 0), (-1, 0), Color(0.92, 0.94, 0.96)),
                    ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ],
            )
        elif block.kind == "page":
            yield NextPageTemplate("text")
            yield PageBreak()
        elif block.kind == "drawing":
            yield NextPageTemplate("drawing")
            yield PageBreak()
            yield Spacer(1, 1)


def draw_dipper(canvas, x: float, y: float) -> None:
    """The outline of a sensor above the water with its beam, as lines only."""
    canvas.setLineWidth(1.4)
    canvas.roundRect(x - 59, y + 60, 118, 204, 14)
    canvas.rect(x - 26, y + 264, 52, 30)
    canvas.line(x - 120, y + 294, x + 120, y + 294)
    canvas.line(x - 38, y + 60, x - 22, y + 26)
    canvas.line(x + 38, y + 60, x + 22, y + 26)
    canvas.circle(x + 40, y + 84, 5, fill=1)
    canvas.setLineWidth(0.6)
    for edge in (-1, 1):
        canvas.line(x + edge * 22, y + 26, x + edge * 46, y - 250)
        canvas.line(x + edge * 59, y + 40, x + edge * 59, y - 10)
    for step in range(6):
        start = x - 150 + step * 50
        canvas.bezier(start, y - 250, start + 17, y - 238, start + 33, y - 262, start + 50, y - 250)
    canvas.setDash(4, 3)
    canvas.line(x, y + 26, x, y - 250)


# --- Office and e-book ------------------------------------------------------------------------


def make_docx(blocks: list[Block]) -> bytes:
    """Headings, paragraphs, lists and tables with Word's own styles."""
    import docx

    document = docx.Document()
    properties = document.core_properties
    properties.author, properties.title = AUTHOR, blocks[0].text
    properties.created = properties.modified = WHEN
    for block in blocks:
        if block.kind in ("h1", "h2"):
            document.add_heading(block.text, level=int(block.kind[1]))
        elif block.kind == "p":
            document.add_paragraph(block.text)
        elif block.kind == "list":
            for item in block.items:
                document.add_paragraph(item, style="List Bullet")
        elif block.kind == "table":
            table = document.add_table(len(block.rows), len(block.rows[0]), style="Table Grid")
            for row, texts in zip(table.rows, block.rows, strict=True):
                for cell, text in zip(row.cells, texts, strict=True):
                    cell.text = text
    buffer = io.BytesIO()
    document.save(buffer)
    return settled(buffer.getvalue())


def make_pptx(blocks: list[Block]) -> bytes:
    """A slide for each part: title, paragraphs and items, perhaps a table, the speaker's note."""
    import pptx
    from pptx.util import Inches

    deck = pptx.Presentation()
    properties = deck.core_properties
    properties.author, properties.title = AUTHOR, parts(blocks, "slide")[0][0]
    properties.created = properties.modified = WHEN
    for title, inside in parts(blocks, "slide"):
        rows = next((block.rows for block in inside if block.kind == "table"), ())
        slide = deck.slides.add_slide(deck.slide_layouts[5 if rows else 1])
        slide.shapes.title.text = title
        if rows:
            grid = slide.shapes.add_table(
                len(rows), len(rows[0]), Inches(0.7), Inches(1.7), Inches(8.6), Inches(4)
            ).table
            for y, row in enumerate(rows):
                for x, text in enumerate(row):
                    grid.cell(y, x).text = text
        else:
            lines = [
                line
                for block in inside
                for line in (
                    block.items
                    if block.kind == "list"
                    else (block.text,)
                    if block.kind == "p"
                    else ()
                )
            ]
            slide.placeholders[1].text_frame.text = "\n".join(lines)
        for block in inside:
            if block.kind == "note":
                slide.notes_slide.notes_text_frame.text = block.text
    buffer = io.BytesIO()
    deck.save(buffer)
    return settled(buffer.getvalue())


def make_xlsx(blocks: list[Block]) -> bytes:
    """A worksheet for each part; what looks like a number is one."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    book.properties.creator = AUTHOR
    book.properties.created = WHEN
    for title, inside in parts(blocks, "sheet"):
        sheet = book.create_sheet(title)
        for block in inside:
            for row in block.rows:
                sheet.append(
                    [
                        float(c)
                        if re.fullmatch(r"\d+\.\d+", c)
                        else int(c)
                        if c.isdigit()
                        else c or None
                        for c in row
                    ]
                )
        sheet.column_dimensions["A"].width = sheet.column_dimensions["B"].width = 30
    buffer = io.BytesIO()
    book.save(buffer)
    return settled(buffer.getvalue())


def make_epub(blocks: list[Block]) -> bytes:
    """An EPUB 3 with one XHTML file a chapter and a table of contents."""
    title = blocks[0].text
    chapters = parts(blocks, "chapter")
    files = {
        "META-INF/container.xml": (
            '<?xml version="1.0"?><container version="1.0" '
            'xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/>'
            "</rootfiles></container>"
        ),
        "book/nav.xhtml": xhtml(
            title,
            "<nav epub:type='toc'><ol>"
            + "".join(
                f"<li><a href='chapter{n}.xhtml'>{html.escape(name)}</a></li>"
                for n, (name, _) in enumerate(chapters, 1)
            )
            + "</ol></nav>",
        ),
    }
    for n, (name, inside) in enumerate(chapters, 1):
        body = "".join(
            f"<{block.kind}>{html.escape(block.text, quote=False)}</{block.kind}>\n"
            for block in inside
        )
        files[f"book/chapter{n}.xhtml"] = xhtml(name, f"<h1>{html.escape(name)}</h1>\n{body}")
    numbers = range(1, len(chapters) + 1)
    items = "".join(
        f'<item id="c{n}" href="chapter{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in numbers
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in numbers)
    files["book/package.opf"] = (
        '<?xml version="1.0" encoding="utf-8"?>\n<package version="3.0" unique-identifier="id" '
        'xmlns="http://www.idpf.org/2007/opf"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">tarnbeck-field-guide'
        f"</dc:identifier><dc:title>{html.escape(title)}</dc:title><dc:language>en</dc:language>"
        f'<dc:creator>{AUTHOR}</dc:creator><meta property="dcterms:modified">'
        f'{WHEN:%Y-%m-%dT%H:%M:%SZ}</meta></metadata><manifest><item id="nav" href="nav.xhtml" '
        f'media-type="application/xhtml+xml" properties="nav"/>{items}</manifest>'
        f"<spine>{spine}</spine></package>"
    )
    return packed(
        {"mimetype": b"application/epub+zip"}
        | {name: text.encode() for name, text in files.items()}
    )


def xhtml(title: str, body: str) -> str:
    """One page of the e-book."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" '
        'xmlns:epub="http://www.idpf.org/2007/ops" lang="en">\n'
        f"<head><title>{html.escape(title)}</title></head>\n<body>\n{body}</body>\n</html>\n"
    )


def settled(archive: bytes) -> bytes:
    """The same zip with every date set to WHEN, in its entries and in docProps/core.xml."""
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        files = {name: source.read(name) for name in source.namelist()}
    core = files["docProps/core.xml"]
    files["docProps/core.xml"] = re.sub(
        rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*", rb"\g<1>" + f"{WHEN:%FT%TZ}".encode(), core
    )
    return packed(files)


def packed(files: dict[str, bytes]) -> bytes:
    """A zip with fixed dates; its `mimetype`, if it has one, is stored, not compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, WHEN.timetuple()[:6])
            plain = name == "mimetype"
            entry.compress_type = zipfile.ZIP_STORED if plain else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return buffer.getvalue()


def main() -> int:
    """Makes every file of MADE."""
    makers = {".docx": make_docx, ".epub": make_epub, ".xlsx": make_xlsx, ".pptx": make_pptx}
    for name, made in MADE.items():
        blocks = parse((SOURCES / f"{name}.txt").read_text(encoding="utf-8"))
        target = CORPUS / made
        if target.suffix == ".pdf":
            content = make_pdf(blocks, two_columns=name in TWO_COLUMNS)
        else:
            content = makers[target.suffix](blocks)
        target.write_bytes(content)
        print(f"{len(content):>7,} bytes  {made}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
