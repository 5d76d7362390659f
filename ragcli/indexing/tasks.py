"""Which files are read together, and in which process.

Owns the sizes of tasks; `pool` owns the children and `analysis` the reading.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.corpus.readers import is_plain
from ragcli.records import Settings

if TYPE_CHECKING:
    from ragcli.indexing.analysis import Analysed, FileTask

TASK_BYTES = 1 << 20
TASKS_A_WORKER = 8
"""Plain files are read this many bytes at a time, less where that would leave workers idle."""

INLINE_BYTES = 512 * 1024
"""So much plain text is read in this process: children would take longer to start."""

FILE_BYTES = 2000
"""What opening a file weighs beside reading it."""


def analyse(
    files: Sequence[FileTask], settings: Settings, home: Path, *, workers: int, vectors: bool
) -> Generator[Analysed, None, None]:
    """Outcomes in this process for a little plain text, else from `workers` children.

    `home` is the encoder's; `vectors`: also encode, where that is cheap enough.
    """
    plain = sum(file.size for file in files if is_plain(file.path))
    tasks = list(make_tasks(files, min(TASK_BYTES, plain // (TASKS_A_WORKER * workers))))
    small = sum(file.size for file in files) <= INLINE_BYTES
    if small and all(is_plain(file.path) for file in files):
        from ragcli.indexing.analysis import Analysis

        analysis = Analysis(settings, home, vectors=vectors)
        return (analysed for task in tasks for analysed in analysis.run(task))
    from ragcli.indexing.pool import Pool

    return Pool(settings, home, workers, vectors=vectors).run(tasks)


def make_tasks(files: Sequence[FileTask], most: int) -> Iterable[list[FileTask]]:
    """Plain files together up to `most` bytes, other kinds singly and first: they take longest."""
    plain: list[FileTask] = []
    for file in files:
        if is_plain(file.path):
            plain.append(file)
        else:
            yield [file]
    task: list[FileTask] = []
    size = 0
    for file in plain:
        if task and size + file.size > most:
            yield task
            task, size = [], 0
        task.append(file)
        size += file.size + FILE_BYTES
    if task:
        yield task


def count_processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
