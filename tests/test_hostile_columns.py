"""A catalogue whose rows hold what no ragcli wrote: told as damage, never met as a bug."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conftest import build, write_files

from ragcli.cli.app import run
from ragcli.errors import IndexDamaged
from ragcli.inspection.card import card
from ragcli.inspection.checking import check
from ragcli.inspection.duplicates import duplicates
from ragcli.inspection.ledger import ledger
from ragcli.store.index import Index
from ragcli.store.totals import bookkeeping

COLUMNS = {
    "files": "id path state reason size mtime_ns ctime_ns read_ns digest reading",
    "documents": "id file record kind title language words pieces",
    "chunks": "id document start end first_line last_line page heading text",
    "problems": "file kind message page since",
    "segments": "name checksum rows",
    "vectors": "name checksum rows",
    "tombstones": "chunk",
    "tallies": "language documents words pieces",
}
PLACES = [(table, column) for table, names in COLUMNS.items() for column in names.split()]
VALUES = [b"\xff\x00", "x", "", 0.5, 9e999, -1e300, 10**18, -(2**62), '["\\ud800", 5, [1e999]]']
VIEWS = [
    ["inspect"],
    ["inspect", "--problems"],
    ["inspect", "a.txt", "--vectors"],
    ["inspect", "--duplicates"],
    ["query", "crane", "--refresh", "never", "--explain", "--show", "table,prompt"],
]
MORE_VIEWS = [
    ["inspect", "a.txt:1"],
    ["inspect", "broken.pdf"],
    ["inspect", "r.jsonl#1"],
    ["inspect", "1"],
    ["inspect", "--check"],
    ["inspect", "--collisions"],
    ["inspect", "a.txt:1", "--neighbors"],
    ["inspect", "--hubs"],
    ["inspect", "a.txt", "--why", "where is the tea"],
    ["inspect", "--why", "where is the crane", "--text", "harbour crane"],
    ["inspect", "--plot", "map.html"],
    ["query", "crane", "--refresh", "never", "--path", "*.txt", "--max-per-file", "1"],
    ["eval", "questions.jsonl"],
    ["eval", "--make-questions", "2"],
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("sound")
    write_files(
        base,
        {
            "docs/a.txt": "The harbour crane lifts forty tons of cargo every morning at nine.\n",
            "docs/b.md": "# Tea\n\nTea at four is what the crew of the harbour drinks.\n",
            "docs/c.md": "# Tea\n\nTea at four is what the crew of the harbour drinks.\n",
            "docs/r.jsonl": '{"id": 1, "text": "Der Kran hebt vierzig Tonnen."}\n',
            "docs/broken.pdf": "%PDF-1.4 and no more",
            "questions.jsonl": '{"question": "crane", "relevant": ["a.txt:1"]}\n'
            '{"question": "tea", "answers": ["at four"]}\n',
        },
    )
    build(base / ".rag", base / "docs", chunk="words:8")
    return base


@pytest.fixture
def strange(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".rag"


def execute(location: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(location / "catalog.sqlite")) as connection:
        connection.execute(statement, values)
        connection.commit()


def edits(location: Path, table: str, column: str, values: list[object]) -> Iterator[object]:
    """The values that SQLite takes there, each while it stands in every row."""
    whole = (location / "catalog.sqlite").read_bytes()
    for value in values:
        (location / "catalog.sqlite").write_bytes(whole)
        try:
            execute(location, f"UPDATE OR IGNORE {table} SET {column} = ?", value)
        except sqlite3.IntegrityError:  # a key takes integers alone
            continue
        yield value


def no_number(name: str) -> None:
    raise AssertionError(f"{name} in JSON")


def look(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for rest in ([], ["--json"]):
        code = run([*command, *rest])
        told = capsys.readouterr()
        assert code in (0, 1, 2, 3), (command, told.err)
        if rest and code == 0:
            for line in told.out.splitlines():
                json.loads(line, parse_constant=no_number)


@pytest.mark.parametrize(("table", "column"), PLACES)
def test_no_value_is_a_bug(
    strange: Path, table: str, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in edits(strange, table, column, [b"\xff\x00", 9e999]):
        for command in VIEWS:
            look(command, capsys)


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column"), PLACES)
def test_no_value_is_a_bug_in_any_view(
    strange: Path, table: str, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in edits(strange, table, column, list(VALUES)):
        for command in [*VIEWS, *MORE_VIEWS]:
            look(command, capsys)


@pytest.mark.parametrize("value", ["1e999", "-1e18", "NaN", "1e18", '"x"', "[]", "7"])
@pytest.mark.parametrize("key", ["made", "changed"])
def test_a_time_that_is_none_is_damage(strange: Path, key: str, value: str) -> None:
    execute(strange, "UPDATE meta SET value = ? WHERE key = ?", value, key)
    with Index.open(strange) as index:
        with pytest.raises(IndexDamaged, match=f"its {key} cannot be"):
            card(index)
        assert f"remembered as {key}" in check(index).findings[0].message


def test_what_is_remembered_of_an_index_of_old_may_be_missing(strange: Path) -> None:
    execute(strange, "DELETE FROM meta WHERE key IN ('made', 'generation', 'made_by')")
    with Index.open(strange) as index:
        kept = bookkeeping(index)
    assert kept.changed is not None
    assert (kept.made, kept.generation, kept.made_by) == (None, None, None)


@pytest.mark.parametrize("since", [9e999, 1e18, -1e300, -1.0, "x", b"x\x00"])
def test_a_problem_since_no_time_is_damage(strange: Path, since: object) -> None:
    execute(strange, "INSERT INTO problems VALUES (1, 'corrupt', 'told', NULL, ?)", since)
    with Index.open(strange) as index:
        with pytest.raises(IndexDamaged, match="its since cannot be"):
            ledger(index)
        found = [finding.message for finding in check(index).findings]
    assert found == [f"catalog.sqlite has {since!r:.40} where problems.since belongs"]


def test_texts_that_are_bytes_are_damage(strange: Path) -> None:
    execute(strange, "UPDATE chunks SET text = x'ff00', heading = x'ff'")
    with Index.open(strange) as index, pytest.raises(IndexDamaged, match="its text cannot be"):
        duplicates(index)


@pytest.mark.parametrize("heading", ['"Tea"', '{"Tea": 1}', "[5]", "7", "null", "[", ""])
def test_a_heading_path_is_a_list_of_texts(strange: Path, heading: str) -> None:
    execute(strange, "UPDATE chunks SET heading = ?", heading)
    with Index.open(strange) as index, pytest.raises(IndexDamaged, match="passage 1 cannot be"):
        index.chunks([1])


@pytest.mark.parametrize("end", [2**32, 10**18])
def test_no_text_is_endless(strange: Path, end: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Questions are drawn from every stretch of it: that was a MemoryError."""
    execute(strange, "UPDATE chunks SET end = ?", end)
    assert run(["eval", "--make-questions", "2"]) == 3
    assert "its end cannot be" in capsys.readouterr().err


def test_one_line_of_two_is_damage(strange: Path) -> None:
    execute(strange, "UPDATE chunks SET last_line = NULL WHERE id = 1")
    with Index.open(strange) as index, pytest.raises(IndexDamaged, match="one line of two"):
        index.chunks([1])


@pytest.mark.parametrize("value", [0, -1, 2**63, 10**30])
def test_dimensions_are_at_least_one(strange: Path, value: int) -> None:
    with closing(sqlite3.connect(strange / "catalog.sqlite")) as connection:
        (stored,) = connection.execute("SELECT value FROM meta WHERE key = 'settings'").fetchone()
    settings = json.dumps({**json.loads(stored), "dim": value})
    execute(strange, "UPDATE meta SET value = ? WHERE key = 'settings'", settings)
    with Index.open(strange) as index, pytest.raises(IndexDamaged, match="its setting dim"):
        _ = index.settings
    with Index.open(strange) as index:
        assert [finding.part for finding in check(index).findings] == ["meta"]
