"""Patterns as in a .gitignore file: which one decides over an entry, and where they are kept.

Owns the reading and matching of ignore files and of lists of patterns. pathspec translates each
pattern to a regular expression; here each entry is matched by itself and the last matching
pattern decides, as git does it for folders that are entered. It walks nothing.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ragcli.errors import UsageError

IGNORE_FILES = (".gitignore", ".ignore", ".ragcliignore")  # a later one overrides an earlier
IGNORE_FILE_LIMIT = 1024 * 1024  # bytes; what is larger was not written by hand

_SLASH = "ps_d"
_STAR = "[^/]*"
_DEEP = re.compile(r"(\(\?:\.\+/\)\?|\(\?:/\.\+\)\?/)")
_WILD = re.compile(rf"{re.escape(_STAR)}|{_DEEP.pattern}")
"""How pathspec writes `*`, and `**/` at the beginning and within."""

_FEW_WILD = 2


class Rule(NamedTuple):
    """One pattern; `positive` is false for `!pattern`, `line` counts from 1."""

    regex: re.Pattern[str]
    positive: bool
    by_name: bool
    line: int
    text: str

    def matches(self, path: str, name: str, is_dir: bool) -> bool:
        """Whether the entry itself matches, and not only a folder above it.

        pathspec's group is the slash after a folder's name. Where it took no part, the match
        went to the end of the path or the pattern is like `a/**`.
        """
        subject = name if self.by_name else path
        found = self.regex.search(subject)
        if found and not self._has_slash(found):
            return True
        if not is_dir:
            return False
        found = self.regex.search(subject + "/")
        return bool(found and self._has_slash(found) and found.end() == len(subject) + 1)

    def _has_slash(self, found: re.Match[str]) -> bool:
        return _SLASH in self.regex.groupindex and found[_SLASH] is not None


class Patterns:
    """The patterns of one file or option, of which the last that matches decides.

    Most entries match none, which one joined expression tells at once: about 1 µs for 80
    patterns, where pathspec's GitIgnoreSpec.check_file takes 36 µs.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        """Compile; a line that is no pattern matches nothing, as for git."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # re's, about sets like [[a]
            rules = [_compile(line, number) for number, line in enumerate(lines, 1)]
            self.rules = [rule for rule in reversed(rules) if rule]
            self._any_name = _joined(rule.regex for rule in self.rules if rule.by_name)
            self._any_path = _joined(rule.regex for rule in self.rules if not rule.by_name)

    def deciding(self, path: str, name: str, is_dir: bool) -> Rule | None:
        """The last rule that matches the entry; `path` is relative to where the rules lie."""
        if "\n" in path:  # `.` would not match it; no pattern holds this surrogate
            path, name = path.replace("\n", "\ud800"), name.replace("\n", "\ud800")
        slash = "/" if is_dir else ""
        if not (self._any_name.search(name + slash) or self._any_path.search(path + slash)):
            return None
        for rule in self.rules:
            if rule.matches(path, name, is_dir):
                return rule
        return None


def _compile(line: str, number: int) -> Rule | None:
    """Translate one line; None for a comment, a blank line, and what is no pattern."""
    negation = "!" if line.startswith("!") else ""
    body = line[len(negation) :]
    if line.startswith("#") or not body.strip(" /"):
        return None
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    # A pattern without a slash is about names: anchored, and matched with the name alone.
    by_name = "/" not in body.rstrip()[:-1]
    try:
        pattern = GitIgnoreSpecPattern(f"{negation}/{body}" if by_name else line)
    except (ValueError, re.error):
        return None
    if pattern.regex is None:
        return None
    regex = re.compile(without_retrying(pattern.regex.pattern))
    return Rule(regex, bool(pattern.include), by_name, number, line.strip())


def _joined(expressions: Iterable[re.Pattern[str]]) -> re.Pattern[str]:
    """One expression that matches where any does; their groups are numbered."""
    sources = [
        re.sub(r"\(\?P([<=])(\w+)", rf"(?P\1\2_{number}", expression.pattern)
        for number, expression in enumerate(expressions)
    ]
    return re.compile("|".join(sources) or "(?!)")


def without_retrying(source: str) -> str:
    """An expression of pathspec's that matches the same in time that many stars do not multiply.

    What stands between two stars is best taken where it first stands, since the star after it
    takes what is left; so nothing is lost if no other place is tried. The same holds for what
    stands between two `**/`, which are whole names.
    """
    if len(_WILD.findall(source)) <= _FEW_WILD:
        return source
    groups = count()
    parts = _DEEP.split(source)  # what is between, and each `**/` in turn
    for at in range(0, len(parts), 2):
        between = parts[at].split(_STAR)
        for i in range(1, len(between) - 1):
            between[i] = _once(f"{_STAR}?{between[i]}", next(groups))
        inner = [piece if piece.startswith("(?=") else f"{_STAR}{piece}" for piece in between[1:]]
        parts[at] = between[0] + "".join(inner)
        if 0 < at < len(parts) - 1:
            shortest = parts[at - 1].replace("+", "+?").replace(")?", ")??")
            parts[at] = _once(f"{shortest}{parts[at]}(?=/)", next(groups))
            parts[at - 1] = ""
    return "".join(parts)


def _once(source: str, number: int) -> str:
    """An expression that is not tried again elsewhere: what `(?>…)` is from Python 3.11 on."""
    return f"(?=(?P<once{number}>{source}))(?P=once{number})"


def option_patterns(name: str, patterns: Sequence[str]) -> Patterns | None:
    """The patterns of --glob or --exclude; UsageError where one is no pattern."""
    compiled = Patterns(patterns) if patterns else None
    for number, pattern in enumerate(patterns, 1):
        if compiled and all(rule.line != number for rule in compiled.rules):
            raise UsageError(f"--{name}: {pattern!r} is no pattern", "write it as in a .gitignore")
    return compiled


class IgnorePlace(NamedTuple):
    """Where an ignore file may lie; `name` is its path relative to the root, for people.

    A path relative to the root becomes one relative to the ignore file's folder by dropping
    `below` characters (the folder is below the root) and prepending `above` (it is above it).
    """

    where: str
    name: str
    below: int = 0
    above: str = ""


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """An ignore file that holds at least one pattern."""

    place: IgnorePlace
    patterns: Patterns

    def deciding(self, path: str, name: str, is_dir: bool) -> Rule | None:
        """The rule that decides over an entry, by its path relative to the root."""
        return self.patterns.deciding(self.place.above + path[self.place.below :], name, is_dir)


def read_ignore_file(place: IgnorePlace) -> IgnoreFile | None:
    """None where there is no regular file or no pattern in it; raises OSError otherwise."""
    try:
        if not stat.S_ISREG(Path(place.where).lstat().st_mode):
            return None
        with Path(place.where).open("rb") as file:
            content = file.read(IGNORE_FILE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(content) > IGNORE_FILE_LIMIT:
        raise OSError(errno.EFBIG, f"an ignore file of more than {IGNORE_FILE_LIMIT:,} bytes")
    lines = os.fsdecode(content.removeprefix(b"\xef\xbb\xbf")).split("\n")
    patterns = Patterns([line.removesuffix("\r") for line in lines])
    return IgnoreFile(place, patterns) if patterns.rules else None


def ignore_places_above(root: str) -> list[IgnorePlace]:
    """From the top of the git repository that holds the root down to the root's parent.

    The weakest first, which is the repository's own .git/info/exclude.
    """
    folders = [Path(root), *Path(root).parents]
    top = next((up for up, folder in enumerate(folders) if os.path.lexists(folder / ".git")), None)
    if top is None:
        return []
    names = [(up, name) for up in range(top, 0, -1) for name in IGNORE_FILES]
    places = []
    for up, name in [(top, ".git/info/exclude"), *names]:
        above = "".join(f"{part.name}/" for part in reversed(folders[:up]))
        places.append(IgnorePlace(str(folders[up] / name), "../" * up + name, above=above))
    return places
