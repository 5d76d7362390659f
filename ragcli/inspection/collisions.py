"""Which tokens share a bucket of the hashed vector, what that costs, and how many buckets it takes.

Counts from the chunks' texts, so it holds for chunks without a vector too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from zlib import crc32

from ragcli.encoders.hashing import tokens
from ragcli.errors import UsageError
from ragcli.store import contents
from ragcli.store.index import Index

_CRC_BITS = 32


@dataclass(frozen=True, slots=True)
class SharedBucket:
    """A bucket with more than one token of the vocabulary, commonest token first.

    `frequencies` says of each token how many chunks have it, `frequency` how many have any of
    them; `idf` is what that makes of the bucket, `idfs` what each token would have alone. `cost`
    is idf² · Σ (frequency − frequencies[i]): ask for each token once, and this is what its bucket
    adds to the dot products, before they are normalised, of chunks that do not have it.
    """

    bucket: int
    tokens: tuple[str, ...]
    frequencies: tuple[int, ...]
    idfs: tuple[float, ...]
    frequency: int
    idf: float
    cost: float


@dataclass(frozen=True, slots=True)
class Dimension:
    """How many collisions the vocabulary would have in so many buckets."""

    buckets: int
    collisions: int


@dataclass(frozen=True, slots=True)
class CollisionReport:
    """The collisions of an index: `collisions` = `vocabulary` − `used`.

    `vocabulary` counts the different tokens of the live chunks, `used` the different ones of
    `buckets` that they fall into. `colliding` are the costliest buckets of all `shared`, `left_out`
    the rest. `dimensions`: the present one, then powers of two, up to the first with fewer
    collisions than `fewer_than`; `enough` is that one, None where 32 bits of crc32 are too few.
    """

    chunks: int
    vocabulary: int
    buckets: int
    used: int
    collisions: int
    shared: int
    colliding: tuple[SharedBucket, ...]
    left_out: int
    fewer_than: int
    enough: int | None
    dimensions: tuple[Dimension, ...]


def collisions(index: Index, *, fewer_than: int | None = None, limit: int = 20) -> CollisionReport:
    """The tokens that share a bucket, the `limit` costliest buckets listed.

    `fewer_than`: how few collisions would do, None for 1 % of the vocabulary. Raises UsageError
    where the encoder is not `hash`; IndexUnavailable in its kinds.
    """
    settings = index.settings
    if settings.encoder != "hash":
        raise UsageError(
            f"tokens share buckets under --encoder hash, and this index has {settings.encoder}",
            "ragcli inspect --duplicates   (passages whose texts or vectors are nearly the same)",
        )
    if fewer_than is not None and fewer_than < 1:
        raise UsageError(f"there are never fewer than {fewer_than} collisions", "ask for 1 or more")
    chunks, of_tokens, of_buckets = _frequencies(index, settings.dim)
    by_bucket: defaultdict[int, list[str]] = defaultdict(list)
    for token in of_tokens:
        by_bucket[_hash(token) % settings.dim].append(token)
    shared = [
        _shared(bucket, together, of_tokens, of_buckets[bucket], chunks)
        for bucket, together in by_bucket.items()
        if len(together) > 1
    ]
    shared.sort(key=lambda each: (-each.cost, each.bucket))
    wanted = fewer_than or max(1, -(-len(of_tokens) // 100))
    dimensions = _dimensions(of_tokens, settings.dim, wanted)
    last = dimensions[-1]
    return CollisionReport(
        chunks=chunks,
        vocabulary=len(of_tokens),
        buckets=settings.dim,
        used=len(by_bucket),
        collisions=len(of_tokens) - len(by_bucket),
        shared=len(shared),
        colliding=tuple(shared[:limit]),
        left_out=max(0, len(shared) - limit),
        fewer_than=wanted,
        enough=last.buckets if last.collisions < wanted else None,
        dimensions=dimensions,
    )


def _hash(token: str) -> int:
    return crc32(token.encode("ascii"))


def _frequencies(index: Index, buckets: int) -> tuple[int, Counter[str], Counter[int]]:
    """(chunks; how many of them have each token; how many have any token of each bucket)."""
    chunks = 0
    of_tokens: Counter[str] = Counter()
    of_buckets: Counter[int] = Counter()
    known: dict[str, int] = {}
    for _, text in contents.texts(index):
        chunks += 1
        different = set(tokens(text))
        of_tokens.update(different)
        for token in different - known.keys():
            known[token] = _hash(token) % buckets
        of_buckets.update({known[token] for token in different})
    return chunks, of_tokens, of_buckets


def _shared(
    bucket: int, together: Iterable[str], of_tokens: Counter[str], frequency: int, chunks: int
) -> SharedBucket:
    ordered = sorted(together, key=lambda token: (-of_tokens[token], token))
    counts = [of_tokens[token] for token in ordered]
    idf = _idf(chunks, frequency)
    return SharedBucket(
        bucket=bucket,
        tokens=tuple(ordered),
        frequencies=tuple(counts),
        idfs=tuple(_idf(chunks, count) for count in counts),
        frequency=frequency,
        idf=idf,
        cost=idf**2 * sum(frequency - count for count in counts),
    )


def _idf(chunks: int, frequency: int) -> float:
    """As `store.vectors.idf_weights` has it, where every chunk has a vector."""
    return log((chunks + 1) / (frequency + 1)) + 1.0


def _dimensions(vocabulary: Iterable[str], present: int, fewer_than: int) -> tuple[Dimension, ...]:
    hashes = [_hash(token) for token in vocabulary]
    candidates = [present, *(1 << bits for bits in range(_CRC_BITS + 1) if 1 << bits > present)]
    found = []
    for buckets in candidates:
        found.append(Dimension(buckets, len(hashes) - len({h % buckets for h in hashes})))
        if found[-1].collisions < fewer_than:
            break
    return tuple(found)
