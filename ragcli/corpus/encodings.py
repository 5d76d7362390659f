"""Which encoding explains bytes that are neither marked nor UTF-8, or none.

Owns the guess and its proof: chardet ranks the encodings by the language that they would be in,
and what each makes of the bytes is held against the letters which that language uses. An
encoding that fails this is not taken, however sure the ranking: a file left out and said so is
better than mojibake in the index. Does not decode a file for its reader: `source` does.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

SAMPLE = 1 << 16
"""How many bytes are looked at to tell one encoding from another."""

# What files declare and what they mean by it.
_ALIASES = {
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    **dict.fromkeys(("x-mac-cyrillic", "maccyrillic"), "mac_cyrillic"),
    **dict.fromkeys(("macintosh", "x-mac-roman"), "mac_roman"),
    **dict.fromkeys(("big5", "x-x-big5"), "big5hkscs"),
    **dict.fromkeys(("tis-620", "iso-8859-11", "windows-874"), "cp874"),
    "shift_jis_2004": "cp932",
    "euc_jis_2004": "euc_jp",
    "iso-8859-8-i": "iso8859_8",
    "iso-8859-9": "cp1254",
}
_ENOUGH = 0.8
"""How much of what is beyond ASCII has to fit a language."""

_EBCDIC_SPACE = b"@"
# Rare, and near enough to a common one to be taken for it by accident.
_RARER = ("mac", "cp4", "cp11", "cp7", "cp8", "iso8859")
_NOT_GUESSED = ("utf-7", "hp-roman8", "cp1006", "cp720", "cp864", "ptcp154")

# The letters of each language of the Latin script beyond those of English. Western languages
# are taken together: their common encodings agree, and one text quotes another's names.
_WESTERN = "äöüßéèêëàâáãçùûúîïíìòóôõœæåøñÿ"
_LATIN = {
    "cs": "áčďéěíňóřšťúůýž" + "äöü",
    "sk": "áäčďéíĺľňóôŕšťúýž" + "öü",
    "pl": "ąćęłńóśźż" + "äöüé",
    "hu": "áéíóöőúüű" + "ä",
    "ro": "ăâîșțşţ" + "éáöü",
    "hr": "čćđšž" + "éöü",
    "sl": "čšž" + "ćđéöü",
    "sr": "čćđšž",
    "lt": "ąčęėįšųūž",
    "lv": "āčēģīķļņōŗšūž",
    "et": "äõöüšž" + "é",
    "tr": "âçğıi̇îöşûü",
    "eo": "ĉĝĥĵŝŭ",
    "mt": "ċġħżàèìòùâêîôûéç",
    "cy": "âêîôûŵŷáéíóúẃýäëïöüẅÿàèìòùẁỳ",
    "is": "áðéíóúýþæö" + "å",
    "vi": "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ"
    "\u0300\u0301\u0303\u0309\u0323",
}
_QUOTES = frozenset("“”„‘‚–—…•«»¿¡")
"""What stands beside a letter, but not between two."""

_SIGNS = frozenset("©®™§€£¥¢¶²³½¼¾±×÷ªº´¨¸¹¦†‡‰№ˇ")
"""What stands alone or after a letter."""

_ANYWHERE = frozenset("’·°µ\xa0\xad\u200e\u200f\u200c\u200d")


def _words_of(letters: str) -> str:
    """Return a pattern for letters of a script whose words hold no Latin letters."""
    return f"(?<![A-Za-z])[{letters}](?![A-Za-z])"


# Letters that are frequent in the languages of other scripts, and the share of all letters that
# these make up at least.
_CYRILLIC = _words_of("оеаинтсрвлкм"), 0.6
_ARABIC = _words_of("اليمونرتبةعدىک"), 0.6
_SCRIPTS = {
    **dict.fromkeys(("ru", "uk", "bg", "sr", "mk", "be", "kk", "tg"), _CYRILLIC),
    **dict.fromkeys(("ar", "fa", "ur"), _ARABIC),
    "el": (_words_of("αοιετσνηυρπςά"), 0.65),
    "he": (_words_of("יוהלאתשרבמנ"), 0.6),
    "th": (_words_of("านรกอเงมยลวดท่้"), 0.6),
    "ko": ("[가-힣]", 0.95),
    "ja": (
        "[ぁ-ゖァ-ヺー日一国年大十二本中長出三時行見月分後前生五間上東四今金九入学高円子外八六下来気小七"
        "山話女北午百書先名川千水半男西電校語土木聞食車何南万毎白天母火右読友左休父雨]",
        0.4,
    ),
    "zh": (
        "[的一是不了在人有我他这這个個们們中来來上大为為和国國地到以说說时時要就出会會可也你对對生能而子"
        "那得于於着著下自之年过過发發后後作里用方法学學者其所文字語语言]",
        0.2,
    ),
}

_HIGH_BYTES = bytes(range(0x80, 0x100))
_HIGH = re.compile(rb"[\x80-\xff][^\r\n]{0,2000}")
_DECLARED = re.compile(rb"(?:charset|coding)\s*[:=]\s*[\"']?([A-Za-z][\w.:-]{2,20})")
_HZ = re.compile(rb"~\{(?:[\x21-\x77][\x21-\x7e])+~\}")
_NEIGHBOURS = re.compile(r"(.?)([^\x00-\x7f])(?=(.?))", re.DOTALL)
_INNER_CAPITAL = re.compile("[а-яёіїєά-ώ][А-ЯЁІЇЄΆ-Ώ]")
_LETTER = re.compile(r"[^\W\d_\x00-\x7f]")
_BOXES = re.compile("[\u2500-\u25ff]")
_SIGNS_OF_TEXT = re.compile("[ \n\u3000-\u3002\uff0c]")


def legacy_encoding(data: bytes, declared: str | None) -> str | None:
    """Return the encoding of a text that is not UTF-8, None where none explains it.

    `declared` is what the file's format says of it; without, what its first lines say. It is
    taken where nearly all bytes fit.
    """
    if declared is None and (found := _DECLARED.search(data, 0, 1024)):
        declared = found[1].decode("ascii")
    if declared is not None and not declared.lower().startswith("utf"):
        name = _ALIASES.get(declared.lower(), declared)
        text = decoded(data, name, "replace")
        high = len(data) - len(data.translate(None, _HIGH_BYTES))
        if text is not None and text.count("\ufffd") * 50 <= high:
            return name
    return _guessed(_around_high_bytes(data))


_NO_CONTROLS = bytes(range(32, 127)) + bytes(range(128, 256)) + b"\t\n\r\f\0"
"""What text is made of, and the zeros that get into it."""


def wide_encoding(data: bytes) -> str | None:
    """Tell UTF-16 and UTF-32 without a mark, if it is plain.

    Where most characters are of the first 256, their zero bytes tell; in other scripts spaces,
    line ends and the scripts' own stops have to be there, and nothing that no text holds.
    """
    sample = data[: SAMPLE & -4]
    zeros = [sample[i::4].count(0) / (len(sample) / 4) for i in range(4)]
    for encoding, places in (("utf-32-le", (2, 3)), ("utf-32-be", (0, 1))):
        if len(data) % 4 == 0 and all(zeros[i] > 0.95 for i in places):
            return encoding if decoded(data, encoding) is not None else None
    if len(data) % 2 or _is_utf8_with_zeros(sample):
        return None
    for encoding in ("utf-16-le", "utf-16-be"):
        text = decoded(sample, encoding)
        if text and _is_clean(text):
            return encoding
    return None


def _is_utf8_with_zeros(sample: bytes) -> bool:
    """Tell text with stray zeros: of what is ASCII, UTF-16 has every other byte zero, and of what
    is not, bytes that are control characters or no UTF-8.
    """
    if sample.count(0) * 4 >= len(sample) or sample.translate(None, _NO_CONTROLS):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)  # its end may be cut
    except UnicodeDecodeError:
        return False
    return True


def escaped_encoding(data: bytes) -> str | None:
    """Tell the encodings of Chinese, Japanese and Korean in seven bits by their escapes."""
    if b"\x1b$" in data:
        korean = b"\x1b$)C" in data
        for encoding in ("iso2022_kr",) if korean else ("iso2022_jp_2", "iso2022_jp_ext"):
            if decoded(data, encoding) is not None:
                return encoding
    if _HZ.search(data) and (text := decoded(data, "hz")) and _script_fit(text, "zh") >= 0.5:
        return "hz"
    return None


def _is_clean(text: str) -> bool:
    """Tell whether a text without the mark of its byte order holds what only text holds."""
    signs = len(_SIGNS_OF_TEXT.findall(text))
    if signs * 50 < len(text):
        return False
    strange = sum(
        unicodedata.category(char) in ("Cc", "Cn", "Co", "Cs") and char not in "\t\n\r\f"
        for char in text
    )
    pages = {ord(char) >> 8 for char in text}
    return strange * 500 <= len(text) and (len(pages) * 4 < len(text) or len(text) < 64)


def _around_high_bytes(data: bytes) -> bytes:
    """Return the data, of much data the lines with bytes beyond ASCII."""
    if len(data) <= SAMPLE // 4:
        return data
    pieces: list[bytes] = []
    size = end = 0
    for match in _HIGH.finditer(data):
        line = data.rfind(b"\n", end, match.start()) + 1
        begin = max(line, match.start() - 100, end)
        pieces.append(
            data[begin : match.end()] if begin == end else b"\n" + data[begin : match.end()]
        )
        end = match.end()
        size += len(pieces[-1])
        if size > SAMPLE // 2:
            break
    return b"".join(pieces)


def _guessed(sample: bytes) -> str | None:
    """Return the encoding of the best rank times fit, None if nothing fits."""
    if _is_punctuated(sample):
        return "cp1252"
    import chardet

    eras = chardet.EncodingEra.ALL
    if sample.count(_EBCDIC_SPACE) * 12 < len(sample):
        eras &= ~chardet.EncodingEra.MAINFRAME
    best, encoding = 0.0, None
    for found in chardet.detect_all(
        sample,
        encoding_era=eras,
        max_bytes=SAMPLE,
        compat_names=False,
        exclude_encodings=_NOT_GUESSED,
    ):
        name, language = found["encoding"], found["language"] or "en"
        if name is None or found["confidence"] <= best:
            continue
        common = _ALIASES.get(name, name)
        name = common if decoded(sample, common) is not None else name
        text = decoded(sample, name, "ignore")
        rare = name.startswith(_RARER)
        if text is None or (rare and not _LETTER.search(text)):
            continue
        fit = _fit(text, language)
        score = found["confidence"] * fit**4 * (0.97 if rare else 1)
        if fit >= _ENOUGH and score > best:
            best, encoding = score, name
    return encoding


def _is_punctuated(sample: bytes) -> bool:
    """Tell whether nothing but quotes and signs of Windows stands beyond ASCII, each well."""
    text = decoded(sample, "cp1252")
    return text is not None and all(_stands_well(*found) for found in _NEIGHBOURS.findall(text))


def _fit(text: str, language: str) -> float:
    """Return how far the letters of a text are those of a language, 0 to 1."""
    return _script_fit(text, language) if language in _SCRIPTS else _latin_fit(text, language)


def _script_fit(text: str, language: str) -> float:
    """Return how far the frequent letters of a language are as frequent.

    In an alphabet, signs and capitals inside of words take away from it.
    """
    frequent, share = _SCRIPTS[language]
    letters = sum(char.isalpha() and not char.isascii() for char in text)
    if not letters:
        return 0.0
    odd = 0
    if language not in ("ja", "ko", "zh"):
        odd = len(_INNER_CAPITAL.findall(text)) + sum(
            not _stands_well(*found)
            for found in _NEIGHBOURS.findall(text)
            if not _is_letter(found[1])
        )
    return min(1.0, len(re.findall(frequent, text)) / (share * letters)) * letters / (letters + odd)


def _latin_fit(text: str, language: str) -> float:
    """Return the share of characters beyond ASCII that are a letter in use, or punctuation.

    A capital right after a small letter is a sign of mojibake, as are three such letters in a
    row.
    """
    letters = _LATIN.get(language, _WESTERN)
    found = _NEIGHBOURS.findall(text)
    fitting = sum(
        (before.isascii() or after.isascii() or language == "vi")
        and not (before.islower() and char.isupper())
        if char.lower() in letters
        else _stands_well(before, char, after)
        for before, char, after in found
    )
    return (fitting + 1) / (len(found) + 1)  # one stranger among few is no sign


def _stands_well(before: str, char: str, after: str) -> bool:
    """Tell whether a character that is no letter is a common one, in a place of its own."""
    if char in _QUOTES:
        return not (before.isalpha() and after.isalpha())
    if char in _SIGNS or _BOXES.match(char):
        return not after.isalpha()
    return char in _ANYWHERE


def _is_letter(char: str) -> bool:
    return unicodedata.category(char)[0] in "LMN"


def decoded(data: bytes, encoding: str, errors: str = "strict") -> str | None:
    """Return the text if the bytes fit, None if not or if there is no such encoding."""
    try:
        return data.decode(encoding, errors)
    except (ValueError, LookupError):
        return None
