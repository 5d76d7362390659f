"""How bytes become text: encodings, byte order marks, binary content, replaced bytes."""

from __future__ import annotations

import codecs
import io
import random
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
    "hungarian": "Minden emberi lény szabadon születik és egyenlő méltósága és joga van; ő tűz.",
    "romanian": "Toate fiinţele umane se nasc libere şi egale în demnitate şi în drepturi, când.",
    "ukrainian": "Всі люди народжуються вільними і рівними у своїй гідності та правах, їх є.",
    "lithuanian": "Visi žmonės gimsta laisvi ir lygūs savo orumu ir teisėmis. Jiems suteiktas.",
    "arabic": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا.",
    "thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
}
LEGACY = [
    *(("german", e) for e in ("cp1252", "iso8859-15", "mac_roman")),
    *(("french", e) for e in ("cp1252", "iso8859-1", "mac_roman")),
    *(("spanish", e) for e in ("cp1252", "mac_roman")),
    *(("polish", e) for e in ("cp1250", "iso8859-2")),
    *(("czech", e) for e in ("cp1250", "iso8859-2")),
    *(("hungarian", e) for e in ("cp1250", "iso8859-2", "cp852")),
    ("romanian", "cp1250"),
    *(("ukrainian", e) for e in ("cp1251", "koi8-u", "mac_cyrillic")),
    *(("lithuanian", e) for e in ("cp1257", "iso8859-13")),
    *(("arabic", e) for e in ("cp1256", "iso8859-6")),
    ("thai", "cp874"),
    *(("german", e) for e in ("cp850", "cp500")),
    ("turkish", "cp1254"),
    *(("russian", e) for e in ("cp1251", "koi8-r", "iso8859-5", "cp866")),
    *(("greek", e) for e in ("cp1253", "iso8859-7")),
    ("hebrew", "cp1255"),
    *(("chinese", e) for e in ("gbk", "gb18030")),
    ("taiwanese", "big5"),
    *(("japanese", e) for e in ("shift_jis", "euc_jp", "iso2022_jp")),
    *(("korean", e) for e in ("euc_kr", "iso2022_kr", "johab")),
    ("chinese", "hz"),
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
        patch.setitem(sys.modules, "chardet", None)
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
@pytest.mark.parametrize("language", sorted(set(TEXTS) - {"thai"}))  # it has no spaces
def test_plain_utf16_and_utf32_need_no_mark(language: str, encoding: str) -> None:
    text = f"{TEXTS[language]}\n"
    assert text_of(text.encode(encoding)) == text


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


@pytest.mark.parametrize(
    "data",
    [
        b"na\xefve caf\xe9",
        b"It\x92s \x93quoted\x94",
        b"20\xb0C, 5 \xb5m, \xa7 5",
        b"M\xfcller and Se\xf1or Garc\xeda met Ren\xe9",
    ],
)
def test_a_few_western_letters_are_enough(data: bytes) -> None:
    assert text_of(data) == data.decode("cp1252")


@pytest.mark.parametrize("seed", range(30))
def test_noise_is_not_taken_for_a_language(seed: int) -> None:
    noise = random.Random(seed)
    data = bytes(noise.choice([10, *range(32, 127), *range(128, 256)]) for _ in range(400))
    with pytest.raises(UnreadableFile) as caught:
        text_of(data)
    assert caught.value.skip


def test_what_the_first_lines_say_counts() -> None:
    text = "# -*- coding: cp437 -*-\nname = 'Ärger'\n"
    assert text_of(text.encode("cp437")) == text
    wrong = "# coding: koi8-r, or so it says\nname = 'ascii'\n"
    assert text_of(wrong.encode()) == wrong


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
