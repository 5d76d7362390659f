"""Pages of figures: one self-contained .html, or an .svg or .png.

Owns which file a page becomes. What is on it is `figures`' business; `page` and `image` draw it,
and import their libraries when they do.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from ragcli.cli.plot.figures import Figure, Page, Series, inspection
from ragcli.errors import ModelUnavailable, UsageError
from ragcli.store.writing import write_whole

__all__ = ["Figure", "Page", "Series", "inspection", "require", "write"]

_LIBRARIES = {".html": "plotly", ".svg": "matplotlib", ".png": "matplotlib"}


def require(path: Path) -> None:
    """Raises, before any work, what `write` would raise for a name or for want of a library."""
    library = _LIBRARIES.get(path.suffix.lower())
    if library is None:
        raise UsageError(
            f"{path} is no kind of file that can be drawn",
            f"name one that ends in {', '.join(_LIBRARIES)}",
        )
    try:
        importlib.import_module(library)
    except ImportError as error:
        missing = error.name == library
        raise ModelUnavailable(
            f"{library} is not installed"
            if missing
            else f"{library} cannot be imported: {' '.join(str(error).split())}",
            "pip install 'ragcli[plot]'",
        ) from error


def write(path: Path, page: Page) -> None:
    """Write `page` to `path`, as its suffix says: wholly, or nothing of it.

    Raises UsageError for another suffix or where it cannot be written, ModelUnavailable where
    the library is not installed.
    """
    require(path)
    if path.suffix.lower() == ".html":
        from ragcli.cli.plot.page import write as draw

        content = draw(page)
    else:
        from ragcli.cli.plot.image import write as draw_image

        content = draw_image(page, path.suffix.lower()[1:])
    write_whole(path, content)
