"""Tables and progress for people: the only importer of rich.

A terminal gets lines that fit its width, links, and the matched words marked; anything else
gets plain lines that are neither wrapped nor cut. Text of documents is put together as rich
`Text`, never read as markup, and with control characters shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.style import Style
from rich.text import Text

from ragcli import records
from ragcli.cli.reports.explanation import explanation
from ragcli.cli.snippet import densest, matched_spans
from ragcli.generation.prompt import headings, source
from ragcli.generation.visible import visible
from ragcli.records import Hit, SearchResult

_INDENT = "    "
_SNIPPET_LINES = 2
_BETWEEN = "  "

Column = tuple[str, Callable[[Hit], float | None]]

_COLUMNS: tuple[Column, ...] = (
    ("score", lambda hit: hit.score),
    ("weight", lambda hit: hit.weight),
    ("lexical", lambda hit: None if hit.lexical is None else hit.lexical.score),
    ("dense", lambda hit: None if hit.dense is None else hit.dense.score),
    ("rerank", lambda hit: hit.rerank),
)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave a reader that went away to the caller; rich itself would exit with 1."""
        raise BrokenPipeError


def console(stream: TextIO, *, color: bool) -> Console:
    """A console on `stream` that takes its own word for whether it is a terminal."""
    terminal = stream.isatty()
    return _Console(
        file=stream,
        force_terminal=terminal,
        color_system="auto" if color and terminal else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
        legacy_windows=False,
    )


def score_table(
    screen: Console,
    result: SearchResult,
    *,
    root: Path | None,
    languages: Sequence[str],
    explain: bool,
    answerable: float | None = None,
) -> None:
    """The hits: numbers, place and a snippet each, and under `explain` where the scores are from.

    `root` is the folder that links lead into, None for no links; `languages` are those that
    the index stems by; `answerable` is P(answerable) where that is known.
    """
    width = screen.width if screen.is_terminal else None
    columns = [c for c in _COLUMNS if any(c[1](hit) is not None for hit in result.hits)]
    cells = [[str(hit.rank), *(_number(value(hit)) for _, value in columns)] for hit in result.hits]
    heads = ["#", *(name for name, _ in columns)]
    widths = [max(len(row[i]) for row in [heads, *cells]) for i in range(len(heads))]
    head = _BETWEEN.join([*map(str.rjust, heads, widths), "source"])
    screen.print(Text(head, style="dim"))
    for hit, row in zip(result.hits, cells, strict=True):
        numbers = _BETWEEN.join([*map(str.rjust, row, widths), ""])
        room = None if width is None else width - len(numbers)
        screen.print(Text.assemble(numbers, _place(hit, root, room)))
        for line in _snippet(hit, result, languages, screen, width):
            screen.print(Text.assemble(_INDENT, line))
    if explain:
        for hit in result.hits:
            screen.print()
            for told in (f"[{hit.rank}] {source(hit)}", *explanation(hit)):
                screen.print(Text(told))
        screen.print()
    screen.print(Text(_summary(result, answerable), style="dim"))


def cells(text: str) -> int:
    """How many cells of a terminal `text` takes."""
    return cell_len(text)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _place(hit: Hit, root: Path | None, room: int | None) -> Text:
    """Source, page and headings on one line of `room` cells; the source keeps its end."""
    where = source(hit)
    rest = "".join(
        f" · {part}" for part in (hit.page and f"p. {visible(hit.page)}", headings(hit)) if part
    )
    if room is not None:
        where = _keep_end(where, room)
        rest = _keep_start(rest, room - cell_len(where))
    link = None if root is None else _link(root, hit)
    return Text.assemble((where, Style(bold=True, link=link)), (rest, "dim"))


def _link(root: Path, hit: Hit) -> str:
    path = hit.path if hit.record is None else hit.path.removesuffix(f"#{hit.record}")
    return (root / path).as_uri()


def _keep_end(text: str, room: int) -> str:
    """`text`, its start cut to fit `room` cells."""
    if cell_len(text) <= room:
        return text
    while text and cell_len(text) > room - 1:
        text = text[1:]
    return "…" + text


def _keep_start(text: str, room: int) -> str:
    """`text`, its end cut to fit `room` cells; nothing where hardly anything would be left."""
    if cell_len(text) <= room:
        return text
    return "" if room < 8 else set_cell_size(text, room - 1).rstrip() + "…"


def _snippet(
    hit: Hit, result: SearchResult, languages: Sequence[str], screen: Console, width: int | None
) -> Sequence[Text]:
    """The passage around the matched words, which are bold: on a terminal a few lines of it."""
    flat = visible(" ".join(hit.text.split()), keep="\n")
    spans = matched_spans(flat, result.terms, languages)
    shown = Text(flat)
    for start, end in spans:
        shown.stylize("bold", start, end)
    if width is None:
        return [shown]
    room = max(width - len(_INDENT), 20)
    start, end = densest(flat, spans, room * _SNIPPET_LINES - 10)
    cut = Text.assemble("…" if start else "", shown[start:end], "…" if end < len(flat) else "")
    lines = cut.wrap(screen, room)[:_SNIPPET_LINES]
    for line in lines:
        line.rstrip()
    return lines


def _summary(result: SearchResult, answerable: float | None) -> str:
    parts = [result.mode]
    if result.mode == "hybrid":
        alpha = "" if result.alpha is None else f" with {result.alpha:.2g} dense"
        parts = [f"hybrid: {result.fusion}{alpha}"]
    parts.append(f"{result.chunks:,} passages searched")
    if answerable is not None:
        parts.append(f"P(answerable) {answerable:.2f}")
    if "total" in result.timings_ms:
        parts.append(f"{result.timings_ms['total']:.0f} ms")
    return " · ".join(parts)


class ProgressBar:
    """How far indexing is, on a terminal: bar, count, rate and time left of the stage it is in."""

    def __init__(self, screen: Console) -> None:
        self._live = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[count]}", markup=False),
            TimeRemainingColumn(compact=True),
            console=screen,
            transient=True,
        )
        self._task = self._live.add_task("", total=None, count="")
        self._stage: str | None = None
        self._first = (0.0, 0)

    def show(self, progress: records.Progress) -> None:
        """Bring the bar up to date; bytes measure how far where they are known."""
        number, of, unit = _counted(progress)
        share = (progress.bytes_done, progress.bytes_total) if progress.bytes_done else (number, of)
        self.count(progress.stage, number, of, unit, share)

    def count(
        self, stage: str, number: int, of: int, unit: str, share: tuple[int, int] | None = None
    ) -> None:
        """`number` of `of` (0: unknown) are done; `share`: what is done of what, if not those."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._first = stage, (now, number)
            self._live.reset(self._task)
        done, total = share or (number, of)
        since, before = self._first
        parts = [
            f"{done / total:.0%}" if total else "",
            f"{number:,}{f'/{of:,}' if of else ''} {unit}" if number else "",
            f"{rate:,.0f}/s" if (rate := (number - before) / max(now - since, 0.1)) >= 1 else "",
        ]
        self._live.update(
            self._task,
            description={"embed": "embedding"}.get(stage, stage),
            completed=done,
            total=total or None,
            count=" · ".join(filter(None, parts)),
        )
        self._live.start()

    def close(self) -> None:
        """Take the bar off the screen."""
        self._live.stop()


def _counted(progress: records.Progress) -> tuple[int, int, str]:
    """What the stage counts: how many are done, of how many (0: unknown), and of what."""
    if progress.stage == "embed":
        return progress.chunks, progress.chunks_total, "passages"
    return progress.files_done, progress.files_total, "files"
