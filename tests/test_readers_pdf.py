"""PDF: pages, labels, headings of the outline, text made readable, what cannot be read."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from itertools import accumulate

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject, NumberObject

from ragcli.corpus.readers import pdf, read_document
from ragcli.corpus.readers.pdf_text import (
    clean_pages,
    count_unmapped,
    is_doubtful,
    outline_key,
    page_blocks,
)
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document


@pytest.fixture(params=["pypdfium2", "pypdf"], autouse=True)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test of this file runs with PDFium and, as where it can open nothing, without."""
    if request.param == "pypdf":
        monkeypatch.setattr(pdf, "_pdfium", lambda data: None)
    return str(request.param)


def writer_of(pages: Sequence[Sequence[str]]) -> pypdf.PdfWriter:
    """Return a PDF with a line of text per string, none where a page has no strings."""
    writer = pypdf.PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for lines in pages:
        page = writer.add_blank_page(width=600, height=800)
        commands = ["BT /F1 12 Tf 14 TL 50 750 Td"]
        for line in lines:
            escaped = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
            commands.append(f"({escaped}) Tj T*")
        stream = DecodedStreamObject()
        stream.set_data(" ".join([*commands, "ET"]).encode("latin-1"))
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        page[NameObject("/Contents")] = writer._add_object(stream)
    return writer


def with_contents(commands: bytes) -> pypdf.PdfWriter:
    """Return a PDF with a page that these commands draw; /F1 is Helvetica, /I an image."""
    writer = writer_of([[""]])
    image = DecodedStreamObject()
    image.set_data(bytes(range(200)) * 2)
    for name, value in (("Type", "/XObject"), ("Subtype", "/Image"), ("ColorSpace", "/DeviceGray")):
        image[NameObject(f"/{name}")] = NameObject(value)
    for name, number in (("Width", 20), ("Height", 20), ("BitsPerComponent", 8)):
        image[NameObject(f"/{name}")] = NumberObject(number)
    stream = DecodedStreamObject()
    stream.set_data(commands)
    page = writer.pages[0]
    page[NameObject("/Contents")] = writer._add_object(stream)
    page["/Resources"][NameObject("/XObject")] = DictionaryObject(
        {NameObject("/I"): writer._add_object(image)}
    )
    return writer


def file_of(*objects: bytes) -> bytes:
    """Return a PDF of these objects, numbered from 1, the first its catalogue."""
    whole = [b"%d 0 obj\n%s\nendobj\n" % item for item in enumerate(objects, 1)]
    head = b"%PDF-1.5\n"
    starts = list(accumulate(map(len, whole), initial=len(head)))
    table = b"".join(b"%010d 00000 n \n" % start for start in starts[:-1])
    size = len(objects) + 1
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (size, starts[-1])
    return b"%s%sxref\n0 %d\n%s%s" % (
        head,
        b"".join(whole),
        size,
        b"%010d 65535 f \n" % 0 + table,
        end,
    )


def bytes_of(writer: pypdf.PdfWriter) -> bytes:
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def read(data: bytes, name: str = "a.pdf") -> Document:
    (document,) = read_document(Source(name, data))
    return document


def test_pages_and_labels(library: str) -> None:
    writer = writer_of([["Preface here."], [], ["Chapter text", "goes on."]])
    writer.set_page_label(0, 1, style="/r")
    writer.set_page_label(2, 2, style="/D", start=1)
    writer.add_metadata({"/Title": "The  Book"})
    document = read(bytes_of(writer))
    assert (document.kind, document.title, document.line_anchors) == ("pdf", "The Book", ())
    assert document.text == "Preface here.\n\nChapter text\ngoes on."
    assert [page.label for page in document.pages] == ["i", "ii", "1"]
    assert document.pages[0].start == 0
    third = document.pages[2].start
    assert document.text[third:].strip() == "Chapter text\ngoes on."
    assert all(block.end <= third or block.start >= third for block in document.blocks)
    blank = ("blank", "the page is blank", "ii")
    unknown = ("no_text", "the page has no text", "ii")
    assert document.problems == (blank if library == "pypdfium2" else unknown,)


