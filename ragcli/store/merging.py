"""Segments into one: which, and with what in it. Reads segments, writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragcli.store.batch import SegmentContent, VectorContent

if TYPE_CHECKING:
    from ragcli.store.rows import OpenSegment
    from ragcli.store.vectors import Vectors

MERGE_AT = 8
"""So many segments of like size become one."""

SMALL = 60_000
"""Rows up to which a segment with dead rows is written anew at once, so that deleted words
leave the disk with the run that saw them go; a larger one waits until a tenth is dead."""


FIRST_LEVEL = 512
"""Rows up to which a segment is of the lowest level."""


def choose_merge(segments: Sequence[tuple[int, int]]) -> list[int]:
    """Which of `segments` of one kind, each (rows, live rows), to make into one; [] for none.

    Sizes are never mixed: a level is a power of `MERGE_AT` rows, and a full level becomes one
    segment of the next.
    """
    for i, (rows, live) in enumerate(segments):
        if live < rows and (rows <= SMALL or live < 0.9 * rows):
            return [i]
    levels: dict[int, list[int]] = {}
    for i, (rows, _) in enumerate(segments):
        level, bound = 0, FIRST_LEVEL
        while rows > bound:
            level, bound = level + 1, bound * MERGE_AT
        levels.setdefault(level, []).append(i)
    return next((group for group in levels.values() if len(group) >= MERGE_AT), [])


def merge_vectors(opened: Sequence[Vectors]) -> VectorContent:
    """The live rows of `opened`. Raises IndexDamaged rather than carry damage on."""
    for segment in opened:
        segment.segment.verify()
    return VectorContent.join(
        [VectorContent(s.chunks[s.kept()], s.encoded(s.kept())) for s in opened]
    )


def merge_postings(opened: Sequence[OpenSegment]) -> SegmentContent:
    """The live rows of `opened` by chunk id.

    Raises IndexDamaged rather than carry damage on.
    """
    import numpy as np

    from ragcli.store.lexical import combine, drop_rows

    for segment in opened:
        segment.segment.verify()
    kept = [segment.kept() for segment in opened]
    chunks = np.concatenate([s.chunks[rows] for s, rows in zip(opened, kept, strict=True)])
    order = np.argsort(chunks)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    targets, start = [], 0
    for segment, rows in zip(opened, kept, strict=True):
        target = np.full(segment.rows, -1, np.int64)
        target[rows] = place[start : start + len(rows)]
        start += len(rows)
        targets.append(target)
    documents = [s.documents[rows] for s, rows in zip(opened, kept, strict=True)]
    if len(opened) == 1:
        postings = drop_rows(opened[0].postings, kept[0])
    else:
        postings = combine([segment.postings for segment in opened], targets, len(chunks))
    return SegmentContent(postings, chunks[order], np.concatenate(documents)[order])
