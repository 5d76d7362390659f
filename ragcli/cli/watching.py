"""`ragcli index --watch`: one line for each run that changed something, quiet otherwise.

When a run is due, and what it survives, is `ragcli.indexing.watching`'s.
"""

from __future__ import annotations

import time
from pathlib import Path

from ragcli.cli.output import Output, counted, print_json, print_result
from ragcli.errors import RagcliError
from ragcli.generation.visible import visible
from ragcli.indexing.watching import watch_folder
from ragcli.records import IndexReport


def watch(first: IndexReport, output: Output, *, lazy: bool, workers: int | None) -> None:
    """Keep the index in step until a signal comes; `first` is the run that is already told.

    Raises KeyboardInterrupt, IndexUnavailable where the index is gone.
    """
    output.warn(f"watching {first.root} (Ctrl-C ends)")
    troubled, failed = False, first.counts.failed
    for said in watch_folder(Path(first.index), lazy=lazy, workers=workers):
        if isinstance(said, RagcliError):
            troubled = True
            output.warn(said.message if said.hint is None else f"{said.message}; {said.hint}")
            continue
        counts = said.counts
        changed = counts.indexed or counts.moved or counts.removed or counts.failed != failed
        if troubled or changed:
            _tell(said, output)
        troubled, failed = False, counts.failed
        if said.interrupted:
            raise KeyboardInterrupt("what was done is kept; ragcli index goes on from there")


def _tell(report: IndexReport, output: Output) -> None:
    if output.as_json:
        from ragcli.cli.jsonout import index_report

        print_json(index_report(report))
    elif not output.quiet:
        print_result(line(report, time.strftime("%H:%M:%S")))


def line(report: IndexReport, clock: str) -> str:
    """`12:03:41  2 indexed, 1 removed · 1,204 passages · 0.3 s`; `clock` is when it ended."""
    counts = report.counts
    parts = [
        f"{number:,} {what}"
        for what, number in (
            ("indexed", counts.indexed),
            ("moved", counts.moved),
            ("removed", counts.removed),
            ("failed", counts.failed),
        )
        if number
    ]
    problems = [counted(len(report.problems), "problem")] if report.problems else []
    told = [
        ", ".join(parts) or "nothing changed",
        counted(report.chunks, "passage"),
        *problems,
        f"{report.seconds:.1f} s",
    ]
    return visible(f"{clock}  {' · '.join(told)}")
