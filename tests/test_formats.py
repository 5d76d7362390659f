"""Indexes on disk: each released format answers to the digit or is refused with what to do.

`fixtures/format-N.zip` holds an index of format N with its sources, `format-N.json` what it
answered when it was made.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import build

from ragcli.errors import IndexForeign
from ragcli.inspection.checking import check
from ragcli.store.catalog import _SCHEMA
from ragcli.store.identity import FORMAT, SCHEMA_DIGEST, schema_digest
from ragcli.store.index import Index

FIXTURES = Path(__file__).parent / "fixtures"
sys.path.insert(0, str(FIXTURES))
from make_format import answers  # noqa: E402


def unpacked(version: int, to: Path) -> Path:
    with zipfile.ZipFile(FIXTURES / f"format-{version}.zip") as packed:
        packed.extractall(to)
    return to / ".rag"


def said(version: int) -> dict[str, list[dict[str, Any]]]:
    text = (FIXTURES / f"format-{version}.json").read_text(encoding="utf-8")
    found: dict[str, list[dict[str, Any]]] = json.loads(text)
    return found


def same(location: Path, version: int) -> None:
    for asked, wanted in said(version).items():
        mode, _, question = asked.partition(" ")
        found = answers(location, question, mode)
        assert [{**hit, "score": 0, "weight": 0} for hit in found] == [
            {**hit, "score": 0, "weight": 0} for hit in wanted
        ]
        for key in ("score", "weight"):
            assert [hit[key] for hit in found] == pytest.approx(
                [hit[key] for hit in wanted], rel=1e-12
            )


def test_the_present_format_answers_as_it_did(tmp_path: Path) -> None:
    location = unpacked(FORMAT, tmp_path)
    same(location, FORMAT)
    with Index.open(location) as index:
        assert not check(index).findings
        assert index.problem_count == 1


def test_the_present_format_is_brought_up_to_date(tmp_path: Path) -> None:
    """Unpacked, its files have other times: they are looked at, and no text has changed."""
    location = unpacked(FORMAT, tmp_path)
    build(location)
    same(location, FORMAT)
    build(location, full=True)
    same(location, FORMAT)


def test_a_change_of_the_tables_is_another_format() -> None:
    """Where this fails: raise FORMAT, set SCHEMA_DIGEST, and run fixtures/make_format.py."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(_SCHEMA)
    assert schema_digest(connection) == SCHEMA_DIGEST
    connection.close()
    assert (FIXTURES / f"format-{FORMAT}.zip").exists()


@pytest.mark.parametrize("version", [*range(FORMAT), FORMAT + 1, 99])
@pytest.mark.parametrize("full", [False, True])
def test_another_format_is_refused_with_what_heals_it(
    tmp_path: Path, version: int, full: bool
) -> None:
    location = unpacked(FORMAT, tmp_path)
    connection = sqlite3.connect(location / "catalog.sqlite")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    for attempt in (lambda: answers(location, "tea"), lambda: build(location, full=full)):
        with pytest.raises(IndexForeign) as caught:
            attempt()
        assert f"has format {version}, this ragcli reads format {FORMAT}" in caught.value.message
        assert "\n" not in caught.value.message
        assert caught.value.hint == f"remove the folder {location} and run ragcli index again"
    shutil.rmtree(location)  # what the hint says
    build(location, tmp_path / "docs", dim=64)
    same(location, FORMAT)


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER more AFTER INSERT ON meta BEGIN DELETE FROM files; END",
        "ALTER TABLE problems ADD COLUMN more TEXT",
        "DROP TRIGGER document_goes",
    ],
)
def test_tables_that_no_ragcli_made_are_refused(tmp_path: Path, planted: str) -> None:
    location = unpacked(FORMAT, tmp_path)
    connection = sqlite3.connect(location / "catalog.sqlite")
    connection.execute(planted)
    connection.commit()
    connection.close()
    for attempt in (lambda: answers(location, "tea"), lambda: build(location)):
        with pytest.raises(IndexForeign, match="has tables that this ragcli does not make"):
            attempt()
