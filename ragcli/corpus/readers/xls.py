"""Excel workbooks of the format before 2007 (.xls), through xlrd: as `xlsx` reads the new ones.

Needs the office extra.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.compound import missing_extra
from ragcli.corpus.readers.sheets import Sheet, SheetLimits, shown_number
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

BARE = (b"\x09\x00\x04\x00", b"\x09\x02\x06\x00", b"\x09\x04\x06\x00")
"""The first bytes of workbooks of Excel 2, 3 and 4, which lie in no compound file."""


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document. Raises UnreadableFile (`missing_extra`, `password`)."""
    try:
        import xlrd
    except ImportError:
        raise missing_extra() from None
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        try:
            book = xlrd.open_workbook(
                file_contents=source.data, formatting_info=False, logfile=nowhere, on_demand=True
            )
        except xlrd.XLRDError as error:
            if "encrypted" in str(error):
                raise UnreadableFile("password", "password-protected") from None
            raise
        assembly, limits = Assembly(), SheetLimits(source)
        for index in range(book.nsheets):
            table = book.sheet_by_index(index)
            sheet = Sheet(assembly, limits, table.name)
            for number in range(table.nrows):
                cells = table.row(number)
                while cells and cells[-1].ctype in (xlrd.XL_CELL_EMPTY, xlrd.XL_CELL_BLANK):
                    cells.pop()
                if not sheet.add([_shown(cell, since_1904=bool(book.datemode)) for cell in cells]):
                    break
            book.unload_sheet(index)
    limits.record()
    yield assembly.document("xls")


def _shown(cell: Any, *, since_1904: bool) -> str:
    """Return a cell as a person would write it; the kinds are those of xlrd."""
    import xlrd

    if cell.ctype == xlrd.XL_CELL_TEXT:
        return str(cell.value).strip()
    if cell.ctype == xlrd.XL_CELL_NUMBER:
        return shown_number(repr(cell.value), "", since_1904=since_1904)
    if cell.ctype == xlrd.XL_CELL_DATE:
        return shown_number(
            repr(cell.value), "y h" if cell.value >= 1 else "h", since_1904=since_1904
        )
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return "True" if cell.value else "False"
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, ""))
    return ""
