"""Rich Text Format (.rtf): paragraphs, headings, list items and rows of tables, in order.

The format is small enough to be read here; no library keeps headings, tables and notes apart.
Pictures, fields' code and deleted text are left out; headers and footers come after the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ragcli.corpus.code_pages import code_page_codec
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?\d{1,10})? ?|\\'([0-9A-Fa-f]{2})|\\(\r\n|[^A-Za-z])|([{}])|[\r\n]+"
    rb"|([^\\{}\r\n]+)"
)
_HEADING = re.compile(r"heading (\d)\b", re.IGNORECASE)

_CHARACTERS = {
    **{"tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’"},
    **{"ldblquote": "“", "rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " "},
    **{"qmspace": " ", "~": "\xa0", "_": "-", "\\": "\\", "{": "{", "}": "}"},
}
_CHARSETS = {
    **{77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "big5hkscs"},
    **{161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257"},
    **{204: "cp1251", 222: "cp874", 238: "cp1250", 255: "cp437"},
}
_CODE_PAGES = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}

_NO_TEXT = frozenset(
    "colortbl pict objdata fldinst listtext pntext sp nonshppict themedata colorschememapping"
    " latentstyles datastore bkmkstart bkmkend atnid atnref atnauthor annotation_date footnotesep"
    " ftnsep ftnsepc xe tc filetbl revtbl author operator company comment keywords subject"
    " doccomm hlinkbase category manager creatim revtim printim buptim".split()
)
_KEPT_THOUGH_OPTIONAL = frozenset({"shpinst", "annotation", "footnote"})
"""Groups marked as such that old readers skip, and that hold text."""

_END = "\x1e"
"""Ends a paragraph of a header or footer."""


@dataclass(frozen=True, slots=True)
class _Group:
    """What ends with a pair of braces: what text is for, and how bytes become it."""

    use: str = "text"
    codec: str = "cp1252"
    skipped: int = 1
    deleted: bool = False


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document. Raises UnreadableFile (`corrupt`)."""
    if not source.data.lstrip().startswith(b"{\\"):
        raise UnreadableFile("corrupt", "not RTF: no group at its beginning")
    parser = _Parser()
    parser.parse(source.data)
    if parser.depth > 0:
        source.problems.append(("corrupt", "damaged RTF: it ends within a group", None))
    yield parser.assembly.document("rtf", parser.title or parser.assembly.headings.title)


