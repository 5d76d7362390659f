"""What Word, PowerPoint and Excel files share: parts, their relations, and drawings with text.

Owns the way from a part to the parts that it names, and the text of charts and diagrams. Names
are compared without their namespaces, so that the strict and the transitional form are one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ragcli.corpus.readers.archive import beside, open_archive, read_xml
from ragcli.corpus.readers.elements import local_name
from ragcli.corpus.readers.sheets import shown_number
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile


class Relation(NamedTuple):
    """What a part names: the last word of the relation's type, and the part or address."""

    kind: str
    target: str


class Package:
    """An Office Open XML file: `with Package(source) as package`.

    Raises UnreadableFile as `open_archive` does, and `corrupt` where there is no main part.
    """

    def __init__(self, source: Source) -> None:
        self.archive = open_archive(source)
        self._source = source
        self._names = {name.lower(): name for name in self.archive.namelist()}
        roots = self.related("").values()
        main = next((part.target for part in roots if part.kind == "officeDocument"), None)
        if main is None:
            raise UnreadableFile("corrupt", "an office document without its main part")
        self.main = main
        core = next((part.target for part in roots if part.kind == "core-properties"), None)
        self._core = core

    def __enter__(self) -> Package:
        return self

    def __exit__(self, *_: object) -> None:
        self.archive.close()

    def name_of(self, part: str) -> str | None:
        """Return the member's name as the archive spells it, None if it is not there."""
        return self._names.get(part.lower())

    def xml(self, part: str) -> Any:
        """Return the root element of a part. Raises UnreadableFile (`corrupt`)."""
        return read_xml(self.archive, self.name_of(part) or part, self._source)

    def related(self, part: str) -> dict[str, Relation]:
        """Return what a part names, by id; addresses outside of the file are left out."""
        folder, _, name = part.rpartition("/")
        relations = self.name_of(f"{folder}/_rels/{name}.rels".lstrip("/"))
        found: dict[str, Relation] = {}
        if relations is not None:
            for entry in read_xml(self.archive, relations):
                if local_name(entry) == "Relationship" and entry.get("TargetMode") != "External":
                    target = beside(part, entry.get("Target", "")).lstrip("/")
                    kind = entry.get("Type", "").rpartition("/")[2]
                    found[entry.get("Id", "")] = Relation(kind, target)
        return found

    def title(self) -> str | None:
        """Return the title among the properties of the document."""
        if self._core is None or self.name_of(self._core) is None:
            return None
        text = self.xml(self._core).findtext("{*}title")
        return " ".join(text.split()) if text else None

    def roots(self, part: str, *kinds: str) -> Iterator[tuple[str, Any]]:
        """Yield name and root of each related part of some kinds; what is damaged is recorded."""
        for relation in self.related(part).values():
            if relation.kind in kinds and self.name_of(relation.target) is not None:
                try:
                    root = self.xml(relation.target)
                except UnreadableFile as error:
                    self._source.problems.append((error.kind, error.message, None))
                else:
                    yield relation.target, root

    def drawn(self, part: str) -> Iterator[str]:
        """Yield the text of the charts and diagrams that a part shows."""
        for _, root in self.roots(part, "chart", "chartEx"):
            yield from _chart_text(root)
        for _, root in self.roots(part, "diagramData"):
            yield from paragraphs(root)

    def record_embedded(self, part: str, page: str | None = None) -> None:
        """Record the files inside of a part, which are not read, as problems."""
        for relation in self.related(part).values():
            if relation.kind in ("package", "oleObject", "aFChunk", "control"):
                name = relation.target.rpartition("/")[2]
                message = f"embedded {name!r} was not read"
                self._source.problems.append(("attachment", message, page))


def relation_id(entry: Any) -> str:
    """Return the id of the part that an entry names; `id` without a namespace is another."""
    return next((str(v) for k, v in entry.items() if k.endswith("}id")), "")


def paragraphs(element: Any) -> Iterator[str]:
    """Yield the paragraphs of drawn text inside an element, blank ones left out."""
    for paragraph in element.iter("{*}p"):
        text = paragraph_text(paragraph).strip()
        if text:
            yield text


def paragraph_text(paragraph: Any) -> str:
    """Return the text of one paragraph of a drawing, its breaks as line ends."""
    parts = []
    for node in paragraph.iter("{*}t", "{*}br", "{*}tab"):
        name = local_name(node)
        parts.append((node.text or "") if name == "t" else "\n" if name == "br" else "\t")
    return "".join(parts).replace("\v", "\n")


def _chart_text(root: Any) -> Iterator[str]:
    """Yield a chart's titles, then each series as `name: category: value | …`."""
    yield from paragraphs(root)
    for series in root.iter("{*}ser"):
        name = " ".join(series.xpath("./*[local-name()='tx']//*[local-name()='v']/text()"))
        points = [
            series.xpath(f"./*[local-name()='{axis}']//*[local-name()='pt']")
            for axis in ("cat", "val")
        ]
        labels, values = ({point.get("idx"): _point(point) for point in axis} for axis in points)
        rows = [f"{label}: {values.get(index, '')}" for index, label in labels.items()]
        yield f"{name}: {' | '.join(rows or values.values())}".strip(": ")


def _point(point: Any) -> str:
    value = " ".join((point.findtext("{*}v") or "").split())
    pattern = point.getparent().findtext("{*}formatCode") or ""
    return shown_number(value, pattern, since_1904=False) if pattern else value
