"""One file on its way into a reader: its name, its bytes, and how bytes become text.

Owns decoding and the recognition of binary content. Does not open files and does not know
what the text means: that is a reader's work.

Decoding never translates line ends, so that offsets are those of the file opened with
`newline=""`; only a byte order mark is taken away. The order is: byte order mark, UTF-16 and
UTF-32 told by where their zero bytes lie, UTF-8, UTF-8 with a few bad bytes, a legacy
encoding guessed from the words around its high bytes. What none of these explains is refused:
a file left out and said so is better than mojibake in the index.
"""

from __future__ import annotations

import codecs
import io
import re

from ragcli.errors import UnreadableFile

SAMPLE = 1 << 16
"""How many bytes are looked at to tell binary content from text, or one encoding from another."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_MAGIC = (
    *(b"\x89PNG", b"GIF87a", b"GIF89a", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"8BPS", b"%PDF-"),
    *(b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!\x1a"),
    *(b"(\xb5/\xfd", b"\x04\x22M\x18", b"!<arch>\n", b"\xd0\xcf\x11\xe0", b"SQLite format 3\0"),
    *(b"\x7fELF", b"MZ\x90", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\0asm"),
    *(b"OggS", b"ID3\x03", b"ID3\x04", b"fLaC", b"\xff\xfb", b"\x1aE\xdf\xa3", b"wOFF", b"wOF2"),
    *(b"\x93NUMPY", b"\x89HDF", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"GGUF"),
)

# Not among them: tab, line ends, form feed, vertical tab, backspace (overstruck man pages) and
# escape (coloured logs).
_CONTROLS = bytes({*range(1, 0x20), 0x7F} - set(b"\b\t\n\v\f\r\x1b"))


def _words_of(letters: str) -> str:
    """Return a pattern for letters of a script whose words hold no Latin letters."""
    return f"(?<![A-Za-z])[{letters}](?![A-Za-z])"


# What the Web still meets, with the letters that are frequent in the languages written so, and
# the share of all letters that these make up at least. The older code pages win more short texts
# by accident than in truth.
_CYRILLIC = _words_of("оеаинтсрвлкм"), 0.6
_GREEK = _words_of("αοιετσνηυρπςά"), 0.65
_HEBREW = _words_of("יוהלאתשרבמנ"), 0.6
_ARABIC = _words_of("اليمونرتبةعد"), 0.6
_JAPANESE = (
    (
        "[ぁ-ゖァ-ヺー日一国年大十二本中長出三時行見月分後前生五間上東四今金九入学高円子外八六下来気小七"
        "山話女北午百書先名川千水半男西電校語土木聞食車何南万毎白天母火右読友左休父雨]"
    ),
    0.4,
)
_HAN = (
    (
        "[的一是不了在人有我他这這个個们們中来來上大为為和国國地到以说說时時要就出会會可也你对對生能而子"
        "那得于於着著下自之年过過发發后後作里用方法学學者其所文字語语言]"
    ),
    0.2,
)
_SCRIPTS = {
    **dict.fromkeys(("cp1251", "koi8_r", "koi8_u", "cp866", "iso8859_5"), _CYRILLIC),
    "mac_cyrillic": _CYRILLIC,
    **dict.fromkeys(("cp1253", "iso8859_7"), _GREEK),
    **dict.fromkeys(("cp1255", "iso8859_8"), _HEBREW),
    **dict.fromkeys(("cp1256", "iso8859_6"), _ARABIC),
    "cp874": (_words_of("านรกอเงมยลวดท่้"), 0.6),
    **dict.fromkeys(("cp932", "euc_jp", "euc_jis_2004"), _JAPANESE),
    **dict.fromkeys(("gb18030", "big5", "big5hkscs"), _HAN),
    "cp949": ("[가-힣]", 0.95),
}

# Encodings of the Latin script differ in a few letters only, which frequency statistics do not
# settle: the share of letters that the languages of each really use does. Order breaks ties.
_WESTERN = "äöüßéèêëàâáãçùûúîïíìòóôõœæåøñÄÖÜÉÈÊËÀÂÁÃÇÙÛÚÎÏÍÔÓÕŒÅØÆÑ"
_CENTRAL = "ąćęłńóśźżáčďéěíňřšťúůýžäôľĺŕöőüűăâîșțşţßĄĆĘŁŃÓŚŹŻÁČĎÉĚÍŇŘŠŤÚŮÝŽŐŰ"
_LATIN = {
    "cp1254": "ışğçöüâîûİŞĞÇÖÜ",
    "cp1252": _WESTERN,
    "iso8859_15": _WESTERN,
    "mac_roman": _WESTERN,
    "cp1250": _CENTRAL,
    "iso8859_2": _CENTRAL,
    "cp1257": "āčēģīķļņšūžąęėįųõäöüĀČĒĢĪĶĻŅŠŪŽĄĘĖĮŲÕÄÖÜ",
}
_PUNCTUATION = "“”„‘’‚–—…•«»¿¡°©®™§€£·\xa0"

# What files declare and what they mean by it.
_ALIASES = {
    **dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    **dict.fromkeys(("x-mac-cyrillic", "maccyrillic"), "mac_cyrillic"),
    **dict.fromkeys(("macintosh", "x-mac-roman"), "mac_roman"),
    "iso-8859-9": "cp1254",
}

_HIGH = re.compile(rb"[\x80-\xff][^\r\n]{0,1000}")
# Markup, digits and punctuation say nothing about a language; a byte after a high one may be
# the second half of a character.
_NO_WORDS = re.compile(rb"<[\x00-;=?-\x7f]{0,200}>|(?<![\x80-\xff])[^A-Za-z\x80-\xff]+")
_SURROGATES = re.compile("[\ud800-\udfff]")
_DOUBLE_SUFFIX = {".rst", ".md", ".markdown"}


class Source:
    """One file's name and bytes, and what goes wrong while it is read.

    `path` is relative to the indexed root and used in messages only; `suffix` is in lower
    case, `.rst` for `name.rst.txt`; `problems` are (kind, message, page label or None).
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.suffix = suffix_of(path)
        self.data = data
        self.problems: list[tuple[str, str, str | None]] = []

    def text(self, declared: str | None = None) -> str:
        """Return the file as text, line ends as they are, without a byte order mark.

        `declared` is an encoding that the file itself names; it is tried where UTF-8 fails.
        Replaced characters are recorded in `problems`. Raises UnreadableFile (`binary` or
        `decode`, both to be skipped) for what is not believably text.
        """
        data = self.data
        for mark, encoding in _MARKS:
            if data.startswith(mark):
                return self._replacing(data[len(mark) :], encoding)
        if data.startswith(_MAGIC) or data[257:262] == b"ustar":
            raise UnreadableFile("binary", "binary content", skip=True)
        wide = _wide_encoding(data) if len(data) >= 16 and b"\0" in data else None
        if wide is not None:
            return self._replacing(data, wide)
        if _is_binary(data):
            raise UnreadableFile("binary", "binary content", skip=True)
        if b"\x1b$" in data:
            text = _decoded(data, "iso2022_jp_2") or _decoded(data, "iso2022_kr")
            if text is not None:
                return text
        text = _decoded(data, "utf-8")
        return self._legacy_text(declared) if text is None else text

    def _legacy_text(self, declared: str | None) -> str:
        """Return the text of bytes that are not UTF-8."""
        data = self.data
        if declared is not None and not declared.lower().startswith("utf"):
            text = _decoded(data, _ALIASES.get(declared.lower(), declared))
            if text is not None:
                return text
        lenient = data.decode("utf-8", "replace")
        bad = lenient.count("\ufffd") - data.count(b"\xef\xbf\xbd")
        good = len(lenient) - len(lenient.encode("ascii", "ignore")) - bad
        if good < 4 * bad:
            encoding = _guess(data)
            if encoding is not None:
                return self._replacing(data, encoding)
            if bad > 3 + len(data) // 50:
                raise UnreadableFile("decode", "text in an unknown encoding", skip=True)
        return self._replacing(data, "utf-8")

    def _replacing(self, data: bytes, encoding: str) -> str:
        """Decode, with U+FFFD for each bad byte sequence, and record how many there were."""
        text = data.decode(encoding, "replace")
        bad = text.count("\ufffd")
        if bad:
            bad -= data.decode(encoding, "ignore").count("\ufffd")
        if bad:
            name = encoding.upper()
            what = "1 byte that is" if bad == 1 else f"{bad} bytes that are"
            verb = "was" if bad == 1 else "were"
            self.problems.append(("replaced", f"{what} not {name} {verb} replaced", None))
        return text


