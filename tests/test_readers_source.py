"""How bytes become text: encodings, byte order marks, binary content, replaced bytes."""

from __future__ import annotations

import codecs
import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.corpus.source import Source, lines_of, suffix_of
from ragcli.errors import UnreadableFile

TEXTS = {
    "german": "Die Prüfung der Öfen führt der Meister selbst durch, mit größter Sorgfalt. Übung!",
    "french": "L'été dernier, la garçonnière était fermée à cause d'un problème très gênant.",
    "spanish": "El niño comió piña mañana; ¿cuándo volverá la señora a la estación?",
    "polish": "Zażółć gęślą jaźń. Wszyscy ludzie rodzą się wolni i równi w swej godności.",
    "czech": "Příliš žluťoučký kůň úpěl ďábelské ódy. Všichni lidé rodí se svobodní.",
    "turkish": "İstanbul'da yaşayan kişiler için ulaşım seçenekleri ışıklandırıldı; güzel bir gün.",
    "russian": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "hebrew": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "chinese": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心。",
    "taiwanese": "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心。",
    "japanese": "すべての人間は、生まれながらにして自由であり、尊厳と権利とについて平等である。",
    "korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
}
LEGACY = [
    *(("german", e) for e in ("cp1252", "iso8859-15", "mac_roman")),
    *(("french", e) for e in ("cp1252", "iso8859-1", "mac_roman")),
    *(("spanish", e) for e in ("cp1252", "mac_roman")),
    *(("polish", e) for e in ("cp1250", "iso8859-2")),
    *(("czech", e) for e in ("cp1250", "iso8859-2")),
    ("turkish", "cp1254"),
    *(("russian", e) for e in ("cp1251", "koi8-r", "iso8859-5", "cp866")),
    *(("greek", e) for e in ("cp1253", "iso8859-7")),
    ("hebrew", "cp1255"),
    *(("chinese", e) for e in ("gbk", "gb18030")),
    ("taiwanese", "big5"),
    *(("japanese", e) for e in ("shift_jis", "euc_jp", "iso2022_jp")),
    ("korean", "euc_kr"),
]


def text_of(data: bytes) -> str:
    return Source("file.txt", data).text()


@pytest.mark.parametrize(("language", "encoding"), LEGACY)
def test_legacy_encodings_are_recognised(language: str, encoding: str) -> None:
    text = TEXTS[language]
    assert text_of(text.encode(encoding)) == text
    page = f"# {text}\n\nSome English words, a [link](https://example.org/a_b) and `code`.\n" * 3
    assert text_of(page.encode(encoding)) == page


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])))
def test_utf8_comes_back_as_it_is_without_detection(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "charset_normalizer", None)
        assert text_of(text.encode("utf-8")) == text.removeprefix("\ufeff")
        assert text_of(codecs.BOM_UTF8 + text.encode("utf-8")) == text


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_byte_order_marks_tell_the_encoding(text: str) -> None:
    for mark, encoding in (
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ):
        assert text_of(mark + text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("language", ["german", "french"])
def test_plain_utf16_and_utf32_need_no_mark(language: str, encoding: str) -> None:
    assert text_of(TEXTS[language].encode(encoding)) == TEXTS[language]


def test_line_ends_stay_as_they_are() -> None:
    text = "one\r\ntwo\rthree\nfour\u2028still four\x0cand\x85still\r\n"
    assert text_of(text.encode()) == text
    assert lines_of(text) == io.StringIO(text, newline="").readlines()
    assert len(lines_of(text)) == 4


@given(st.binary(max_size=400))
def test_bytes_decode_or_are_refused(data: bytes) -> None:
    source = Source("file.txt", data)
    try:
        text = source.text()
    except UnreadableFile as error:
        assert error.kind in ("binary", "decode")
        assert error.skip
    else:
        text.encode("utf-8")


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + b"text" * 20,
        b"PK\x03\x04" + b"words " * 50,
        b"\x7fELF\x02\x01\x01" + b"a" * 100,
        b"\x80\x04\x95 pickled words",
        bytes(range(256)) * 8,
        b"\0\1\2\3" * 100,
        b"member.txt".ljust(257, b"\0") + b"ustar\x0000" + b"text in a tar" * 50,
    ],
)
def test_binary_content_is_skipped(data: bytes) -> None:
    with pytest.raises(UnreadableFile) as caught:
        text_of(data)
    assert (caught.value.kind, caught.value.skip) == ("binary", True)


def test_a_text_may_hold_a_zero_byte_and_colours() -> None:
    assert text_of(b"before \0 after") == "before \0 after"
    assert text_of(b"\x1b[31mred\x1b[0m log line\n" * 5).startswith("\x1b[31mred")


def test_bad_bytes_in_utf8_are_replaced_and_counted() -> None:
    source = Source("notes.txt", b"cardamom \xff\xfe\xc3\x28 then juniper\n")
    assert source.text() == "cardamom \ufffd\ufffd\ufffd( then juniper\n"
    assert source.problems == [("replaced", "3 bytes that are not UTF-8 were replaced", None)]
    cut = Source("cut.csv", "مرحبا بالعالم, مرحبا".encode()[:-1])
    assert cut.text().endswith("\ufffd")
    assert cut.problems == [("replaced", "1 byte that is not UTF-8 was replaced", None)]


def test_replacement_characters_of_the_file_itself_are_no_problem() -> None:
    source = Source("notes.txt", "a \ufffd stays, \xfc too".encode() + b"\xff")
    source.text()
    assert source.problems == [("replaced", "1 byte that is not UTF-8 was replaced", None)]


def test_what_nothing_explains_is_refused() -> None:
    data = bytes(0x80 + (7 * i * i + 3 * i) % 0x80 for i in range(600))
    with pytest.raises(UnreadableFile) as caught:
        text_of(data)
    assert caught.value.kind in ("decode", "binary")
    assert caught.value.skip


def test_a_declared_encoding_counts_where_utf8_fails() -> None:
    word = "Ärger"
    assert Source("a", word.encode("utf-8")).text("iso-8859-1") == word
    assert Source("a", word.encode("cp437")).text("cp437") == word
    assert Source("a", word.encode("cp1252")).text("no-such-encoding") == word


@pytest.mark.parametrize(
    ("path", "suffix"),
    [
        ("a/b/Notes.MD", ".md"),
        ("library/re.rst.txt", ".rst"),
        ("read.me.txt", ".txt"),
        ("concurrent.futures.rst.txt", ".rst"),
        ("Makefile", ""),
        (".gitignore", ""),
    ],
)
def test_suffixes(path: str, suffix: str) -> None:
    assert suffix_of(path) == suffix
    assert Source(path, b"").suffix == suffix
