"""Word documents of the format before 2007 (.doc): the text of the body and its notes, in order.

Needs the office extra. The text lies in pieces that a table puts in order (MS-DOC, 2.4.1); styles
are not read, so there are no headings, and what tracked changes deleted is still there.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.code_pages import narrow_text
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.compound import open_compound
from ragcli.corpus.source import Source, without_surrogates
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_MAGIC = 0xA5EC
_WORD_97 = 0xC1
_ENCRYPTED, _SECOND_TABLE = 0x0100, 0x0200
_IN_PIECES = 0x0004

_FIELD_CODE = re.compile("\x13[^\x13\x14\x15]*\x14?|[\x14\x15]")
"""Of fields the result is text, the code is not."""

_MARKS = str.maketrans(
    {"\x0b": "\n", "\x0c": "\r", "\x0e": "\r", "\x1e": "-", "\x1f": None}
    | dict.fromkeys("\0\x01\x02\x03\x04\x05\x06\x08")
)


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document. Raises UnreadableFile (`missing_extra`, `password`)."""
    with open_compound(source) as file:
        facts = file.get_metadata()
        # A number of two bytes, which olefile takes for a signed one.
        code_page = None if facts.codepage is None else facts.codepage & 0xFFFF
        text = _text(file, code_page)
        title = facts.title or ""
    assembly = Assembly()
    text = _FIELD_CODE.sub("", without_surrogates(text)).translate(_MARKS)
    for paragraph in text.split("\r"):
        if "\x07" not in paragraph:
            assembly.add(paragraph.strip(), "paragraph")
            continue
        for row in paragraph.split("\x07\x07"):  # each cell ends with a mark, then each row
            cells = (" ".join(cell.split()) for cell in row.split("\x07"))
            assembly.add(" | ".join(cells).strip(" |"), "table")
    named = narrow_text(title, code_page) if isinstance(title, bytes) else str(title)
    yield assembly.document("doc", " ".join(without_surrogates(named).split()))


def _text(file: Any, code_page: int | None) -> str:
    """Return all text of the document, its paragraphs ended by carriage returns.

    `code_page` is what the document declares; the text is in it up to Word 95.
    """
    stream: bytes = file.openstream("WordDocument").read()
    magic, version = struct.unpack_from("<HH", stream)
    flags = struct.unpack_from("<H", stream, 0x0A)[0]
    if magic != _MAGIC:
        raise UnreadableFile("unsupported", "a Word document of the format before Word 6")
    if flags & _ENCRYPTED:
        raise UnreadableFile("password", "password-protected")
    if version < _WORD_97:
        if flags & _IN_PIECES:
            message = ".doc files of Word 6 that were saved fast are not supported: save as .docx"
            raise UnreadableFile("unsupported", message)
        start, end = struct.unpack_from("<II", stream, 0x18)
        return narrow_text(stream[start:end], code_page)
    table: bytes = file.openstream("1Table" if flags & _SECOND_TABLE else "0Table").read()
    start, size = struct.unpack_from("<II", stream, 0x01A2)
    return "".join(_pieces(stream, table[start : start + size]))


def _pieces(stream: bytes, clx: bytes) -> Iterator[str]:
    """Yield the pieces of the text in order, as the piece table in `clx` names them."""
    position = 0
    while clx[position : position + 1] == b"\x01":  # formatting
        position += 3 + struct.unpack_from("<h", clx, position + 1)[0]
    if clx[position : position + 1] != b"\x02":
        raise UnreadableFile("corrupt", "a Word document without its table of pieces")
    size = struct.unpack_from("<I", clx, position + 1)[0]
    count = (size - 4) // 12
    starts = struct.unpack_from(f"<{count + 1}I", clx, position + 5)
    for piece in range(count):
        place = position + 5 + 4 * (count + 1) + 8 * piece + 2
        offset = struct.unpack_from("<I", clx, place)[0]
        length = starts[piece + 1] - starts[piece]
        if offset & 0x40000000:
            begin = (offset & 0x3FFFFFFF) // 2
            yield stream[begin : begin + length].decode("cp1252", "replace")
        else:
            yield stream[offset : offset + 2 * length].decode("utf-16-le", "replace")
