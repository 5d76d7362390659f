"""The live segments held against their checksums and against the catalogue.

What arrays must be in themselves is `checking_arrays`' business. Says what is wrong and leaves to
others what to do about it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from ragcli.errors import IndexDamaged
from ragcli.store.catalog import Catalog
from ragcli.store.checking import Damage, some
from ragcli.store.checking_arrays import Chunks, Shape, check_postings, check_vectors
from ragcli.store.folder import segments_of
from ragcli.store.segments import MANIFEST, Segment

_PAIR = np.dtype([("chunk", np.int64), ("document", np.int64)])


class _Listed(NamedTuple):
    """A row of `table`, which is `segments` or `vectors`."""

    table: str
    name: str
    checksum: str
    rows: int


class SegmentsCheck:
    """Every segment that the catalogue lists, looked at by `run`; then `damages` and numbers.

    A damaged segment has one line, of the first thing that is wrong with it. `segments`, `vectors`
    (rows) and `bytes` were looked at; `waiting` live chunks stand in no sound segment of vectors.
    """

    def __init__(self, catalog: Catalog, shape: Shape | None = None, *, unit: bool = False) -> None:
        """`shape`, `unit`: what the index's encoder gives; None: what the first segment has."""
        self._catalog = catalog
        self._shape = shape
        self._unit = unit
        self.damages: list[Damage] = []
        self.segments = self.vectors = self.bytes = self.waiting = 0

    def run(self) -> SegmentsCheck:
        """Look at them all."""
        self._read_catalog()
        for table in ("segments", "vectors"):
            before = len(self.damages)
            self._held = np.zeros(len(self._chunks), bool)
            for row in self._catalog.connection.execute(
                f"SELECT name, checksum, rows FROM {table} ORDER BY rowid"
            ).fetchall():
                self._check(_Listed(table, *row))
            left = self._chunks[~self._held]
            if table == "vectors":
                self.waiting = len(left)
            elif len(left) and len(self.damages) == before:
                message = f"passages in no segment of postings: {some(left)}"
                self.damages.append(Damage("counts", table, message))
        return self

    def _read_catalog(self) -> None:
        """The live chunks ascending with their documents, and the tombstones."""
        ask = self._catalog.connection.execute
        # In no order, SQLite reads these from an index and not from among the texts.
        pairs = np.fromiter(ask("SELECT id, CAST(document AS INTEGER) FROM chunks"), _PAIR)
        pairs.sort(order="chunk")
        self._chunks: Chunks = pairs["chunk"].copy()
        self._documents: Chunks = pairs["document"].copy()
        dead = (chunk for (chunk,) in ask("SELECT chunk FROM tombstones"))
        self._dead: Chunks = np.fromiter(dead, np.int64)

    def _check(self, listed: _Listed) -> None:
        self.segments += 1
        kind = "segment"
        try:
            segment = self._open(listed)
            kind = "checksum"
            segment.verify()
            self.bytes += segment.bytes
            kind = "postings" if listed.table == "segments" else "vectors"
            documents: Chunks | None = None
            if listed.table == "segments":
                chunks, documents = check_postings(segment, listed.rows)
            else:
                chunks, self._shape = check_vectors(
                    segment, listed.rows, self._shape, unit=self._unit
                )
                self.vectors += len(chunks)
            kind = "reference"
            self._check_rows(listed, chunks, documents)
            self._check_folder(segment)
        except IndexDamaged as error:
            self.damages.append(Damage(kind, listed.name, error.message))
        except OSError as error:
            message = f"segment {listed.name} cannot be read: {error.strerror}"
            self.damages.append(Damage("segment", listed.name, message))

    def _open(self, listed: _Listed) -> Segment:
        try:
            return Segment(segments_of(self._catalog.folder), listed.name, listed.checksum)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise IndexDamaged(f"the manifest of segment {listed.name} cannot be read") from error
        except IndexDamaged as error:
            raise IndexDamaged(f"{error.message} ({listed.rows:,} passages)") from error

    def _check_folder(self, segment: Segment) -> None:
        """Files beside those of a sound segment."""
        files = json.loads((segment.path / MANIFEST).read_bytes())["files"]
        for name in sorted(path.name for path in segment.path.iterdir()):
            if name not in files and name != MANIFEST:
                message = f"{name} is no part of segment {segment.name}"
                self.damages.append(Damage("stranger", f"{segment.name}/{name}", message))

    def _check_rows(self, listed: _Listed, chunks: Chunks, documents: Chunks | None) -> None:
        """Each row's chunk is live, and then of this document and of this row alone, or dead."""
        at = np.minimum(self._chunks.searchsorted(chunks), max(len(self._chunks) - 1, 0))
        live = self._chunks[at] == chunks if len(self._chunks) else np.zeros(len(chunks), bool)
        here = at[live]
        there = chunks[live]
        rules = [
            (chunks[~live & ~np.isin(chunks, self._dead)], "that the catalogue does not have"),
            (there[self._held[here]], "that another segment holds too"),
        ]
        if documents is not None:
            others = there[documents[live] != self._documents[here]]
            rules.append((others, "under another document than the catalogue does"))
        for wrong, says in rules:
            if len(wrong):
                raise IndexDamaged(f"{listed.name} holds passages {says}: {some(wrong)}")
        self._held[here] = True