def test_headings_come_from_the_outline() -> None:
    writer = writer_of(
        [["1 Introduction", "Bread is old.", "1.1 Flour", "It is ground."], ["2. Ovens", "Hot."]]
    )
    parent = writer.add_outline_item(title="Introduction", page_number=0)
    writer.add_outline_item(title="1.1 Flour", page_number=0, parent=parent)
    writer.add_outline_item(title="2. Ovens", page_number=1)
    writer.add_outline_item(title="Not on the page", page_number=1)
    document = read(bytes_of(writer))
    assert [(b.kind, b.headings) for b in document.blocks] == [
        ("heading", ("1 Introduction",)),
        ("paragraph", ("1 Introduction",)),
        ("heading", ("1 Introduction", "1.1 Flour")),
        ("paragraph", ("1 Introduction", "1.1 Flour")),
        ("heading", ("2. Ovens",)),
        ("paragraph", ("2. Ovens",)),
    ]


def test_no_page_with_text_is_an_error(library: str) -> None:
    scan = with_contents(b"q 600 0 0 800 0 0 cm /I Do Q")
    scan.add_page(scan.pages[0])
    hint = "; index --ocr eng may read it"
    scanned = f"no text layer: scanned or image only (2 pages){hint}"
    blank = "no text: nothing is drawn on it (2 pages)" if library == "pypdfium2" else scanned
    for writer, message in ((scan, scanned), (writer_of([[], []]), blank)):
        with pytest.raises(UnreadableFile) as caught:
            read(bytes_of(writer))
        assert (caught.value.kind, caught.value.message) == ("no_text", message)
        assert not caught.value.skip


def test_encryption() -> None:
    open_to_all = writer_of([["open to all"]])
    open_to_all.encrypt("", owner_password="owner", algorithm="AES-256")
    assert read(bytes_of(open_to_all)).text == "open to all"
    closed = writer_of([["closed"]])
    closed.encrypt("secret", algorithm="AES-128")
    with pytest.raises(UnreadableFile) as caught:
        read(bytes_of(closed))
    assert caught.value.kind == "password"


def test_a_broken_page_does_not_take_the_others_with_it() -> None:
    writer = writer_of([["sound"], ["broken"]])
    contents = writer.pages[1]["/Contents"]
    contents[NameObject("/Filter")] = NameObject("/LZWDecode")
    contents.set_data(b"\xff\xff\xff no such code")
    document = read(bytes_of(writer))
    assert document.text == "sound"
    assert [(kind, page) for kind, _, page in document.problems] == [("corrupt", "2")]


def test_a_page_that_one_library_cannot_read(library: str) -> None:
    writer = writer_of([["sound"], ["odd"]])
    writer.pages[1]["/Contents"][NameObject("/Filter")] = NameObject("/NoSuchFilter")
    document = read(bytes_of(writer))
    if library == "pypdf":
        assert [(kind, page) for kind, _, page in document.problems] == [("corrupt", "2")]
    else:
        assert (document.text, document.problems) == ("sound\n\nodd", ())


PAGES = b"<</Type/Pages/Count %d/Kids[%s]>>"
PAGE = (
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
)
TEXT = b"BT /F 9 Tf 1 1 Td (needle) Tj ET"
PLAIN = b"<</Length %d>>stream\n%s\nendstream" % (len(TEXT), TEXT)
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


@pytest.mark.parametrize(
    ("count", "kids"),
    [(2, b"2 0 R 3 0 R"), (2, b"3 0 R 2 0 R"), (2**31 - 1, b"3 0 R")],
)
def test_page_trees_that_loop_or_lie_end(count: int, kids: bytes, library: str) -> None:
    tree = PAGES % (count, kids)
    data = file_of(b"<</Type/Catalog/Pages 2 0 R>>", tree, PAGE, PLAIN, FONT)
    try:
        document = read(data)
    except UnreadableFile as error:
        assert (error.kind, library) == ("corrupt", "pypdf")
    else:
        assert document.text == "needle"