def suffix_of(path: str) -> str:
    """Return the suffix of a name in lower case; of `name.rst.txt` the inner one."""
    stem, _, last = path.rpartition("/")[2].lower().rpartition(".")
    if not stem.strip(".") or not last:
        return ""
    inner = suffix_of(stem) if last == "txt" else ""
    return inner if inner in _DOUBLE_SUFFIX else f".{last}"


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends: a line feed, a carriage return or both."""
    return io.StringIO(text, newline="").readlines()


def without_surrogates(text: str) -> str:
    """Return the text with each lone surrogate, which no encoding can store, as U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _decoded(data: bytes, encoding: str) -> str | None:
    """Return the text if every byte fits, None if not or if there is no such encoding."""
    try:
        return data.decode(encoding)
    except (ValueError, LookupError):
        return None


def _is_binary(data: bytes) -> bool:
    """Tell whether there are more zero bytes or control characters than a text has."""
    sample = data[:SAMPLE]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return data.count(0) > 1 + len(data) // 100 or controls > 3 + len(sample) // 50


def _wide_encoding(data: bytes) -> str | None:
    """Tell UTF-16 and UTF-32 without a mark by the places of their zero bytes, if it is plain."""
    sample = data[: SAMPLE & -4]
    zeros = [sample[i::4].count(0) / (len(sample) / 4) for i in range(4)]
    for encoding, places in (("utf-32-le", (2, 3)), ("utf-32-be", (0, 1))):
        if len(data) % 4 == 0 and all(zeros[i] > 0.95 for i in places):
            return encoding if _decoded(data, encoding) is not None else None
    for encoding, even, odd in (("utf-16-le", 0, 1), ("utf-16-be", 1, 0)):
        few, many = zeros[even] + zeros[even + 2], zeros[odd] + zeros[odd + 2]
        if len(data) % 2 == 0 and many > 1.0 and few < 0.02:
            text = _decoded(data, encoding)
            return encoding if text and not _is_binary(text.encode()) else None
    return None


