"""A folder as it is against the catalogue as it was, by names and stats alone.

The one comparison: a run plans by it, a question looks by it. Loads no reader, opens no file,
writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ragcli.corpus.suffixes import BINARY_SUFFIXES, suffix_by_name
from ragcli.corpus.walk import TOO_LARGE, Found, LeftOut
from ragcli.indexing.known import UNREADABLE, Known, has_stat, is_unchanged


@dataclass(slots=True)
class Comparison:
    """`fresh` files are not in the catalogue, `gone` rows have no file any more.

    `again` is to be read whatever its stat says; `altered` has another stat, or one too young to
    prove anything. `unreadable` is what the walk could not look at, with its row. `failed` failed
    before and is not read again; `left_out` counts what the walk and earlier reads left out.
    `named`: files left out unread that the catalogue is to name, with the reason and their row.
    `holding`: the folders in or below which a file was found, "" for the root.
    """

    fresh: list[Found] = field(default_factory=list)
    again: list[Found] = field(default_factory=list)
    altered: list[tuple[Found, Known]] = field(default_factory=list)
    gone: dict[str, Known] = field(default_factory=dict)
    unreadable: list[tuple[LeftOut, Known | None]] = field(default_factory=list)
    named: list[tuple[str, str, Known | None]] = field(default_factory=list)
    unchanged: int = 0
    failed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    holding: set[str] = field(default_factory=set)

    @property
    def changed(self) -> int:
        """Files whose stat is another one."""
        return sum(not has_stat(found, row) for found, row in self.altered)

    @property
    def went(self) -> int:
        """Files of the index that are not there, or cannot be looked at any more."""
        hidden = sum(row is not None and row.state != "failed" for _, row in self.unreadable)
        unread = sum(row is not None and row.state == "indexed" for _, _, row in self.named)
        return len(self.gone) + hidden + unread

    @property
    def is_away(self) -> bool:
        """Whether nothing of what the index knows is there, as of a folder not mounted."""
        met = self.again or self.altered or self.unchanged or self.failed
        return bool(self.went) and not met


def compare(
    items: Iterable[Found | LeftOut],
    known: dict[str, Known],
    *,
    again: Callable[[str, Known], bool] = lambda _path, _row: False,
    seen: Callable[[int], None] = lambda _: None,
) -> Comparison:
    """Compare a walk with `known`, which becomes what is `gone`.

    `again` says which files are read whatever their stat says; `seen` is called for each item,
    with how many there were, and may raise.
    """
    told = Comparison(gone=known)
    for number, item in enumerate(items, 1):
        seen(number)
        if isinstance(item, LeftOut):
            if item.reason in UNREADABLE:
                told.unreadable.append((item, known.pop(item.path, None)))
            elif item.reason == TOO_LARGE:
                _name(told, item.path, item.reason)
            else:
                told.left_out[item.reason] += 1
            continue
        _note_folders(told.holding, item.path)
        if suffix_by_name(item.path) in BINARY_SUFFIXES:
            _name(told, item.path, "binary")
        elif (row := known.pop(item.path, None)) is None:
            told.fresh.append(item)
        elif again(item.path, row):
            told.again.append(item)
        elif not is_unchanged(item, row):
            told.altered.append((item, row))
        elif row.state == "failed":
            told.failed += 1
        elif row.state == "skipped":
            told.left_out[row.reason or "skipped"] += 1
        else:
            told.unchanged += 1
    return told


def _name(told: Comparison, path: str, reason: str) -> None:
    """A file that would be a document but for its size or kind: counted, and named once."""
    told.left_out[reason] += 1
    row = told.gone.pop(path, None)
    if row is None or (row.state, row.reason) != ("skipped", reason):
        told.named.append((path, reason, row))


def folder_of(path: str) -> str:
    """The folder that holds a file, "" for the root."""
    return path.rpartition("/")[0]


def _note_folders(holding: set[str], path: str) -> None:
    while path:
        path = folder_of(path)
        if path in holding:
            return
        holding.add(path)
