"""One question over one view of the index: its words, its vector, and both retrievers.

Each is made once, when it is first needed, and shared by all ways in which the question is then
ranked. Fusion and order are `ranking`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ragcli.encoders import Encoder
from ragcli.retrieval.legs import Allowed, DenseLeg, Ids, LexicalLeg
from ragcli.retrieval.on_demand import ON_DEMAND, OnDemand
from ragcli.retrieval.question import Word
from ragcli.store.rows import OpenSegment
from ragcli.store.vectors import Vector
from ragcli.store.view import View


@dataclass
class Asked:
    """`vector` is None where only the lexical retriever may be asked; then so are the others.

    `allowed`: per segment of postings the rows that `paths` let through.
    """

    question: str
    paths: tuple[str, ...]
    view: View
    words: tuple[Word, ...]
    allowed: Allowed
    encoder: Encoder | None = None
    vector: Future[Vector] | None = None
    on_demand: OnDemand | None = None

    @cached_property
    def lexical(self) -> LexicalLeg:
        """BM25 of every chunk."""
        return LexicalLeg(self.view.postings, self.words, self.allowed)

    def embed(self) -> int:
        """Give vectors to those of the lexical best that have none; returns to how many."""
        if self.on_demand is None or self.vector is None:
            return 0
        self.vector.result()  # the model is loaded once, and is the index's
        best = [chunk for chunk, _ in self.lexical.best(ON_DEMAND)[:ON_DEMAND]]
        made = self.on_demand.make(np.array(best, np.int64))
        if made:
            for leg in ("_dense", "_dense_by_words"):
                self.__dict__.pop(leg, None)
        return made

    def dense(self, *, with_words: bool) -> DenseLeg:
        """The dot products; beside the lexical retriever (`with_words`) an encoder that knows
        words alone keeps to what has one of them.
        """
        assert self.encoder is not None
        return self._dense_by_words if with_words and self.encoder.words_only else self._dense

    @cached_property
    def _dense_by_words(self) -> DenseLeg:
        return self._leg(self.lexical.matching)

    @cached_property
    def _dense(self) -> DenseLeg:
        masks = [mask for mask in self.allowed if mask is not None]
        if len(masks) < len(self.allowed) or not masks:
            return self._leg(None)
        return self._leg(
            np.concatenate(
                [s.chunks[may] for s, may in zip(self.view.postings, masks, strict=True)]
            )
        )

    def _leg(self, reach: Ids | None) -> DenseLeg:
        assert self.encoder is not None
        assert self.vector is not None
        leg = DenseLeg(self.view.vectors, self.encoder, self.vector.result(), reach)
        if self.on_demand:
            self.on_demand.add_to(leg, reach)
        return leg

    def admits(self, chunk: int) -> bool:
        """Whether a live chunk is of the paths that were asked for."""
        for segment, may in zip(self.view.postings, self.allowed, strict=True):
            row = int(segment.find(np.array([chunk], np.int64))[0])
            if row >= 0:
                return may is None or bool(may[row])
        return False

    @cached_property
    def population(self) -> int:
        """How many live chunks may be hits."""
        return sum(
            _count(segment, may)
            for segment, may in zip(self.view.postings, self.allowed, strict=True)
        )


def allowed_rows(segments: Sequence[OpenSegment], documents: NDArray[np.int64] | None) -> Allowed:
    """Which rows are of `documents`, None for all."""
    if documents is None:
        return [None] * len(segments)
    return [np.isin(segment.documents, documents) for segment in segments]


def _count(segment: OpenSegment, may: NDArray[np.bool_] | None) -> int:
    if may is None:
        return segment.live_rows
    return int(np.count_nonzero(may if segment.live is None else may & segment.live))
