"""Outlook messages (.msg): subject, people and date, then the body, as `mail` reads the others.

Needs the office extra. Attachments are not unpacked; each is recorded as a problem.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.code_pages import code_page_codec, narrow_text
from ragcli.corpus.readers import html
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.compound import open_compound
from ragcli.corpus.readers.plain import paragraphs
from ragcli.corpus.source import Source, without_surrogates
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_HEADERS = {"Subject": "0037", "From": "0C1A", "To": "0E04", "Cc": "0E03"}
"""Names of the properties, as MS-OXPROPS numbers them."""

_HEADER = 32
_ENTRY = struct.Struct("<IIII")  # tag, flags, number, nothing
"""Of the stream of numbers (MS-OXMSG, 2.4)."""

_TEXT_CODE_PAGE, _PAGE_CODE_PAGE = 0x3FFD0003, 0x3FDE0003
"""Tags of the code pages of text in eight bits and of the HTML."""

_DATE = re.compile(r"^Date:[ \t]*([^\r\n]+)", re.MULTILINE | re.IGNORECASE)


def read(source: Source) -> Iterator[Document]:
    """Yield the message as one document. Raises UnreadableFile (`missing_extra`)."""
    with open_compound(source) as opened:
        file = _Message(opened)
        assembly = Assembly()
        headers = {name: " ".join(file.text(tag).split()) for name, tag in _HEADERS.items()}
        if sent := _DATE.search(file.text("007D")):
            headers["Date"] = sent[1].strip()
        lines = [f"{name}: {value}" for name, value in headers.items() if value]
        assembly.add("\n".join(lines), "other")
        try:
            _add_body(assembly, source, file)
        except UnreadableFile as error:
            source.problems.append((error.kind, f"the body of the message: {error}", None))
        for folder in opened.listdir(streams=False, storages=True):
            if len(folder) == 1 and folder[0].startswith("__attach"):
                name = file.text("3707", folder[0]) or file.text("3704", folder[0])
                message = f"attachment {name or 'without a name'!r} was not read"
                source.problems.append(("attachment", message, None))
    yield assembly.document("email", headers["Subject"])


class _Message:
    """The properties of an open message; `page_codec` is what its HTML is said to be in."""

    def __init__(self, file: Any) -> None:
        self._file = file
        entries = self.data("__properties_version1.0")[_HEADER:]
        whole = len(entries) - len(entries) % _ENTRY.size
        numbers = {tag: number for tag, _, number, _ in _ENTRY.iter_unpack(entries[:whole])}
        page = numbers.get(_PAGE_CODE_PAGE)
        self.page_codec = None if page is None else code_page_codec(page)
        self._code_page = numbers.get(_TEXT_CODE_PAGE, page)

    def data(self, name: str) -> bytes:
        """Return a stream, empty if it is not there."""
        return bytes(self._file.openstream(name).read()) if self._file.exists(name) else b""

    def text(self, tag: str, folder: str = "") -> str:
        """Return a property that is text, "" if the message has none of it."""
        where = f"{folder}/" if folder else ""
        if wide := self.data(f"{where}__substg1.0_{tag}001F"):
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        narrow = self.data(f"{where}__substg1.0_{tag}001E").rstrip(b"\0")
        return without_surrogates(narrow_text(narrow, self._code_page))


def _add_body(assembly: Assembly, source: Source, file: _Message) -> None:
    text = file.text("1000")
    page = file.data("__substg1.0_10130102") or file.text("1013").encode()
    if text.strip():
        assembly.add_blocks(text, lambda text: paragraphs(text, 0, len(text)))
    elif page:
        body = Source(source.path, page)
        tree = html.parse(body, file.page_codec)
        if tree is not None:
            html.add_page(assembly, tree)
        source.problems += body.problems
    elif file.data("__substg1.0_10090102"):
        source.problems.append(("attachment", "the body, compressed RTF, was not read", None))
