"""HTML: the main text of a page, without scripts, form controls, navigation and what is hidden.

A header, footer or aside is left out where it is the page's, not where it is in the text; what
stands in for scripts, film and sound is left out too. All of these are read where nothing else
is left. The document's text is assembled, white space collapsed outside `pre`; each block keeps
the line of its element in the file. Also walks the chapters of an EPUB and the body of an e-mail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.entities import sound_references, with_entities
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_CHARSET = re.compile(
    rb"(?:<meta[^>]{0,200}?charset|<\?xml[^>]{0,100}?encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.I
)

_XHTML = re.compile(r"<html[^>]{0,500}?xmlns\s*=\s*[\"']http://www\.w3\.org/1999/xhtml")
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
# The head is not among them: the parser leaves elements there that it is too old to know.
_DROPPED = (
    *("script", "style", "template", "metadata", "iframe", "embed"),
    *("button", "input", "select", "datalist"),
)
_NAVIGATION = frozenset({"nav", "dialog", "menu"})
_NAVIGATION_ROLES = frozenset({"navigation", "search", "menu", "dialog"})
_MARGINS = frozenset({"header", "footer", "aside"})
_MARGIN_ROLES = frozenset({"banner", "contentinfo", "complementary"})
_CONTENT = ("article", "main", "section", "blockquote", "figure", "details")
"""Where a header, footer or aside is that of the text, not that of the page."""

_PUBLICATION_TYPES = ("epub:type", "{http://www.idpf.org/2007/ops}type")
"""Attribute of what is part of a book, such as a footnote; its name in HTML and in XHTML."""

_STAND_INS = frozenset({"noscript", "audio", "video"})
_DRAWN = frozenset({"svg", "math"})
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math"
    " nobr output picture q rp rt ruby s samp small span strike strong sub sup time tt u var wbr"
    " source track param meta link base area svg object canvas map".split()
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
    if charset is None and (declared := _CHARSET.search(source.data, 0, 4096)):
        charset = declared[1].decode("ascii", "replace")
    text = source.text(charset)
    text = sound_references(text.replace("\0", "\ufffd"))
    if "\n" not in text:
        text = text.replace("\r", "\n")
    tree = _parse_xhtml(source, text) if _XHTML.search(text, 0, 2000) else None
    if tree is None:
        tree = _parse_html(source, text)
    if tree is not None:
        _open_frames(source, tree)
    return tree


def _parse_html(source: Source, text: str) -> Any:
    """Return the root element of HTML, None if there is none."""
    import lxml.etree
    import lxml.html

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


def _parse_xhtml(source: Source, text: str) -> Any:
    """Return the root element of XHTML, where `<title/>` is empty; None if it is not sound XML."""
    import lxml.etree
    import lxml.html

    text, left_out = with_entities(_DECLARATION.sub("", text, count=1))
    parser = lxml.html.XHTMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, remove_comments=True
    )
    try:
        tree = lxml.etree.fromstring(text.encode("utf-8", "replace"), parser)
    except lxml.etree.XMLSyntaxError:
        return None
    if left_out:
        source.problems.append(("truncated", left_out, None))
    for element in tree.iter("*"):  # as the parser of HTML names them
        element.tag = lxml.etree.QName(element).localname
    return tree


def _open_frames(source: Source, tree: Any) -> None:
    """Put the page that a frame has in an attribute into the place of the frame."""
    for frame in list(tree.iter("iframe")):
        page = _parse_html(source, frame.get("srcdoc") or "")
        if page is None:
            continue
        if any(inner.get("srcdoc") for inner in page.iter("iframe")):
            source.problems.append(("truncated", "a frame within a frame was not read", None))
        for element in page.iter("*"):
            element.sourceline = frame.sourceline
        frame.clear(keep_tail=True)
        frame.tag = "div"
        frame.append(page)


def add_page(assembly: Assembly, tree: Any, *, whole: bool = False) -> None:
    """Append the main text of a page, with `whole` all that is not hidden.

    Where that is nothing, all that there is.
    """
    import lxml.etree

    lxml.etree.strip_elements(tree, *_DROPPED, with_tail=False)
    if whole:
        added = _Walk(assembly, _is_hidden).run(tree)
    else:
        added = _Walk(assembly, _is_marginal).run(_main(tree))
    if not added:
        _Walk(assembly, lambda _: False).run(tree)


def _main(tree: Any) -> Any:
    """Return the element that is marked as the main text, if it holds most of the text."""
    for path in (".//main", ".//*[@role='main']", ".//article"):
        found = tree.findall(path)
        if len(found) == 1 and 2 * len(found[0].text_content()) >= len(tree.text_content()):
            return found[0]
    return tree


class _Walk:
    """One pass over the elements: text gathers in `pieces` until a block begins or ends."""

    def __init__(self, assembly: Assembly, passes_by: Callable[[Any], bool]) -> None:
        self.assembly = assembly
        self.passes_by = passes_by  # tells which elements are left out
        self.pieces: list[str] = []
        self.open = [("paragraph", 1)]  # kind and line of the open blocks
        self.whole = 0  # how deep in elements that are one block: pre, the row of a data table
        self.data_tables: list[bool] = []
        self.added = False

    def run(self, root: Any) -> bool:
        """Append the text of an element; return whether there was any."""
        import lxml.etree

        events = lxml.etree.iterwalk(root, events=("start", "end"))
        passed = None
        for event, element in events:
            if event == "start":
                if element is not root and (element.tag == "title" or self.passes_by(element)):
                    passed = element
                elif element.tag in _DRAWN:
                    self.pieces.append(f" {' '.join(element.itertext())} ")
                    passed = element
                else:
                    self.begin(element, element.tag)
                    continue
                events.skip_subtree()
            else:
                if element is not passed:
                    self.finish(element.tag)
                if element.tail and element is not root:
                    self.pieces.append(element.tail)
        self.flush()
        return self.added

    def begin(self, element: Any, tag: str) -> None:
        if tag == "br":
            self.pieces.append(_BREAK)
        elif tag == "img" and (words := element.get("alt")):
            self.pieces.append(f" {words} ")
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


def _is_marginal(element: Any) -> bool:
    """Tell whether an element is hidden, navigation, or the page's header, footer or aside."""
    tag, role = element.tag, element.get("role")
    if _is_hidden(element) or tag in _NAVIGATION or role in _NAVIGATION_ROLES:
        return True
    if tag not in _MARGINS and role not in _MARGIN_ROLES:
        return False
    if any(element.get(name) for name in _PUBLICATION_TYPES):
        return False
    return not any(True for _ in element.iterancestors(*_CONTENT))


def _is_hidden(element: Any) -> bool:
    """Tell whether an element is not shown, or only where scripts, film or sound are not."""
    get = element.get
    if element.tag in _STAND_INS or get("hidden") is not None or get("aria-hidden") == "true":
        return True
    return _HIDDEN_STYLE.search(get("style") or "") is not None
