"""Files that a command was asked to write: whole or not at all, and nothing else replaced."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ragcli.errors import UsageError


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path`, where a link leads; a device or pipe is written to as it is.

    Raises UsageError where that cannot be.
    """
    try:
        place = Path(os.path.realpath(path))
        if place.exists() and not place.is_file():
            if place.is_dir():
                raise UsageError(f"{path} cannot be written: it is a folder", "name a file")
            place.write_bytes(content)
            return
        part = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        try:
            part.write_bytes(content)
            if place.exists():
                part.chmod(place.stat().st_mode & 0o777)
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{path} cannot be written: {told}", "name another file") from error
