"""A PDF through PDFium (pypdfium2): text, labels, outline and title, and pages as pictures.

Native code that reads hostile files: only ever run in a child process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing

from ragcli.errors import UnreadableFile

INCH = 72.0
"""Units of a page's size."""
_DOTS = 300
_MOST_PIXELS = 25_000_000
_BROKEN = (RuntimeError, ValueError)
"""What pypdfium2 raises: its own error, and that of bytes that are not UTF-16."""


class PdfiumFile:
    """An open PDF; to be closed. Pages are numbered from 0."""

    def __init__(self, data: bytes) -> None:
        """Raises UnreadableFile: `password`, `corrupt`."""
        import pypdfium2
        from pypdfium2 import raw

        try:
            self._document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            if error.err_code == raw.FPDF_ERR_PASSWORD:
                raise UnreadableFile("password", "password-protected") from None
            raise UnreadableFile("corrupt", str(error)) from error
        self.page_count = len(self._document)

    def text(self, index: int) -> str:
        """Return a page's text; raises RuntimeError for a broken page.

        A hyphen that divides a word at a line end is a hyphen and a line end; glyphs that PDFium
        leaves out, because they mean nothing to it, are as many NULs at the end.
        """
        with closing(self._document[index]) as page:
            content = page.get_textpage()
            text: str = content.get_text_range()
            units = len(text.encode("utf-16-le", "surrogatepass")) // 2
            left_out: int = max(0, content.count_chars() - units)
        # PDFium has U+FFFE for a hyphen and its line end.
        return text.replace("\ufffe", "-\n") + "\0" * left_out

    def labels(self) -> list[str]:
        """Return the label that a viewer shows for each page, its number where there is none."""
        return [self._label(index) or str(index + 1) for index in range(self.page_count)]

    def outline(self) -> Iterator[tuple[int, int, str]]:
        """Yield level (from 1), page index and title of the outline's entries."""
        try:
            for entry in self._document.get_toc():
                target = entry.get_dest()
                index = target.get_index() if target else None
                if index is not None:
                    yield entry.level + 1, index, entry.get_title()
        except _BROKEN:  # an outline is not worth losing the text for
            return

    def title(self) -> str | None:
        """Return the title that the file gives itself."""
        try:
            title: str = self._document.get_metadata_value("Title")
        except _BROKEN:
            return None
        return title or None

    def _label(self, index: int) -> str:
        try:
            label: str = self._document.get_page_label(index)
        except _BROKEN:
            return ""
        return label

    def is_blank(self, index: int) -> bool:
        """Whether nothing at all is drawn on the page; what cannot be read draws nothing either."""
        from pypdfium2 import raw

        with closing(self._document[index]) as page:
            return bool(raw.FPDFPage_CountObjects(page) == 0)

    def picture_share(self, index: int) -> float:
        """Return how much of the page images cover, 0 to 1; overlaps count twice."""
        from pypdfium2 import raw

        covered = 0.0
        try:
            with closing(self._document[index]) as page:
                width, height = page.get_size()
                for image in page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,)):
                    left, bottom, right, top = image.get_bounds()
                    covered += (right - left) * (top - bottom)
        except _BROKEN:
            return 0.0
        return min(1.0, covered / (width * height)) if width * height else 0.0

    def picture(self, index: int) -> tuple[bytes, int]:
        """Return the page as a person sees it, a grey PGM, and its dots an inch.

        Raises RuntimeError for a page that cannot be drawn.
        """
        with closing(self._document[index]) as page:
            inches = max(page.get_width() * page.get_height() / INCH**2, 1e-6)
            dots = min(_DOTS, math.sqrt(_MOST_PIXELS / inches))
            bitmap = page.render(scale=dots / INCH, grayscale=True)
            width, height, stride = bitmap.width, bitmap.height, bitmap.stride
            pixels = bytes(bitmap.buffer)
            bitmap.close()
        rows = (pixels[row * stride : row * stride + width] for row in range(height))
        return b"P5 %d %d 255\n" % (width, height) + b"".join(rows), round(dots)

    def close(self) -> None:
        """Give back what PDFium holds."""
        self._document.close()
