"""Which files of a folder are indexed, and why each other one was left out.

Owns the rules: hidden names, ignore files, --glob and --exclude, sizes, links, special files.
Opens nothing but folders, ignore files and CACHEDIR.TAG. It does not read documents, does not
know what is in an index, and does not judge whether a root is a wise choice (`/`, home).

Links, in one rule: inside the folder a link is only a second name, so the file is judged under
its own path and the link is left out; whatever leads out of the folder is left out too, unless
`follow`, or unless the user named the link itself as a start. "The folder" is what is being
walked: the starts, and inside a followed link the link's target as well. Since a target that
holds one of those is cut where it reaches it, a walk ends whatever links it meets.

Patterns are pathspec's translation of gitignore's. Each entry is matched by itself, the last
matching pattern decides, and a folder that is left out is not entered, as git does it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragcli.corpus.links import Links
from ragcli.corpus.patterns import (
    IGNORE_FILES,
    IgnoreFile,
    IgnorePlace,
    ignore_places_above,
    option_patterns,
    read_ignore_file,
)
from ragcli.corpus.unwanted import CACHE_TAG, NEVER_ENTERED, is_cache, is_left_out, unwanted
from ragcli.corpus.verdicts import TOO_LARGE, Found, LeftOut, WalkRules, unreadable
from ragcli.errors import UsageError

__all__ = [
    "TOO_LARGE",
    "Found",
    "LeftOut",
    "WalkRules",
    "explain",
    "folders",
    "is_left_out",
    "walk",
]

_DEFAULT = WalkRules()
_SPECIAL_FILES = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}


def walk(
    root: Path, starts: Sequence[str] = ("",), rules: WalkRules = _DEFAULT
) -> Iterator[Found | LeftOut]:
    """Judge every file under `starts`, paths relative to `root` (`""` is the root itself).

    Depth first, by the bytes of the names within each folder; a file is told once however
    many starts lead to it. A start that is itself hidden, ignored, a cache or a link is walked
    all the same, for the user named it. What cannot be read or vanishes is a LeftOut.

    Raises UsageError at once, not at the first item, for a root that is not a folder, a start
    that leaves it, or a `glob` or `exclude` that is no pattern.
    """
    return _Walk(root, starts, rules).run()


def folders(root: Path, starts: Sequence[str] = ("",), rules: WalkRules = _DEFAULT) -> list[str]:
    """The real paths of the folders that `walk` enters under `starts`; raises as it does."""
    walker = _Walk(root, starts, rules)
    for _ in walker.run():
        pass
    return walker.entered


def explain(root: Path, path: str, rules: WalkRules = _DEFAULT) -> Found | LeftOut:
    """The verdict that `walk` of the whole root gives for one path; `vanished` if not there.

    Inside a folder that is not entered it is that folder's verdict, under that folder's path.
    Raises UsageError as `walk` does, and for a folder that is entered, which has no verdict.
    """
    walker, path = _Walk(root, ("",), rules), _normalised(path)
    for item in walker.run() if rules.follow else ():
        # Which of several links to one place is followed depends on the walk up to there.
        if item.path == path or (
            isinstance(item, LeftOut) and Path(path).is_relative_to(item.path)
        ):
            return item
    verdict = walker.descend(path, named=False)
    if isinstance(verdict, _Folder):
        raise UsageError(f"{path or '.'} is a folder, and it is walked", "name a file in it")
    return verdict


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder that is walked.

    `prefix` is its path with a slash behind, `where` its real path. `ignores` are the files
    that count in it, the strongest first; `unread` those of its own that could not be read.
    `wanted` is what --glob says of a file that no pattern matches.
    """

    prefix: str
    where: str
    entries: dict[str, os.DirEntry[str]]
    ignores: tuple[IgnoreFile, ...]
    unread: dict[str, LeftOut]
    wanted: bool


