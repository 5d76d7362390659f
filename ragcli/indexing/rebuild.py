"""Segments made from the catalogue alone: lost postings, and vectors that are still to come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ragcli.encoders import Encoder
from ragcli.errors import IndexDamaged
from ragcli.store.languages import DEFAULT
from ragcli.store.mending import mend_catalog
from ragcli.store.segments import Segment
from ragcli.store.terms import Analyzer
from ragcli.store.writer import Writer

_BLOCK = 4096
WINDOW = 1024
"""So many texts are sorted by length before they are encoded: batches are of like length."""


def rebuild_lost(writer: Writer, *, verify: bool, go_on: Callable[[], None] = lambda: None) -> int:
    """Make the postings that are missing or damaged again; returns how many chunks it took.

    Vectors that are missing or damaged are forgotten, and so pending. Without `verify` looks at
    lengths and manifests only, so that a sound index costs a few stats; with it at all that a
    check looks at, once the rows of the catalogue that belong to nothing are gone. `go_on` is
    called now and then, and may raise: nothing is committed here.
    """
    if verify:
        mend_catalog(writer)
    damaged = _damaged(writer) if verify else _lost(writer)
    for name in damaged:
        writer.forget_segment(name)
        writer.forget_vectors(name)
    if not (damaged or verify):
        return 0
    missing = writer.missing()
    analyzer = Analyzer()
    for start in range(0, len(missing), _BLOCK):
        go_on()
        ids = missing[start : start + _BLOCK].tolist()
        rows = _texts(writer, ids)
        postings = analyzer.postings(
            [text for _, _, text, _ in rows], [language or DEFAULT for *_, language in rows]
        )
        writer.batch.add([(chunk, document) for chunk, document, _, _ in rows], postings, None)
    return len(missing)


def _lost(writer: Writer) -> set[str]:
    """The segments that do not open, by the lengths of their files."""
    lost = set()
    for name, checksum in writer.catalog.connection.execute(
        "SELECT name, checksum FROM segments UNION ALL SELECT name, checksum FROM vectors"
    ):
        try:
            Segment(writer.segments, name, checksum)
        except IndexDamaged:
            lost.add(name)
    return lost


def _damaged(writer: Writer) -> set[str]:
    """The segments that a check finds anything wrong with."""
    from ragcli.store.checking_segments import SegmentsCheck

    return {damage.part for damage in SegmentsCheck(writer.catalog).run().damages}


def encode_pending(writer: Writer, encoder: Encoder) -> Iterator[tuple[int, int]]:
    """Give every chunk without a vector its vector; yields (chunks done, in all) on the way.

    The caller commits when it is given control.
    """
    total = writer.catalog.count("chunks") - writer.embedded()
    if not total:
        return
    import numpy as np

    done = 0
    pending = writer.pending()
    window = max(WINDOW, encoder.batch)
    for start in range(0, len(pending), window):
        rows = _texts(writer, pending[start : start + window].tolist())
        rows.sort(key=lambda row: len(row[2]))
        for at in range(0, len(rows), encoder.batch):
            some = rows[at : at + encoder.batch]
            encoded = encoder.encode_documents([text for _, _, text, _ in some])
            writer.add_vectors(np.array([chunk for chunk, *_ in some], np.int64), encoded)
            done += len(some)
            yield done, total


def _texts(writer: Writer, ids: Sequence[int]) -> list[tuple[int, int, str, str | None]]:
    """(chunk, document, text, language) of those that are live, by id."""
    return writer.catalog.connection.execute(
        "SELECT c.id, c.document, c.text, d.language FROM chunks c JOIN documents d"
        f" ON d.id = c.document WHERE c.id IN ({','.join('?' * len(ids))}) ORDER BY c.id",
        list(ids),
    ).fetchall()
