"""EPUB books: the chapters in reading order, each below a heading.

An EPUB is a ZIP file of XHTML; no further library is needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragcli.corpus.readers import html
from ragcli.corpus.readers.archive import beside, open_archive, read_member, read_xml
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_PAGES = ("application/xhtml+xml", "text/html")


def read(source: Source) -> Iterator[Document]:
    """Yield the book as one document; a chapter that cannot be read is recorded as a problem."""
    from urllib.parse import unquote
    from zipfile import BadZipFile

    with open_archive(source) as archive:
        container = read_xml(archive, "META-INF/container.xml")
        package = next((e.get("full-path") for e in container.iter("{*}rootfile")), None)
        if package is None:
            raise UnreadableFile("corrupt", "an EPUB without a package")
        root = read_xml(archive, package)
        items = {item.get("id"): item for item in root.iter("{*}item")}
        title = next((e.text for e in root.iter("{*}title") if e.text), "").strip()
        assembly = Assembly()
        # A chapter that is named a thousand times is read once.
        for identity in dict.fromkeys(each.get("idref") for each in root.iter("{*}itemref")):
            item = items.get(identity)
            if item is None or item.get("media-type") not in _PAGES:
                continue
            if "nav" in item.get("properties", "").split():  # the table of contents
                continue
            name = beside(package, unquote(item.get("href", "").partition("#")[0]))
            try:
                chapter = Source(source.path, read_member(archive, name))
                _add_chapter(assembly, chapter, title)
            except (KeyError, BadZipFile, UnreadableFile) as error:
                source.problems.append(("corrupt", f"chapter {name}: {error}", None))
                continue
            source.problems += chapter.problems
    yield assembly.document("epub", title)


def _add_chapter(assembly: Assembly, chapter: Source, book: str) -> None:
    """Append a chapter, below its title where it has no heading of its own."""
    tree = html.parse(chapter)
    if tree is None:
        return
    title = " ".join((tree.findtext(".//title") or "").split())
    headed = next(tree.iter("h1", "h2", "h3", "h4", "h5", "h6"), None) is not None
    if title and title != book and not headed:
        assembly.heading(1, title)
    html.add_page(assembly, tree)
