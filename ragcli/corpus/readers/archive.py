"""The ZIP files that office documents and EPUBs are, opened with a limit.

Owns the guard against archives that unpack to far more than they seem; knows no format.
"""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ragcli.corpus.readers.compound import is_compound
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

    if is_compound(source.data):  # how office programs encrypt
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

    Raises UnreadableFile (`corrupt`) for a member that is not there or is damaged.
    """
    with damage_told(name):
        member = archive.getinfo(name)
        with archive.open(member) as stream:
            return stream.read(member.file_size)


@contextmanager
def damage_told(name: str) -> Iterator[None]:
    """Turn what a missing or damaged member raises into UnreadableFile (`corrupt`)."""
    import zlib
    from zipfile import BadZipFile

    import lxml.etree

    try:
        yield
    except (
        *(KeyError, BadZipFile, EOFError, zlib.error),
        *(NotImplementedError, lxml.etree.XMLSyntaxError),
    ) as error:
        raise UnreadableFile("corrupt", f"no {name} that can be read: {error}") from error


def read_xml(archive: ZipFile, name: str, source: Source | None = None) -> Any:
    """Return the root element of a member. Raises UnreadableFile (`corrupt`).

    With `source`, what can be recovered of damaged XML is read, and the damage recorded there.
    """
    return parse_xml(read_member(archive, name), name, source)


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
    with damage_told(name):
        root = lxml.etree.fromstring(data, parser)
    if root is None:
        raise UnreadableFile("corrupt", f"no {name} that can be read")
    errors = parser.error_log.filter_from_errors()
    if source is not None and errors:
        source.problems.append(("corrupt", f"{name} is damaged: {errors[0].message}", None))
    return root


def beside(name: str, target: str) -> str:
    """Return the member that a relative link in a member means."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
