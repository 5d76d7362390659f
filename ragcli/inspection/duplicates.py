"""Passages that say the same twice: equal texts, and vectors with a cosine above a threshold.

Owns what is a group and what is told of it; which vectors are near is `near`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from ragcli.errors import UsageError
from ragcli.inspection.cosine import Ids, StoredVectors, cosines
from ragcli.inspection.near import Groups, Places, join_near
from ragcli.records import Passage
from ragcli.store import contents
from ragcli.store.index import Index
from ragcli.store.matrix import matrix

MEMBERS = 10
"""So many passages of a group are listed."""

THRESHOLD = 0.95
"""The cosine from which on two passages say much the same."""

_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Passages of which each is near another of the group, by path and offset.

    `same_text`: they are all equal. `documents`: in how many files or records they stand.
    `least_cosine` is the least to the group's first passage with a vector, None where there are
    not two with one. `passages` are the first of them, `left_out` the number of the rest.
    """

    size: int
    documents: int
    same_text: bool
    least_cosine: float | None
    passages: tuple[Passage, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class DuplicateReport:
    """The groups of an index, the largest first, `left_out` beyond those listed.

    Of `chunks`, `compared` have a vector other than zeros. `text_groups` and `text_redundant`
    count groups of equal text and the passages beyond the first of each; `all_groups` and
    `all_redundant` the same once cosines of at least `threshold` join them too. `within_one`
    groups stand in one document alone; with `across` they are not listed.
    """

    encoder: str
    chunks: int
    compared: int
    threshold: float
    across: bool
    text_groups: int
    text_redundant: int
    all_groups: int
    all_redundant: int
    within_one: int
    groups: tuple[DuplicateGroup, ...]
    left_out: int


def duplicates(
    index: Index,
    *,
    threshold: float = THRESHOLD,
    limit: int = 20,
    across: bool = True,
    same_text: bool = True,
) -> DuplicateReport:
    """Groups of passages with equal texts or a cosine of at least `threshold`, to 12 digits.

    Every two such passages are in one group. All groups are counted; with `across` those within
    one document are not listed, without `same_text` those of one text. Without vectors, equal
    texts alone are found. Raises UsageError for a threshold that is none; IndexUnavailable in its
    kinds.
    """
    if not 0.0 < threshold <= 1.0:
        raise UsageError(f"a cosine of {threshold} is no threshold", "use one such as 0.95")
    vectors = StoredVectors(index)
    found = _Chunks(index)
    text_groups, text_redundant = found.counts()
    compared = found.join_vectors(vectors, threshold)
    all_groups, all_redundant = found.counts()
    members = found.members()
    places = index.places(int(chunk) for group in members for chunk in group)
    ordered = [sorted(group.tolist(), key=places.__getitem__) for group in members]
    documents = [len({places[chunk].path for chunk in group}) for group in ordered]
    one_text = [found.one_text(group) for group in ordered]
    listed = sorted(
        (
            i
            for i in range(len(ordered))
            if (documents[i] > 1 or not across) and (same_text or not one_text[i])
        ),
        key=lambda i: (-len(ordered[i]), places[ordered[i][0]]),
    )
    return DuplicateReport(
        encoder=index.settings.encoder,
        chunks=len(found.chunks),
        compared=compared,
        threshold=threshold,
        across=across,
        text_groups=text_groups,
        text_redundant=text_redundant,
        all_groups=all_groups,
        all_redundant=all_redundant,
        within_one=documents.count(1),
        groups=tuple(
            _group(index, vectors, ordered[i], documents[i], one_text[i]) for i in listed[:limit]
        ),
        left_out=max(0, len(listed) - limit),
    )


class _Chunks:
    """The live chunks, ascending, and the groups that they are in."""

    def __init__(self, index: Index) -> None:
        self._index = index
        first: dict[bytes, int] = {}
        chunks, texts = [], []
        for place, (chunk, text) in enumerate(contents.texts(index)):
            chunks.append(chunk)
            texts.append(first.setdefault(_digest(text.encode("utf-8", "surrogatepass")), place))
        self.chunks: Ids = np.array(chunks, np.int64)
        self._texts: Places = np.array(texts, np.intp)
        self._groups = Groups(len(chunks))
        self._groups.join(np.arange(len(chunks)), self._texts)

    def join_vectors(self, vectors: StoredVectors, threshold: float) -> int:
        """Join what is near by its vector; returns how many vectors are not zeros."""
        chunks, rows = matrix(self._index, normalise=True)
        at = self.chunks.searchsorted(chunks)
        there, different = _prepare(rows)
        # `near` counts in rows; its groups are then those of the chunks of these rows.
        groups = Groups(len(rows))
        groups.join(there, different[there])

        def exact(first: Places, second: Places) -> NDArray[np.float64]:
            return cosines(vectors.rows(chunks[first]), vectors.rows(chunks[second]))

        join_near(rows, np.unique(different[there]), groups, threshold, exact)
        self._groups.join(at, at[groups.labels])
        return len(there)

    def counts(self) -> tuple[int, int]:
        """(groups of more than one, passages beyond the first of each)."""
        _, sizes = np.unique(self._groups.labels, return_counts=True)
        return int(np.count_nonzero(sizes > 1)), int((sizes - 1).sum())

    def members(self) -> Sequence[Ids]:
        """The chunks of each group of more than one."""
        labels = self._groups.labels
        order = np.argsort(labels, kind="stable")
        cuts = np.flatnonzero(np.diff(labels[order])) + 1
        return [self.chunks[group] for group in np.split(order, cuts) if len(group) > 1]

    def one_text(self, chunks: Sequence[int]) -> bool:
        """Whether they all have one text."""
        return len(np.unique(self._texts[self.chunks.searchsorted(chunks)])) == 1


def _prepare(rows: NDArray[np.float32]) -> tuple[Places, Places]:
    """Make the rows of length 1; (places of those that are not zeros, first place of each row)."""
    there = np.zeros(len(rows), bool)
    different = np.arange(len(rows))
    first: dict[bytes, int] = {}
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        lengths = np.sqrt(np.square(block, dtype=np.float64).sum(axis=1))
        there[start : start + len(block)] = lengths > 0
        block /= np.where(lengths > 0, lengths, 1.0).astype(np.float32)[:, np.newaxis]
        for place, row in enumerate(block, start):
            different[place] = first.setdefault(_digest(row.tobytes()), place)
    return np.flatnonzero(there), different


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def _group(
    index: Index, vectors: StoredVectors, chunks: Sequence[int], documents: int, same_text: bool
) -> DuplicateGroup:
    shown = contents.passages(index, chunks[:MEMBERS])
    return DuplicateGroup(
        size=len(chunks),
        documents=documents,
        same_text=same_text,
        least_cosine=_least_cosine(vectors, np.array(chunks, np.int64)),
        passages=tuple(shown[chunk] for chunk in chunks[:MEMBERS]),
        left_out=max(0, len(chunks) - MEMBERS),
    )


def _least_cosine(vectors: StoredVectors, chunks: Ids) -> float | None:
    first = None
    least: list[float] = []
    for start in range(0, len(chunks), _BLOCK):
        rows = vectors.rows(chunks[start : start + _BLOCK])
        rows = rows[rows.any(axis=1)]
        if first is None and len(rows):
            first, rows = rows[0], rows[1:]
        if first is not None and len(rows):
            least.append(float(cosines(rows, first).min()))
    return min(least, default=None)
