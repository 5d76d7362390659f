"""What a TARGET names: a file, lines or a page or a record of one, or a chunk by its number.

Owns the forms of a target and the reason where it names nothing that could be found. Reads
the catalogue and the names of files, never their content.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from ragcli.corpus.suffixes import BINARY_SUFFIXES, suffix_by_name
from ragcli.corpus.walk import LeftOut, explain
from ragcli.errors import UsageError
from ragcli.indexing.known import rules_of
from ragcli.store.contents import (
    Outlined,
    StoredFile,
    chunk_numbers,
    file_of,
    files,
    has_record,
    outline,
    problems,
    starts,
)
from ragcli.store.index import Index

_NUMBER = re.compile("[0-9]{1,18}")
_LINES = re.compile("(?s)(.*):([0-9]{1,18})(?:-([0-9]{1,18}))?")
_PAGE = "page="
_MOST_NAMES = 5000
_FORMS = "a passage's number, guide.md, guide.md:120, guide.md:10-24, guide.pdf#page=3"


@dataclass(frozen=True, slots=True)
class Target:
    """What `given` names: `chunks` are those it means, in order.

    `file` is None where the index does not have it, `path` is relative to the root as the index
    writes it. Where `chunks` is empty, `why` is one of `no such chunk`, `not indexed`, `skipped`,
    `failed`, `file has no passage`, `line has no passage`, `page has no passage`,
    `no such record`, `record has no passage`, `file has no lines`, `file has no pages`; `detail`
    says more where more is known, and `near` are the chunks before and after the lines.
    """

    given: str
    file: StoredFile | None
    path: str | None
    chunks: tuple[int, ...] = ()
    lines: tuple[int, int] | None = None
    page: str | None = None
    record: str | None = None
    why: str | None = None
    detail: str | None = None
    near: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Named:
    """A path that the index has (`file`) or that at least the disk has."""

    path: str
    file: StoredFile | None
    detail: str | None = None


def resolve(index: Index, target: str) -> Target:
    """What `target` names; a path of the index wins over every other reading.

    Forms: a chunk's number; a path relative to the root, to the working folder or absolute;
    `PATH:LINE`, `PATH:FIRST-LAST`, `PATH#page=LABEL`, `PATH#RECORD`, `PATH#RECORD:LINE`.

    Raises UsageError for lines that cannot be, for a folder, and for a path that neither the
    index nor the disk knows; IndexUnavailable in its kinds.
    """
    exact = files(index, target)
    if exact:
        return _of_file(index, Target(target, exact[0], exact[0].path))
    if _NUMBER.fullmatch(target):
        return _of_chunk(index, target)
    for path, part in _splits(target):
        named = _find(index, path)
        if named:
            return _part(index, Target(target, named.file, named.path, detail=named.detail), part)
    raise _unknown(index, target)


def _splits(target: str) -> list[tuple[str, str]]:
    """The ways to read `target` as a path and what is meant of it, the longest path first."""
    ways = [(target, "")]
    match = _LINES.fullmatch(target)
    if match:
        ways.append((match[1], target[match.end(1) :]))
    marks = [place for place, character in enumerate(target) if character == "#"]
    ways += [(target[:place], target[place:]) for place in reversed(marks)]
    return [way for way in ways if way[0]]


def _find(index: Index, path: str) -> _Named | None:
    """The file of that name. Raises UsageError for a folder."""
    here = _below_root(index.root, path)
    plain = os.path.normpath(path)
    inside = None if plain.startswith(("/", "../")) else plain
    # `./x` says that the working folder is meant, `x` is a path as the index writes it.
    said = path.startswith(("./", "../", "/"))
    wanted = [name for name in ((here, inside) if said else (inside, here)) if name is not None]
    for name in wanted:
        stored = files(index, name)
        if stored:
            return _Named(name, stored[0])
    for name in wanted:
        where = None if index.root is None else index.root / name
        if where is not None and os.path.lexists(where):
            if where.is_dir():
                raise UsageError(f"{path} is a folder", "name a file in it")
            return _Named(name, None, _left_out(index, index.root, name))
    if here is None and os.path.lexists(path) and not Path(path).is_dir():
        root = index.root
        outside = None if root is None else f"it lies outside the indexed folder {root}"
        return _Named(path, None, outside or "the indexed folder is not there")
    return None


def _below_root(root: Path | None, path: str) -> str | None:
    """`path`, as the working folder means it, relative to the root; None outside it."""
    if root is None:
        return None
    absolute = os.path.abspath(path)
    folder, name = os.path.split(absolute)
    for where, base in (
        (absolute, str(root)),
        (os.path.join(os.path.realpath(folder), name), os.path.realpath(root)),
    ):
        if Path(where).is_relative_to(base):
            return os.path.relpath(where, base)
    return None


def _left_out(index: Index, root: Path | None, path: str) -> str | None:
    """Why the walk leaves a file out that is there."""
    assert root is not None
    covered = starts(index)
    if not any(start in ("", ".", path) or path.startswith(f"{start}/") for start in covered):
        return f"not among what is indexed: {', '.join(covered)}"
    verdict = explain(root, path, rules_of(index.settings))
    if isinstance(verdict, LeftOut):
        reason = f"{verdict.reason} ({verdict.detail})" if verdict.detail else verdict.reason
        return f"{reason}, as is the whole of {verdict.path}/" if verdict.folder else reason
    if suffix_by_name(path) in BINARY_SUFFIXES:
        return "binary"
    return "ragcli index has not run since it came"


def _part(index: Index, target: Target, part: str) -> Target:
    """`target` (a whole file) narrowed to `part`: nothing, `:LINES`, `#page=LABEL`, `#RECORD`."""
    if target.file is None:
        return replace(target, why="not indexed")
    if part.startswith("#"):
        name = part[1:]
        with_lines = _LINES.fullmatch(name)
        if has_record(index, target.file.id, name):
            return _of_file(index, replace(target, record=name))
        if with_lines and has_record(index, target.file.id, with_lines[1]):
            target = replace(target, record=with_lines[1])
            return _of_file(index, replace(target, lines=_lines(target.given, with_lines)))
        if name.startswith(_PAGE):
            return _of_file(index, replace(target, page=name.removeprefix(_PAGE)))
        return replace(target, record=name, why="no such record")
    match = _LINES.fullmatch(part)
    return _of_file(index, replace(target, lines=match and _lines(target.given, match)))


def _lines(given: str, match: re.Match[str]) -> tuple[int, int]:
    first, last = int(match[2]), int(match[3] or match[2])
    if not 1 <= first <= last:
        raise UsageError(
            f"{given} names no lines", "lines count from 1, the first one first: guide.md:10-24"
        )
    return first, last


def _of_chunk(index: Index, target: str) -> Target:
    chunk = int(target)
    file = file_of(index, chunk)
    if file is None:
        every = chunk_numbers(index)
        detail = f"numbered from {every[0]:,} to {every[-1]:,}" if every else None
        return Target(target, None, None, why="no such chunk", detail=detail)
    return Target(target, file, file.path, (chunk,))


def _of_file(index: Index, target: Target) -> Target:
    """`target` with the chunks that it means, or why there are none."""
    file = target.file
    assert file is not None
    if file.state != "indexed":
        return replace(target, why=file.state, detail=file.reason)
    rows = outline(index, file.id)
    if not rows:
        return replace(target, why="file has no passage")
    if target.record is not None:
        rows = [row for row in rows if row.record == target.record]
        if not rows:
            return replace(target, why="record has no passage")
    if target.lines is not None:
        return _at_lines(target, target.lines, rows)
    if target.page is not None:
        return _on_page(index, target, file, rows)
    return replace(target, chunks=tuple(row.chunk for row in rows))


def _at_lines(target: Target, lines: tuple[int, int], rows: list[Outlined]) -> Target:
    first, last = lines
    if all(row.lines is None for row in rows):
        pages = any(row.page is not None for row in rows)
        return replace(
            target,
            why="file has no lines",
            detail=f"name a page of it: {target.path}#page={rows[0].page}" if pages else None,
        )
    spans = [(row.chunk, *row.lines) for row in rows if row.lines is not None]
    chunks = tuple(chunk for chunk, a, b in spans if a <= last and b >= first)
    if chunks:
        return replace(target, chunks=chunks)
    before = [chunk for chunk, _, b in spans if b < first][-1:]
    after = [chunk for chunk, a, _ in spans if a > last][:1]
    return replace(target, why="line has no passage", near=(*before, *after))


def _on_page(index: Index, target: Target, file: StoredFile, rows: list[Outlined]) -> Target:
    """The chunks that begin on the page, and one that begins before it and surely holds some of it.

    The catalogue has the page on which a chunk begins, not where it ends: of a chunk that ends
    before the page's first one begins, nobody can tell.
    """
    if all(row.page is None for row in rows):
        return replace(target, why="file has no pages")
    lost = [p for p, _ in problems(index, file.id) if p.page == target.page]
    chunks = [row.chunk for row in rows if row.page == target.page]
    for before, row in pairwise(rows):
        begins = row.page == target.page and before.page != target.page
        into = begins and before.record == row.record and before.end > row.start
        over = not (chunks or lost) and _is_between(before.page, target.page, row.page)
        if into or over:
            chunks.insert(0, before.chunk)
    if chunks:
        return replace(target, chunks=tuple(chunks))
    detail = "; ".join(f"{problem.kind}: {problem.message}" for problem in lost)
    return replace(target, why="page has no passage", detail=detail or None)


def _is_between(before: str | None, page: str | None, after: str | None) -> bool:
    labels = (before, page, after)
    numbers = [int(label) for label in labels if label and _NUMBER.fullmatch(label)]
    return len(numbers) == 3 and numbers[0] < numbers[1] < numbers[2]


def _unknown(index: Index, target: str) -> UsageError:
    path, colon, _ = target.rpartition(":")
    if colon and files(index, os.path.normpath(path)):
        return UsageError(
            f"{target} names no lines", f"name them by number: {path}:120 or {path}:10-24"
        )
    alike = _alike(target, [file.path for file in files(index)])
    hint = f"did you mean {', '.join(alike)}?" if alike else f"name {_FORMS}"
    return UsageError(f"{target or 'an empty name'} is neither in the index nor on disk", hint)


def _alike(target: str, paths: list[str]) -> list[str]:
    """Up to three of `paths` that are nearest: the same name elsewhere, else the like."""
    wanted = _LINES.sub(r"\1", target).partition("#")[0]
    name = wanted.rpartition("/")[2]
    names = {path: path.rpartition("/")[2] for path in paths}
    same = [path for path in paths if name and names[path] == name]
    if same:
        return same[:3]
    few = paths[:_MOST_NAMES]
    near = difflib.get_close_matches(wanted, few, 3)
    if near:
        return near
    by_name = {names[path]: path for path in few}
    return [by_name[found] for found in difflib.get_close_matches(name, by_name, 3)]