class _Walk:
    """One walk: the rules compiled, the starts resolved."""

    def __init__(self, root: Path, starts: Sequence[str], rules: WalkRules) -> None:
        try:
            where = os.path.realpath(root)
            is_dir = stat.S_ISDIR(root.stat().st_mode)
        except OSError as error:
            raise UsageError(f"{root}: {error.strerror}", "name a folder that exists") from error
        if not is_dir:
            raise UsageError(f"{root} is not a folder", "name the folder that it lies in")
        self.rules = rules
        self.glob = option_patterns("glob", rules.glob)
        self.exclude = option_patterns("exclude", rules.exclude)
        self.starts = frozenset(_normalised(start) for start in starts)
        self.reached: set[str] = set()  # the starts that were met, here or below another
        self.entered: list[str] = []  # the folders below the starts
        self.way: dict[str, _Folder] = {}  # the folders on the way to the last start, by prefix
        ignores, unread = _read_all(ignore_places_above(where) if rules.ignore else (), ())
        self.outside = _Folder("", where, {}, ignores, unread, self.glob is None)
        self.links = Links(where, self.starts, rules.follow)

    def run(self) -> Iterator[Found | LeftOut]:
        """Walk every start that was not met below an earlier one."""
        yield from self.outside.unread.values()
        closed: set[str] = set()
        for start in sorted(self.starts, key=os.fsencode):
            if start in self.reached:
                continue
            verdict = self.descend(start, named=True)
            for item in self._contents(verdict) if isinstance(verdict, _Folder) else (verdict,):
                if isinstance(item, LeftOut) and item.folder:
                    if item.path in closed:
                        continue
                    closed.add(item.path)
                yield item

    def descend(self, path: str, named: bool) -> Found | LeftOut | _Folder:
        """Go down from the root to `path` as the walk would, or past hidden and ignored names.

        The folders on the way are kept for the next path: many starts may lie in one folder.
        """
        here: Found | LeftOut | _Folder
        here = self.way.get("") or self._enter(self.outside, "", self.outside.where, named=True)
        way: dict[str, _Folder] = {}
        for name in path.split("/") if path else ():
            if isinstance(here, LeftOut):
                return here
            if isinstance(here, Found) or name not in here.entries:
                return LeftOut(path, "vanished", "there is no such file")
            way[here.prefix] = here
            known = self.way.get(f"{here.prefix}{name}/")
            here = known or self._judge(here, here.entries[name], named)
        self.way = way
        return here

    def _contents(self, top: _Folder) -> Iterator[Found | LeftOut]:
        """Depth first with a stack of our own, since trees can be deeper than Python's."""
        stack = [(top, iter(top.entries.values()))]
        self.entered.append(top.where)
        while stack:
            folder, entries = stack[-1]
            for entry in entries:
                verdict = self._judge(folder, entry, named=False)
                if isinstance(verdict, _Folder):
                    stack.append((verdict, iter(verdict.entries.values())))
                    self.entered.append(verdict.where)
                    break
                yield verdict
            else:
                stack.pop()

    def _judge(
        self, folder: _Folder, entry: os.DirEntry[str], named: bool
    ) -> Found | LeftOut | _Folder:
        """The verdict for one entry; a `named` one is not held against its name."""
        name = entry.name
        path = folder.prefix + name
        if path in self.starts:
            self.reached.add(path)
            named = True
        try:
            is_dir = entry.is_dir(follow_symlinks=False)
            left_out = self._by_name(folder, path, name, is_dir, named)
            if left_out:
                return left_out
            elsewhere = self.links.elsewhere(entry.path, path)
            if elsewhere:  # met inside what a link led to
                return LeftOut(path, "linked twice", elsewhere, is_dir)
            if is_dir:
                return self._enter(folder, path, entry.path, named)
            if entry.is_symlink():
                return self._link(folder, path, entry, named)
            return self._file(folder, path, name, entry.stat(follow_symlinks=False))
        except OSError as error:
            return unreadable(path, error)

    def _by_name(
        self, folder: _Folder, path: str, name: str, is_dir: bool, named: bool
    ) -> LeftOut | None:
        """What can be told without looking at the entry: its name and the patterns."""
        if name in NEVER_ENTERED:
            return LeftOut(path, NEVER_ENTERED[name], "never entered", is_dir)
        if path in folder.unread:
            return folder.unread[path]
        reason = None if named else unwanted(name, is_dir, hidden=self.rules.hidden)
        if reason:
            return LeftOut(path, reason, folder=is_dir)
        rule = self.exclude.deciding(path, name, is_dir) if self.exclude else None
        if rule and rule.positive:
            return LeftOut(path, "excluded", rule.text, is_dir)
        for ignore in () if named else folder.ignores:
            rule = ignore.deciding(path, name, is_dir)
            if rule:
                detail = f"{ignore.place.name}:{rule.line}: {rule.text}"
                return LeftOut(path, "ignored", detail, is_dir) if rule.positive else None
        return None

    def _file(
        self, folder: _Folder, path: str, name: str, status: os.stat_result
    ) -> Found | LeftOut:
        if not stat.S_ISREG(status.st_mode):
            kind = _SPECIAL_FILES.get(stat.S_IFMT(status.st_mode), "a device")
            return LeftOut(path, "not a regular file", kind)
        if not self._wanted(folder, path, name, is_dir=False):
            return LeftOut(path, "no glob matches")
        if status.st_size > self.rules.max_file_size:
            detail = f"{status.st_size:,} bytes, the limit is {self.rules.max_file_size:,}"
            return LeftOut(path, TOO_LARGE, detail)
        return Found(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def _wanted(self, folder: _Folder, path: str, name: str, is_dir: bool) -> bool:
        rule = self.glob.deciding(path, name, is_dir) if self.glob else None
        return rule.positive if rule else folder.wanted

    def _link(
        self, folder: _Folder, path: str, entry: os.DirEntry[str], named: bool
    ) -> Found | LeftOut | _Folder:
        """Leave a link out, or follow it out of the folder."""
        try:
            status = entry.stat()
        except (FileNotFoundError, NotADirectoryError):
            return LeftOut(path, "dangling symlink", os.fsdecode(Path(entry.path).readlink()))
        is_dir = stat.S_ISDIR(status.st_mode)
        verdict: Found | LeftOut | _Folder | None
        if is_dir:  # patterns such as `build/` speak of folders only
            verdict = self._by_name(folder, path, entry.name, is_dir, named)
        else:
            verdict = self._file(folder, path, entry.name, status)
        if isinstance(verdict, LeftOut):
            return verdict
        real = os.path.realpath(entry.path)
        refused = self.links.refused(folder.where, path, real, is_dir, named)
        if refused:
            return refused
        verdict = verdict or self._enter(folder, path, real, named)
        if not (named or isinstance(verdict, LeftOut)):
            self.links.followed(real, path)
        return verdict

    def _enter(self, parent: _Folder, path: str, where: str, named: bool) -> LeftOut | _Folder:
        """List a folder and read its ignore files."""
        try:
            with os.scandir(where) as listing:
                entries = {e.name: e for e in sorted(listing, key=lambda e: os.fsencode(e.name))}
        except OSError as error:
            return unreadable(path, error, folder=True)
        if CACHE_TAG in entries and not named and is_cache(where):
            return LeftOut(path, "a cache folder", CACHE_TAG, folder=True)
        prefix = f"{path}/" if path else ""
        names = [name for name in IGNORE_FILES if name in entries] if self.rules.ignore else ()
        places = [IgnorePlace(f"{where}/{name}", prefix + name, len(prefix)) for name in names]
        ignores, unread = _read_all(places, parent.ignores)
        wanted = self._wanted(parent, path, path.rpartition("/")[2], is_dir=True)
        return _Folder(prefix, where, entries, ignores, unread, wanted)


def _normalised(start: str) -> str:
    """A path below the root without `.`, `..` and needless slashes; the root is `""`."""
    path = os.path.normpath(start or ".")
    if path.startswith("/") or path.split("/")[0] == "..":
        raise UsageError(f"{start} lies outside the folder", "name a path inside the indexed root")
    return "" if path == "." else path


def _read_all(
    places: Iterable[IgnorePlace], weaker: tuple[IgnoreFile, ...]
) -> tuple[tuple[IgnoreFile, ...], dict[str, LeftOut]]:
    """Put the ignore files of `places`, the weakest first, before `weaker`; and those unread."""
    ignores, unread = weaker, {}
    for place in places:
        try:
            read = read_ignore_file(place)
        except OSError as error:
            reason = unreadable(place.name, error).reason
            unread[place.name] = LeftOut(place.name, reason, "its patterns do not count")
            continue
        if read:
            ignores = (read, *ignores)
    return ignores, unread
