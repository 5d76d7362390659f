"""The `.rag` folder itself: what it is called, what lies in it, whether it is ours."""

from __future__ import annotations

from pathlib import Path

from ragcli.errors import IndexForeign
from ragcli.store.catalog import FILE, Catalog
from ragcli.store.lock import FILE as LOCK

FOLDER = ".rag"
SEGMENTS = "segments"
ENCODER = "encoder"
"""Where `st:` keeps what its model needs without torch."""

_ELSEWHERE = "name another place: --index DIR"

_CACHE_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is an index made by ragcli.\n"
)
_OURS = {
    FILE, f"{FILE}-wal", f"{FILE}-shm", LOCK, SEGMENTS, ENCODER, ".gitignore", "CACHEDIR.TAG",
}  # fmt: skip


def prepare(folder: Path) -> None:
    """Make the `.rag` folder, or see that it is ours.

    Raises IndexForeign where something else lies there, OSError where it cannot be made.
    """
    if folder.exists() and not folder.is_dir():
        raise IndexForeign(f"{folder} is a file, not a ragcli index", _ELSEWHERE)
    if (folder / FILE).exists():
        Catalog.check_identity(folder)
    elif folder.exists():
        others = strangers(folder)
        if others:
            raise IndexForeign(f"{folder} is not a ragcli index: it holds {others[0]}", _ELSEWHERE)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SEGMENTS).mkdir(exist_ok=True)
    for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _CACHE_TAG)):
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="ascii")


def strangers(folder: Path) -> list[str]:
    """The names in `folder` that are not ragcli's, in order."""
    return sorted(entry.name for entry in folder.iterdir() if entry.name not in _OURS)
