"""Office documents and books: Word, PowerPoint, Excel, OpenDocument, EPUB."""

from __future__ import annotations

import datetime
import io
import sys
import zipfile
from typing import Any

import pytest

from ragcli.corpus.readers import archive, read_document
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document


def read(data: bytes, name: str) -> Document:
    (document,) = read_document(Source(name, data))
    end = 0
    for block in document.blocks:
        assert end <= block.start < block.end <= len(document.text)
        assert document.text[end : block.start].strip() == ""
        end = block.end
    assert document.text[end:].strip() == ""
    assert document.line_anchors == ()
    return document


def shown(document: Document) -> list[tuple[str, tuple[str, ...], str]]:
    return [(b.kind, b.headings, document.text[b.start : b.end]) for b in document.blocks]


def saved(document: Any) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def zipped(members: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in members.items():
            packed.writestr(name, text)
    return stream.getvalue()


def word() -> bytes:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_paragraph("The Handbook", style="Title")
    document.add_heading("Ovens", 1)
    document.add_paragraph("They are hot.")
    document.add_heading("Care", 2)
    document.add_paragraph("clean it", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(table._cells, ["part", "price", "door", "40 €"], strict=True):
        cell.text = text
    document.add_paragraph("After the table.\nA second line.")
    return saved(document)


def test_docx() -> None:
    document = read(word(), "a.docx")
    title = ("The Handbook",)
    ovens = (*title, "Ovens")
    care = (*ovens, "Care")
    assert document.title == "The Handbook"
    assert shown(document) == [
        ("heading", title, "The Handbook"),
        ("heading", ovens, "Ovens"),
        ("paragraph", ovens, "They are hot."),
        ("heading", care, "Care"),
        ("item", care, "clean it"),
        ("table", care, "part | price"),
        ("table", care, "door | 40 €"),
        ("paragraph", care, "After the table.\nA second line."),
    ]


def test_docx_reads_what_was_inserted_and_not_what_was_deleted() -> None:
    docx = pytest.importorskip("docx")
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    document = docx.Document()
    paragraph = document.add_paragraph("kept ")._p
    for tag, text in (("ins", "<w:t>new</w:t>"), ("del", "<w:delText>old</w:delText>")):
        paragraph.append(parse_xml(f"<w:{tag} {nsdecls('w')}><w:r>{text}</w:r></w:{tag}>"))
    assert read(saved(document), "a.docx").text == "kept new"


def test_pptx() -> None:
    pptx = pytest.importorskip("pptx")
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "Ovens"
    slide.placeholders[1].text = "hot\nheavy"
    slide.notes_slide.notes_text_frame.text = "mention the price"
    blank = show.slides.add_slide(show.slide_layouts[6])
    inch = 914_400
    table = blank.shapes.add_table(1, 2, inch, inch, inch, inch).table
    table.cell(0, 0).text, table.cell(0, 1).text = "door", "40"
    group = blank.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, inch, inch).text_frame.text = "in a group"
    document = read(saved(show), "a.pptx")
    assert [page.label for page in document.pages] == ["1", "2"]
    assert shown(document) == [
        ("heading", ("Ovens",), "Ovens"),
        ("item", ("Ovens",), "hot"),
        ("item", ("Ovens",), "heavy"),
        ("other", ("Ovens",), "mention the price"),
        ("heading", ("Slide 2",), "Slide 2"),
        ("table", ("Slide 2",), "door | 40"),
        ("paragraph", ("Slide 2",), "in a group"),
    ]
    second = document.pages[1].start
    assert document.text[second:].lstrip().startswith("Slide 2")


def test_xlsx() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Prices"
    for row in (
        ["Spring list"],
        ["part", "price", "since"],
        ["door", 40.0, datetime.datetime(2024, 3, 1)],
        [None, None, None],
        ["lamp", 2.5, None],
    ):
        sheet.append(row)
    book.create_sheet("Empty")
    document = read(saved(book), "a.xlsx")
    assert [page.label for page in document.pages] == ["Prices", "Empty"]
    assert [text for _, _, text in shown(document)] == [
        "Prices",
        "Spring list",
        "part | price | since",
        "part: door | price: 40 | since: 2024-03-01",
        "part: lamp | price: 2.5",
        "Empty",
    ]


ODT = """<?xml version="1.0"?>
<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="b"><office:body>
<text:h text:outline-level="1">Ovens</text:h>
<text:p>They<text:s/>are <text:span>hot</text:span>.</text:p>
<text:list><text:list-item><text:p>clean it</text:p></text:list-item></text:list>
<table:table><table:table-row><table:table-cell><text:p>door</text:p></table:table-cell>
<table:table-cell><text:p>40</text:p></table:table-cell></table:table-row></table:table>
</office:body></office:document-content>
"""


def test_odt() -> None:
    assert shown(read(zipped({"content.xml": ODT}), "a.odt")) == [
        ("heading", ("Ovens",), "Ovens"),
        ("paragraph", ("Ovens",), "They are hot."),
        ("item", ("Ovens",), "clean it"),
        ("table", ("Ovens",), "door | 40"),
    ]


def book(**chapters: str) -> bytes:
    items = "".join(
        f'<item id="{name}" href="text/{name}%20x.xhtml" media-type="application/xhtml+xml"/>'
        for name in chapters
    )
    order = "".join(f'<itemref idref="{name}"/>' for name in reversed(chapters))
    package = (
        '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Bread</dc:title>'
        f"</metadata><manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    container = '<container><rootfile full-path="OEBPS/book.opf"/></container>'
    return zipped(
        {
            "META-INF/container.xml": container,
            "OEBPS/book.opf": package,
            **{f"OEBPS/text/{name} x.xhtml": text for name, text in chapters.items()},
        }
    )


def test_epub_follows_the_spine() -> None:
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{}</title></head>{}</html>'
    document = read(
        book(
            last=page.format("Two", "<body><p>second</p></body>"),
            first=page.format("Bread", "<body><h2>One</h2><p>first</p></body>"),
        ),
        "a.epub",
    )
    assert document.title == "Bread"
    assert shown(document) == [
        ("heading", ("One",), "One"),
        ("paragraph", ("One",), "first"),
        ("heading", ("Two",), "Two"),
        ("paragraph", ("Two",), "second"),
    ]


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".xlsx", ".odt", ".epub"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no archive",
        zipped({"other.txt": "not what is asked for"}),
        zipped({"content.xml": "<a", "META-INF/container.xml": "<a/>", "word/document.xml": "<"}),
    ],
    ids=["empty", "text", "foreign", "broken"],
)
def test_what_is_no_such_document(suffix: str, data: bytes) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read(data, f"a{suffix}")
    assert caught.value.kind == "corrupt"


