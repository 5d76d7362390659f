"""What a file is by its content, where names of its kind often lie.

Office programs, mail programs and downloads write one format under the name of another: RTF or
a web page as .doc, HTML or CSV as .xls, an encrypted file as .docx. Owns that look; the readers
own what follows.
"""

from __future__ import annotations

import io
import re

from ragcli.errors import UnreadableFile

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

# The first that is there decides: a message may hold a workbook.
_OLE_STREAMS = (
    ("__properties_version1.0", ".msg"),
    ("EncryptedPackage", "password"),
    ("PowerPoint Document", ".ppt"),
    ("WordDocument", ".doc"),
    ("Workbook", ".xls"),
    ("Book", ".xls"),
)
_ZIP_MEMBERS = (
    ("word/", ".docx"),
    ("xl/workbook.bin", ".xlsb"),
    ("xl/", ".xlsx"),
    ("ppt/", ".pptx"),
    ("META-INF/container.xml", ".epub"),
    ("content.xml", ".odt"),
)
_BEGINNINGS = (
    (re.compile(rb"\{\\rtf"), ".rtf"),
    (re.compile(rb"%PDF-"), ".pdf"),
    (re.compile(rb"<!doctype html|<html|<head|<meta|<table", re.IGNORECASE), ".html"),
    (re.compile(rb"<\?xml[^>]*\?>\s*<(?:!doctype )?html", re.IGNORECASE), ".html"),
    (re.compile(rb"<\?xml[^>]*\?>.{0,300}?<office:document", re.DOTALL), ".fodt"),
    (re.compile(rb"<\?xml"), ".xml"),
    (re.compile(rb"[A-Z][A-Za-z-]*:(?=.*^MIME-Version:)", re.DOTALL | re.MULTILINE), ".eml"),
)


def is_compound(data: bytes) -> bool:
    """Tell whether this is the container of Office's formats before 2007."""
    return data.startswith(_OLE)


def kind_by_content(data: bytes) -> str | None:
    """Return the suffix whose reader can read the content, None if it shows nothing.

    Raises UnreadableFile (`password`) for an encrypted office file.
    """
    if data.startswith(_OLE):
        kind = next((k for name, k in _OLE_STREAMS if name.encode("utf-16-le") in data), None)
        if kind == "password":
            raise UnreadableFile("password", "password-protected")
        return kind
    if data.startswith(b"PK\x03\x04"):
        return _kind_of_archive(data)
    start = data[:2000].removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((kind for pattern, kind in _BEGINNINGS if pattern.match(start)), None)


def _kind_of_archive(data: bytes) -> str | None:
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except (BadZipFile, ValueError, OSError):
        return None  # its reader says what is wrong with it
    return next(
        (kind for prefix, kind in _ZIP_MEMBERS if any(n.startswith(prefix) for n in names)), None
    )
