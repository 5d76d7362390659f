"""E-mail messages (.eml): subject, people and date, then the body.

Attachments are not unpacked; each is recorded as a problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ragcli.corpus.readers import html
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.plain import paragraphs
from ragcli.corpus.source import Source, without_surrogates
from ragcli.errors import UnreadableFile
from ragcli.records import Document

if TYPE_CHECKING:
    from email.message import Message

_HEADERS = ("Subject", "From", "To", "Cc", "Date")


def read(source: Source) -> Iterator[Document]:
    """Yield the message as one document; the title is its subject."""
    import email

    message = email.message_from_bytes(source.data)
    assembly = Assembly()
    headers = {name: _header(message, name) for name in _HEADERS}
    lines = [f"{name}: {value}" for name, value in headers.items() if value]
    assembly.add("\n".join(lines), "other")
    for part in _bodies(source, message):
        try:
            _add_body(assembly, source, part)
        except UnreadableFile as error:
            source.problems.append((error.kind, f"a part of the message: {error}", None))
    yield assembly.document("email", headers["Subject"])


def _add_body(assembly: Assembly, source: Source, part: Message[Any, Any]) -> None:
    payload = part.get_payload(decode=True)
    body = Source(source.path, payload if isinstance(payload, bytes) else b"")
    if part.get_content_subtype() == "html":
        tree = html.parse(body, part.get_content_charset())
        if tree is not None:
            html.add_page(assembly, tree)
    else:
        text = without_surrogates(body.text(part.get_content_charset()))
        assembly.add_blocks(text, lambda text: paragraphs(text, 0, len(text)))
    source.problems += body.problems


def _bodies(source: Source, part: Message[Any, Any]) -> Iterator[Message[Any, Any]]:
    """Yield the parts that are text; of alternatives the plain one, else HTML."""
    if part.is_multipart():
        parts = [child for child in part.get_payload() if not isinstance(child, str)]
        if part.get_content_subtype() == "alternative":
            parts.sort(key=lambda child: child.get_content_type() != "text/plain")
            parts = [child for child in parts if _is_text(child) or child.is_multipart()][:1]
        for child in parts:
            yield from _bodies(source, child)
    elif _is_text(part):
        yield part
    else:
        name = part.get_filename() or part.get_content_type()
        source.problems.append(("attachment", f"attachment {name!r} was not read", None))


def _is_text(part: Message[Any, Any]) -> bool:
    attached = part.get_content_disposition() == "attachment"
    return part.get_content_maintype() == "text" and not attached


def _header(message: Message[Any, Any], name: str) -> str:
    """Return a header on one line, its encoded words decoded as far as they can be."""
    from email.header import decode_header, make_header

    raw = str(message.get(name, ""))
    with suppress(ValueError, LookupError):  # a broken encoded word, an unknown encoding
        raw = str(make_header(decode_header(raw)))
    return without_surrogates(" ".join(raw.split()))
