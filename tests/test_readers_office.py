"""Office documents and books: Word, PowerPoint, Excel, OpenDocument, EPUB."""

from __future__ import annotations

import datetime
import io
import zipfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.corpus.readers import archive, read_document, sheets
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


def test_what_an_epub_has_in_the_place_of_chapters_that_are_no_pages() -> None:
    items = (
        '<item id="a" href="a.png" media-type="image/png" fallback="b"/>'
        '<item id="b" href="b.bin" media-type="application/x-b" fallback="c"/>'
        '<item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="s" href="s.svg" media-type="image/svg+xml"/>'
        '<item id="z" href="z.png" media-type="image/png" fallback="z"/>'
    )
    order = "".join(f'<itemref idref="{name}"/>' for name in "ascz?")
    page = '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">'
    document = read(
        zipped(
            {
                "META-INF/container.xml": '<container><rootfile full-path="p.opf"/></container>',
                "p.opf": f"<package><manifest>{items}</manifest><spine>{order}</spine></package>",
                "c.xhtml": f"{page}<body><p>text</p><aside>box</aside>"
                '<aside epub:type="footnote">note</aside><footer>end</footer></body></html>',
                "s.svg": '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg">'
                "<title>Oven</title><text>heat</text></svg>",
            }
        ),
        "a.epub",
    )
    assert [text for _, _, text in shown(document)] == ["text", "box", "note", "end", "Oven heat"]
    assert [(kind, message) for kind, message, _ in document.problems] == [
        ("unsupported", "chapter z.png is no text, but image/png"),
        ("unsupported", "chapter ? is not in the book"),
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


def relations(*targets: tuple[str, str]) -> str:
    return "<Relationships>{}</Relationships>".format(
        "".join(
            f'<Relationship Id="r{i}" Type="http://x/{kind}" Target="{target}"/>'
            for i, (kind, target) in enumerate(targets)
        )
    )


def package(main: str, members: dict[str, str], *related: tuple[str, str]) -> bytes:
    folder, _, name = main.rpartition("/")
    return zipped(
        {
            "_rels/.rels": relations(("officeDocument", main)),
            f"{folder}/_rels/{name}.rels": relations(*related),
            **members,
        }
    )


W = 'xmlns:w="w" xmlns:m="m"'


def test_docx_reads_what_stands_beside_the_text_once() -> None:
    p = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"
    data = package(
        "word/document.xml",
        {
            "word/document.xml": f"<w:document {W}><w:body>{p.format('body')}<w:p><w:r>"
            f"<w:pict><w:txbxContent>{p.format('in a box')}</w:txbxContent></w:pict></w:r></w:p>"
            "</w:body></w:document>",
            "word/footnotes.xml": f"<w:footnotes {W}><w:footnote>{p.format('a note')}</w:footnote>"
            "</w:footnotes>",
            "word/comments.xml": f"<w:comments {W}><w:comment>{p.format('a remark')}</w:comment>"
            "</w:comments>",
            "word/header1.xml": f"<w:hdr {W}>{p.format('Secret')}</w:hdr>",
            "word/header2.xml": f"<w:hdr {W}>{p.format('Secret')}</w:hdr>",
            "word/footer1.xml": f"<w:ftr {W}>{p.format('17')}</w:ftr>",
            "word/charts/chart1.xml": "<c:chart xmlns:c='c' xmlns:a='a'><c:title><a:p><a:t>Sales"
            "</a:t></a:p></c:title><c:ser><c:tx><c:v>2024</c:v></c:tx><c:cat><c:pt idx='0'><c:v>"
            "May</c:v></c:pt></c:cat><c:val><c:pt idx='0'><c:v>7</c:v></c:pt></c:val></c:ser>"
            "</c:chart>",
        },
        ("footnotes", "footnotes.xml"),
        ("comments", "comments.xml"),
        ("header", "header1.xml"),
        ("header", "header2.xml"),
        ("footer", "footer1.xml"),
        ("chart", "charts/chart1.xml"),
        ("package", "embeddings/Book1.xlsx"),
    )
    document = read(data, "a.docx")
    assert [text for _, _, text in shown(document)] == [
        *("body", "in a box", "a note", "a remark", "Secret", "Sales", "2024: May: 7"),
    ]
    assert document.problems == (("attachment", "embedded 'Book1.xlsx' was not read", None),)


def test_docx_reads_rows_in_content_controls_and_nested_tables_once() -> None:
    def cell(text: str) -> str:
        return f"<w:tc><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"

    def row(*cells: str) -> str:
        return f"<w:tr>{''.join(cells)}</w:tr>"

    def control(inside: str) -> str:
        return f"<w:sdt><w:sdtContent>{inside}</w:sdtContent></w:sdt>"

    nested = f"<w:tbl>{row(cell('in'), cell('side'))}{control(row(cell('below')))}</w:tbl>"
    table = (
        row(cell("part"), cell("price"))
        + control(row(cell("door"), cell("40")) + control(row(cell("lamp"), cell("2"))))
        + row(control(cell("oven")), f"<w:tc>{control(nested)}<w:p/></w:tc>")
    )
    document = f"<w:document {W}><w:body>{control(f'<w:tbl>{table}</w:tbl>')}</w:body></w:document>"
    data = package("word/document.xml", {"word/document.xml": document})
    assert [text for _, _, text in shown(read(data, "a.docx"))] == [
        *("part | price", "door | 40", "lamp | 2", "oven | in side below"),
    ]


def test_a_damaged_sheet_costs_no_other() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["kept", 1])
    book.create_sheet("Broken").append(["lost", 3])
    book.create_sheet("After").append(["as well", 2])
    data = bytearray(saved(book))
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        member = packed.getinfo("xl/worksheets/sheet2.xml")
    start = data.index(b"xl/worksheets/sheet2.xml", member.header_offset) + 24
    data[start] = 7  # a block of a kind that there is not
    document = read(bytes(data), "a.xlsx")
    assert [page.label for page in document.pages] == ["Sheet", "Broken", "After"]
    assert "kept" in document.text
    assert "as well" in document.text
    ((kind, message, page),) = document.problems
    assert (kind, page) == ("corrupt", "Broken")
    assert "xl/worksheets/sheet2.xml" in message


