"""XML of any vocabulary: the text content, element by element.

An element with text of its own is a block, with all that is inside it; others are descended
into. Of entities, those that the file declares with their text are put in; nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.readers.entities import sound_references, with_entities
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_ENCODING = re.compile(rb"<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([\w.:-]+)")
_TITLES = frozenset({"title", "head", "heading"})
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>")


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document; `line_anchors` has the line of each block.

    Raises UnreadableFile (`corrupt`) for what is not XML at all; what a parser can recover of
    damaged XML is read, and the damage recorded.
    """
    assembly = Assembly(lines=True)
    root = _parse(source)
    title = None if root is None else _walk(assembly, root)
    yield assembly.document("xml", title)


def _parse(source: Source) -> Any:
    import lxml.etree

    declared = _ENCODING.search(source.data, 0, 200)
    text = source.text(declared[1].decode("ascii", "replace") if declared else None)
    parser = lxml.etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    if text.isspace() or not text:
        return None
    text = _DECLARATION.sub("", text, count=1)  # it names the encoding that the file had
    text, left_out = with_entities(sound_references(text))
    if left_out:
        source.problems.append(("truncated", left_out, None))
    root = lxml.etree.fromstring(text.encode("utf-8", "replace"), parser)
    if root is None:
        raise UnreadableFile("corrupt", f"not XML: {parser.error_log.last_error or 'no element'}")
    errors = parser.error_log.filter_from_errors()
    if errors:
        first = errors[0]
        message = f"damaged XML, line {first.line}: {first.message}"
        source.problems.append(("corrupt", message, None))
    return root


def _walk(assembly: Assembly, root: Any) -> str | None:
    """Append the text of all elements; return the first title."""
    import lxml.etree

    depth = 0
    first = None
    events = lxml.etree.iterwalk(root, events=("start", "end"))
    for event, element in events:
        if event == "end":
            depth -= 1
            continue
        depth += 1
        if not isinstance(element.tag, str):
            continue
        name = lxml.etree.QName(element).localname.lower()
        title = name in _TITLES
        if title or _has_text(element):
            text = "".join(element.itertext())
            if _MARKUP.search(text):
                text = _without_markup(text)
            text = " ".join(text.split())
            if title:
                assembly.heading(max(depth - 1, 1), text, element.sourceline)
                first = first or text
            else:
                assembly.add(text, "paragraph", element.sourceline)
            events.skip_subtree()
    return first


def _has_text(element: Any) -> bool:
    """Tell whether an element has text of its own, before or between its children."""
    if element.text and not element.text.isspace():
        return True
    return any(child.tail and not child.tail.isspace() for child in element)


def _without_markup(text: str) -> str:
    """Return the text of HTML that lies escaped in an element, as in feeds, and its addresses."""
    import lxml.etree
    import lxml.html

    try:
        tree = lxml.html.fromstring(sound_references(text))
    except (lxml.etree.LxmlError, ValueError):  # no element left, or a declaration inside
        return _MARKUP.sub(" ", text)
    for link in tree.iter("a"):
        if address := link.get("href"):
            link.tail = f" ({address}) {link.tail or ''}"
    return " ".join(map(str, tree.itertext()))
