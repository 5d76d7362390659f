"""What lies in `.rag`: identity, checksums, foreign folders, locating."""

from __future__ import annotations

import os
import sqlite3
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from conftest import answers, build, write_files

from ragcli.errors import IndexDamaged, IndexForeign, IndexNotFound, UsageError
from ragcli.store.catalog import Catalog
from ragcli.store.index import Index, locate, path_pattern
from ragcli.store.merging import choose_merge
from ragcli.store.segments import Segment, sweep, write_segment


@pytest.fixture
def made(tmp_path: Path) -> Path:
    write_files(tmp_path / "docs", {"a.txt": "Harbour crane.", "b/c.txt": "Tea at four."})
    build(tmp_path / ".rag", tmp_path / "docs")
    return tmp_path / ".rag"


def test_the_folder_says_what_it_is(made: Path) -> None:
    assert (made / ".gitignore").read_text() == "*\n"
    tag = (made / "CACHEDIR.TAG").read_text()
    assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    connection = sqlite3.connect(made / "catalog.sqlite")
    assert connection.execute("PRAGMA application_id").fetchone() == (0x52414743,)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()


def test_no_array_needs_pickle(made: Path) -> None:
    arrays = list(made.glob("segments/*/*.npy"))
    assert len(arrays) >= 8
    for path in arrays:
        assert np.load(path, allow_pickle=False).dtype != object


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_format_is_refused(made: Path, version: int) -> None:
    connection = sqlite3.connect(made / "catalog.sqlite")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = (made / "catalog.sqlite").read_bytes()
    for attempt in (lambda: answers(made, "crane"), lambda: build(made)):
        with pytest.raises(IndexForeign) as caught:
            attempt()
        assert f"format {version}" in caught.value.message
        assert "remove" in (caught.value.hint or "")
    assert (made / "catalog.sqlite").read_bytes() == before


def test_another_programs_folder_is_left_alone(tmp_path: Path) -> None:
    write_files(tmp_path, {"docs/a.txt": "Harbour.", ".rag/config.yaml": "theirs: true"})
    with pytest.raises(IndexForeign):
        build(tmp_path / ".rag", tmp_path / "docs")
    assert [path.name for path in (tmp_path / ".rag").iterdir()] == ["config.yaml"]


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    write_files(tmp_path, {"docs/a.txt": "Harbour."})
    (tmp_path / ".rag").mkdir()
    connection = sqlite3.connect(tmp_path / ".rag" / "catalog.sqlite")
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    for attempt in (
        lambda: build(tmp_path / ".rag", tmp_path / "docs"),
        lambda: answers(tmp_path / ".rag", "harbour"),
    ):
        with pytest.raises(IndexForeign):
            attempt()


def test_noise_for_a_catalogue_is_refused(made: Path) -> None:
    (made / "catalog.sqlite").write_bytes(os.urandom(40_000))
    with pytest.raises(IndexForeign):
        answers(made, "crane")


