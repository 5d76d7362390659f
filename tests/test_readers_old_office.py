"""RTF, the office formats before 2007, Outlook messages, mailboxes, and names that lie."""

from __future__ import annotations

import io
import struct
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.corpus.readers import READERS, doc, read_document
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def read(data: bytes, name: str) -> Document:
    (document,) = read_document(Source(name, data))
    return document


def shown(document: Document) -> list[tuple[str, str]]:
    return [(b.kind, document.text[b.start : b.end]) for b in document.blocks]


def refused(data: bytes, name: str) -> tuple[str, str]:
    with pytest.raises(UnreadableFile) as caught:
        read_document(Source(name, data))
    return caught.value.kind, caught.value.message


def test_rtf() -> None:
    data = rb"""{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}{\f1\fcharset204 Arial Cyr;}}
{\stylesheet{\s1 heading 1;}{\s2\snext0 heading 2;}}{\info{\title The Handbook}{\author me}}
{\header\pard Secret\par}{\footer\pard 7\par}
\pard\s1 Ovens\par\pard They are \b hot\b0 , na\'efve \u8364? \emdash  \ldblquote so\rdblquote.\par
{\listtext\'b7\tab}\pard\ls1 clean it\par
\trowd\pard\intbl part\par more\cell price\cell\row\pard\intbl door\cell 40\cell\row
\pard{\f1 \'ef\'f0\'e8}{\*\unknown gone}{\field{\*\fldinst HYPERLINK "x"}{\fldrslt link}}
{\deleted old}{\pict 0123abcd}{\bin3 }}}}{\footnote A note.}\par
\pard\s2 Care\par \uc2\u-10179\'5f\'5f\u-8704\'5f\'5f\par}"""
    document = read(data, "a.rtf")
    assert document.title == "The Handbook"
    assert shown(document) == [
        ("heading", "Ovens"),
        ("paragraph", "They are hot, naïve € — “so”."),
        ("item", "clean it"),
        ("table", "part more | price"),
        ("table", "door | 40"),
        ("paragraph", "приlinkA note."),
        ("heading", "Care"),
        ("heading", "\U0001f600"),
        ("other", "Secret"),
    ]
    assert document.problems == ()


def test_rtf_that_is_cut_off_is_read_and_named() -> None:
    document = read(rb"{\rtf1 first\par second", "a.rtf")
    assert shown(document) == [("paragraph", "first"), ("paragraph", "second")]
    assert document.problems == (("corrupt", "damaged RTF: it ends within a group", None),)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"])))
def test_rtf_gives_back_every_character(text: str) -> None:
    units = struct.iter_unpack("<h", text.encode("utf-16-le"))
    coded = "".join(f"\\u{unit}?" for (unit,) in units)
    assert read(f"{{\\rtf1 {coded}}}".encode(), "a.rtf").text == text


@given(st.binary(max_size=300))
def test_rtf_of_any_bytes_ends(data: bytes) -> None:
    source = Source("a.rtf", b"{\\rtf1 " + data)
    for document in read_document(source):
        document.text.encode("utf-8")


class Compound:
    """A compound file in memory, as olefile shows one."""

    def __init__(self, **streams: bytes) -> None:
        self.streams = streams

    def openstream(self, name: str) -> io.BytesIO:
        return io.BytesIO(self.streams[name])


def word(text: str, *, flags: int = 0, narrow: bool = False) -> Compound:
    """A Word document whose text lies in two pieces, the second before the first."""
    half = len(text) // 2
    body = bytearray(2048)
    struct.pack_into("<HH", body, 0, 0xA5EC, 0xC1)
    struct.pack_into("<H", body, 0x0A, flags)
    pieces = [text[half:], text[:half]]
    places = []
    for piece in pieces:
        coded = piece.encode("cp1252" if narrow else "utf-16-le")
        places.append((len(body) * 2) | 0x40000000 if narrow else len(body))
        body += coded
    table = struct.pack("<3I", 0, half, len(text))
    table += b"".join(struct.pack("<HIH", 0, place, 0) for place in reversed(places))
    clx = b"\x01" + struct.pack("<h", 3) + b"abc" + b"\x02" + struct.pack("<I", len(table)) + table
    struct.pack_into("<II", body, 0x01A2, 5, len(clx))
    return Compound(**{"WordDocument": bytes(body), "0Table": b"12345" + clx})


@pytest.mark.parametrize("narrow", [True, False])
def test_old_word_documents_are_put_together_from_their_pieces(narrow: bool) -> None:
    text = "First – paragraph.\rpart\x07price\x07\x07door\x0740 €\x07\x07\rLast"
    assert doc._text(word(text, narrow=narrow)) == text


def test_old_word_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    olefile = pytest.importorskip("olefile")

    class Opened(Compound):
        def __init__(self, data: Any) -> None:
            super().__init__(
                **word("A \x13 HYPERLINK x \x14link\x15.\x0bNext\rpart\x07price\x07\x07").streams
            )

        def __enter__(self) -> Opened:
            return self

        def __exit__(self, *_: object) -> None: ...

        def get_metadata(self) -> Any:
            return type("Metadata", (), {"title": b"Handbook"})

    monkeypatch.setattr(olefile, "OleFileIO", Opened)
    document = read(COMPOUND + "WordDocument".encode("utf-16-le"), "a.doc")
    assert document.title == "Handbook"
    assert shown(document) == [("paragraph", "A link.\nNext"), ("table", "part | price")]


def test_old_word_documents_with_a_password() -> None:
    with pytest.raises(UnreadableFile) as caught:
        doc._text(word("text", flags=0x0100))
    assert caught.value.kind == "password"


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("<HH", kind, len(body)) + body


