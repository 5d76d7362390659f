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
_UNMAPPED = re.compile("[\ufffd\ue000-\uf8ff]|\\(cid:\\d+\\)|/[Gg]\\d{1,4}\\b")

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_BROKEN = re.compile(
    r"(?<![\w-])((?:\w+-)*)(\w+)(\xad+|[-\u2010])[ \t]*\n[ \t]*(\w+)(\S*)(?:[ \t]+\n?|\n|$)"
)
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
    """Return how many glyphs came out without a character that means something."""
    return sum(1 for _ in _UNMAPPED.finditer(text))


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
        level = titles.get(outline_key(text[start:end]))
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
    return _CONTROLS.sub("", page.replace("\r\n", "\n").replace("\r", "\n"))


def _pair(found: re.Match[str]) -> str:
    return found[0].encode("utf-16", "surrogatepass").decode("utf-16")


def _join_words(page: str, words: Counter[str]) -> str:
    for _ in range(2):  # a word may run over three lines
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
