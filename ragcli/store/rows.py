"""The rows of an open segment: which chunk each of them holds, and which are dead."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ragcli.store.lexical import PackedNames, Postings
from ragcli.store.segments import Segment


class OpenRows:
    """What both kinds of segment have. `chunks`: the chunk of each row, int64 (rows,), ascending.

    `live` is None where no row is dead, else bool (rows,).
    """

    def __init__(self, segment: Segment, dead: NDArray[np.int64]) -> None:
        """`dead`: the tombstoned chunks of the whole index. Raises IndexDamaged."""
        self.segment = segment
        self.chunks: NDArray[np.int64] = segment.array("chunks")  # type: ignore[assignment]
        at = self.find(dead)
        self.live: NDArray[np.bool_] | None = None
        if (at >= 0).any():
            self.live = np.ones(len(self.chunks), bool)
            self.live[at[at >= 0]] = False

    @property
    def rows(self) -> int:
        """Rows, dead ones included."""
        return len(self.chunks)

    @cached_property
    def dead_rows(self) -> NDArray[np.intp]:
        """The rows that tombstones cover."""
        return np.empty(0, np.intp) if self.live is None else np.flatnonzero(~self.live)

    @cached_property
    def live_rows(self) -> int:
        """How many rows count."""
        return self.rows - len(self.dead_rows)

    def kept(self) -> NDArray[np.intp]:
        """The rows that count, ascending."""
        return np.arange(self.rows) if self.live is None else np.flatnonzero(self.live)

    def find(self, chunks: NDArray[np.int64]) -> NDArray[np.intp]:
        """The row of each of `chunks`, dead ones too; -1 where it is not here."""
        if not self.rows or not len(chunks):
            return np.full(len(chunks), -1, np.intp)
        at = np.minimum(self.chunks.searchsorted(chunks), self.rows - 1)
        return np.where(self.chunks[at] == chunks, at, -1)

    def among(self, chunks: NDArray[np.int64] | None) -> NDArray[np.bool_] | None:
        """Which rows count and hold one of `chunks` (None: any): bool (rows,), None for all."""
        if chunks is None:
            return self.live
        here = np.isin(self.chunks, chunks, assume_unique=True)
        return here if self.live is None else here & self.live


class OpenSegment(OpenRows):
    """A segment of postings. `documents`: the document of each row, int64 (rows,)."""

    def __init__(self, segment: Segment, dead: NDArray[np.int64]) -> None:
        super().__init__(segment, dead)
        self.documents: NDArray[np.int64] = segment.array("documents")  # type: ignore[assignment]
        self.postings = Postings(
            PackedNames(segment.array("names"), segment.array("name_ends")),  # type: ignore[arg-type]
            segment.array("starts"),  # type: ignore[arg-type]
            segment.array("rows"),  # type: ignore[arg-type]
            segment.array("counts"),  # type: ignore[arg-type]
            segment.array("lengths"),  # type: ignore[arg-type]
        )

    @cached_property
    def length(self) -> int:
        """Term occurrences in the live rows."""
        lengths = self.postings.lengths
        return int(lengths.sum(dtype="int64")) - int(lengths[self.dead_rows].sum(dtype="int64"))