def test_old_workbooks() -> None:
    pytest.importorskip("xlrd")

    def label(row: int, column: int, text: bytes) -> bytes:
        return record(0x04, struct.pack("<HH3xB", row, column, len(text)) + text)

    data = record(0x09, struct.pack("<HH", 2, 0x10)) + label(0, 0, b"part") + label(0, 1, b"price")
    data += (
        label(1, 0, b"door") + record(0x03, struct.pack("<HH3xd", 1, 1, 40.0)) + record(0x0A, b"")
    )
    document = read(data, "a.xls")
    assert document.kind == "xls"
    assert [text for _, text in shown(document)][1:] == ["part | price", "part: door | price: 40"]


MAILBOX = b"""From me Mon Jan  1 00:00:00 2024
Subject: One
From: me@example.org

first
>From here on

From you Mon Jan  1 00:00:01 2024
Subject: Two

second
"""


def test_mailboxes() -> None:
    documents = read_document(Source("a.mbox", MAILBOX))
    assert [(d.record, d.title) for d in documents] == [("1", "One"), ("2", "Two")]
    assert "From here on" in documents[0].text
    assert ">From" not in documents[0].text
    assert "second" in documents[1].text
    assert refused(b"no mailbox", "a.mbox")[0] == "corrupt"


def test_a_web_page_saved_as_one_file() -> None:
    data = (
        b"From: <Saved>\r\nSubject: Page\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;"
        b' boundary="b"\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>Hello there</p>'
        b"\r\n--b--\r\n"
    )
    for name in ("a.mht", "a.mhtml", "a.doc", "saved"):
        assert "Hello there" in read(data, name).text


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.doc", b"{\\rtf1 Hello there}", "rtf"),
        ("a.doc", b"<html><p>Hello there</p></html>", "html"),
        ("a.doc", b"\xef\xbb\xbf\n<!DOCTYPE html><p>Hello there</p>", "html"),
        ("a.doc", b"Hello there", "text"),
        ("a.docx", b"{\\rtf1 Hello there}", "rtf"),
        ("a.xls", b"<table><tr><td>Hello there</td></tr></table>", "html"),
        ("a.xls", b"greeting\tto\nHello there\tyou\n", "record"),
        ("a.xls", b"<?xml version='1.0'?><Workbook><Data>Hello there</Data></Workbook>", "xml"),
        ("page", b"<html><p>Hello there</p></html>", "html"),
        ("letter.unheard-of", b"{\\rtf1 Hello there}", "rtf"),
    ],
)
def test_the_content_counts_where_names_lie(name: str, data: bytes, kind: str) -> None:
    document = read(data, name)
    assert document.kind == kind
    assert "Hello there" in document.text


@pytest.mark.parametrize(
    ("name", "stream", "kind"),
    [
        ("a.docx", "EncryptedPackage", "password"),
        ("a.xls", "EncryptedPackage", "password"),
        ("a.doc", "PowerPoint Document", "unsupported"),
        ("a.ppt", "PowerPoint Document", "unsupported"),
        ("a.key", "", "unsupported"),
    ],
)
def test_compound_files_are_told_by_their_streams(name: str, stream: str, kind: str) -> None:
    assert refused(COMPOUND + b"\0" * 512 + stream.encode("utf-16-le"), name)[0] == kind


def test_what_is_not_supported_says_what_would_be() -> None:
    assert refused(b"\0\1\2", "a.ppt") == (
        "unsupported",
        ".ppt files are not supported: save it as .pptx",
    )
    assert refused(bytes(range(256)), "a.doc")[0] == "unsupported"
    for suffix in (".ppt", ".pages", ".mobi", ".djvu", ".ps"):
        with pytest.raises(UnreadableFile, match="not supported: save it as"):
            list(READERS[suffix](Source(f"a{suffix}", b"")))


@pytest.mark.parametrize(
    ("name", "stream", "library"),
    [
        ("a.doc", "WordDocument", "olefile"),
        ("a.msg", "__properties_version1.0", "olefile"),
        ("a.xls", "Workbook", "xlrd"),
    ],
)
def test_a_missing_library_is_named(
    name: str, stream: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    kind, message = refused(COMPOUND + stream.encode("utf-16-le"), name)
    assert (kind, message) == (
        "missing_extra",
        'needs the office extra: pip install "ragcli[office]"',
    )


def test_outlook_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    olefile = pytest.importorskip("olefile")
    streams = {
        "__substg1.0_0037001F": "Ovens".encode("utf-16-le"),
        "__substg1.0_0C1A001E": b"M\xfcller",
        "__substg1.0_007D001F": "X: y\r\nDate: Mon, 1 Jan 2024\r\n".encode("utf-16-le"),
        "__substg1.0_10130102": b"<html><p>They are hot.</p></html>",
        "__attach_1/__substg1.0_3707001F": "a.zip".encode("utf-16-le"),
    }

    class Opened(Compound):
        def __init__(self, data: Any) -> None:
            super().__init__(**streams)

        def __enter__(self) -> Opened:
            return self

        def __exit__(self, *_: object) -> None: ...

        def exists(self, name: str) -> bool:
            return name in self.streams

        def listdir(self, **_: object) -> list[list[str]]:
            return [["__attach_1"], ["__recip_1"]]

    monkeypatch.setattr(olefile, "OleFileIO", Opened)
    document = read(COMPOUND + "__properties_version1.0".encode("utf-16-le"), "a.msg")
    assert document.title == "Ovens"
    assert [text for _, text in shown(document)] == [
        "Subject: Ovens\nFrom: Müller\nDate: Mon, 1 Jan 2024",
        "They are hot.",
    ]
    assert document.problems == (("attachment", "attachment 'a.zip' was not read", None),)
