"""A PDF through pypdf: its pages' text and labels, outline and title.

Pure Python: reads what PDFium refuses, and the pages that it is bad at.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ragcli.errors import UnreadableFile

if TYPE_CHECKING:
    import pypdf


class PypdfFile:
    """An open PDF. Each method but `text` and `page_count` gives what is sound of a broken file."""

    def __init__(self, data: bytes) -> None:
        """Raises UnreadableFile (`password`), and whatever a broken file leads pypdf to."""
        self._reader = _open(data)
        self.page_count = len(self._reader.pages)

    def text(self, index: int) -> str:
        """Return a page's text; raises whatever a broken page leads pypdf to."""
        return self._reader.pages[index].extract_text()

    def labels(self) -> list[str]:
        """Return the label that a viewer shows for each page, its number where there is none."""
        try:
            labels = self._reader.page_labels
        except Exception:  # noqa: BLE001  a label is not worth losing the text for
            labels = []
        labels += [""] * (self.page_count - len(labels))
        return [label or str(number) for number, label in enumerate(labels, 1)]

    def outline(self) -> Iterator[tuple[int, int, str]]:
        """Yield level (from 1), page index and title of the outline's entries."""
        try:
            for level, entry in _entries(self._reader.outline, 1):
                index = self._reader.get_destination_page_number(entry)
                if index is not None:
                    yield level, index, str(entry.title)
        except Exception:  # noqa: BLE001  an outline is not worth losing the text for
            return

    def title(self) -> str | None:
        """Return the title that the file gives itself."""
        try:
            title = self._reader.metadata.title if self._reader.metadata else None
        except Exception:  # noqa: BLE001  a title is not worth losing the text for
            return None
        return title if isinstance(title, str) else None


def _open(data: bytes) -> pypdf.PdfReader:
    """Return a reader that the empty password opens."""
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


def _entries(outline: list[Any], level: int) -> Iterator[tuple[int, Any]]:
    for entry in outline:
        if isinstance(entry, list):
            yield from _entries(entry, level + 1)
        else:
            yield level, entry
