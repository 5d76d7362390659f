"""PDF: the text of each page with its label, headings where the outline has them.

PDFium reads the pages, pypdf those that PDFium is known to be bad at, and the files that it
cannot open; `benchmarks/pdf.md` has why. Limits of time and memory are those
of the process that this runs in. `pdf_text` cleans the text, `pdf_ocr` reads pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.pdf_ocr import SECONDS as OCR_SECONDS
from ragcli.corpus.readers.pdf_ocr import OcrFailed, recognise
from ragcli.corpus.readers.pdf_pdfium import PdfiumFile
from ragcli.corpus.readers.pdf_pypdf import PypdfFile
from ragcli.corpus.readers.pdf_text import (
    clean_pages,
    count_flaws,
    count_letters,
    count_unmapped,
    is_doubtful,
    outline_key,
    page_blocks,
)
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Block, Document

LITTLE = 100
"""Letters and digits of a page that is mostly a picture: a stamp or a header over a scan."""

_NO_TEXT = "the page has no text"
_PICTURE = 0.5
_SECOND_LOOKS = 500
"""Pages of a file that pypdf reads after PDFium, so that the slow one does not cost the file."""
_ENOUGH = 0.8
_BESIDE = 30.0
"""Seconds for a file from one page's OCR to the next one's, beside what OCR itself may take."""


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document with a page per page.

    Raises UnreadableFile: `password`, `no_text` if no page has text, `corrupt`. A page that has
    little or no text, that cannot be read, or whose text is from OCR is recorded as a problem.
    """
    if b"%PDF-" not in source.data[:1024]:
        raise UnreadableFile("corrupt", "not a PDF: no %PDF- at its beginning")
    with _quiet(), closing(_Pages(source.data)) as pages:
        labels = pages.file.labels()
        texts = clean_pages(
            [_text(source, pages, page, label) for page, label in enumerate(labels)]
        )
        if not any(texts):
            raise _without_text(source, len(labels))
        titles: dict[int, dict[str, int]] = {}
        for level, index, title in pages.file.outline():
            if key := outline_key(title):
                titles.setdefault(index, {})[key] = level
        name = pages.file.title()
    assembly = Assembly()
    for index, (text, label) in enumerate(zip(texts, labels, strict=True)):
        assembly.page(label)
        _add_page(assembly, text, titles.get(index, {}))
    yield assembly.document("pdf", " ".join(name.split()) if name else None)


class _Pages:
    """The pages of a file through the library that is right for each; to be closed."""

    def __init__(self, data: bytes) -> None:
        """Raises UnreadableFile (`password`), and whatever a broken file leads pypdf to."""
        self._data = data
        self._pypdf: PypdfFile | None = None
        self._looks = _SECOND_LOOKS
        self.pdfium = _pdfium(data)
        self.file: PdfiumFile | PypdfFile = self.pdfium or self._with_pypdf()

    def text(self, index: int) -> str:
        """Return a page's text; raises whatever a page that neither can read leads pypdf to."""
        if self.pdfium is None:
            return self._with_pypdf().text(index)
        try:
            text = self.pdfium.text(index)
            broken = not text.strip() and self.is_blank(index)
        except RuntimeError:
            text, broken = "", True
        if self._looks and (broken or is_doubtful(text)):
            self._looks -= 1
            try:
                other = self._with_pypdf().text(index)
            except Exception:
                if broken:
                    raise
                return text
            enough = count_letters(other) >= _ENOUGH * count_letters(text)
            flaws = count_flaws(text, turns_arabic=True)
            if enough and (broken or count_flaws(other, turns_arabic=False) < flaws):
                return other
        return text

    def is_blank(self, index: int) -> bool:
        """Whether nothing is drawn on a page; only PDFium knows."""
        try:
            return self.pdfium is not None and self.pdfium.is_blank(index)
        except RuntimeError:  # a page that it cannot read
            return False

    def _with_pypdf(self) -> PypdfFile:
        if self._pypdf is None:
            self._pypdf = PypdfFile(self._data)
        return self._pypdf

    def close(self) -> None:
        if self.pdfium is not None:
            self.pdfium.close()


def _pdfium(data: bytes) -> PdfiumFile | None:
    """Open with PDFium, if it can open it and finds pages."""
    try:
        file = PdfiumFile(data)
    except UnreadableFile:
        return None  # pypdf has the last word, and says what is wrong
    if file.page_count:
        return file
    file.close()
    return None


def _text(source: Source, pages: _Pages, index: int, label: str) -> str:
    """Return a page's text, by OCR where that is wanted; records what is missing of it."""
    try:
        text = pages.text(index)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  pypdf raises whatever a broken page leads to
        message = f"the page cannot be read: {type(error).__name__}: {error}"
        source.problems.append(("corrupt", message, label))
        return ""
    if unmapped := count_unmapped(text):
        message = f"{unmapped:,} of {len(text):,} characters have no meaning in Unicode"
        source.problems.append(("unmapped", message, label))
    letters = count_letters(text)
    if letters >= LITTLE:
        return text
    share = pages.pdfium.picture_share(index) if pages.pdfium else 0.0
    if text.strip() and share < _PICTURE:
        return text
    kind, missing = "no_text", _NO_TEXT
    if text.strip():
        kind = "little_text"
        missing = f"{letters} letters and digits beside an image over {share:.0%} of the page"
    elif pages.is_blank(index):
        source.problems.append(("blank", "the page is blank", label))
        return ""
    found, told = _recognised(source, pages, index)
    if count_letters(found) > letters:
        source.problems.append(("ocr", told, label))
        return found
    source.problems.append((kind, f"{missing}; {told}" if told else missing, label))
    return text


def _recognised(source: Source, pages: _Pages, index: int) -> tuple[str, str]:
    """Return what OCR finds on a page, and what to say of it; both "" where it is not wanted."""
    if source.ocr is None or pages.pdfium is None:
        return "", ""
    source.more_time(OCR_SECONDS + _BESIDE)
    try:
        found = recognise(*pages.pdfium.picture(index), source.ocr)
    except (OcrFailed, RuntimeError) as error:
        return "", str(error)
    if not found.text:
        return "", "OCR found none"
    return found.text, f"text by OCR, mean confidence {found.confidence:.0f} %"


def _without_text(source: Source, count: int) -> UnreadableFile:
    """What to raise for a file of `count` pages without a word."""
    first = source.problems[0] if len(source.problems) == count > 0 else None
    if first is not None and first[0] == "corrupt":
        return UnreadableFile("corrupt", first[1])
    pages = "1 page" if count == 1 else f"{count:,} pages"
    if all(kind == "blank" for kind, _, _ in source.problems):
        return UnreadableFile("no_text", f"no text: nothing is drawn on it ({pages})")
    message = f"no text layer: scanned or image only ({pages})"
    if source.ocr is None:
        message += "; index --ocr eng may read it"
    elif first is not None:
        message += first[1].removeprefix(_NO_TEXT)
    return UnreadableFile("no_text", message)


def _add_page(assembly: Assembly, text: str, titles: dict[str, int]) -> None:
    def blocks(text: str) -> Iterator[Block]:
        for start, end, kind, level in page_blocks(text, titles):
            if level is not None:
                assembly.headings.enter(level, " ".join(text[start:end].split()))
            yield Block(start, end, kind, assembly.headings.path)

    assembly.add_blocks(text, blocks)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the libraries from logging and warning about each oddity of a file."""
    import logging
    import warnings

    loggers = [logging.getLogger(name) for name in ("pypdf", "pypdfium2")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