def test_a_file_without_its_table_is_read_all_the_same() -> None:
    data = file_of(b"<</Type/Catalog/Pages 2 0 R>>", PAGES % (1, b"3 0 R"), PAGE, PLAIN, FONT)
    assert (
        read(data.partition(b"xref")[0] + b"trailer<</Root 1 0 R>>\nstartxref\n0\n%%EOF").text
        == "needle"
    )


def test_accents_that_stand_apart_come_to_their_letters() -> None:
    commands = (
        b"BT /F1 12 Tf 50 750 Td (Sch) Tj [(\310) 400] TJ (utze, H., and) Tj 0 -14 Td (more) Tj ET"
    )
    assert read(bytes_of(with_contents(commands))).text == "Schütze, H., and\nmore"


def test_the_library_that_is_right_for_a_page(
    monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    """PDFium's text counts, but for Arabic and for pages of glyphs without a meaning."""
    pages = [  # what PDFium and pypdf say, and which of them counts
        ("words", "other", "words"),
        ("ةيبرعلا ةغللا", "اللغة العربية", "اللغة العربية"),
        ("\x01\x02\x03 fine", "all fine", "all fine"),
        ("wor d s i n p iece s, t wo", "words in pieces, two", "words in pieces, two"),
        ("x = a + b, y = c", "x=a+b, y=c", "x = a + b, y = c"),
        ("ةيبرعلا", "ا", "ةيبرعلا"),
    ]
    data = bytes_of(writer_of([["page"] for _ in pages]))
    monkeypatch.setattr(pdf.PdfiumFile, "text", lambda _, index: pages[index][0])
    monkeypatch.setattr(pdf.PypdfFile, "text", lambda _, index: pages[index][1])
    right = [page[2] if library == "pypdfium2" else page[1] for page in pages]
    assert read(data).text.split("\n\n") == right
    monkeypatch.setattr(pdf, "_SECOND_LOOKS", 1)
    if library == "pypdfium2":
        assert read(data).text.split("\n\n")[:3] == [*right[:2], "fine"]


def test_a_picture_with_little_text_is_told(library: str) -> None:
    over = b"q 600 0 0 700 0 0 cm /I Do Q BT /F1 12 Tf 50 750 Td (Received 7 May) Tj ET"
    small = b"q 100 0 0 100 0 0 cm /I Do Q BT /F1 12 Tf 50 750 Td (Received 7 May) Tj ET"
    document = read(bytes_of(with_contents(over)))
    assert document.text == "Received 7 May"
    message = "12 letters and digits beside an image over 88% of the page"
    told = [("little_text", message, "1")] if library == "pypdfium2" else []
    assert list(document.problems) == told
    assert read(bytes_of(with_contents(small))).problems == ()


def test_glyphs_without_a_meaning_are_told() -> None:
    document = read(bytes_of(with_contents(b"BT /F1 9 Tf 9 9 Td (\001 sound \003 words) Tj ET")))
    (problem,) = document.problems
    assert problem[0] == "unmapped"
    assert problem[1].startswith("2 of ")
    assert document.text.split() == ["sound", "words"]


def test_many_pages_take_no_long() -> None:
    """A flat tree of two thousand pages that share their content."""
    pages = 2000
    kids = b"3 0 R " * pages
    data = file_of(b"<</Type/Catalog/Pages 2 0 R>>", PAGES % (pages, kids), PAGE, PLAIN, FONT)
    document = read(data)
    assert len(document.pages) == pages
    assert document.text.count("needle") == pages


def test_a_stream_that_unfolds_is_no_longer_than_its_words() -> None:
    packed = zlib.compress(b" " * 5_000_000 + TEXT)
    stream = b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(packed), packed)
    data = file_of(b"<</Type/Catalog/Pages 2 0 R>>", PAGES % (1, b"3 0 R"), PAGE, stream, FONT)
    assert read(data).text == "needle"


@pytest.mark.parametrize("data", [b"", b"plain text", b"%PDF-1.4\n", b"%PDF-1.7\n" + b"\0" * 500])
def test_what_is_no_pdf(data: bytes) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read(data)
    assert caught.value.kind in ("corrupt", "no_text")


