"""What nobody wants indexed, told by its name or by a tag that lies in it.

Owns hidden and temporary names, the folders that are never entered, and CACHEDIR.TAG.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path

from ragcli.corpus.patterns import IGNORE_FILES

NEVER_ENTERED = {".git": "hidden", ".rag": "the index itself"}
CACHE_TAG = "CACHEDIR.TAG"
CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"

_TEMPORARY = re.compile(
    r"~\$.*"  # Word, Excel: whose document is open
    r"|~.*\.tmp"
    r"|\.~lock\..*#"  # LibreOffice
    r"|\..+\.sw[a-p]"  # vim
    r"|.+~"
    r"|#.+#|\.#.+"  # Emacs
    r"|.+___jb_(?:tmp|old)___"  # JetBrains
    r"|\.goutputstream-.+"  # GNOME
    r"|\..+\.kate-swp",
    re.DOTALL,
)


def is_left_out(name: str, *, is_dir: bool, hidden: bool) -> bool:
    """Whether the name alone says that a file is left out, or a folder not entered.

    That an ignore file is hidden says nothing of what it is good for.
    """
    if name in IGNORE_FILES:
        return False
    return name in NEVER_ENTERED or unwanted(name, is_dir, hidden=hidden) is not None


def unwanted(name: str, is_dir: bool, *, hidden: bool) -> str | None:
    """Return what speaks against a name, None if nothing does."""
    if name[0] == "." and not hidden:
        return "hidden"
    return "a temporary file" if not is_dir and _TEMPORARY.fullmatch(name) else None


def is_cache(where: str) -> bool:
    """Whether CACHEDIR.TAG is one; a tag that cannot be read has shown no signature."""
    tag = Path(where, CACHE_TAG)
    try:
        if not stat.S_ISREG(tag.lstat().st_mode):
            return False
        with tag.open("rb") as file:
            return file.read(len(CACHE_SIGNATURE)) == CACHE_SIGNATURE
    except OSError:
        return False
