"""Options of the test run, and what tests of the index share: files, a build, what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import neural
import pytest

from ragcli.indexing import index_folder
from ragcli.records import IndexReport, SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="write tests/goldens/ anew from what is seen"
    )


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[neural.FakeEncoder]:
    """The encoder `fake` is there; `fake.texts` are those that it encoded."""
    neural.install(monkeypatch.setattr)
    return neural.FakeEncoder


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Write each text to its path below `root`."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def build(
    location: Path, *paths: Path, lazy: bool = False, full: bool = False, **changes: object
) -> IndexReport:
    """Index `paths` (none: what is remembered) into `location`; `hash` unless it is said."""
    if not location.exists():
        changes = {"encoder": "hash", **changes}
    return index_folder(location, paths, changes, lazy=lazy, full=full)


def answers(
    location: Path, question: str, k: int = 5, *, mode: str | None = None
) -> list[tuple[Any, ...]]:
    """The hits of a question, each with its place, its text and every score, unrounded."""
    with Index.open(location) as index:
        found = Retriever(index).search(SearchRequest(question, k, mode=mode))
    return [
        (hit.path, hit.start, hit.end, hit.lines, hit.text, hit.score, hit.lexical, hit.dense)
        for hit in found.hits
    ]
