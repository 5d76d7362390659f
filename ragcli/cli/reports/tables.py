"""Plain tables and bars: columns that line up, nothing wrapped or cut."""

from __future__ import annotations

from collections.abc import Sequence

from ragcli.cli.output import counted
from ragcli.generation.prompt import headings, source
from ragcli.generation.visible import visible
from ragcli.records import Passage

BETWEEN = "  "
BAR = 40
"""The longest bar of a histogram, in cells."""


def aligned(
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    left: Sequence[int] = (),
    ragged: bool = True,
) -> list[str]:
    """A line for the heads (none where all are empty) and one for each row.

    Cells are right-aligned but for the columns `left` and, if `ragged`, the last.
    Numbers get separators for thousands, None is a dash, control characters are shown.
    """
    from ragcli.cli.render import cells as width_of

    cells = [list(map(cell, row)) for row in rows]
    lines = ([list(heads)] if any(heads) else []) + cells
    if not lines:
        return []
    columns = len(lines[0])
    widths = [max(width_of(line[i]) for line in lines) for i in range(columns)]
    to_left = {*left, columns - 1} if ragged else set(left)
    padded = [
        [
            text + pad if i in to_left else pad + text
            for i, text in enumerate(line)
            for pad in [" " * (widths[i] - width_of(text))]
        ]
        for line in lines
    ]
    return [BETWEEN.join(line).rstrip() for line in padded]


def cell(value: object) -> str:
    """One value of a table as text."""
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}"
    return visible(str(value))


def histogram(bins: Sequence[tuple[str, int]], noun: str = "passage") -> list[str]:
    """A bar for each (label, count), as long as its share of the largest."""
    most = max((count for _, count in bins), default=0) or 1
    return aligned(
        ["", "", ""],
        [
            (label, counted(count, noun), "█" * round(BAR * count / most))
            for label, count in bins
        ],
    )  # fmt: skip


def file_size(size: int) -> str:
    """`512 B`, `3.4 kB`, `12 MB`: in thousands."""
    amount, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"


def place(passage: Passage) -> str:
    """`17 · docs/setup.md:10-24 · p. 3 · Install › Ports`: a chunk's number and its place."""
    page = None if passage.page is None else f"p. {visible(passage.page)}"
    where = " · ".join(filter(None, (source(passage), page, headings(passage))))
    return f"{passage.chunk} · {where}"


def glimpse(text: str, room: int = 80) -> str:
    """The first `room` characters of `text` on one line."""
    flat = visible(" ".join(text[: 4 * room].split()), keep="\n")
    return flat if len(flat) <= room else flat[: room - 1].rstrip() + "…"
