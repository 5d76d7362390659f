"""Writes that are no run of `index`: vectors that a reader made, and a calibration.

Vectors are kept if that can be done at once: one try, no waiting, no error. What cannot be kept now
is made by the next run, or by the next question.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from ragcli.encoders import Encoded
from ragcli.errors import IndexUnavailable, RagcliError
from ragcli.store.catalog import FILE, Catalog
from ragcli.store.lock import write_lock
from ragcli.store.merging import FIRST_LEVEL
from ragcli.store.writer import Writer

_PATIENCE = 10.0
"""Seconds for another writer to end."""

_WAIT_MS = 50
"""For a program that holds the catalogue without our lock."""


def keep_vectors(
    folder: Path, fingerprint: str, passages: Sequence[tuple[int, str]], encoded: Encoded
) -> bool:
    """Keep `encoded`, made under `fingerprint`, as the vectors of `passages`, (chunk, text).

    What is gone, has another text or has a vector by now is left out. False where nothing can
    be kept: another process writes, the encoder changed, the disk is full or read-only.
    """
    if not (folder / FILE).is_file():
        return False
    try:
        with write_lock(folder, 0.0):
            catalog = Catalog.open_write(folder, wait_ms=_WAIT_MS)
            try:
                return _keep(Writer(folder, catalog), fingerprint, passages, encoded)
            finally:
                catalog.close()
    except (RagcliError, sqlite3.Error, OSError):
        return False


def _keep(
    writer: Writer, fingerprint: str, passages: Sequence[tuple[int, str]], encoded: Encoded
) -> bool:
    import numpy as np

    if writer.catalog.get("encoder") != fingerprint:
        return False
    connection = writer.connection()
    try:
        chunks = np.array([chunk for chunk, _ in passages], np.int64)
        # An id alone does not tell: it may be another chunk's since the passage was read.
        same = [
            bool(
                connection.execute(
                    "SELECT count(*) FROM chunks WHERE id = ? AND text = ?", passage
                ).fetchone()[0]
            )
            for passage in passages
        ]
        wanted = np.array(same, bool) & ~writer.view().has_vector(chunks)
        if wanted.any():
            writer.add_vectors(chunks[wanted], encoded.take(wanted))
        writer.commit()
    except BaseException:
        writer.abandon()
        raise
    while writer.merge_vectors(most=FIRST_LEVEL):
        pass
    writer.catalog.checkpoint()
    writer.sweep()
    return True


def keep_calibration(folder: Path, value: object) -> None:
    """Keep what `Index.calibration` then gives, None to forget it.

    Raises IndexBusy, or IndexUnavailable where the index cannot be written.
    """
    try:
        with write_lock(folder, _PATIENCE):
            catalog = Catalog.open_write(folder)
            try:
                with catalog.transaction():
                    catalog.put("calibration", value)
                catalog.checkpoint()
            finally:
                catalog.close()
    except (sqlite3.OperationalError, OSError) as error:
        raise IndexUnavailable(
            f"{folder} cannot be written: {error}", "see that you may write there"
        ) from error
