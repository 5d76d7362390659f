"""Text that a terminal would obey or hide, written out. Knows nothing of prompts or screens."""

from __future__ import annotations

import re

# Control characters, line and paragraph separators, bidirectional controls, lone surrogates.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str, keep: str = "") -> str:
    r"""`text` with what a terminal would obey or hide written out: ESC becomes `\x1b`.

    Stays on one line unless `keep` holds the new line. A byte that a file name could not be
    decoded from (a lone surrogate) is written as that byte.
    """

    def written(match: re.Match[str]) -> str:
        character = match[0]
        if character in keep:
            return character
        code = ord(character)
        if 0xDC80 <= code <= 0xDCFF:
            code -= 0xDC00
        return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")

    return UNSEEN.sub(written, text)
