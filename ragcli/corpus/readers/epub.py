"""EPUB books: the chapters in reading order, each below a heading.

An EPUB is a ZIP file of XHTML; no further library is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ragcli.corpus.readers import html
from ragcli.corpus.readers.archive import beside, open_archive, read_member, read_xml
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_PAGES = (
    *("application/xhtml+xml", "text/html", "image/svg+xml"),
    *("application/x-dtbook+xml", "text/x-oeb1-document"),  # of EPUB 2
)
_FALLBACKS = 10
"""How many items are asked for one that is text in the place of one that is not."""


def read(source: Source) -> Iterator[Document]:
    """Yield the book as one document; a chapter that cannot be read is recorded as a problem."""
    from urllib.parse import unquote

    with open_archive(source) as archive:
        container = read_xml(archive, "META-INF/container.xml")
        package = next((e.get("full-path") for e in container.iter("{*}rootfile")), None)
        if package is None:
            raise UnreadableFile("corrupt", "an EPUB without a package")
        root = read_xml(archive, package)
        title = next((e.text for e in root.iter("{*}title") if e.text), "").strip()
        assembly = Assembly()
        for item in _chapters(source, root):
            if "nav" in item.get("properties", "").split():  # the table of contents
                continue
            name = beside(package, unquote(item.get("href", "").partition("#")[0]))
            try:
                chapter = Source(source.path, read_member(archive, name))
                _add_chapter(assembly, chapter, title)
            except UnreadableFile as error:
                source.problems.append(("corrupt", f"chapter {name}: {error}", None))
                continue
            source.problems += chapter.problems
    yield assembly.document("epub", title)


def _chapters(source: Source, package: Any) -> Iterable[Any]:
    """Return the items of the book in reading order, each once; record what is no text."""
    items = {item.get("id"): item for item in package.iter("{*}item")}
    chapters: dict[Any, None] = {}
    for identity in dict.fromkeys(each.get("idref") for each in package.iter("{*}itemref")):
        first = item = items.get(identity)
        for _ in range(_FALLBACKS):
            if item is None or item.get("media-type") in _PAGES:
                break
            item = items.get(item.get("fallback"))
        if item is not None and item.get("media-type") in _PAGES:
            chapters[item] = None
            continue
        what = "not in the book" if first is None else f"no text, but {first.get('media-type')}"
        name = identity if first is None else first.get("href")
        source.problems.append(("unsupported", f"chapter {name} is {what}", None))
    return chapters


def _add_chapter(assembly: Assembly, chapter: Source, book: str) -> None:
    """Append a chapter, below its title where it has no heading of its own."""
    tree = html.parse(chapter)
    if tree is None:
        return
    title = " ".join((tree.findtext(".//head/title") or "").split())
    headed = next(tree.iter("h1", "h2", "h3", "h4", "h5", "h6"), None) is not None
    if title and title != book and not headed:
        assembly.heading(1, title)
    html.add_page(assembly, tree, whole=True)
