"""Vectors that are made while a question waits, for chunks that have none yet.

Owns how many, for how long, and what questions share of them. Keeping them is `store.keeping`'s.
"""

from __future__ import annotations

import time

import numpy as np

from ragcli.encoders import Encoder
from ragcli.retrieval.legs import DenseLeg, Ids
from ragcli.store.batch import VectorContent
from ragcli.store.index import Index
from ragcli.store.keeping import keep_vectors

ON_DEMAND = 50
"""The best so many of the lexical retriever: as good as every chunk, by measurement."""

ON_DEMAND_SECONDS = 2.0
"""After which no further batch is begun."""

_BATCH = 8


class OnDemand:
    """The vectors made since the index was opened, for chunks that had none then."""

    def __init__(self, index: Index, encoder: Encoder) -> None:
        self._index = index
        self._encoder = encoder
        self._made: list[VectorContent] = []
        self._texts: dict[int, str] = {}
        self._kept = 0

    def make(self, chunks: Ids) -> int:
        """Encode those of `chunks`, best first, that have no vector; returns how many it did."""
        stored = self._index.view(scoring=True).has_vector(chunks)
        wanted = [chunk for chunk in chunks[~stored].tolist() if chunk not in self._texts]
        texts = {chunk: found.chunk.text for chunk, found in self._index.chunks(wanted).items()}
        end = time.monotonic() + ON_DEMAND_SECONDS
        done = 0
        while done < len(wanted) and (not done or time.monotonic() < end):
            some = wanted[done : done + _BATCH]
            encoded = self._encoder.encode_documents([texts[chunk] for chunk in some])
            self._made.append(VectorContent(np.array(some, np.int64), encoded))
            self._texts.update((chunk, texts[chunk]) for chunk in some)
            done += len(some)
        return done

    def add_to(self, leg: DenseLeg, allowed: Ids | None) -> None:
        """Let `leg` score what was made, of `allowed` (None: any)."""
        if self._made:
            made = VectorContent.join(self._made)
            may = np.full(len(made.chunks), True)
            if allowed is not None:
                may = np.isin(made.chunks, allowed)
            leg.add(made.chunks[may], made.encoded.take(may))

    def keep(self) -> bool:
        """Store what was made since the last time; False where that cannot be done now."""
        fresh = self._made[self._kept :]
        if fresh:
            content = VectorContent.join(fresh)
            passages = [(chunk, self._texts[chunk]) for chunk in content.chunks.tolist()]
            fingerprint = self._encoder.fingerprint
            if not keep_vectors(self._index.path, fingerprint, passages, content.encoded):
                return False
            self._kept = len(self._made)
        return True
