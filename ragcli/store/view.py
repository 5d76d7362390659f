"""The live segments of both kinds that one view of the catalogue lists, opened."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragcli.store.catalog import Catalog
from ragcli.store.folder import segments_of
from ragcli.store.rows import OpenSegment
from ragcli.store.segments import Segment
from ragcli.store.vectors import Vectors


class View(NamedTuple):
    """The segments of one commit, oldest first."""

    postings: tuple[OpenSegment, ...]
    vectors: tuple[Vectors, ...]

    @property
    def chunks(self) -> int:
        """Live chunks."""
        return sum(segment.live_rows for segment in self.postings)

    @property
    def embedded(self) -> int:
        """Live chunks that have a vector."""
        return sum(segment.live_rows for segment in self.vectors)

    def has_vector(self, chunks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of `chunks` have a vector, bool (len(chunks),)."""
        held = np.zeros(len(chunks), bool)
        for segment in self.vectors:
            held |= segment.find(chunks) >= 0
        return held


def open_view(catalog: Catalog) -> View:
    """Open what the catalogue lists now. Raises IndexDamaged."""
    folder = segments_of(catalog.folder)
    dead = np.array(catalog.column("SELECT chunk FROM tombstones ORDER BY chunk"), np.int64)
    postings, vectors = (
        [
            Segment(folder, name, checksum)
            for name, checksum in catalog.connection.execute(
                f"SELECT name, checksum FROM {table} ORDER BY rowid"
            )
        ]
        for table in ("segments", "vectors")
    )
    return View(
        tuple(OpenSegment(segment, dead) for segment in postings),
        tuple(Vectors(segment, dead) for segment in vectors),
    )
