"""A file's passages as lines: what is known of the file, then each passage under its rule."""

from __future__ import annotations

from ragcli.cli.output import counted
from ragcli.cli.reports.ledger import moment, rows
from ragcli.cli.reports.tables import aligned, cell, file_size
from ragcli.generation.visible import visible
from ragcli.inspection.passages import ChunkView, FileView
from ragcli.inspection.representation import Term, Vector

TERMS = 12
"""So many of a passage's terms are shown, the rarest: JSON has them all."""


def lines(view: FileView) -> list[str]:
    """The file's facts, and the text of each passage that is meant, with its bounds."""
    found = _facts(view)
    if view.tokens_missing and view.tokens_missing != "no encoder":
        found.append(f"tokens cannot be counted: {cell(view.tokens_missing)}")
    for chunk in view.chunks:
        found += ["", _rule(chunk), *_representation(chunk), *_text(chunk.text)]
    return found


def _facts(view: FileView) -> list[str]:
    if view.path is None:
        return []
    parts = [cell(view.path), view.kind, _quoted(view.title), view.language]
    if view.state != "indexed":
        parts.append(cell(view.state) + (f": {cell(view.reason)}" if view.reason else ""))
    if view.size is not None:
        parts.append(file_size(view.size))
    if view.documents > 1:
        parts.append(counted(view.documents, "record"))
    if view.state == "indexed":
        parts.append(_counted_passages(view))
    if view.read is not None:
        parts.append(f"read {moment(view.read)}")
    if view.stale:
        parts.append("changed or gone since")
    return [" · ".join(part for part in parts if part), *rows(view.problems, paths=False)]


def _quoted(title: str | None) -> str | None:
    return f"“{cell(title)}”" if title else None


def _counted_passages(view: FileView) -> str:
    every = counted(view.chunks_in_file, "passage")
    shown = len(view.chunks)
    return every if shown in (0, view.chunks_in_file) else f"{shown:,} of {every}"


def missing(view: FileView) -> str:
    """Why a view has no passage."""
    said = (view.why or "no passage").replace("chunk", "passage")
    line = f"{cell(view.target)}: {said}"
    if view.detail:
        line += f" ({cell(view.detail)})"
    if view.near:
        line += f"; around it: {' and '.join(map(str, view.near))}"
    return line


def _rule(chunk: ChunkView) -> str:
    """`── 17 · lines 10-24 · Install › Ports · 88 words, 120 tokens`."""
    sizes = counted(chunk.words, "word")
    if chunk.tokens is not None:
        sizes += f", {counted(chunk.tokens, 'token')}"
    parts = [
        str(chunk.chunk),
        None if chunk.record is None else f"#{cell(chunk.record)}",
        _place(chunk),
        None if chunk.page is None else f"p. {cell(chunk.page)}",
        " › ".join(map(cell, chunk.heading)),
        sizes,
        f"the first {counted(chunk.overlap, 'character')} overlap" if chunk.overlap else None,
        None if chunk.has_vector else "no vector",
    ]
    return "── " + " · ".join(part for part in parts if part)


def _place(chunk: ChunkView) -> str:
    if chunk.lines is None:
        return f"characters {chunk.start:,}-{chunk.end:,}"
    first, last = chunk.lines
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _text(text: str) -> list[str]:
    return visible(text.replace("\r\n", "\n"), keep="\n\t").split("\n")


def _representation(chunk: ChunkView) -> list[str]:
    found = []
    if chunk.vector is not None:
        found += [*_vector(chunk.vector), ""]
    if chunk.terms is not None:
        found += [*_terms(chunk.terms), ""]
    return found


def _vector(vector: Vector) -> list[str]:
    spread = vector.entries
    norm = f"{vector.norm:.3f}"
    found = [
        f"vector: {vector.dimensions:,} entries, {vector.nonzero:,} of them not 0; norm {norm}; "
        f"least {spread.least:.3f}, 10 % {spread.tenth:.3f}, median {spread.median:.3f}, "
        f"90 % {spread.ninetieth:.3f}, largest {spread.largest:.3f}"
    ]
    if vector.tokens:
        heads = ["token", "bucket", "count", "passages", "idf", "weight", ""]
        table = [
            (
                token.token, token.bucket, token.count, token.frequency, token.idf, token.weight,
                f"shares its bucket with {', '.join(token.shares)}" if token.shares else "",
            )
            for token in vector.tokens
        ]  # fmt: skip
        found += aligned(heads, table, left=(0,))
    return found


def _terms(terms: tuple[Term, ...]) -> list[str]:
    if not terms:
        return ["terms: none"]
    shown = terms[:TERMS]
    left_out = len(terms) - len(shown)
    heads = ["term", "count", "passages", "idf", ""]
    table = [(each.term, each.count, each.frequency, each.idf, "") for each in shown]
    found = aligned(heads, table, left=(0,))
    return [*found, f"and {counted(left_out, 'commoner term')}"] if left_out else found
