"""What a file is by its content, where names of its kind often lie.

Office programs, mail programs and downloads write one format under the name of another: RTF or
a web page as .doc, HTML or CSV as .xls, an encrypted file as .docx. Owns that look; the readers
own what follows.
"""

from __future__ import annotations

import io
import re

from ragcli.corpus.readers.compound import is_compound, root_entries
from ragcli.errors import UnreadableFile

_COMPOUND_ENTRIES = (
    ("__properties_version1.0", ".msg"),
    ("encryptedpackage", "password"),
    ("powerpoint document", ".ppt"),
    ("worddocument", ".doc"),
    ("workbook", ".xls"),
    ("book", ".xls"),
)
"""What lies at the top of a compound file of each kind, in lower case."""

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


def kind_by_content(data: bytes) -> str | None:
    """Return the suffix whose reader can read the content, None if it shows nothing.

    Raises UnreadableFile (`password`) for an encrypted office file.
    """
    if is_compound(data):
        entries = root_entries(data)
        kind = next((kind for name, kind in _COMPOUND_ENTRIES if name in entries), None)
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
