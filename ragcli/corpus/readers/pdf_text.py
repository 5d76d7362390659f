"""The text of PDF pages made readable: ligatures, hyphens at line ends, paragraphs.

Cleaning comes before any offset is taken: the cleaned text is the document's text. Knows
nothing of the file; `pdf` reads that.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

_LIGATURES = re.compile("[\ufb00-\ufb4f\ufb50-\ufdff\ufe70-\ufefc]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_BULLETS = str.maketrans({"\uf0b7": "•", "\uf0a7": "•", "\uf0d8": "•", "\xa0": " ", "\x0c": "\n"})
_UNMAPPED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff]|\\(cid:\\d+\\)|/[Gg]\\d{1,4}\\b"
)
_ARABIC = re.compile("[\u0620-\u06d3\ufb50-\ufdff\ufe70-\ufefc]")
# TeX's old fonts set an accent as a character of its own, before its letter.
_ACCENTS = {
    "¨": "\u0308",
    "´": "\u0301",
    "ˆ": "\u0302",
    "˜": "\u0303",
    "ˇ": "\u030c",
    "˚": "\u030a",
}
_STRAY = re.compile("(?<!\\S)[¨´ˆ˜ˇ˚](?!\\S)")
_ACCENTED = re.compile("[¨ˆ˜ˇ˚][A-Za-zı]|(?:(?<=[^\\W\\d_]{2})|(?<!\\w))´[AEIOUYaeiouyı]")

_LETTER = re.compile(r"[^\W_]")
_LETTERS = re.compile(r"[^\W\d_]+")
_PIECE = re.compile(r"(?<![\w'’])[^\W\d_](?!\w)")
_PIECES = 0.4
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_BROKEN = re.compile(
    r"(?<![\w-])((?:\w+-)*)(\w+)(\xad+|[-\u2010])[ \t]*\n[ \t]*(\w+)(\S*)(?:[ \t]+\n?|\n|$)"
)
_DIVIDED = re.compile("[-\u2010\xad][ \t]*\n")
_LINE = re.compile(r"\S(?:[^\n]*\S)?")
_SENTENCE_END = re.compile(r"[.!?:][\"'”’)\]]*$")
_BULLET = re.compile(r"[•‣▪◦●■*–-][ \t]|\(?\d{1,2}[.)][ \t]")
_NUMBER = re.compile(r"^(?:(?:chapter|section|appendix|part)\s+)?[\dA-Z]{0,2}[\d.]*\s+", re.I)


def clean_pages(pages: list[str]) -> list[str]:
    """Return the pages with ligatures resolved and words joined that a line end divides.

    Whether a hyphen at a line end belongs to the word is told by how the document writes the
    word elsewhere.
    """
    cleaned = [_clean_characters(page) for page in pages]
    words = Counter(word for page in cleaned for word in _WORD.findall(page.lower()))
    return [_join_words(page, words) for page in cleaned]


def count_unmapped(text: str) -> int:
    """Return how many glyphs came out without a character that means something.

    Of a page as the library gave it: some of them are cleaned away.
    """
    return sum(1 for _ in _UNMAPPED.finditer(text.translate(_BULLETS)))


def count_letters(text: str) -> int:
    """Return the number of letters and digits."""
    return len(_LETTER.findall(text))


def is_doubtful(text: str) -> bool:
    """Whether PDFium's text of a page may have more flaws than pypdf's.

    Those are Arabic words, many of which it turns round; accents apart from their letters; words
    that come in pieces; and glyphs without a meaning, more than one in a hundred.
    """
    return bool(
        _ARABIC.search(text)
        or _STRAY.search(text)
        or _count_pieces(text)
        or 100 * count_unmapped(text) > len(text)
    )


def count_flaws(text: str, *, turns_arabic: bool) -> int:
    """Return how many characters of a page are wrong; see `is_doubtful`."""
    arabic = len(_ARABIC.findall(text)) if turns_arabic else 0
    return arabic + len(_STRAY.findall(text)) + _count_pieces(text) + count_unmapped(text)


def _count_pieces(text: str) -> int:
    """Return how many words are one letter, 0 where they are no more than among formulas."""
    pieces = len(_PIECE.findall(text))
    return pieces if pieces > _PIECES * len(_LETTERS.findall(text)) else 0


def page_blocks(text: str, titles: dict[str, int]) -> Iterator[tuple[int, int, str, int | None]]:
    """Yield start, end, kind and heading level (or None) of the paragraphs of a page.

    `titles` has the level of each title that the outline names on this page, by `outline_key`.
    A paragraph ends at a blank line, before an item, and where a sentence ends in a line that
    is shorter than most.
    """
    lines = [(line.start(), line.end()) for line in _LINE.finditer(text)]
    lengths = sorted(end - start for start, end in lines)
    short = 0.85 * lengths[len(lengths) // 2] if lines else 0
    begin, kind = -1, "paragraph"
    skip = False
    for index, (start, end) in enumerate(lines):
        if skip:
            skip = False
            continue
        after = lines[index + 1] if index + 1 < len(lines) else (len(text), len(text))
        level = titles.get(outline_key(text[start:end])) if titles else None
        if level is None and titles:
            level = titles.get(outline_key(text[start : after[1]]))
            skip = level is not None
        if level is not None:
            if begin >= 0:
                yield begin, lines[index - 1][1], kind, None
                begin = -1
            yield start, after[1] if skip else end, "heading", level
            continue
        if begin < 0:
            begin, kind = start, "item" if _BULLET.match(text, start) else "paragraph"
        ends = end - start < short and _SENTENCE_END.search(text, start, end)
        if (
            "\n" in text[end + 1 : after[0]]
            or _BULLET.match(text, after[0])
            or (ends and not text[after[0] : after[0] + 1].islower())
        ):
            yield begin, end, kind, None
            begin = -1
    if begin >= 0:
        yield begin, lines[-1][1], kind, None


def outline_key(title: str) -> str:
    """Return a title as it is compared: without its number, case and punctuation."""
    return "".join(char for char in _NUMBER.sub("", title.strip()).casefold() if char.isalnum())


def _clean_characters(page: str) -> str:
    page = _SURROGATE_PAIR.sub(_pair, page).translate(_BULLETS)
    page = _LIGATURES.sub(lambda found: unicodedata.normalize("NFKC", found[0]), page)
    page = _ACCENTED.sub(_accented, page)
    return _CONTROLS.sub("", page.replace("\r\n", "\n").replace("\r", "\n"))


def _pair(found: re.Match[str]) -> str:
    return found[0].encode("utf-16", "surrogatepass").decode("utf-16")


def _accented(found: re.Match[str]) -> str:
    accent, letter = found[0][0], found[0][1]
    one = unicodedata.normalize("NFC", letter.replace("ı", "i") + _ACCENTS[accent])
    return one if len(one) == 1 else found[0]


def _join_words(page: str, words: Counter[str]) -> str:
    for _ in range(2):  # a word may run over three lines
        if not _DIVIDED.search(page):
            break
        page = _BROKEN.sub(lambda found: _joined(found, words), page)
    return page.replace("\xad", "").strip()


def _joined(found: re.Match[str], words: Counter[str]) -> str:
    """Return a word without the line end inside it, which then follows it."""
    before, left, hyphen, right, after = found.groups()
    whole, compound = (left + right).lower(), f"{left}-{right}".lower()
    if not (left.isalpha() and right.isalpha()) or (right[0].isupper() and not left.isupper()):
        mark = "-"
    elif hyphen[0] == "\xad" or words[whole] > words[compound]:
        mark = ""
    else:
        mark = "-" if before or words[compound] else ""
    return f"{before}{left}{mark}{right}{after}\n"