def test_damaged_parts_are_read_as_far_as_they_can_be() -> None:
    data = package(
        "word/document.xml",
        {"word/document.xml": f"<w:document {W}><w:body><w:p><w:t>whole</w:t></w:p><w:p><w:t>cut"},
    )
    document = read(data, "a.docx")
    assert document.text == "whole\n\ncut"
    ((kind, message, _),) = document.problems
    assert kind == "corrupt"
    assert "word/document.xml is damaged" in message


def test_a_slide_that_is_only_a_picture_is_named() -> None:
    pptx = pytest.importorskip("pptx")
    show = pptx.Presentation()
    show.slides.add_slide(show.slide_layouts[6])
    second = show.slides.add_slide(show.slide_layouts[6])
    pixel = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;"
    second.shapes.add_picture(io.BytesIO(pixel), 0, 0)
    show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = "Words"
    document = read(saved(show), "a.pptx")
    assert document.text == "Words"
    assert document.problems == (("no_text", "the slide has no text, only pictures", "2"),)


def test_pptx_reads_charts() -> None:
    pptx = pytest.importorskip("pptx")
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    show = pptx.Presentation()
    data = CategoryChartData()
    data.categories = ["East", "West"]
    data.add_series("Q1", (19.5, 21))
    slide = show.slides.add_slide(show.slide_layouts[6])
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 914_400, 914_400, data)
    assert "Q1: East: 19.5 | West: 21" in read(saved(show), "a.pptx").text


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(-1e9, 1e9).map(lambda number: round(number, 3)),
    st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2100, 1, 1)).map(
        lambda moment: moment.replace(microsecond=0)
    ),
    st.text(
        st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=20
    ).filter(lambda text: text[0] != "="),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(VALUES, min_size=1, max_size=6), min_size=1, max_size=6))
def test_xlsx_has_every_value_that_openpyxl_wrote(rows: list[list[Any]]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    text = read(saved(book), "a.xlsx").text

    def as_people_write(value: Any) -> str:
        if isinstance(value, datetime.datetime) and value.time() == datetime.time():
            return str(value.date())
        if isinstance(value, float):
            return str(int(value)) if value.is_integer() else repr(value)
        return str(value).strip()

    for value in (value for row in rows for value in row if value is not None):
        assert as_people_write(value) in text


def test_what_a_workbook_loses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["=1+1", "seen"])
    book.active["B1"].comment = openpyxl.comments.Comment("a remark", "me")
    hidden = book.create_sheet("Hidden")
    hidden.sheet_state = "hidden"
    hidden.append(["kept", "x"])
    document = read(saved(book), "a.xlsx")
    assert "kept" in document.text
    assert "a remark" in document.text
    message = "1 formula without a stored value, not read"
    assert document.problems == (("formula", message, "Sheet"),)
    monkeypatch.setattr(sheets, "COLUMNS", 1)
    message = "only 1 columns of each row were read"
    assert ("truncated", message, None) in read(saved(book), "a.xlsx").problems


