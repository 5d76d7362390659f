"""PDF through pypdf: the text of each page with its label, headings where the outline has them.

Limits of time and memory are those of the process that this runs in; `pdf_text` cleans the text.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.pdf_text import clean_pages, count_unmapped, outline_key, page_blocks
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Block, Document

if TYPE_CHECKING:
    import pypdf


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document with a page per page.

    Raises UnreadableFile: `password`, `no_text` if no page has text, `corrupt`. A page that has
    no text or cannot be read is recorded as a problem.
    """
    if b"%PDF-" not in source.data[:1024]:
        raise UnreadableFile("corrupt", "not a PDF: no %PDF- at its beginning")
    with _quiet():
        reader = _open(source.data)
        labels = _labels(reader)
        raw = [_page_text(source, reader, index, label) for index, label in enumerate(labels)]
        texts = clean_pages(raw)
        if not any(texts):
            if len(source.problems) == len(labels) > 0 and source.problems[0][0] == "corrupt":
                raise UnreadableFile("corrupt", source.problems[0][1])
            pages = "1 page" if len(labels) == 1 else f"{len(labels)} pages"
            message = f"no text layer: scanned or image only ({pages})"
            raise UnreadableFile("no_text", message)
        titles = _titles(reader)
        title = reader.metadata.title if reader.metadata else None
    assembly = Assembly()
    for index, (text, label) in enumerate(zip(texts, labels, strict=True)):
        assembly.page(label)
        _add_page(assembly, text, titles.get(index, {}))
        if unmapped := count_unmapped(text):
            message = f"{unmapped} of {len(text)} characters have no meaning in Unicode"
            source.problems.append(("unmapped", message, label))
    title = " ".join(title.split()) if isinstance(title, str) else None
    yield assembly.document("pdf", title)


def _open(data: bytes) -> pypdf.PdfReader:
    """Return a reader that the empty password opens. Raises UnreadableFile (`password`)."""
    import pypdf

    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableFile("password", "password-protected")
    except (pypdf.errors.FileNotDecryptedError, pypdf.errors.WrongPasswordError):
        raise UnreadableFile("password", "password-protected") from None
    except NotImplementedError as error:  # a method of encryption that needs a certificate
        raise UnreadableFile("password", f"protected: {error}") from error
    return reader


def _labels(reader: pypdf.PdfReader) -> list[str]:
    """Return the label that a viewer shows for each page, its number where that fails."""
    count = len(reader.pages)
    try:
        labels = reader.page_labels
    except Exception:  # noqa: BLE001  a label is not worth losing the text for
        labels = []
    return [labels[i] if i < len(labels) else str(i + 1) for i in range(count)]


def _page_text(source: Source, reader: pypdf.PdfReader, index: int, label: str) -> str:
    """Return a page's text, "" with a problem recorded where there is none."""
    try:
        text = reader.pages[index].extract_text()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  pypdf raises whatever a broken page leads to
        message = f"the page cannot be read: {type(error).__name__}: {error}"
        source.problems.append(("corrupt", message, label))
        return ""
    if not text.strip():
        source.problems.append(("no_text", "the page has no text", label))
    return text


def _titles(reader: pypdf.PdfReader) -> dict[int, dict[str, int]]:
    """Return, by page index, the titles that the outline names with their levels."""
    found: dict[int, dict[str, int]] = {}
    try:
        for level, entry in _entries(reader.outline, 1):
            index = reader.get_destination_page_number(entry)
            if index is not None and (key := outline_key(str(entry.title))):
                found.setdefault(index, {})[key] = level
    except Exception:  # noqa: BLE001  an outline is not worth losing the text for
        return found
    return found


def _entries(outline: list[Any], level: int) -> Iterator[tuple[int, Any]]:
    for entry in outline:
        if isinstance(entry, list):
            yield from _entries(entry, level + 1)
        else:
            yield level, entry


def _add_page(assembly: Assembly, text: str, titles: dict[str, int]) -> None:
    def blocks(text: str) -> Iterator[Block]:
        for start, end, kind, level in page_blocks(text, titles):
            if level is not None:
                assembly.headings.enter(level, " ".join(text[start:end].split()))
            yield Block(start, end, kind, assembly.headings.path)

    assembly.add_blocks(text, blocks)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep pypdf from logging and warning about each oddity of a file."""
    import logging
    import warnings

    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
