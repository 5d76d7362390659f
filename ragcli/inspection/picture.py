"""The numbers of a picture of an index: where chunks lie, how long they are, how a question scores.

Owns principal components, groups and bins. Knows no drawing library: `cli.plot` draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcli.errors import UsageError
from ragcli.inspection.cosine import check_vectors
from ragcli.inspection.measure import Measure
from ragcli.inspection.spread import Bin
from ragcli.records import Hit, Passage
from ragcli.store.contents import texts
from ragcli.store.index import Index
from ragcli.store.matrix import matrix

MOST_POINTS = 50_000
"""Points of a map: with more, a browser is slow to open the page."""

MOST_GROUPS = 12
"""Colours that an eye tells apart."""

MOST_DIMENSIONS = 4096
"""The widest covariance whose eigenvectors are worked out: some seconds."""

MOST_RANKS = 1000
"""Ranks of a curve that are all there; above, ever fewer are."""

_BINS = 40
_STEPS = (1, 2, 5)
_TEXT = 400
"""Characters of a chunk that are kept: enough for a glimpse of 200 without its white space."""

_BLOCK = 8192

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChunkMap:
    """Chunks on the plane of their vectors' two principal components.

    `passages` have the beginning of their text; `x` and `y` are float64 (n,); `explained` is each
    axis' share of the variance. `groups` has each chunk's file, or a folder above it (ends in
    `/`), None for all others; `by_folder` says which. `embedded` chunks have a vector: where
    they are more than `passages`, these were taken from them at even distances.
    """

    passages: tuple[Passage, ...]
    x: Floats
    y: Floats
    explained: tuple[float, float]
    groups: tuple[str | None, ...]
    by_folder: bool
    embedded: int


@dataclass(frozen=True, slots=True)
class ScoreCurve:
    """The scores of a question's candidates from the best to the worst.

    `ranks`, int64, and `scores`, float64, (n,); all of the first MOST_RANKS, then ever fewer.
    `positions` are the ranks of the `hits` among all `candidates` by score alone: with
    `--max-per-file` they have gaps. `left_out` is the best score that follows the last hit.
    """

    question: str
    mode: str
    k: int
    candidates: int
    ranks: NDArray[np.int64]
    scores: Floats
    hits: tuple[Hit, ...]
    positions: tuple[int, ...]
    left_out: float | None


@dataclass(frozen=True, slots=True)
class Sizes:
    """Words per chunk: the bins of a histogram, of equal width but for the last, and the median."""

    bins: tuple[Bin, ...]
    median: float
    largest: int


@dataclass(frozen=True, slots=True)
class Picture:
    """What a page shows of an index, called `name` after its root.

    Where there is no `map`, `no_map` says why; `sizes` is None without chunks, `curve` without a
    question.
    """

    name: str
    chunks: int
    map: ChunkMap | None
    no_map: str | None
    sizes: Sizes | None
    curve: ScoreCurve | None


def picture(index: Index, curve: ScoreCurve | None = None) -> Picture:
    """The index as a page shows it. Raises IndexUnavailable in its kinds."""
    chunks, _ = index.counts()
    name = (index.root or index.path.absolute().parent).name
    drawn, missing = None, None
    try:
        drawn = chunk_map(index, always={hit.chunk for hit in curve.hits} if curve else ())
    except UsageError as error:
        missing = error.message
    return Picture(name, chunks, drawn, missing, sizes(index), curve)


def chunk_map(
    index: Index, *, most: int = MOST_POINTS, always: Collection[int] = ()
) -> ChunkMap:  # fmt: skip
    """Where the chunks of the index lie: `most` of them at most, those of `always` among them.

    The components are those of all chunks. Raises UsageError where no chunk has a vector or the
    vectors have too many dimensions; IndexUnavailable in its kinds.
    """
    check_vectors(index, "maps")
    chunks, rows = matrix(index)
    if min(rows.shape) > MOST_DIMENSIONS:
        raise UsageError(
            f"maps need vectors of at most {MOST_DIMENSIONS:,} dimensions, and these have"
            f" {rows.shape[1]:,}",
            f"ragcli index --dim {MOST_DIMENSIONS}",
        )
    coordinates, explained = principal_components(rows)
    shown = _even(len(chunks), most)
    if len(shown) < len(chunks):
        shown = np.union1d(shown, np.flatnonzero(np.isin(chunks, list(always))))
    passages, files = _beginnings(index, chunks[shown].tolist())
    groups, by_folder = grouped(files)
    return ChunkMap(
        passages=passages,
        x=coordinates[shown, 0],
        y=coordinates[shown, 1],
        explained=explained,
        groups=groups,
        by_folder=by_folder,
        embedded=len(chunks),
    )


def principal_components(rows: NDArray[np.float32]) -> tuple[Floats, tuple[float, float]]:
    """Each row's first two principal components, float64 (n, 2), and their shares of the variance.

    Exact, from the eigenvectors of the covariance (dim, dim), or of the rows' products (n, n)
    where those are fewer. Along each axis the component that is largest is positive.
    """
    count, width = rows.shape
    mean = rows.mean(axis=0, dtype=np.float64)
    coordinates = np.zeros((count, 2))
    products = np.zeros((min(rows.shape),) * 2)
    for start in range(0, max(rows.shape), _BLOCK):
        some = slice(start, start + _BLOCK)
        block = rows[some] - mean if width <= count else (rows[:, some] - mean[some]).T
        products += block.T @ block
    values, vectors = np.linalg.eigh(products)
    values, vectors = np.maximum(values[:-3:-1], 0.0), vectors[:, :-3:-1]
    total = float(products.trace())
    if total <= max(rows.shape) * np.finfo(np.float32).eps ** 2:  # every row is the mean
        return coordinates, (0.0, 0.0)
    found = len(values)
    if width <= count:
        for start in range(0, count, _BLOCK):
            some = slice(start, start + _BLOCK)
            coordinates[some, :found] = (rows[some] - mean) @ vectors
    else:
        coordinates[:, :found] = vectors * np.sqrt(values)
    largest = np.abs(coordinates).argmax(axis=0)
    coordinates *= np.where(coordinates[largest, [0, 1]] < 0, -1.0, 1.0)
    shares = [*(values / total).tolist(), 0.0]
    return coordinates, (shares[0], shares[1])


def grouped(files: Sequence[str]) -> tuple[tuple[str | None, ...], bool]:
    """For each of `files` (a path may come again) its group, and whether groups are folders.

    Files are their own groups while there are few; else the deepest folders that are few enough,
    or else the largest groups, and None for the rest.
    """
    folders = {file: file.split("/")[:-1] for file in set(files)}
    depth = max(map(len, folders.values()), default=0)
    levels = [
        {file: "/".join(parts[:at]) + "/" if parts else "./" for file, parts in folders.items()}
        for at in range(1, depth + 1)
    ]
    levels.append({file: file for file in folders})
    telling = [level for level in levels if len(set(level.values())) > 1] or levels[-1:]
    few = [level for level in telling if len(set(level.values())) <= MOST_GROUPS]
    level = few[-1] if few else telling[0]
    counts = Counter(level[file] for file in files)
    largest = sorted(counts, key=lambda name: (-counts[name], name))
    kept = set(largest if few else largest[: MOST_GROUPS - 1])
    names = {file: name if name in kept else None for file, name in level.items()}
    return tuple(names[file] for file in files), level is not levels[-1]


def score_curve(
    question: str, scores: Sequence[float], hits: Sequence[Hit], k: int, mode: str
) -> ScoreCurve:
    """The curve of `scores`, those of all candidates in any order, and where its hits lie on it."""
    falling = -np.sort(-np.asarray(scores, np.float64))
    count = len(falling)
    positions: list[int] = []
    for hit in sorted(hits, key=lambda hit: hit.rank):
        after = positions[-1] if positions else 0
        positions.append(max(int(np.searchsorted(-falling, -hit.score)) + 1, after + 1))
    last = positions[-1] if positions else 0
    far = np.geomspace(MOST_RANKS, max(count, MOST_RANKS), MOST_RANKS).round().astype(np.int64)
    ranks = np.unique(np.concatenate([np.arange(1, MOST_RANKS + 1), far]))
    ranks = ranks[ranks <= count]
    return ScoreCurve(
        question=question,
        mode=mode,
        k=k,
        candidates=count,
        ranks=ranks,
        scores=falling[ranks - 1],
        hits=tuple(sorted(hits, key=lambda hit: hit.rank)),
        positions=tuple(positions),
        left_out=float(falling[last]) if last < count else None,
    )


def sizes(index: Index) -> Sizes | None:
    """How many words the chunks have, None without chunks. Raises IndexUnavailable in its kinds."""
    count = Measure(index).words
    words = np.array([count(text) for _, text in texts(index)], np.int64)
    if not len(words):
        return None
    return Sizes(size_bins(words), float(np.median(words)), int(words.max()))


def size_bins(words: NDArray[np.int64]) -> tuple[Bin, ...]:
    """`words`, int64 (n,), n > 0, none negative, in bins of a round width from 0 on.

    The last takes the few that are far above the rest: they would squeeze it into a few bars.
    """
    usual = float(np.quantile(words, 0.99))
    width = next(
        step * 10**power
        for power in range(20)
        for step in _STEPS
        if usual < _BINS * step * 10**power
    )
    counts = np.bincount(np.minimum(words // width, _BINS)).tolist()
    return tuple(
        Bin(i * width, None if i == _BINS else (i + 1) * width, count)
        for i, count in enumerate(counts)
    )


def _even(count: int, most: int) -> NDArray[np.int64]:
    """The places of `most` of `count` things at even distances, or of all."""
    if count <= most:
        return np.arange(count)
    return np.arange(most, dtype=np.int64) * count // most


def _beginnings(index: Index, chunks: Sequence[int]) -> tuple[tuple[Passage, ...], list[str]]:
    """The chunks, cut after some characters, and the file of each."""
    passages, files = [], []
    for start in range(0, len(chunks), _BLOCK):
        some = chunks[start : start + _BLOCK]
        stored = index.chunks(some)
        for number in some:
            chunk = stored[number].chunk
            files.append(stored[number].file)
            passages.append(
                Passage(
                    number, stored[number].path, chunk.start, chunk.end, chunk.text[:_TEXT],
                    chunk.lines, chunk.page, chunk.heading,
                )
            )  # fmt: skip
    return tuple(passages), files
