"""A page as one HTML file that needs nothing else: plotly and its figures in it.

Owns all that HTML and plotly.js would obey in text. The only importer of plotly.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ragcli.cli.plot.figures import INK, MANY, Figure, Page, Series

if TYPE_CHECKING:
    import plotly.graph_objects as go

_LINE = re.compile(r".{1,60}(?:\s|$)|.{1,60}")
_STYLE = """
body { margin: 0 auto; max-width: 1300px; padding: 1.2rem; background: #fff; color: #202124;
       font: 15px/1.45 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; margin: 2rem 0 .2rem }
p { margin: .2rem 0; color: #5f6368; overflow-wrap: anywhere }
"""
_CONFIG = {
    "responsive": True,
    "displaylogo": False,
    "showSendToCloud": False,  # a button that uploads the figure, there unless it is said
    "plotGlPixelRatio": 1,  # 2 is crisper, and half as quick where the processor does the drawing
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
}

_POLICY = (
    "default-src 'none'; form-action 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
    # plotly.js compiles the calls of its shaders.
    "script-src 'unsafe-eval'"
)
"""A browser fetches nothing and runs no script but those whose digests follow."""


def write(page: Page) -> bytes:
    """The page as HTML."""
    from plotly.offline import get_plotlyjs

    scripts = [get_plotlyjs(), *map(_script, range(len(page.figures)), page.figures)]
    policy = " ".join([_POLICY, *map(_digest, scripts)])
    sentences = "".join(f"<p>{html.escape(sentence)}</p>\n" for sentence in page.left_out)
    sections = "".join(
        f"<h2>{html.escape(figure.title)}</h2>\n<p>{html.escape(figure.note)}</p>\n"
        f'<div id="figure{i}"></div>\n'
        for i, figure in enumerate(page.figures)
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(page.title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{html.escape(page.title)}</h1>
<p>{html.escape(page.line)}</p>
<p>Drag across a figure to see a part of it, double-click to see all; a click on a name in a legend
hides its points.</p>
{sentences}{sections}{"".join(f"<script>{script}</script>" for script in scripts)}
</body>
</html>
""".encode()


def draw(figure: Figure) -> go.Figure:
    """A figure as plotly has it, its text such that plotly.js shows it as it is."""
    import plotly.graph_objects as go

    axis: dict[str, Any] = {
        "gridcolor": "#e8eaed", "zeroline": False, "linecolor": "#9aa0a6", "showline": True,
        "separatethousands": True,
    }  # fmt: skip
    many = sum(len(np.asarray(series.x)) for series in figure.series) > MANY
    drawn = go.Figure(
        data=[_trace(series, many) for series in figure.series],
        layout={
            "template": "none",
            "height": 680 if figure.alike else 380,
            "margin": {"l": 60, "r": 40, "t": 30, "b": 50},
            "font": {"family": "system-ui, sans-serif", "color": INK},
            "hovermode": "closest",
            "modebar": {"orientation": "v"},
            "hoverlabel": {"bgcolor": "#fff", "font": {"color": INK}, "align": "left"},
            "showlegend": figure.named,
            "legend": {
                "orientation": "h",
                "y": 1.02,
                "yanchor": "bottom",
                "itemsizing": "constant",
            },
            "xaxis": {**axis, "title": {"text": _text(figure.across), "standoff": 8}},
            "yaxis": {**axis, "title": {"text": _text(figure.up), "standoff": 8}},
        },
    )
    if figure.alike:
        drawn.update_yaxes(scaleanchor="x")
    if figure.logarithmic:
        drawn.update_xaxes(type="log", tickvals=[f * 10**i for i in range(10) for f in (1, 2, 5)])
    if figure.cut:
        at, label = figure.cut
        drawn.add_shape(
            type="line", x0=at, x1=at, y0=0, y1=1, yref="paper", line={"dash": "dash", "width": 1}
        )
        drawn.add_annotation(
            # On such an axis plotly.js takes a line's place as it is, a label's as its logarithm.
            x=math.log10(at) if figure.logarithmic else at,
            y=1, yref="paper", yanchor="bottom", text=_text(label), showarrow=False,
        )  # fmt: skip
    return drawn


def _trace(series: Series, many: bool) -> go.Scatter | go.Scattergl | go.Bar:
    import plotly.graph_objects as go

    shared: dict[str, Any] = {
        "x": np.asarray(series.x),
        "y": np.asarray(series.y),
        "name": _text(series.name),
        "showlegend": bool(series.name),
        "hoverinfo": "text",
        "hovertext": [_text(text) for text in series.hover],
    }
    marker: dict[str, Any] = {"color": series.colour}
    match series.style:
        case "bars":
            marker["line"] = {"color": "#fff", "width": 1}
            return go.Bar(**shared, width=series.width, marker=marker)
        case "line":
            return go.Scatter(**shared, mode="lines", line={"color": series.colour})
        case "rings":
            marker |= {"symbol": "circle-open", "size": 14, "line": {"width": 2}}
        case "points":
            marker |= {"size": 4 if many else 7, "opacity": 0.7}
    # Many are drawn by the graphics card, and what lies on them has to be, too.
    kind = go.Scattergl if many else go.Scatter
    return kind(**shared, mode="markers", marker=marker)


def _text(text: str) -> str:
    """`text` for plotly.js, which reads a few tags and entities; its lines not too long."""
    lines = [part.rstrip() for line in text.split("\n") for part in _LINE.findall(line)]
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def _script(number: int, figure: Figure) -> str:
    """What draws the figure into its place; nothing in it ends the script."""
    # plotly writes `<` so as well, but nowhere promises to.
    drawn = str(draw(figure).to_json()).replace("<", "\\u003c")
    return f"Plotly.newPlot('figure{number}', {{...{drawn}, config: {json.dumps(_CONFIG)}}});"


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