class _Parser:
    """Reads tokens and puts paragraphs together."""

    def __init__(self) -> None:
        self.assembly = Assembly()
        self._group = _Group()
        self._outer: list[_Group] = []
        self._default = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._styles: dict[int, int] = {}
        self._style = 0
        self._text: dict[str, list[str]] = {}
        self._bytes = bytearray()
        self._to_skip = 0
        self._cells: list[str] = []
        self._level: int | None = None
        self._item = False
        self._in_table = False

    @property
    def depth(self) -> int:
        """How many groups are open."""
        return len(self._outer)

    @property
    def title(self) -> str:
        """The title among the properties of the document, "" for none."""
        return " ".join(_joined(self._text.get("title", ())).split())

    def parse(self, data: bytes) -> None:
        """Read the whole file."""
        position = 0
        while (token := _TOKEN.match(data, position)) is not None:
            position = token.end()
            word, number, hexadecimal, symbol, brace, text = token.groups()
            if word is not None:
                value = int(number) if number else None
                if word == b"bin":
                    position += max(value or 0, 0)
                else:
                    self._word(word.decode("ascii"), value)
            elif hexadecimal is not None:
                self._raw(bytes.fromhex(hexadecimal.decode("ascii")))
            elif symbol is not None:
                self._symbol(symbol)
            elif brace is not None:
                self._brace(brace)
            elif text is not None:
                self._raw(text)
        self._flush()
        self._end_paragraph()
        beside = _joined(self._text.get("beside", ())).split(_END)
        self.assembly.add_once(beside)

    def _brace(self, brace: bytes) -> None:
        self._flush()
        if brace == b"{":
            self._outer.append(self._group)
        elif self._outer:
            if self._group.use == "beside":
                self._put(_END)
            self._group = self._outer.pop()
        self._to_skip = 0

    def _symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            self._group = replace(self._group, use=f"?{self._group.use}")
        elif symbol in (b"\r", b"\n", b"\r\n"):
            self._word("par", None)
        elif (text := _CHARACTERS.get(symbol.decode("latin-1"))) is not None:
            self._flush()
            self._put(text)

    def _word(self, word: str, value: int | None) -> None:
        use = self._group.use
        self._flush()
        if use.startswith("?"):  # the word after \* names a group that may be skipped
            kept = word in _KEPT_THOUGH_OPTIONAL
            self._group = replace(self._group, use=use[1:] if kept else "none")
            if word in ("shpinst", "footnote", "annotation"):
                self._put(" ")
        elif word in _NO_TEXT:
            self._item |= word in ("listtext", "pntext")
            self._group = replace(self._group, use="none")
        elif word in ("fonttbl", "stylesheet", "info"):
            self._group = replace(self._group, use=word)
        elif use == "info":
            self._group = replace(self._group, use="title" if word == "title" else "none")
        elif word.startswith(("header", "footer")) and word not in ("headery", "footery"):
            self._group = replace(self._group, use="beside")
        elif word == "u" and value is not None:
            self._put(chr(value % 65536))
            self._to_skip = self._group.skipped
        elif word in _CHARACTERS:
            self._put(_CHARACTERS[word])
        else:
            self._property(word, value)

    def _property(self, word: str, value: int | None) -> None:
        """What changes the text to come, or ends a paragraph, a cell or a row."""
        number = value or 0
        if word in ("par", "sect", "page"):
            if word == "par" and self._in_table:
                self._put(" ")
            else:
                self._end_paragraph()
        elif word in ("cell", "nestcell"):
            self._cells.append(self._taken())
        elif word in ("row", "nestrow"):
            self._end_paragraph()
        elif word == "uc":
            self._group = replace(self._group, skipped=max(number, 0))
        elif word == "deleted":
            self._group = replace(self._group, deleted=value != 0)
        elif word in ("f", "fcharset", "cpg", "ansicpg", "plain", *_CODE_PAGES):
            self._encoding(word, number)
        else:
            self._paragraph_property(word, number)

    def _paragraph_property(self, word: str, number: int) -> None:
        if word == "pard":
            self._level, self._item, self._in_table = None, False, False
        elif word == "intbl":
            self._in_table = True
        elif word == "outlinelevel" and number < 9:
            self._level = number + 1
        elif word == "s":
            self._style = number
            if self._group.use != "stylesheet":
                self._level = self._styles.get(number)
        elif word in ("ls", "pnlvl", "pnlvlblt", "pnlvlbody"):
            self._item = True

    def _encoding(self, word: str, number: int) -> None:
        if word == "ansicpg":
            self._default = code_page_codec(number) or self._default
        elif word in _CODE_PAGES:
            self._default = _CODE_PAGES[word]
        elif word == "f":
            self._font = number
        elif self._group.use == "fonttbl":
            self._fonts[self._font] = (
                (code_page_codec(number) or self._default)
                if word == "cpg"
                else _CHARSETS.get(number, self._default)
            )
            return
        codec = self._fonts.get(self._font, self._default) if word == "f" else self._default
        self._group = replace(self._group, codec=codec)

    def _raw(self, data: bytes) -> None:
        """Take bytes of text; those that stand in for a character given by number are dropped."""
        dropped = min(self._to_skip, len(data))
        self._to_skip -= dropped
        self._bytes += data[dropped:]

    def _flush(self) -> None:
        if self._bytes:
            text = self._bytes.decode(self._group.codec, "replace")
            self._bytes.clear()
            self._put(text)

    def _put(self, text: str) -> None:
        use = self._group.use
        if use == "stylesheet":
            if found := _HEADING.search(text):
                self._styles[self._style] = int(found[1])
        elif not self._group.deleted and use in ("text", "beside", "title"):
            self._text.setdefault(use, []).append(text)

    def _taken(self) -> str:
        """Return the text since the last paragraph ended."""
        return _joined(self._text.pop("text", ())).strip()

    def _end_paragraph(self) -> None:
        if self._group.use == "beside":
            self._put(_END)
            return
        text = self._taken()
        if self._cells:
            cells = [" ".join(cell.split()) for cell in (*self._cells, text)]
            self._cells.clear()
            self.assembly.add(" | ".join(cells).strip(" |"), "table")
        elif self._level is not None:
            self.assembly.heading(self._level, text)
        else:
            self.assembly.add(text, "item" if self._item else "paragraph")


def _joined(parts: Iterable[str]) -> str:
    """Return one text; characters beyond the first 65,536 come in two halves."""
    text = "".join(parts)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
