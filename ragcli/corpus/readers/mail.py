"""E-mail messages (.eml): subject, people and date, then the body, forwarded messages and reports.

Of the same in plain text and in HTML the plain text is read, unless it is a stub. Attachments
are not unpacked; each is recorded as a problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

_STUB = 5
"""How many times the words of the plain text HTML has that says more."""


def read(source: Source) -> Iterator[Document]:
    """Yield the message as one document; the title is its subject."""
    import email

    message = email.message_from_bytes(source.data)
    assembly = Assembly()
    _add_headers(assembly, message, _HEADERS)
    _add_part(assembly, source, message)
    yield assembly.document("email", _header(message, "Subject"))


def _add_headers(assembly: Assembly, message: Message[Any, Any], names: Iterable[str]) -> None:
    headers = {name: _header(message, name) for name in names}
    lines = [f"{name}: {value}" for name, value in headers.items() if value]
    assembly.add("\n".join(lines), "other")


def _add_part(assembly: Assembly, source: Source, part: Message[Any, Any]) -> None:
    """Append the text of a part and of the parts in it; record what is no text."""
    if part.is_multipart():
        children = [child for child in part.get_payload() if not isinstance(child, str)]
        if part.get_content_subtype() == "alternative":
            children = _alternatives(source.path, children)
        for child in children:
            if part.get_content_maintype() == "message":  # forwarded, or the fields of a report
                forwarded = part.get_content_type() == "message/rfc822"
                _add_headers(assembly, child, _HEADERS if forwarded else dict.fromkeys(child))
            _add_part(assembly, source, child)
    elif _is_text(part):
        try:
            _add_body(assembly, source, part)
        except UnreadableFile as error:
            source.problems.append((error.kind, f"a part of the message: {error}", None))
    else:
        name = part.get_filename() or part.get_content_type()
        source.problems.append(("attachment", f"attachment {name!r} was not read", None))


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


def _alternatives(path: str, parts: list[Message[Any, Any]]) -> list[Message[Any, Any]]:
    """Return the parts without those that say the same: HTML, or plain text that is a stub."""
    leaves = [leaf for part in parts for leaf in part.walk() if not leaf.is_multipart()]
    words = dict.fromkeys(("text/plain", "text/html"), 0)
    for leaf in filter(_is_text, leaves):
        if leaf.get_content_type() in words:
            words[leaf.get_content_type()] += _word_count(path, leaf)
    stub = _STUB * words["text/plain"] < words["text/html"]
    lesser = "text/plain" if stub else "text/html"
    return [leaf for leaf in leaves if not _is_text(leaf) or leaf.get_content_type() != lesser]


def _word_count(path: str, part: Message[Any, Any]) -> int:
    assembly = Assembly()
    with suppress(UnreadableFile):  # told when the part is read
        _add_body(assembly, Source(path, b""), part)
    return len(assembly.document("email").text.split())


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
