"""Text in eight bits beside the number of a code page, as Office's formats before 2007 hold it.

Owns what the numbers mean to Python. Where a file declares none, `encodings` guesses.
"""

from __future__ import annotations

import codecs

from ragcli.corpus.encodings import decoded, legacy_encoding

_CODECS = {
    **{1200: "utf-16-le", 1201: "utf-16-be", 65000: "utf-7", 65001: "utf-8", 20127: "ascii"},
    **{936: "gb18030", 950: "big5hkscs", 54936: "gb18030", 52936: "hz", 51949: "euc_kr"},
    **{20932: "euc_jp", 51932: "euc_jp", 50220: "iso2022_jp", 50221: "iso2022_jp_ext"},
    **{50225: "iso2022_kr", 20866: "koi8_r", 21866: "koi8_u", 10000: "mac_roman"},
    **{10006: "mac_greek", 10007: "mac_cyrillic", 10029: "mac_latin2", 10081: "mac_turkish"},
    **{28590 + part: f"iso8859_{part}" for part in (*range(1, 12), *range(13, 17))},
}


def code_page_codec(number: int) -> str | None:
    """Return Python's name of a code page, None where there is none."""
    codec = _CODECS.get(number, f"cp{number}")
    try:
        codecs.lookup(codec)
    except LookupError:
        return None
    return codec


def narrow_text(data: bytes, code_page: int | None) -> str:
    """Return text in the code page that its file declares, else (None) in one that fits.

    What the code page has no character for becomes U+FFFD: nothing is raised.
    """
    codec = None if code_page is None else code_page_codec(code_page)
    if codec is None:
        utf8 = decoded(data, "utf-8") is not None
        codec = "utf-8" if utf8 else legacy_encoding(data, None) or "cp1252"
    return data.decode(codec, "replace")
