"""The `.rag` folder itself: what it is called, what lies in it, whether it is ours."""

from __future__ import annotations

from pathlib import Path

from ragcli.errors import IndexForeign
from ragcli.store.catalog import FILE, file_size
from ragcli.store.identity import check_header
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
    FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", LOCK, SEGMENTS, ENCODER,
    ".gitignore", "CACHEDIR.TAG",
}  # fmt: skip


def prepare(folder: Path) -> None:
    """Make the `.rag` folder, or see that it is ours.

    Raises IndexForeign where something else lies there, OSError where it cannot be made.
    """
    if folder.exists() and not folder.is_dir():
        raise IndexForeign(f"{folder} is a file, not a ragcli index", _ELSEWHERE)
    if (folder / FILE).exists():
        check_header(folder / FILE)
    else:
        _make(folder)
    segments_of(folder).mkdir(exist_ok=True)
    for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _CACHE_TAG)):
        place = folder / name
        # Not there, or a run was killed over it; a link would be written where it leads.
        if file_size(place) < len(text) and not place.is_symlink():
            place.write_text(text, encoding="ascii")


def _make(folder: Path) -> None:
    """The folder, with its name safe from a power cut, where no catalogue lies in it yet."""
    from ragcli.store.segments import sync

    others = strangers(folder) if folder.exists() else []
    if others:
        raise IndexForeign(f"{folder} is not a ragcli index: it holds {others[0]}", _ELSEWHERE)
    missing = [parent for parent in folder.parents if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in (folder, *missing):
        sync(made.parent)


def segments_of(folder: Path) -> Path:
    """The folder that segments lie in, and are swept from.

    Raises IndexForeign for a link: ragcli makes none, and to sweep where it leads would remove
    what is not ragcli's.
    """
    segments = folder / SEGMENTS
    if segments.is_symlink():
        raise IndexForeign(f"{segments} is a link, which ragcli does not make", _ELSEWHERE)
    return segments


def strangers(folder: Path) -> list[str]:
    """The names in `folder` that are not ragcli's, in order."""
    return sorted(entry.name for entry in folder.iterdir() if entry.name not in _OURS)