@given(st.data())
def test_damaged_files_are_read_or_refused(data: st.DataObject) -> None:
    sound = bytearray(bytes_of(writer_of([["some words"], ["more words"]])))
    for _ in range(data.draw(st.integers(1, 20))):
        sound[data.draw(st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
    try:
        document = read(bytes(sound))
    except UnreadableFile as error:
        assert error.kind in ("corrupt", "no_text", "password")
    else:
        document.text.encode("utf-8")


def test_pypdf_is_silent(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    data = bytes_of(writer_of([["words"]]))
    assert read(data.replace(b"startxref\n", b"startxref\n9")).text == "words"
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert not recwarn.list


@pytest.mark.parametrize(
    ("page", "cleaned"),
    [
        ("the ﬁrst eﬀect of ﬂour", "the first effect of flour"),
        ("an ob-\njective func-\ntion here", "an objective\nfunction\nhere"),
        ("a state-of-\nthe-art model", "a state-of-the-art\nmodel"),
        ("he met Chen-\nLi there", "he met Chen-Li\nthere"),
        ("LLaMA-\n65B is", "LLaMA-65B\nis"),
        ("soft\xad\nware and co\xadoperate", "software\nand cooperate"),
        ("pre-\ntrain it; a pre-train step", "pre-train\nit; a pre-train step"),
        ("in-\nter-\nna-\ntional, yes", "international,\nyes"),
        ("page ends with a hy-", "page ends with a hy-"),
        ("\uf0b7 item\x00\x07 one\xa0two", "• item one two"),
        ("\ud83d\ude00 and \ufefb", "😀 and لا"),
        ("Sch¨utze, Garc´ıa, ˇCech, da´s, d´accord", "Schütze, García, Čech, da´s, d´accord"),
    ],
)
def test_cleaning(page: str, cleaned: str) -> None:
    assert clean_pages([page]) == [cleaned]


def test_the_document_decides_about_hyphens() -> None:
    broken = "we fine-\ntune and re-\nsearch"
    assert clean_pages([broken])[0] == "we finetune\nand research\n".strip()
    assert clean_pages([broken, "they fine-tune it"])[0] == "we fine-tune\nand research"


@given(st.lists(st.text(st.sampled_from("ab-\n \xad.•AB1ﬁ")), max_size=4))
def test_cleaning_loses_no_letters(pages: list[str]) -> None:
    def letters(text: str) -> list[str]:
        return [char for char in text.replace("ﬁ", "fi") if char.isalnum()]

    for before, after in zip(pages, clean_pages(pages), strict=True):
        assert letters(before) == letters(after)


@given(st.text(st.sampled_from("ab .\n•-1)A"), max_size=80), st.sampled_from([{}, {"a": 1}]))
def test_blocks_of_a_page_cover_it(text: str, titles: dict[str, int]) -> None:
    end = 0
    for start, stop, kind, level in page_blocks(text, titles):
        assert end <= start < stop
        assert not text[end:start].strip()
        assert (level is not None) == (kind == "heading")
        end = stop
    assert not text[end:].strip()


def test_paragraphs_end_where_a_sentence_ends_a_short_line() -> None:
    text = (
        "The first paragraph is set in lines of about\nthe same length, as books have it, and\n"
        "then it ends.\nThe second paragraph begins without any\nblank line and has an item:\n"
        "• the item goes on over\nmore than one line"
    )
    blocks = [(kind, text[start:end].split()[1]) for start, end, kind, _ in page_blocks(text, {})]
    assert blocks == [("paragraph", "first"), ("paragraph", "second"), ("item", "the")]


def test_unmapped_glyphs_are_counted() -> None:
    assert count_unmapped("a (cid:12)(cid:3) /G12 \ufffd \ue001 b/Gap\r\n\x0c\uf0b7") == 5
    assert count_unmapped("\x01\x7f\x90") == 3
    assert is_doubtful("\x01 fine") and not is_doubtful("\x01" + " fine" * 30)
    assert is_doubtful("Schutze and ¨\nmore") and not is_doubtful("Sch¨utze")
    assert is_doubtful("كتاب") and not is_doubtful("ספר")
    assert outline_key("2.1  Pre-Training") == outline_key("Pre-training") == "pretraining"
