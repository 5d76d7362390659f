"""An index opened for reading: one commit of the catalogue and the segments that belong to it.

Owns finding the `.rag` folder and the consistent view; `writer` is its counterpart. Nothing
here writes. Scores and fusion are `retrieval`'s.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from ragcli.errors import IndexDamaged, IndexNotFound, IndexUnavailable
from ragcli.records import Chunk, Settings
from ragcli.store.catalog import FILE, Catalog, damaged, decode_path, spoilt
from ragcli.store.columns import check_rows, is_text
from ragcli.store.folder import FOLDER
from ragcli.store.languages import FUNCTION_WORDS
from ragcli.store.origin import Origin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragcli.store.view import View

_SNAPSHOT_TRIES = 20

RANGES = {"dim": range(1, 2**63)}
"""What settings may be, where not all numbers do."""


def locate(explicit: Path | None = None, start: Path | None = None) -> Path:
    """The `.rag` folder to use: `explicit`, else RAGCLI_INDEX, else found by walking up.

    Raises IndexNotFound where there is none, IndexUnavailable where one cannot look.
    """
    named = explicit or (
        Path(os.environ["RAGCLI_INDEX"]) if os.environ.get("RAGCLI_INDEX") else None
    )
    try:
        if named is not None:
            return _locate_named(named)
        here = (start or Path.cwd()).absolute()
        for folder in (here, *here.parents):
            if (folder / FOLDER).is_dir():
                return folder / FOLDER
    except OSError as error:
        raise IndexUnavailable(
            f"{named or 'the working folder'} cannot be looked into: {error.strerror}",
            "name an index that can be read: --index DIR",
        ) from error
    raise IndexNotFound("no index here", "ragcli index .")


def _locate_named(named: Path) -> Path:
    for candidate in (named, named / FOLDER):
        if (candidate / FILE).is_file():
            return candidate
    if named.is_dir() and any(named.iterdir()):
        return named
    raise IndexNotFound(f"no index in {named}", f"ragcli index FOLDER --index {named}")


def is_begun(location: Path) -> bool:
    """Whether the `.rag` folder `location` has a catalogue.

    Raises IndexUnavailable where one may not look.
    """
    try:
        (location / FILE).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise IndexUnavailable(
            f"{location} cannot be looked into: {error.strerror}",
            "name an index that can be read: --index DIR",
        ) from error
    return True


def is_folder(path: Path | str) -> bool:
    """Whether a folder is there; no where one may not look, at which `Path.is_dir` raises."""
    return os.path.isdir(path)  # noqa: PTH112


def read_settings(catalog: Catalog) -> Settings:
    """The settings that the index remembers; defaults for what it does not know."""
    stored = catalog.get("settings", {})
    if not isinstance(stored, dict):
        raise spoilt(catalog.folder, "its settings cannot be read")
    known = {field.name: field.default for field in fields(Settings)}
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in stored.items()
        if key in known
    }
    for key, value in values.items():
        if not _is_like(value, known[key]) or (key in RANGES and value not in RANGES[key]):
            raise spoilt(catalog.folder, f"its setting {key} cannot be {value!r:.40}")
    return Settings(**values)


def _is_like(value: object, default: object) -> bool:
    """Whether `value` is of the type of a setting's default, which None is for a text or none."""
    if default is None:
        return value is None or isinstance(value, str)
    if isinstance(value, tuple):
        return isinstance(default, tuple) and all(map(is_text, value))
    return type(value) is type(default)


