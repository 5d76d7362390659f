"""PDF: pages, labels, headings of the outline, text made readable, what cannot be read."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from ragcli.corpus.readers import read_document
from ragcli.corpus.readers.pdf_text import clean_pages, count_unmapped, outline_key, page_blocks
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document


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


def bytes_of(writer: pypdf.PdfWriter) -> bytes:
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def read(data: bytes, name: str = "a.pdf") -> Document:
    (document,) = read_document(Source(name, data))
    return document


def test_pages_and_labels() -> None:
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
    assert document.problems == (("no_text", "the page has no text", "ii"),)


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


def test_no_page_with_text_is_an_error() -> None:
    with pytest.raises(UnreadableFile) as caught:
        read(bytes_of(writer_of([[], []])))
    assert caught.value.kind == "no_text"
    assert caught.value.message == "no text layer: scanned or image only (2 pages)"
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
    contents[NameObject("/Filter")] = NameObject("/NoSuchFilter")
    document = read(bytes_of(writer))
    assert document.text == "sound"
    assert [(kind, page) for kind, _, page in document.problems] == [("corrupt", "2")]


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
    assert count_unmapped("a (cid:12)(cid:3) /G12 \ufffd \ue001 b/Gap") == 5
    assert outline_key("2.1  Pre-Training") == outline_key("Pre-training") == "pretraining"
