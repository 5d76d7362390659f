"""Outlook messages (.msg): subject, people and date, then the body, as `mail` reads the others.

Needs the office extra. Attachments are not unpacked; each is recorded as a problem.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers import html
from ragcli.corpus.readers.archive import missing_extra
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.plain import paragraphs
from ragcli.corpus.source import Source, without_surrogates
from ragcli.records import Document

_HEADERS = {"Subject": "0037", "From": "0C1A", "To": "0E04", "Cc": "0E03"}
"""Names of the properties, as MS-OXPROPS numbers them."""

_DATE = re.compile(r"^Date:[ \t]*([^\r\n]+)", re.MULTILINE | re.IGNORECASE)


def read(source: Source) -> Iterator[Document]:
    """Yield the message as one document. Raises UnreadableFile (`missing_extra`)."""
    try:
        import olefile
    except ImportError:
        raise missing_extra() from None
    with olefile.OleFileIO(io.BytesIO(source.data)) as file:
        assembly = Assembly()
        headers = {name: " ".join(_text(file, tag).split()) for name, tag in _HEADERS.items()}
        if sent := _DATE.search(_text(file, "007D")):
            headers["Date"] = sent[1].strip()
        lines = [f"{name}: {value}" for name, value in headers.items() if value]
        assembly.add("\n".join(lines), "other")
        _add_body(assembly, source, file)
        for folder in file.listdir(streams=False, storages=True):
            if len(folder) == 1 and folder[0].startswith("__attach"):
                name = _text(file, "3707", folder[0]) or _text(file, "3704", folder[0])
                message = f"attachment {name or 'without a name'!r} was not read"
                source.problems.append(("attachment", message, None))
    yield assembly.document("email", headers["Subject"])


def _add_body(assembly: Assembly, source: Source, file: Any) -> None:
    text = _text(file, "1000")
    page = _stream(file, "__substg1.0_10130102") or _text(file, "1013").encode()
    if text.strip():
        assembly.add_blocks(text, lambda text: paragraphs(text, 0, len(text)))
    elif page:
        body = Source(source.path, page)
        tree = html.parse(body)
        if tree is not None:
            html.add_page(assembly, tree)
        source.problems += body.problems
    elif _stream(file, "__substg1.0_10090102"):
        source.problems.append(("attachment", "the body, compressed RTF, was not read", None))


def _text(file: Any, tag: str, folder: str = "") -> str:
    """Return a property that is text, "" if the message has none of it."""
    where = f"{folder}/" if folder else ""
    wide = _stream(file, f"{where}__substg1.0_{tag}001F")
    if wide:
        return without_surrogates(wide.decode("utf-16-le", "replace")).rstrip("\0")
    narrow = _stream(file, f"{where}__substg1.0_{tag}001E").rstrip(b"\0")
    return Source("", narrow).text() if narrow else ""


def _stream(file: Any, name: str) -> bytes:
    return bytes(file.openstream(name).read()) if file.exists(name) else b""
