"""The ZIP files that office documents and EPUBs are, opened with a limit.

Owns the guard against archives that unpack to far more than they seem; knows no format.
"""

from __future__ import annotations

import io
import posixpath
from typing import TYPE_CHECKING, Any

from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile

if TYPE_CHECKING:
    from zipfile import ZipFile

UNPACKED = 200 * 1024 * 1024
"""How many bytes an archive may unpack to, all its members together."""


def open_archive(source: Source) -> ZipFile:
    """Open a file as an archive whose members may be read without fear for the memory.

    A member is never read beyond the size that the directory of the archive declares, so that
    the declared sizes are a bound. Raises UnreadableFile: `corrupt`, `password`, `too_large`.
    """
    from zipfile import BadZipFile, ZipFile

    if source.data.startswith(b"\xd0\xcf\x11\xe0"):  # how office programs encrypt
        raise UnreadableFile("password", "password-protected, or of the format before 2007")
    try:
        archive = ZipFile(io.BytesIO(source.data))
    except (BadZipFile, ValueError, OSError) as error:
        raise UnreadableFile("corrupt", f"damaged archive: {error}") from error
    members = archive.infolist()
    if any(member.flag_bits & 1 for member in members):
        raise UnreadableFile("password", "password-protected")
    if sum(member.file_size for member in members) > UNPACKED:
        raise UnreadableFile("too_large", f"unpacks to more than {UNPACKED >> 20} MB")
    return archive


def read_member(archive: ZipFile, name: str) -> bytes:
    """Return a member, inflated no further than its directory says; so that sizes may lie.

    Raises KeyError for a member that is not there, BadZipFile for one that is damaged.
    """
    import zlib
    from zipfile import BadZipFile

    member = archive.getinfo(name)
    try:
        with archive.open(member) as stream:
            return stream.read(member.file_size)
    except (zlib.error, EOFError) as error:
        raise BadZipFile(f"{name} cannot be inflated: {error}") from error


def read_xml(archive: ZipFile, name: str, source: Source | None = None) -> Any:
    """Return the root element of a member. Raises UnreadableFile (`corrupt`).

    With `source`, what can be recovered of damaged XML is read, and the damage recorded there.
    """
    from zipfile import BadZipFile

    try:
        return parse_xml(read_member(archive, name), name, source)
    except (KeyError, BadZipFile) as error:
        raise UnreadableFile("corrupt", f"no {name} that can be read: {error}") from error


def parse_xml(data: bytes, name: str, source: Source | None = None) -> Any:
    """Return the root element of XML; `name` is for messages, `source` as in `read_xml`."""
    import lxml.etree

    parser = lxml.etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        recover=source is not None,
    )
    try:
        root = lxml.etree.fromstring(data, parser)
    except lxml.etree.XMLSyntaxError as error:
        raise UnreadableFile("corrupt", f"no {name} that can be read: {error}") from error
    if root is None:
        raise UnreadableFile("corrupt", f"no {name} that can be read")
    errors = parser.error_log.filter_from_errors()
    if source is not None and errors:
        source.problems.append(("corrupt", f"{name} is damaged: {errors[0].message}", None))
    return root


def beside(name: str, target: str) -> str:
    """Return the member that a relative link in a member means."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), target))


def local_name(element: Any) -> str:
    """Return an element's name without its namespace, "" for what is no element."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def missing_extra() -> UnreadableFile:
    """Return the error for a format whose library is not installed."""
    return UnreadableFile("missing_extra", 'needs the office extra: pip install "ragcli[office]"')
