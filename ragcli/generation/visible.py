"""Text that a terminal would obey or hide, written out. Knows nothing of prompts or screens."""

from __future__ import annotations

import re
import unicodedata

# Control characters, line and paragraph separators, bidirectional controls, lone surrogates.
_OBEYED = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
# Format characters without a shape, tags among them; U+00AD is left, headings are hyphenated by it.
_HIDDEN = (
    "\u180e\u200b-\u200d\u2060-\u2064\u206a-\u206f\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
UNSEEN = re.compile(f"[{_OBEYED}]")
_UNSEEN_IN_NAMES = re.compile(f"[{_OBEYED}{_HIDDEN}]")
_JOINERS = "\u200c\u200d"
_JOINING = "\u0590"
"""The scripts that join letters begin here: behind Latin, Greek, Cyrillic and Armenian."""
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str, keep: str = "") -> str:
    r"""`text` with what a terminal would obey or hide written out: ESC becomes `\x1b`.

    Stays on one line unless `keep` holds the new line. With `keep` it is running text, whose
    zero-width characters stay; of a name or message they are written out too, but for joiners
    between what joins: letters of a script that does, and emoji. A byte that a file name could
    not be decoded from (a lone surrogate) is written as that byte.
    """

    def written(match: re.Match[str]) -> str:
        character = match[0]
        if character in keep or (character in _JOINERS and _joins(text, match.start())):
            return character
        code = ord(character)
        if 0xDC80 <= code <= 0xDCFF:
            code -= 0xDC00
        width, letter = (2, "x") if code < 0x100 else (4, "u") if code < 0x10000 else (8, "U")
        return _NAMED.get(character) or f"\\{letter}{code:0{width}x}"

    return (UNSEEN if keep else _UNSEEN_IN_NAMES).sub(written, text)


def _joins(text: str, place: int) -> bool:
    """Whether the joiner at `place` stands between letters, marks or symbols that join."""
    beside = text[max(0, place - 1) : place] + text[place + 1 : place + 2]
    return len(beside) == 2 and all(
        character >= _JOINING and unicodedata.category(character)[0] in "LMS"
        for character in beside
    )
