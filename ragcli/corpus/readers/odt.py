"""OpenDocument texts (.odt): headings, paragraphs, list items and tables of content.xml."""

from __future__ import annotations

from collections.abc import Iterator

from ragcli.corpus.readers.archive import local_name, open_archive, read_xml
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.source import Source
from ragcli.records import Document


def read(source: Source) -> Iterator[Document]:
    """Yield the file as one document."""
    with open_archive(source) as archive:
        root = read_xml(archive, "content.xml")
    for mark, text in (("s", " "), ("tab", "\t"), ("line-break", "\n")):
        for element in root.iter(f"{{*}}{mark}"):
            element.text = text
    assembly = Assembly()
    for element in root.iter("{*}h", "{*}p", "{*}table-row"):
        name = local_name(element)
        above = [local_name(outer) for outer in element.iterancestors()]
        if "table-row" in above or "note" in above:
            continue  # its row or its paragraph has it
        text = "".join(element.itertext()).strip()
        if name == "h":
            level = next((v for k, v in element.items() if k.endswith("}outline-level")), "1")
            assembly.heading(int(level), text)
        elif name == "table-row":
            cells = (" ".join("".join(cell.itertext()).split()) for cell in element)
            assembly.add(" | ".join(cells).strip(" |"), "table")
        else:
            assembly.add(text, "item" if "list-item" in above else "paragraph")
    yield assembly.document("odt", assembly.headings.title)
