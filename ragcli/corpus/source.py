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
from collections.abc import Callable

from ragcli.corpus.encodings import (
    SAMPLE,
    decoded,
    escaped_encoding,
    legacy_encoding,
    wide_encoding,
)
from ragcli.corpus.suffixes import suffix_of
from ragcli.errors import UnreadableFile

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of the container of Office's formats before 2007."""

_MAGIC = (
    *(b"\x89PNG", b"GIF87a", b"GIF89a", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"8BPS", b"%PDF-"),
    *(b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!\x1a"),
    *(b"(\xb5/\xfd", b"\x04\x22M\x18", b"!<arch>\n", COMPOUND, b"SQLite format 3\0"),
    *(b"\x7fELF", b"MZ\x90", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\0asm"),
    *(b"OggS", b"ID3\x03", b"ID3\x04", b"fLaC", b"\xff\xfb", b"\x1aE\xdf\xa3", b"wOFF", b"wOF2"),
    *(b"\x93NUMPY", b"\x89HDF", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"GGUF"),
)

# Not among them: tab, line ends, form feed, vertical tab, backspace (overstruck man pages) and
# escape (coloured logs).
_CONTROLS = bytes({*range(1, 0x20), 0x7F} - set(b"\b\t\n\v\f\r\x1b"))

_SURROGATES = re.compile("[\ud800-\udfff]")


class Source:
    """One file's name and bytes, and what goes wrong while it is read.

    `path` is relative to the indexed root and used in messages only; `suffix` is in lower
    case, `.rst` for `name.rst.txt`; `problems` are (kind, message, page label or None).
    `ocr` are the languages by which pictures are read, None for not at all; a reader that runs a
    slow program asks by `more_time` for so many seconds from now on.
    """

    def __init__(
        self,
        path: str,
        data: bytes,
        *,
        ocr: str | None = None,
        more_time: Callable[[float], None] = lambda _: None,
    ) -> None:
        self.path = path
        self.suffix = suffix_of(path)
        self.data = data
        self.problems: list[tuple[str, str, str | None]] = []
        self.ocr = ocr
        self.more_time = more_time

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
        wide = wide_encoding(data) if len(data) >= 16 and b"\0" in data else None
        if told := wide or escaped_encoding(data):
            return self._replacing(data, told)
        if _is_binary(data):
            raise UnreadableFile("binary", "binary content", skip=True)
        text = decoded(data, "utf-8")
        return self._legacy_text(declared) if text is None else text

    def _legacy_text(self, declared: str | None) -> str:
        """Return the text of bytes that are not UTF-8."""
        data = self.data
        lenient = data.decode("utf-8", "replace")
        bad = lenient.count("\ufffd") - data.count(b"\xef\xbf\xbd")
        good = len(lenient) - len(lenient.encode("ascii", "ignore")) - bad
        if good < 2 * bad:
            encoding = legacy_encoding(data, declared)
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


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends: a line feed, a carriage return or both."""
    return io.StringIO(text, newline="").readlines()


def without_surrogates(text: str) -> str:
    """Return the text with each lone surrogate, which no encoding can store, as U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _is_binary(data: bytes) -> bool:
    """Tell whether there are more zero bytes or control characters than a text has."""
    sample = data[:SAMPLE]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return data.count(0) > 1 + len(data) // 100 or controls > 3 + len(sample) // 50