def test_a_truncated_document() -> None:
    with pytest.raises(UnreadableFile) as caught:
        read(word()[:-2000], "a.docx")
    assert caught.value.kind == "corrupt"


def test_archives_that_unpack_to_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "UNPACKED", 10_000)
    with pytest.raises(UnreadableFile) as caught:
        read(zipped({"content.xml": "<a>" + " " * 20_000 + "</a>"}), "a.odt")
    assert caught.value.kind == "too_large"


def test_a_member_that_lies_about_its_size() -> None:
    data = zipped({"content.xml": ODT + " " * 5000})
    lying = data.replace((len(ODT) + 5000).to_bytes(4, "little"), (50).to_bytes(4, "little"))
    assert lying != data
    with pytest.raises(UnreadableFile) as caught:
        read(lying, "a.odt")
    assert caught.value.kind == "corrupt"


def test_encrypted_documents() -> None:
    with pytest.raises(UnreadableFile) as caught:
        read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "a.docx")
    assert caught.value.kind == "password"


def test_entities_are_not_expanded() -> None:
    text = (
        '<!DOCTYPE a [<!ENTITY e "'
        + "x" * 100
        + '">]>'
        + ODT.partition("?>")[2].replace("hot", "&e;&e;hot")
    )
    assert "xxx" not in read(zipped({"content.xml": text}), "a.odt").text


@pytest.mark.parametrize(
    ("suffix", "library"), [(".docx", "docx"), (".pptx", "pptx"), (".xlsx", "openpyxl")]
)
def test_a_missing_library_is_named(
    suffix: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UnreadableFile) as caught:
        read(zipped({"a": "b"}), f"a{suffix}")
    assert caught.value.kind == "missing_extra"
    assert caught.value.message == 'needs the office extra: pip install "ragcli[office]"'
