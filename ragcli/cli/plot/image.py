"""A page as one picture, .svg or .png, without a browser. The only importer of matplotlib."""

from __future__ import annotations

import io
import textwrap
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ragcli.cli.plot.figures import GREY, INK, MANY, Figure, Page, Series

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_WIDE = 11.0
"""Inches, of 160 pixels each in a .png."""

_COLUMNS = 118
"""Characters on a line across the page."""

_LINE = 15
"""Points from one line of text to the next."""

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e8eaed",
}


def write(page: Page, suffix: str) -> bytes:
    """The page as `svg` or `png`."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    heights = [7.5 if figure.alike else 3.8 for figure in page.figures]
    head = [
        part
        for line in (page.title, page.line, *page.left_out)
        for part in textwrap.wrap(line, _COLUMNS)
    ]
    above = 0.3 + 0.25 * len(head)
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # A script that the font lacks is drawn as boxes; in an .svg the viewer's font has it.
        warnings.filterwarnings("ignore", message="Glyph")
        layout = ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.12)
        canvas = Canvas(figsize=(_WIDE, sum(heights) + above), layout=layout)
        canvas.suptitle("\n".join(head), x=0.01, ha="left", size="large", parse_math=False)
        if page.figures:
            rows = canvas.subplots(len(heights), 1, height_ratios=heights, squeeze=False)
            for figure, (axes,) in zip(page.figures, rows, strict=True):
                _draw(figure, axes)
        written = io.BytesIO()
        canvas.savefig(written, format=suffix, dpi=160)
    return written.getvalue()


def _draw(figure: Figure, axes: Axes) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.ticker import LogLocator, NullLocator

    note = textwrap.wrap(figure.note, _COLUMNS)
    above = 6 + _LINE * len(note)
    axes.set_title(
        figure.title, loc="left", size="large", weight="bold", pad=above, parse_math=False
    )
    axes.annotate(
        "\n".join(note), (0, 1), xycoords="axes fraction", xytext=(0, 6),
        textcoords="offset points", va="bottom", parse_math=False,
    )  # fmt: skip
    axes.set_xlabel(figure.across, parse_math=False)
    axes.set_ylabel(figure.up, parse_math=False)
    if figure.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_locator(NullLocator())
    if figure.alike:
        axes.set_aspect("equal", adjustable="datalim")
    many = sum(len(np.asarray(series.x)) for series in figure.series) > MANY
    drawn = [_series(series, axes, many) for series in figure.series]
    if figure.cut:
        at, label = figure.cut
        axes.axvline(at, color=INK, linestyle="--", linewidth=1)
        axes.annotate(
            label, (at, 1), xycoords=("data", "axes fraction"), xytext=(4, -10),
            textcoords="offset points",
        )  # fmt: skip
    if figure.named:
        named = [series for series in figure.series if series.name]
        marks = [mark for mark, series in zip(drawn, figure.series, strict=True) if series.name]
        legend = axes.legend(
            marks, ["."] * len(marks), loc="upper left", bbox_to_anchor=(0, -0.1), ncols=3,
            frameon=False,
        )  # fmt: skip
        for handle, series in zip(legend.legend_handles, named, strict=True):
            if series.style == "points" and isinstance(handle, PathCollection):
                handle.set_sizes([30])
        # Not through `legend`: it leaves out names that begin with `_`.
        for text, series in zip(legend.get_texts(), named, strict=True):
            text.set_text(series.name)
            text.set_parse_math(False)


def _series(series: Series, axes: Axes, many: bool) -> Artist:
    x, y = np.asarray(series.x), np.asarray(series.y)
    match series.style:
        case "bars":
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.yaxis.set_major_formatter("{x:,.0f}")
            return axes.bar(x, y, series.width, color=series.colour, edgecolor="white").patches[0]
        case "line":
            return axes.plot(x, y, color=series.colour)[0]
        case "rings":
            return axes.scatter(x, y, 90, facecolors="none", edgecolors=series.colour, zorder=3)
        case "points":
            # As vectors, many of them would make the file huge.
            return axes.scatter(
                x, y, 4 if many else 22, c=series.colour, alpha=0.7, linewidths=0, zorder=2.5,
                rasterized=many,
            )  # fmt: skip
