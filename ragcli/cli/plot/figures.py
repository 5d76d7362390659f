"""What is drawn, apart from who draws it: a page of figures, and the figures of an index.

Owns which marks a figure has, its words and its colours. Text in it is plain: `page` and `image`
make it safe for their libraries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ragcli.cli.output import counted
from ragcli.cli.reports.tables import glimpse
from ragcli.generation.prompt import source
from ragcli.generation.visible import visible
from ragcli.inspection.picture import ChunkMap, Picture, ScoreCurve, Sizes
from ragcli.records import Hit, Passage

COLOURS = (
    "#1f77b4", "#d95f02", "#2a9d3f", "#c2185b", "#7b52ab", "#8c564b",
    "#17a2b8", "#b8860b", "#3f3fbf", "#6b8e23", "#e377c2", "#003f5c",
)  # fmt: skip
GREY = "#9aa0a6"
INK = "#202124"
HIT = "#d93025"

MANY = 2000
"""Points of a figure from which on they are drawn small."""

_TEXT = 200
_NAME = 40


@dataclass(frozen=True, slots=True)
class Series:
    """Marks of one colour; `x` and `y` are numbers (n,), `hover` a text of some lines for each.

    `bars` stand on `x`, the middle, `width` wide; `rings` lie around points of other series.
    """

    name: str
    style: Literal["points", "rings", "line", "bars"]
    x: ArrayLike
    y: ArrayLike
    colour: str
    hover: Sequence[str] = ()
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One drawing with its axes. `cut` is a dashed vertical line with its label.

    `alike`: a step is as long on both axes. `named`: the series that have a name are told by it.
    """

    title: str
    note: str
    across: str
    up: str
    series: tuple[Series, ...]
    cut: tuple[float, str] | None = None
    logarithmic: bool = False
    alike: bool = False
    named: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A title, a line below it, the figures, and sentences for those that are left out."""

    title: str
    line: str
    figures: tuple[Figure, ...]
    left_out: tuple[str, ...] = ()


def inspection(picture: Picture) -> Page:
    """The page of `ragcli inspect --plot`."""
    curve, sizes = picture.curve, picture.sizes
    figures = [
        *([chunk_map(picture.map, curve.hits if curve else ())] if picture.map else []),
        *([scores(curve)] if curve and curve.candidates else []),
        *([chunk_sizes(sizes)] if sizes else []),
    ]
    left_out = [
        *([f"No map: {picture.no_map}."] if picture.no_map else []),
        *([f"Nothing was found for “{visible(curve.question)}”."]
          if curve and not curve.candidates else []),
    ]  # fmt: skip
    return Page(
        visible(picture.name), counted(picture.chunks, "passage"), tuple(figures), tuple(left_out)
    )


def chunk_map(drawn: ChunkMap, hits: Sequence[Hit] = ()) -> Figure:
    """Chunks on the plane of two principal components, with the hits of a question ringed."""
    groups = np.array([group or "" for group in drawn.groups])
    names, counts = np.unique(groups, return_counts=True)
    order = sorted(range(len(names)), key=lambda i: (names[i] != "", -counts[i], names[i]))
    colours = iter(COLOURS)
    rest = "other folders" if drawn.by_folder else "other files"
    series = []
    for name, count in ((str(names[i]), int(counts[i])) for i in order):
        at = np.flatnonzero(groups == name)
        series.append(
            Series(
                name=f"{_shortened(name) or rest} ({count:,})",
                style="points",
                x=drawn.x[at],
                y=drawn.y[at],
                colour=next(colours) if name else GREY,
                hover=[_about(drawn.passages[i]) for i in at],
            )
        )
    place = {passage.chunk: i for i, passage in enumerate(drawn.passages)}
    found = [hit for hit in hits if hit.chunk in place]
    if found:
        at = np.array([place[hit.chunk] for hit in found])
        about = [f"rank {hit.rank} · {_about(hit)}" for hit in found]
        series.append(Series(f"hits ({len(found)})", "rings", drawn.x[at], drawn.y[at], INK, about))
    first, second = drawn.explained
    shown = len(drawn.passages)
    some = "" if shown == drawn.embedded else f" {shown:,} of {drawn.embedded:,} are drawn."
    return Figure(
        title="Map of the passages",
        note=f"The two directions in which the vectors differ most. They hold {first + second:.1%}"
        f" of the variance; in the rest, passages that lie together here may be far apart.{some}",
        across=f"first principal component ({first:.1%})",
        up=f"second ({second:.1%})",
        series=tuple(series),
        alike=True,
        named=True,
    )


def scores(curve: ScoreCurve) -> Figure:
    """Score against rank for all candidates of a question, its hits, and the cut after them."""
    figures, after = [hit.score for hit in curve.hits], curve.left_out
    note = f"“{visible(curve.question)}” · {curve.mode} · {counted(curve.candidates, 'candidate')}."
    if figures:
        note += " Red: the hits."
    if figures and after is not None:
        note += f" The last has {figures[-1]:.3f}, the passage after the cut {after:.3f}."
    return Figure(
        title="Scores of the question",
        note=note,
        across="rank by score",
        up="score",
        series=(
            Series(
                "candidates", "line", curve.ranks, curve.scores, COLOURS[0],
                [f"rank {rank:,} · {score:.3f}"
                 for rank, score in zip(curve.ranks, curve.scores, strict=True)],
            ),
            Series(
                "hits", "points", curve.positions, figures, HIT,
                [f"rank {hit.rank} · {hit.score:.3f} · {_about(hit)}" for hit in curve.hits],
            ),
        ),
        cut=None if after is None or not figures
        else (curve.positions[-1] + 0.5, f"k = {curve.k}"),
        logarithmic=True,
    )  # fmt: skip


def chunk_sizes(sizes: Sizes) -> Figure:
    """How many chunks have how many words."""
    width = (sizes.bins[0].high or 1) - sizes.bins[0].low
    spans = [
        f"{bin.low:,} words and more" if bin.high is None else
        f"{bin.low:,} words" if width == 1 else f"{bin.low:,} to {bin.high - 1:,} words"
        for bin in sizes.bins
    ]  # fmt: skip
    return Figure(
        title="Sizes of the passages",
        note=f"Half of them have {sizes.median:,.0f} words or fewer, the longest {sizes.largest:,}."
        + (f" The last bar has all from {sizes.bins[-1].low:,} words on."
           if sizes.bins[-1].high is None else ""),
        across="words",
        up="passages",
        series=(
            Series(
                "passages", "bars",
                # A whole number of words stands in the middle of its own place.
                [bin.low + (width - 1) / 2 for bin in sizes.bins],
                [bin.count for bin in sizes.bins],
                COLOURS[0],
                [f"{span}: {counted(bin.count, 'passage')}"
                 for span, bin in zip(spans, sizes.bins, strict=True)],
                width,
            ),
        ),
    )  # fmt: skip


def _about(passage: Passage | Hit) -> str:
    return f"{source(passage)}\n{glimpse(passage.text, _TEXT)}"


def _shortened(name: str) -> str:
    """The end of a path tells more than its beginning."""
    shown = visible(name)
    return shown if len(shown) <= _NAME else "…" + shown[1 - _NAME :]