def _guess(data: bytes) -> str | None:
    """Return the legacy encoding that explains the words around the high bytes, or None."""
    import charset_normalizer

    pieces, size = [], 0
    for match in _HIGH.finditer(data):
        line = data.rfind(b"\n", 0, match.start()) + 1
        pieces.append(data[max(line, match.start() - 100) : match.end()])
        size += len(pieces[-1])
        if size > SAMPLE // 2:
            break
    sample = _NO_WORDS.sub(b" ", b"\n".join(pieces))
    scores = {name: _latin_score(sample, name) for name in _LATIN}
    latin = max(scores, key=scores.__getitem__)
    if scores[latin] > 0.95:
        return latin
    found = charset_normalizer.from_bytes(sample, cp_isolation=[*_SCRIPTS, *_LATIN])
    fits = {
        match.encoding: _script_score(str(match), match.encoding)
        for match in found
        if match.encoding in _SCRIPTS
    }
    script = max(fits, key=fits.__getitem__, default=latin)
    if fits.get(script, 0) >= 0.5:
        return script
    return latin if scores[latin] > 0.9 else None


def _script_score(text: str, encoding: str) -> float:
    """Return how far the frequent letters of an encoding's languages are as frequent, 0 to 1."""
    frequent, share = _SCRIPTS[encoding]
    letters = sum(char.isalpha() and not char.isascii() for char in text)
    return min(1.0, len(re.findall(frequent, text)) / (share * letters)) if letters else 0.0


def _latin_score(sample: bytes, encoding: str) -> float:
    """Return the share of high bytes that are a letter in use, or punctuation in its place.

    A capital right after a small letter is a sign of mojibake, as are three such letters in a
    row, or a dash between letters.
    """
    text = _decoded(sample, encoding)
    if text is None:
        return 0.0
    found = re.findall(r"(.?)([^\x00-\x7f])(?=(.?))", text, re.DOTALL)
    letters = _LATIN[encoding]
    fitting: int = sum(
        (before.isascii() or after.isascii()) and not (before.islower() and char.isupper())
        if char in letters
        else char in _PUNCTUATION and (char == "’" or not (before.isalpha() and after.isalpha()))
        for before, char, after in found
    )
    return fitting / len(found)
