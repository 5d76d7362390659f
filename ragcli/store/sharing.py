"""What a new index takes over from another one: its sources, its model, vectors of equal texts.

A vector depends on its text and its encoder alone, so that a text which another index has under
the same fingerprint need not be encoded again. The other index is only read.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragcli import __version__
from ragcli.records import Settings
from ragcli.store.catalog import Catalog
from ragcli.store.contents import texts
from ragcli.store.folder import ENCODER, prepare
from ragcli.store.index import Index
from ragcli.store.lock import write_lock
from ragcli.store.view import View
from ragcli.store.writer import Writer

_BLOCK = 4096
_COMMIT_BYTES = 48 * 1024 * 1024
_KEYED = np.dtype([("key", np.int64), ("chunk", np.int64)])


def begin(
    folder: Path, root: Path, starts: Sequence[str], settings: Settings, donors: Sequence[Path]
) -> None:
    """Make the new index `folder`, which then remembers its sources and settings, empty.

    Of the first of `donors` that has one, the model kept beside it is copied. Raises OSError or
    sqlite3.Error where it cannot be written.
    """
    prepare(folder)
    with write_lock(folder, 0.0), closing(Catalog.open_write(folder)) as catalog:
        writer = Writer(folder, catalog)
        writer.remember(settings, str(root), starts, __version__)
        writer.commit()
        catalog.checkpoint()
    model = next((donor / ENCODER for donor in donors if (donor / ENCODER).is_dir()), None)
    if model is not None:
        shutil.copytree(model, folder / ENCODER)


def share_vectors(folder: Path, donor: Path) -> int:
    """Give the chunks of `folder` that have no vector those of equal texts in `donor`.

    Returns how many it gave; none where the fingerprints of the encoders differ. Takes 16 bytes
    for each chunk of `donor`, and a block of texts and vectors. Raises IndexUnavailable in its
    kinds for `donor`, OSError or sqlite3.Error where `folder` cannot be written.
    """
    with (
        write_lock(folder, 0.0),
        closing(Catalog.open_write(folder)) as catalog,
        Index.open(donor) as other,
    ):
        writer = Writer(folder, catalog)
        fingerprint = catalog.get("encoder")
        if fingerprint is None or other.encoder != fingerprint:
            return 0
        try:
            given = _share(writer, other)
            writer.commit()
        except BaseException:
            writer.abandon()
            raise
        catalog.checkpoint()
    return given


def _share(writer: Writer, other: Index) -> int:
    pending = writer.pending()
    view = other.view(scoring=True)
    known = _keyed(other, view)
    if not len(known):
        return 0
    mine, given = Index(writer.catalog), 0
    for start in range(0, len(pending), _BLOCK):
        wanted = dict(texts(mine, pending[start : start + _BLOCK].tolist()))
        given += _give(writer, wanted, other, view, known)
        if writer.batch.vector_bytes >= _COMMIT_BYTES:
            writer.commit()
    return given


def _keyed(other: Index, view: View) -> NDArray[np.void]:
    """(hash of the text, chunk) of each chunk that has a vector, by hash."""
    pairs = np.fromiter(((hash(text), chunk) for chunk, text in texts(other)), _KEYED)
    pairs = pairs[view.has_vector(pairs["chunk"])]
    return pairs[np.argsort(pairs["key"], kind="stable")]


def _give(
    writer: Writer, wanted: dict[int, str], other: Index, view: View, known: NDArray[np.void]
) -> int:
    """Add the vectors of those of `wanted`, chunk → text, that `other` has; returns how many."""
    keys = np.array([hash(text) for text in wanted.values()], np.int64)
    at = np.minimum(known["key"].searchsorted(keys), len(known) - 1)
    theirs = known["chunk"][at]
    alike = known["key"][at] == keys
    found = dict(texts(other, set(theirs[alike].tolist())))
    # Equal hashes only suggest equal texts.
    pairs = zip(theirs.tolist(), wanted.values(), strict=True)
    equal = np.array([found.get(chunk) == text for chunk, text in pairs], bool)
    chunks, theirs = np.array(list(wanted), np.int64)[equal], theirs[equal]
    for segment in view.vectors:
        rows = segment.find(theirs)
        here = rows >= 0
        if here.any():
            writer.add_vectors(chunks[here], segment.encoded(rows[here]))
    return len(chunks)