class Index:
    """A consistent view of an index: `with Index.open(path) as index: …`."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.path = catalog.folder
        check_rows(catalog.connection, catalog.folder)
        self._view: View | None = None

    @classmethod
    def open(cls, path: Path) -> Index:
        """Open the `.rag` folder `path` for reading.

        Raises IndexUnavailable in its kinds.
        """
        return cls(Catalog.open_read(path))

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.catalog.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The catalogue's connection; what SQLite finds broken becomes IndexDamaged."""
        try:
            yield self.catalog.connection
        except sqlite3.DatabaseError as error:
            raise damaged(error, self.path) from error

    @cached_property
    def settings(self) -> Settings:
        """What the index remembers. Raises IndexDamaged where files are there and settings not."""
        with self.reading():
            if self.catalog.get("settings") is None and self.catalog.count("files"):
                raise spoilt(self.path, "its settings are lost")
            return read_settings(self.catalog)

    @cached_property
    def encoder(self) -> str | None:
        """The fingerprint of the encoder that made the vectors."""
        with self.reading():
            known = self.catalog.get("encoder")
        return known if isinstance(known, str) else None

    @cached_property
    def calibration(self) -> object:
        """What `eval --calibrate` kept, as JSON has it; None where there is nothing."""
        with self.reading():
            return self.catalog.get("calibration")

    @cached_property
    def _origin(self) -> Origin | None:
        """None where the sources are not there, or the index is not believed about them."""
        with self.reading():
            found = Origin.of(self.catalog, follow=self.settings.follow)
        if found is None or found.refusal(self.path) or not is_folder(found.root):
            return None
        return found

    @property
    def root(self) -> Path | None:
        """The indexed folder; None where it is not there, or not one the index may speak of."""
        return None if self._origin is None else self._origin.root

    @property
    def starts(self) -> tuple[str, ...]:
        """What is indexed below the root."""
        return () if self._origin is None else self._origin.starts

    @property
    def made_here(self) -> bool:
        """Whether it is no copy, and its sources are there."""
        return self._origin is not None and self._origin.made_here

    def source(self, path: str) -> Path | None:
        """Where a file of the index lies; None without a root, and outside of it."""
        return None if self._origin is None else self._origin.source(path)

    def view(self, *, scoring: bool = False) -> View:
        """The live segments; with `scoring`, their vectors are loaded too.

        A writer may sweep a merged segment between our view of the catalogue and the opening
        of its files: then the view is begun anew.
        """
        from ragcli.store.view import open_view

        for _ in range(_SNAPSHOT_TRIES):
            try:
                if self._view is None:
                    with self.reading():
                        self._view = open_view(self.catalog)
                if scoring:
                    for segment in self._view.vectors:
                        segment.load()
                return self._view
            except IndexDamaged as error:
                damage = error
                self._begin_again()
        raise damage

    def _begin_again(self) -> None:
        self._view = None
        for name in ("settings", "encoder", "calibration", "_origin", "problem_count"):
            self.__dict__.pop(name, None)
        with self.reading() as connection:
            connection.execute("COMMIT")
            connection.execute("BEGIN")

    @cached_property
    def problem_count(self) -> int:
        """Lines in the ledger."""
        with self.reading():
            return self.catalog.count("problems")

    def counts(self) -> tuple[int, int]:
        """(live chunks, live chunks with vectors)."""
        view = self.view()
        return view.chunks, view.embedded

    def languages(self) -> tuple[str, ...]:
        """The Latin-script languages of the documents, commonest first."""
        with self.reading():
            found = self.catalog.column(
                "SELECT language FROM tallies WHERE language != ''"
                " ORDER BY documents DESC, language"
            )
        unknown = [language for language in found if language not in FUNCTION_WORDS]
        if unknown:
            raise spoilt(self.path, f"there is no language {unknown[0]!r:.40}")
        return tuple(str(language) for language in found)

    @property
    def pieces_per_word(self) -> float | None:
        """Into how many pieces the encoder's tokenizer cuts a word of the documents.

        None where it does not say.
        """
        with self.reading() as connection:
            rows = connection.execute("SELECT words, pieces FROM tallies").fetchall()
        words, pieces = sum(row[0] for row in rows), sum(row[1] for row in rows)
        return pieces / words if words and pieces else None

    def documents_at(self, globs: Sequence[str]) -> NDArray[np.int64]:
        """Ids of the documents whose path one of `globs` matches, ascending."""
        import numpy as np

        pattern = path_pattern(globs)
        with self.reading() as connection:
            connection.create_function(
                "is_named", 1, lambda path: pattern.match(decode_path(path)) is not None
            )
            # Each file is asked about once, however many documents it holds.
            found = self.catalog.column(
                "SELECT d.id FROM files f CROSS JOIN documents d ON d.file = f.id"
                " WHERE is_named(f.path)"
            )
        return np.sort(np.array(found, np.int64))

    def places(self, chunks: Iterable[int]) -> dict[int, Place]:
        """Per chunk id where it stands: what ties are broken by."""
        return {
            chunk: Place(os.fsencode(display_path(path, record)), start, chunk)
            for chunk, path, record, start in self._select(
                "c.id, f.path, d.record, c.start", chunks
            )
        }

    def followers(self, ids: Sequence[int]) -> dict[int, int]:
        """Per chunk id the chunk after it in its document, where there is one."""
        return self._beside(ids, ">", "ASC")

    def preceders(self, ids: Sequence[int]) -> dict[int, int]:
        """Per chunk id the chunk before it in its document, where there is one."""
        return self._beside(ids, "<", "DESC")

    def _beside(self, ids: Sequence[int], side: str, order: str) -> dict[int, int]:
        with self.reading() as connection:
            rows = connection.execute(
                "SELECT c.id, (SELECT n.id FROM chunks n WHERE n.document = c.document"
                f" AND n.start {side} c.start ORDER BY n.start {order}, n.id {order} LIMIT 1)"
                f" AS other FROM chunks c WHERE c.id IN ({','.join('?' * len(ids))})"
                " AND other IS NOT NULL",
                list(ids),
            ).fetchall()
        return dict(rows)

    def chunks(self, ids: Iterable[int]) -> dict[int, StoredChunk]:
        """The chunks with these ids, with their document and file."""
        found = {}
        for row in self._select(
            "c.id, f.path, d.record, d.title, c.start, c.end, c.text, c.first_line, c.last_line,"
            " c.page, c.heading, f.size, f.mtime_ns",
            ids,
        ):
            chunk = Chunk(
                start=row[4],
                end=row[5],
                text=row[6],
                lines=line_span(self, row[0], row[7], row[8]),
                page=row[9],
                heading=heading_path(self, row[0], row[10]),
            )
            found[row[0]] = StoredChunk(
                chunk, decode_path(row[1]), row[2], row[3], row[11], row[12]
            )
        return found

    def _select(self, columns: str, ids: Iterable[int]) -> Iterator[Any]:
        """Rows of the chunks with these ids; raises IndexDamaged where one is not there."""
        wanted = list(ids)
        with self.reading() as connection:
            for start in range(0, len(wanted), 500):
                some = wanted[start : start + 500]
                rows = connection.execute(
                    f"SELECT {columns} FROM chunks c JOIN documents d ON d.id = c.document"
                    f" JOIN files f ON f.id = d.file WHERE c.id IN ({','.join('?' * len(some))})",
                    some,
                ).fetchall()
                if len(rows) != len(some):
                    raise IndexDamaged(
                        f"a segment of {self.path} names chunks that the catalogue does not have",
                        "ragcli index --full   (checks every part and makes it again)",
                    )
                yield from rows


