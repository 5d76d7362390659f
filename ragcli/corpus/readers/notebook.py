"""Jupyter notebooks, formats 3 and 4: Markdown cells as Markdown, code cells as code.

Text that a cell put out is kept up to a limit; images and other data are not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ragcli.corpus.readers import markdown
from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.source import Source, without_surrogates
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_OUTPUT = 2000
"""How many characters of one output are kept."""


def read(source: Source) -> Iterator[Document]:
    """Yield the notebook as one document; the path of headings goes on from cell to cell.

    Raises UnreadableFile (`corrupt`) for what is not a notebook.
    """
    text = source.text()
    if not text.strip():
        yield Document(text, "notebook", line_anchors=())
        return
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile("corrupt", f"not a notebook: {error}") from error
    if not isinstance(notebook, dict):
        raise UnreadableFile("corrupt", "not a notebook: no cells")
    assembly = Assembly()
    sheets = [notebook, *_objects(notebook.get("worksheets"))]
    cells = [cell for sheet in sheets for cell in _objects(sheet.get("cells"))]
    cut = [number for number, cell in enumerate(cells, start=1) if _add_cell(assembly, cell)]
    if cut:
        where = f"cell {cut[0]}" if len(cut) == 1 else f"{len(cut)} cells, first cell {cut[0]}"
        message = f"output beyond {_OUTPUT:,} characters was left out in {where}"
        source.problems.append(("truncated", message, None))
    yield assembly.document("notebook", assembly.headings.title)


def _add_cell(assembly: Assembly, cell: dict[str, Any]) -> bool:
    """Append a cell; return whether an output of it was cut."""
    cut = False
    kind = cell.get("cell_type")
    text = _text(cell.get("source") or cell.get("input"))
    if kind == "markdown":
        assembly.add_blocks(text, lambda text: markdown.scan(text, assembly.headings))
    elif kind == "heading":
        level = cell.get("level")
        assembly.heading(level if isinstance(level, int) else 1, text)
    elif kind == "code":
        assembly.add(text, "code")
        for output in _objects(cell.get("outputs")):
            shown = _output_text(output).rstrip()
            cut = cut or len(shown) > _OUTPUT
            assembly.add(shown[:_OUTPUT], "other")
    else:
        assembly.add(text, "other")
    return cut


def _output_text(output: dict[str, Any]) -> str:
    """Return what an output shows as plain text: a stream, a result or the line of an error."""
    if output.get("output_type") in ("error", "pyerr"):
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    data = output.get("data")
    plain = data.get("text/plain") if isinstance(data, dict) else None
    return _text(output.get("text") or plain)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a text that may be stored as a list of lines."""
    if isinstance(value, list):
        value = "".join(line for line in value if isinstance(line, str))
    return without_surrogates(value) if isinstance(value, str) else ""
