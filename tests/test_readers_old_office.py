"""RTF, the office formats before 2007, Outlook messages, mailboxes, and names that lie."""

from __future__ import annotations

import io
import struct
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.corpus.code_pages import code_page_codec, narrow_text
from ragcli.corpus.readers import READERS, doc, read_document
from ragcli.corpus.readers.compound import root_entries
from ragcli.corpus.readers.kinds import kind_by_content
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
END, FREE = 0xFFFFFFFE, 0xFFFFFFFF


def compound(*names: str, embedded: Sequence[str] = (), text: bytes = b"") -> bytes:
    """A compound file with streams of these names, a folder that holds others, and a text.

    Each stream is 4,096 bytes that begin with `text`.
    """
    embedded = tuple(embedded)
    count = 1 + len(names) + bool(embedded) + len(embedded)
    rows = -(-count // 4)  # sectors of the directory, after which the streams come

    def entry(number: int, name: str, kind: int, child: int = FREE, beside: int = FREE) -> bytes:
        start, size = (END, 0) if kind != 2 else (1 + rows + 8 * number, 4096)
        coded = name.encode("utf-16-le") + b"\0\0"
        head = coded.ljust(64, b"\0") + struct.pack("<HBB", len(coded), kind, 1)
        return head + struct.pack("<3I36xIQ", FREE, beside, child, start, size)

    folder = 1 + len(names)
    top = [*names, "Pool"] if embedded else list(names)
    entries = [entry(0, "Root Entry", 5, child=1 if top else FREE)]
    for at, name in enumerate(top, 1):
        beside = at + 1 if at < len(top) else FREE
        child = folder + 1 if at == folder else FREE
        entries.append(entry(at, name, 1 if at == folder else 2, child, beside))
    for at, name in enumerate(embedded, folder + 1):
        entries.append(entry(at, name, 2, beside=at + 1 if at < folder + len(embedded) else FREE))
    entries += [bytes(128)] * (-len(entries) % 4)
    chains = [0xFFFFFFFD, *range(2, 1 + rows), END]
    for _ in range(count):
        first = len(chains)
        chains += [*range(first + 1, first + 8), END]
    chains += [FREE] * (128 - len(chains))
    header = COMPOUND + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<9I", 0, 1, 1, 0, 4096, END, 0, END, 0)
    header += struct.pack("<109I", 0, *[FREE] * 108)
    content = text.ljust(4096, b"\0") * count
    return header + struct.pack("<128I", *chains) + b"".join(entries) + content


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


def test_rtf_joins_the_halves_of_characters_everywhere() -> None:
    smile = rb"\u-10179?\u-8704?"
    data = rb"{\rtf1{\info{\title T%b}}{\header H%b}{\footnote N%b}B%b\par}" % ((smile,) * 4)
    document = read(data, "a.rtf")
    assert document.title == "T\U0001f600"
    assert [text for _, text in shown(document)] == ["N\U0001f600B\U0001f600", "H\U0001f600"]


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
    assert doc._text(word(text, narrow=narrow), None) == text


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
            return type("Metadata", (), {"title": b"Handbook", "codepage": None})

    monkeypatch.setattr(olefile, "OleFileIO", Opened)
    document = read(compound("WordDocument"), "a.doc")
    assert document.title == "Handbook"
    assert shown(document) == [("paragraph", "A link.\nNext"), ("table", "part | price")]


TITLE = "Отчёт"


@pytest.mark.parametrize(
    ("title", "code_page", "read_as"),
    [
        (TITLE.encode("cp1251"), 1251, TITLE),
        (TITLE.encode("utf-8"), 65001 - 65536, TITLE),  # as olefile gives it
        (b"\x81\x8d\x8f\x90\x9d\xff\xfe", None, None),  # nothing that can be guessed
        (b"\x01\x02\x03\x04\x05\x06", 1252, None),
        (TITLE.encode("cp1251"), 31999, None),  # no such code page
    ],
)
def test_the_title_is_in_the_declared_code_page_and_ends_no_document(
    title: bytes, code_page: int | None, read_as: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    olefile = pytest.importorskip("olefile")

    class Opened(Compound):
        def __init__(self, data: Any) -> None:
            super().__init__(**word("The text.").streams)

        def __enter__(self) -> Opened:
            return self

        def __exit__(self, *_: object) -> None: ...

        def get_metadata(self) -> Any:
            return type("Metadata", (), {"title": title, "codepage": code_page})

    monkeypatch.setattr(olefile, "OleFileIO", Opened)
    document = read(compound("WordDocument"), "a.doc")
    assert document.text == "The text."
    assert read_as in (None, document.title)


def test_word_95_is_read_in_its_code_page() -> None:
    text = "Отчёт за май.\r\x13\x14\x15\x01\x07"
    coded = text.encode("cp1251")
    body = bytearray(64)
    struct.pack_into("<HH", body, 0, 0xA5EC, 0x68)
    struct.pack_into("<II", body, 0x18, 64, 64 + len(coded))
    assert doc._text(Compound(WordDocument=bytes(body) + coded), 1251) == text


@given(st.binary(max_size=200), st.none() | st.integers(0, 65535))
def test_text_in_eight_bits_never_fails(data: bytes, code_page: int | None) -> None:
    assert isinstance(narrow_text(data, code_page), str)


@pytest.mark.parametrize(
    ("number", "codec"),
    [(1251, "cp1251"), (932, "cp932"), (936, "gb18030"), (65001, "utf-8"), (28592, "iso8859_2")],
)
def test_code_pages(number: int, codec: str) -> None:
    assert code_page_codec(number) == codec


def test_old_word_documents_with_a_password() -> None:
    with pytest.raises(UnreadableFile) as caught:
        doc._text(word("text", flags=0x0100), None)
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


def test_a_paragraph_that_begins_with_from_is_no_new_message() -> None:
    lines = [
        b"From here the road goes west.",
        b"From Monday on we are closed; on Mon at 10:30 as well.",
        b"From Jan 1 10:00 2024 it is open.",
        b"From Mon Jan 1 10:00:00 2024 onwards it is open.",
    ]
    body = b"\n\n".join(lines)
    data = b"From me Mon Jan  1 00:00:00 2024\nSubject: One\n\nfirst\n\n" + body + b"\n\n"
    data += b"From you@x.org Tue Jan  2 10:00:00 2024\nSubject: Two\n\nsecond\n"
    documents = read_document(Source("a.mbox", data))
    assert [(d.record, d.title) for d in documents] == [("1", "One"), ("2", "Two")]
    assert all(line.decode() in documents[0].text for line in lines)
    assert all(line.decode() not in documents[1].text for line in lines)


@pytest.mark.parametrize(
    "line",
    [
        "From - Mon Jan  1 00:00:00 2024",
        "From  MAILER-DAEMON Fri Jul  8 12:08:34 2011",
        "From ???@??? Mon Jan 01 00:00:00 2024",
        "From 17@xxx Mon Jan 01 00:00:00 +0000 2024",
        "From a@b.c Mon Jan  1 00:00 CET 2024",
        "From user at b.c  Mon Jan  1 00:00:00 2024 +0100",
        "From a@b.c Mon, 1 Jan 2024 00:00:00 +0000",
        "From a@b.c Mon Jan  1 00:00:00 2024 remote from host",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_lines_that_divide_mailboxes(line: str, end: str) -> None:
    message = end.join([line, "Subject: x", "", "text", "", ""])
    documents = read_document(Source("a.mbox", (message * 3).encode()))
    assert [(d.record, d.title) for d in documents] == [("1", "x"), ("2", "x"), ("3", "x")]


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
    assert refused(compound(stream), name)[0] == kind


@pytest.mark.parametrize(
    ("names", "embedded", "text", "suffix"),
    [
        (["WordDocument"], ["PowerPoint Document", "Workbook"], "", ".doc"),
        (["Workbook"], ["EncryptedPackage"], "EncryptedPackage", ".xls"),
        (["__properties_version1.0"], ["WordDocument"], "", ".msg"),
        (["PowerPoint Document"], ["WordDocument", "Workbook"], "", ".ppt"),
        (["1Table", "Data", "Third", "\x05SummaryInformation", "WordDocument"], [], "", ".doc"),
        (["Contents"], ["WordDocument"], "WordDocument", None),
    ],
)
def test_what_a_compound_file_embeds_or_says_is_not_its_kind(
    names: list[str], embedded: list[str], text: str, suffix: str | None
) -> None:
    olefile = pytest.importorskip("olefile")
    data = compound(*names, embedded=embedded, text=text.encode("utf-16-le"))
    assert kind_by_content(data) == suffix
    with olefile.OleFileIO(io.BytesIO(data)) as file:  # the oracle
        top = {path[0] for path in file.listdir(streams=True, storages=True)}
    assert root_entries(data) == {name.lower() for name in top}
    assert top == {*names, *(["Pool"] if embedded else [])}


@given(st.data())
def test_damaged_compound_files_end(data: st.DataObject) -> None:
    whole = bytearray(compound("WordDocument", "1Table", embedded=["Workbook"]))
    for place in data.draw(st.lists(st.integers(8, 2047), max_size=6)):
        whole[place] = data.draw(st.integers(0, 255))
    root_entries(bytes(whole[: data.draw(st.integers(8, len(whole)))]))


def test_what_is_not_supported_says_what_would_be() -> None:
    assert refused(b"\0\1\2", "a.ppt") == (
        "unsupported",
        ".ppt files are not supported: save it as .pptx",
    )
    for name in ("a.doc", "a.xls"):
        kind, message = refused(bytes(range(256)), name)
        assert (kind, message[-5:]) == ("unsupported", f"{name[1:]}x")
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
    kind, message = refused(compound(stream), name)
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
    document = read(compound("__properties_version1.0"), "a.msg")
    assert document.title == "Ovens"
    assert [text for _, text in shown(document)] == [
        "Subject: Ovens\nFrom: Müller\nDate: Mon, 1 Jan 2024",
        "They are hot.",
    ]
    assert document.problems == (("attachment", "attachment 'a.zip' was not read", None),)


@pytest.mark.parametrize("declared", [True, False])
def test_outlook_messages_in_a_code_page(declared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short properties in eight bits are read by the number that the message has for them."""
    olefile = pytest.importorskip("olefile")
    numbers = struct.pack("<IIII", 0x3FFD0003, 6, 1251, 0) + struct.pack(
        "<IIII", 0x3FDE0003, 6, 20866, 0
    )
    streams = {
        "__properties_version1.0": bytes(32) + (numbers if declared else b""),
        "__substg1.0_0037001E": TITLE.encode("cp1251"),
        "__substg1.0_0C1A001E": b"\x81\x8d\x8f\x90\x9d\xff\xfe",
        "__substg1.0_10130102": f"<p>{TITLE}</p>".encode("koi8_r"),
        "__substg1.0_007D001E": b"\x01\x02\x03\x04\x05\x06",
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
            return []

    monkeypatch.setattr(olefile, "OleFileIO", Opened)
    document = read(compound("__properties_version1.0"), "a.msg")
    if declared:
        assert document.title == TITLE
        assert [text for _, text in shown(document)][-1] == TITLE
    else:
        assert document.title