class Place(NamedTuple):
    """Path with record, offset, chunk id; sorts in that order."""

    path: bytes
    start: int
    chunk: int


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as the catalogue has it, with its file's path and stat when it was read."""

    chunk: Chunk
    file: str
    record: str | None
    title: str | None
    size: int
    mtime_ns: int

    @property
    def path(self) -> str:
        """The file's path, with `#record` where the document is a record."""
        return display_path(self.file, self.record)


def heading_path(index: Index, chunk: int, stored: str) -> tuple[str, ...]:
    """The headings above a chunk, as they are stored. Raises IndexDamaged."""
    try:
        headings = json.loads(stored)
    except (ValueError, RecursionError) as error:
        raise spoilt(index.path, f"passage {chunk} cannot be read") from error
    if not isinstance(headings, list) or not all(map(is_text, headings)):
        raise spoilt(index.path, f"passage {chunk} cannot be read")
    return tuple(headings)


def line_span(
    index: Index, chunk: int, first: int | None, last: int | None
) -> tuple[int, int] | None:
    """The first and the last line of a chunk, None where it has none. Raises IndexDamaged."""
    if first is None and last is None:
        return None
    if first is None or last is None:
        raise spoilt(index.path, f"passage {chunk} has one line of two")
    return first, last


def display_path(path: str | bytes, record: str | None) -> str:
    """`corpus.jsonl#ID` for a record, else the path."""
    name = path if isinstance(path, str) else decode_path(path)
    return name if record is None else f"{name}#{record}"


def path_pattern(globs: Sequence[str]) -> re.Pattern[str]:
    """What a path must match to be named by one of `globs`.

    `*` also crosses `/`; a glob without `/` names files and folders at any depth; a folder
    names all that lies in it.
    """
    forms = []
    for glob in globs:
        name = glob.removeprefix("./").rstrip("/")
        names = [name] if "/" in name else [name, f"*/{name}"]
        if name.startswith("**/"):
            names.append(name[3:])
        forms += [form for each in names for form in (each, f"{each}/*")]
    return re.compile("|".join(fnmatch.translate(form) for form in forms))