@pytest.mark.parametrize(
    ("stored", "pattern", "shown"),
    [
        ("45352", "yyyy-mm-dd", "2024-03-01"),
        ("45352.5", 'dd/mm/yy "at" hh:mm', "2024-03-01 12:00:00"),
        ("0.25", "h:mm", "06:00:00"),
        ("1.5", "[h]:mm", "1 day, 12:00:00"),
        ("0.125", "0.0%", "12.5%"),
        ("0.1", '[Red]0.0" days"', "0.1"),
        ("0.30000000000000004", "", "0.3"),
        ("1", "m/d", "1900-01-01"),
        ("1e300", "yyyy", "1e300"),
        ("#N/A", "yyyy", "#N/A"),
    ],
)
def test_numbers_as_people_see_them(stored: str, pattern: str, shown: str) -> None:
    assert sheets.shown_number(stored, pattern, since_1904=False) == shown


ODS = """<office:document xmlns:office="o" xmlns:text="t" xmlns:table="b"><office:body>
<office:spreadsheet><table:table table:name="Prices">
<table:table-row><table:table-cell><text:p>part</text:p></table:table-cell><table:table-cell>
<text:p>price</text:p></table:table-cell><table:table-cell table:number-columns-repeated="16000"/>
</table:table-row><table:table-row table:number-rows-repeated="2"><table:table-cell
table:number-columns-repeated="2"><text:p>7</text:p></table:table-cell></table:table-row>
<table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>
</table:table></office:spreadsheet></office:body></office:document>"""


@pytest.mark.parametrize("flat", [True, False])
def test_ods(flat: bool) -> None:
    data = ODS.encode() if flat else zipped({"content.xml": ODS})
    document = read(data, "a.fods" if flat else "a.ods")
    assert document.kind == "ods"
    assert [page.label for page in document.pages] == ["Prices"]
    row = "part: 7 | price: 7"
    assert [text for _, _, text in shown(document)] == ["Prices", "part | price", row, row]


def test_ods_says_which_rows_it_leaves_out() -> None:
    whole = ODS.replace('rows-repeated="2"', 'rows-repeated="100"')
    document = read(whole.encode(), "a.fods")
    assert document.text.count("part: 7 | price: 7") == 100
    assert document.problems == ()
    document = read(ODS.replace('rows-repeated="2"', 'rows-repeated="101"').encode(), "a.fods")
    assert document.text.count("part: 7 | price: 7") == 100
    message = "a row that is there more than 100 times was read so often only"
    assert document.problems == (("truncated", message, None),)


def test_odp() -> None:
    text = """<d xmlns:o="o" xmlns:t="t" xmlns:w="w" xmlns:p="p"><o:body><o:presentation>
    <w:page><w:frame p:class="title"><w:text-box><t:p>Ovens</t:p></w:text-box></w:frame>
    <w:frame><w:text-box><t:p>hot</t:p></w:text-box></w:frame>
    <p:notes><w:frame p:class="page-number"><t:p>1</t:p></w:frame><w:frame p:class="notes">
    <w:text-box><t:p>say it</t:p></w:text-box></w:frame></p:notes></w:page>
    <w:page/></o:presentation></o:body></d>"""
    document = read(zipped({"content.xml": text}), "a.odp")
    assert [text for _, _, text in shown(document)] == ["Ovens", "hot", "say it", "Slide 2"]
    assert [page.label for page in document.pages] == ["1", "2"]


def test_opendocument_leaves_out_what_was_deleted_and_says_what_is_encrypted() -> None:
    deleted = "<text:tracked-changes><text:p>old</text:p></text:tracked-changes>"
    text = ODT.replace("<office:body>", f"<office:body>{deleted}")
    assert "old" not in read(zipped({"content.xml": text}), "a.odt").text
    manifest = "<manifest><file-entry><encryption-data/></file-entry></manifest>"
    with pytest.raises(UnreadableFile) as caught:
        read(zipped({"content.xml": "\0", "META-INF/manifest.xml": manifest}), "a.odt")
    assert caught.value.kind == "password"
