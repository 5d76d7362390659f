"""HTML: the main text of a page, without scripts, navigation and what is hidden.

The document's text is assembled, white space collapsed outside `pre`; each block keeps the
line of its element in the file. Also walks the chapters of an EPUB and the body of an e-mail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_CHARSET = re.compile(
    rb"(?:<meta[^>]{0,200}?charset|<\?xml[^>]{0,100}?encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.I
)

_XHTML = re.compile(r"<html[^>]{0,500}?xmlns\s*=\s*[\"']http://www\.w3\.org/1999/xhtml")
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)[A-Za-z]\w*;")
"""Those of HTML, which XML does not know."""

_REFERENCE = re.compile(r"&#(?:[xX]([0-9a-fA-F]+)|([0-9]+));?")

# The head is not among them: the parser leaves elements there that it is too old to know.
_DROPPED = (
    *("title", "script", "style", "template", "noscript", "iframe", "object", "embed", "svg"),
    *("audio", "video", "canvas", "select", "datalist", "textarea", "button", "input", "map"),
)
_ASIDE = frozenset({"nav", "footer", "aside", "dialog", "menu"})
_CONTENT = ("article", "main", "section")
"""Where a header is that of the text, not that of the page."""

_ASIDE_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "search", "complementary", "menu", "dialog"}
)
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math"
    " nobr output picture q rp rt ruby s samp small span strike strong sub sup time tt u var wbr"
    " source track param meta link base area".split()
)
_KINDS = {"li": "item", "dt": "item", "dd": "item", "tr": "table", "pre": "code"}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_PERMALINK = re.compile(r"^§\s*|\s*[¶#§\u200b\uf0c1🔗]+$")
_LAYOUT = ("table", "ul", "ol", "dl", "pre", "h1", "h2", "h3", "h4", "h5", "h6")
"""What a table holds that is there to place things, not to show data."""

_BREAK = "\u2028"
"""Stands for a line end that is meant, until white space is collapsed."""


def read(source: Source) -> Iterator[Document]:
    """Yield the page as one document; `line_anchors` has the line of each block."""
    assembly = Assembly(lines=True)
    tree = parse(source)
    title = None
    if tree is not None:
        title = " ".join((tree.findtext(".//title") or "").split())
        add_page(assembly, tree)
    yield assembly.document("html", title or assembly.headings.title)


def parse(source: Source, charset: str | None = None) -> Any:
    """Return the root element of a page, None if it has none.

    The encoding is that of a byte order mark, UTF-8 where it fits, `charset` or else the one
    that the page declares, a guess.
    Raises UnreadableFile as `Source.text` does.
    """
    import lxml.etree
    import lxml.html

    if charset is None and (declared := _CHARSET.search(source.data, 0, 4096)):
        charset = declared[1].decode("ascii", "replace")
    text = source.text(charset)
    text = sound_references(text.replace("\0", "\ufffd"))
    if "\n" not in text:
        text = text.replace("\r", "\n")
    if _XHTML.search(text, 0, 2000) and (tree := _parse_xhtml(text)) is not None:
        return tree
    # Pages nest deeper than the 256 elements that the parser allows by itself; 2,048 it then does.
    parser = lxml.html.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True
    )
    try:
        tree = lxml.html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
        limits = [entry for entry in parser.error_log if entry.type_name == "ERR_RESOURCE_LIMIT"]
        if limits:
            message = f"not read from line {limits[0].line} on: {limits[0].message.split(',')[0]}"
            source.problems.append(("truncated", message, None))
        return tree
    except lxml.etree.ParserError:  # nothing but white space or comments
        return None
    except lxml.etree.LxmlError as error:
        raise UnreadableFile("corrupt", f"not HTML: {error}") from error


def _parse_xhtml(text: str) -> Any:
    """Return the root element of XHTML, where `<title/>` is empty; None if it is not sound XML."""
    from html import unescape

    import lxml.etree
    import lxml.html

    text = _DECLARATION.sub("", text, count=1)
    text = _ENTITY.sub(lambda entity: unescape(entity[0]), text)
    parser = lxml.html.XHTMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, remove_comments=True
    )
    try:
        tree = lxml.etree.fromstring(text.encode("utf-8", "replace"), parser)
    except lxml.etree.XMLSyntaxError:
        return None
    lxml.html.xhtml_to_html(tree)
    return tree


def sound_references(text: str) -> str:
    """Return markup in which each reference to half a surrogate pair means U+FFFD."""

    def sound(found: re.Match[str]) -> str:
        value = int(found[1], 16) if found[1] else int(found[2][:9])
        return "\ufffd" if 0xD800 <= value <= 0xDFFF else found[0]

    return _REFERENCE.sub(sound, text) if "&#" in text else text


def add_page(assembly: Assembly, tree: Any) -> None:
    """Append the main text of a page: all of it where nothing else is left."""
    import lxml.etree

    lxml.etree.strip_elements(tree, *_DROPPED, with_tail=False)
    if not _Walk(assembly, aside=False).run(_main(tree)):
        _Walk(assembly, aside=True).run(tree)


def _main(tree: Any) -> Any:
    """Return the element that is marked as the main text, if it holds most of the text."""
    for path in (".//main", ".//*[@role='main']", ".//article"):
        found = tree.findall(path)
        if len(found) == 1 and 2 * len(found[0].text_content()) >= len(tree.text_content()):
            return found[0]
    return tree


class _Walk:
    """One pass over the elements: text gathers in `pieces` until a block begins or ends."""

    def __init__(self, assembly: Assembly, aside: bool) -> None:
        self.assembly = assembly
        self.aside = aside  # whether navigation and the like are taken too
        self.pieces: list[str] = []
        self.open = [("paragraph", 1)]  # kind and line of the open blocks
        self.whole = 0  # how deep in elements that are one block: pre, the row of a data table
        self.data_tables: list[bool] = []
        self.added = False

    def run(self, root: Any) -> bool:
        """Append the text of an element; return whether there was any."""
        import lxml.etree

        events = lxml.etree.iterwalk(root, events=("start", "end"))
        skipped = None
        for event, element in events:
            if event == "start":
                if element is not root and not self.aside and _is_aside(element):
                    events.skip_subtree()
                    skipped = element
                else:
                    self.begin(element, element.tag)
            else:
                if element is not skipped:
                    self.finish(element.tag)
                if element.tail and element is not root:
                    self.pieces.append(element.tail)
        self.flush()
        return self.added

    def begin(self, element: Any, tag: str) -> None:
        if tag == "br":
            self.pieces.append(_BREAK)
        elif tag not in _INLINE:
            self.begin_block(element, tag)
        if element.text:
            self.pieces.append(element.text)

    def begin_block(self, element: Any, tag: str) -> None:
        if tag == "table":
            self.data_tables.append(next(element.iterdescendants(*_LAYOUT), None) is None)
        if self.whole:
            if tag in ("td", "th") and any(not piece.isspace() for piece in self.pieces):
                self.pieces.append(" | ")
            self.whole += tag in ("pre", "tr")
            self.pieces.append(" ")
            return
        self.flush()
        kind = "heading" if tag in _HEADINGS else _KINDS.get(tag, self.open[-1][0])
        if tag == "tr" and not (self.data_tables and self.data_tables[-1]):
            kind = "paragraph"
        self.whole = int(kind in ("code", "table") and tag in ("pre", "tr"))
        self.open.append((kind, element.sourceline or 1))

    def finish(self, tag: str) -> None:
        if tag in _INLINE or tag == "br":
            return
        if tag == "table":
            self.data_tables.pop()
        if self.whole:
            self.whole -= tag in ("pre", "tr")
            if self.whole:
                return
        self.flush(_HEADINGS.get(tag, 0))
        self.open.pop()

    def flush(self, level: int = 0) -> None:
        """Append what has gathered as a block, with a level as a heading."""
        text = "".join(self.pieces)
        self.pieces.clear()
        if not text or text.isspace():
            return
        kind, line = self.open[-1]
        if kind == "code":
            text = text.replace(_BREAK, "\n")
        else:
            lines = (" ".join(part.split()) for part in text.split(_BREAK))
            text = ("\n" if kind != "table" else " ").join(filter(None, lines))
        if kind in ("heading", "item"):
            text = _PERMALINK.sub("", text)
        if level:
            self.assembly.heading(level, text, line)
        else:
            self.assembly.add(text, "paragraph" if kind == "heading" else kind, line)
        self.added = True


def _is_aside(element: Any) -> bool:
    """Tell whether an element is navigation, the page's header or footer, or hidden."""
    tag, get = element.tag, element.get
    if tag in _ASIDE or get("hidden") is not None or get("aria-hidden") == "true":
        return True
    if get("role") in _ASIDE_ROLES or _HIDDEN_STYLE.search(get("style") or ""):
        return True
    return tag == "header" and not any(True for _ in element.iterancestors(*_CONTENT))