def test_locate_walks_up(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAGCLI_INDEX", raising=False)
    deep = tmp_path / "docs" / "b"
    assert locate(None, deep) == made
    assert locate(made) == locate(tmp_path) == made
    monkeypatch.setenv("RAGCLI_INDEX", str(made))
    assert locate(None, Path("/")) == made
    with pytest.raises(IndexNotFound) as caught:
        locate(tmp_path / "nowhere")
    assert "ragcli index" in (caught.value.hint or "")


def test_a_flipped_byte_is_found_by_its_checksum(tmp_path: Path) -> None:
    name, checksum = write_segment(tmp_path, "p", {"x": np.arange(100)})
    Segment(tmp_path, name, checksum).verify()
    path = tmp_path / name / "x.npy"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    segment = Segment(tmp_path, name, checksum)
    with pytest.raises(IndexDamaged):
        segment.verify()
    (tmp_path / name / "manifest.json").write_text("{}")
    with pytest.raises(IndexDamaged):
        Segment(tmp_path, name, checksum)


@pytest.mark.parametrize("manifest", [b"{}", b"[]", b'{"files": {"a.npy": {}}}', b"\xff"])
def test_a_manifest_of_another_form_is_damage(tmp_path: Path, manifest: bytes) -> None:
    (tmp_path / "p-1").mkdir()
    (tmp_path / "p-1" / "manifest.json").write_bytes(manifest)
    checksum = blake2b(manifest, digest_size=16).hexdigest()
    with pytest.raises(IndexDamaged, match="the manifest of segment p-1 is none"):
        Segment(tmp_path, "p-1", checksum)


def test_sweep_removes_what_nobody_lists(tmp_path: Path) -> None:
    kept, _ = write_segment(tmp_path, "p", {"x": np.arange(3)})
    write_segment(tmp_path, "p", {"x": np.arange(3)})
    (tmp_path / ".unfinished-p-1").mkdir()
    sweep(tmp_path, {kept})
    assert [path.name for path in tmp_path.iterdir()] == [kept]


def test_a_reader_whose_segment_was_merged_away_looks_again(made: Path, tmp_path: Path) -> None:
    with Index.open(made) as index:
        index.settings  # noqa: B018 - the view has begun
        write_files(tmp_path / "docs", {"a.txt": "Harbour crane and lighthouse."})
        build(made)
        assert index.counts() == (2, 2)


def test_vectors_that_are_swept_before_they_are_loaded_are_looked_for_again(
    made: Path, tmp_path: Path
) -> None:
    with Index.open(made) as index:
        index.view()
        write_files(tmp_path / "docs", {"a.txt": "Harbour crane and lighthouse."})
        build(made)
        assert index.view(scoring=True).embedded == 2


def test_a_language_whose_last_document_goes_is_forgotten(tmp_path: Path) -> None:
    german = "Der Kran hebt vierzig Tonnen und die Häuser stehen am Hafen."
    english = "The crane lifts what the harbour has, and then it is night."
    write_files(tmp_path / "docs", {"a.txt": german, "b.txt": english, "c.txt": english, "d": ""})

    def languages() -> tuple[tuple[str, ...], list[tuple[str, int]]]:
        with Index.open(tmp_path / "rag") as index:
            rows = index.catalog.connection.execute("SELECT language, documents FROM tallies")
            return index.languages(), sorted(rows)

    build(tmp_path / "rag", tmp_path / "docs")
    assert languages() == (("english", "german"), [("", 1), ("english", 2), ("german", 1)])
    (tmp_path / "docs" / "a.txt").unlink()
    (tmp_path / "docs" / "d").unlink()
    build(tmp_path / "rag")
    assert languages() == (("english",), [("english", 2)])
    write_files(tmp_path / "docs", {"b.txt": german})
    build(tmp_path / "rag")
    assert languages() == (("english", "german"), [("english", 1), ("german", 1)])


@pytest.mark.parametrize(
    ("segments", "chosen"),
    [
        ([], []),
        ([(100, 100)] * 7, []),
        ([(100, 100)] * 8, list(range(8))),
        ([(100, 100), (5000, 4999)], [1]),
        ([(900_000, 890_000)], []),
        ([(900_000, 800_000)], [0]),
        ([(900_000, 900_000), *[(100, 100)] * 8], list(range(1, 9))),
    ],
)
def test_what_is_merged(segments: list[tuple[int, int]], chosen: list[int]) -> None:
    assert choose_merge(segments) == chosen


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.md", ["a.md", "x/a.md"], ["a.mdx", "md"]),
        ("docs", ["docs/a.md", "x/docs/b"], ["docs2/a.md"]),
        ("docs/", ["docs/a.md"], ["x.md"]),
        ("./docs/a*", ["docs/a.md", "docs/a/b.md"], ["docs/b.md"]),
        ("**/x.md", ["x.md", "a/b/x.md"], ["ax.md"]),
        ("a[1].md", ["a1.md"], ["a[1].md"]),
    ],
)
def test_path_globs(glob: str, yes: list[str], no: list[str]) -> None:
    pattern = path_pattern([glob])
    assert [name for name in yes + no if pattern.match(name)] == yes


def test_a_root_that_is_gone_is_no_reason_to_forget_it(made: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").rename(tmp_path / "unmounted")
    with pytest.raises(UsageError):
        build(made)
    assert answers(made, "crane")


def test_settings_survive_a_newer_field(made: Path) -> None:
    catalog = Catalog.open_write(made)
    stored = catalog.get("settings")
    assert isinstance(stored, dict)
    catalog.put("settings", {**stored, "of_a_later_version": 1})
    catalog.close()
    with Index.open(made) as index:
        assert index.settings.encoder == "hash"
