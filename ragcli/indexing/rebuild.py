"""Segments made from the catalogue alone: lost postings, and vectors that are still to come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ragcli.encoders import Encoder, open_encoder
from ragcli.errors import IndexDamaged
from ragcli.records import Settings
from ragcli.store.languages import DEFAULT
from ragcli.store.segments import Segment
from ragcli.store.terms import Analyzer
from ragcli.store.writer import Writer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 4096


def rebuild_lost(writer: Writer, *, verify: bool) -> int:
    """Make the segments that are missing or damaged again; returns how many chunks it took.

    Without `verify` looks at lengths and manifests only, so that a sound index costs a few stats.
    """
    lost = False
    for name, checksum, vectors, vectors_checksum in writer.catalog.connection.execute(
        "SELECT name, checksum, vectors, vectors_checksum FROM segments"
    ).fetchall():
        try:
            _check(writer, name, checksum, verify=verify)
        except IndexDamaged:
            writer.forget_segment(name)
            lost = True
            continue
        try:
            if vectors:
                _check(writer, vectors, vectors_checksum, verify=verify)
        except IndexDamaged:
            writer.forget_vectors(name)
    if not lost:
        return 0
    missing = writer.missing_chunks(writer.open_segments())
    analyzer = Analyzer()
    for start in range(0, len(missing), _BLOCK):
        ids = missing[start : start + _BLOCK].tolist()
        rows = _texts(writer, ids)
        postings = analyzer.postings(
            [text for _, _, text, _ in rows], [language or DEFAULT for *_, language in rows]
        )
        writer.batch.add([(chunk, document) for chunk, document, _, _ in rows], postings, None)
    return len(missing)


def _check(writer: Writer, name: str, checksum: str, *, verify: bool) -> None:
    segment = Segment(writer.segments, name, checksum)
    if verify:
        segment.verify()


def encode_pending(writer: Writer, settings: Settings) -> Iterator[tuple[int, int]]:
    """Give every segment without vectors its vectors; yields (segments done, in all) after each.

    The caller commits when it is given control.
    """
    encoder = open_encoder(settings)
    pending = [
        str(name)
        for name in writer.catalog.column("SELECT name FROM segments WHERE vectors IS NULL")
    ]
    if encoder is None or not pending:
        return
    import numpy as np

    by_name = {segment.segment.name: segment for segment in writer.open_segments()}
    for done, name in enumerate(pending, 1):
        segment = by_name[name]
        blocks = [
            _encode_block(writer, segment.chunks[start : start + _BLOCK], encoder)
            for start in range(0, segment.rows, _BLOCK)
        ]
        writer.set_vectors(name, np.concatenate(blocks))
        yield done, len(pending)


def _encode_block(
    writer: Writer, chunks: NDArray[np.int64], encoder: Encoder
) -> NDArray[np.unsignedinteger[Any]]:
    """A row for each of `chunks`; a dead one, whose text is gone, is encoded as nothing."""
    texts = {chunk: text for chunk, _, text, _ in _texts(writer, chunks.tolist())}
    return encoder.encode_documents([texts.get(chunk, "") for chunk in chunks.tolist()])


def _texts(writer: Writer, ids: Sequence[int]) -> list[tuple[int, int, str, str | None]]:
    """(chunk, document, text, language) of those that are live, by id."""
    return writer.catalog.connection.execute(
        "SELECT c.id, c.document, c.text, d.language FROM chunks c JOIN documents d"
        f" ON d.id = c.document WHERE c.id IN ({','.join('?' * len(ids))}) ORDER BY c.id",
        list(ids),
    ).fetchall()
