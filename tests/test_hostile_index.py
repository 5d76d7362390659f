"""An index from a stranger: it may answer, and may not lead out of the folder that it lies in."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import answers, build, write_files

from ragcli.cli.answering import _reading
from ragcli.errors import IndexDamaged, IndexForeign, RagcliError, UsageError
from ragcli.inspection.card import card
from ragcli.inspection.checking import check
from ragcli.records import Hit
from ragcli.retrieval.retriever import is_stale
from ragcli.store.index import Index
from ragcli.store.origin import holds_home
from ragcli.store.segments import sweep

Change = Callable[[Path], object]


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """An index that was made elsewhere: a copy, with its sources."""
    write_files(
        tmp_path / "made/docs",
        {"a.txt": "Harbour crane.", "b/c.txt": "Tea at four.", "d.txt": "Soda cleans."},
    )
    write_files(tmp_path, {"secret.txt": "secret: 12345", "outside/more.txt": "Secrets."})
    build(tmp_path / "made/.rag", tmp_path / "made/docs")
    shutil.copytree(tmp_path / "made", tmp_path / "here/there")
    return tmp_path / "here/there/.rag"


def execute(location: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(location / "catalog.sqlite")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def remember(location: Path, key: str, value: object) -> None:
    execute(location, "UPDATE meta SET value = ? WHERE key = ?", json.dumps(value), key)


def setting(location: Path, **changes: object) -> None:
    connection = sqlite3.connect(location / "catalog.sqlite")
    row = connection.execute("SELECT value FROM meta WHERE key = 'settings'").fetchone()
    connection.close()
    remember(location, "settings", {**json.loads(row[0]), **changes})


def stored_as(location: Path, path: str) -> None:
    execute(location, "UPDATE files SET path = ? WHERE path = ?", path.encode(), b"a.txt")


def text_of(index: Index, path: str) -> str | None:
    """What the check of citations reads."""
    return _reading(index)(Hit(1, 1, path, 0, 1, "x", 1.0, 1.0))


OUTSIDE = ["../../../secret.txt", "b/../../../../secret.txt", "/etc/passwd", "b/../..", "x\0y"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_stored_path_does_not_lead_out(strange: Path, path: str) -> None:
    with Index.open(strange) as index:
        assert index.source("a.txt") == strange.parent / "docs/a.txt"
        assert index.source(path) is None
        assert is_stale(index, path, 13, 0) is True
        assert text_of(index, path) is None


@pytest.mark.parametrize("path", OUTSIDE[:3])
def test_commands_do_not_look_at_a_stored_path_outside(
    strange: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_as(strange, path)
    target = os.path.realpath(strange.parent / "docs" / path)
    seen: list[str] = []
    for name in ("stat", "lstat", "open"):
        real = getattr(os, name)

        def watched(where: object, *rest: object, real: object = real, **more: object) -> object:
            if isinstance(where, (str, os.PathLike)) and os.path.abspath(where) == target:
                seen.append(str(where))
            return real(where, *rest, **more)  # type: ignore[operator]

        monkeypatch.setattr(os, name, watched)
    found = answers(strange, "crane")
    with Index.open(strange) as index:
        report = check(index)
        card(index)
    build(strange)
    assert found[0][0] == path
    assert seen == []
    assert {finding.kind for finding in report.findings} == {"catalogue"}
    assert answers(strange, "crane")[0][0] == "a.txt"


def test_a_planted_link_is_not_read_through(strange: Path, tmp_path: Path) -> None:
    docs = strange.parent / "docs"
    (docs / "a.txt").unlink()
    (docs / "a.txt").symlink_to(tmp_path / "secret.txt")
    shutil.rmtree(docs / "b")
    (docs / "b").symlink_to(tmp_path / "outside")
    for location in (strange, tmp_path / "made/.rag"):
        if location != strange:  # one's own, where the links came later
            shutil.rmtree(tmp_path / "made/docs")
            shutil.copytree(docs, tmp_path / "made/docs", symlinks=True)
        with Index.open(location) as index:
            for path in ("a.txt", "b/more.txt", "b/c.txt"):
                assert index.source(path) is None
                assert text_of(index, path) is None
            assert text_of(index, "d.txt") == "Soda cleans."


def test_what_is_no_file_is_not_waited_for(strange: Path) -> None:
    docs = strange.parent / "docs"
    (docs / "a.txt").unlink()
    os.mkfifo(docs / "a.txt")
    with Index.open(strange) as index:
        assert index.source("a.txt") == docs / "a.txt"
        assert text_of(index, "a.txt") is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda at: remember(at, "root", "/"), "says that its files are in /"),
        (lambda at: remember(at, "root", "../../.."), "says that its files are in"),
        (lambda at: remember(at, "root", str(at.parents[2] / "outside")), "are in"),
        (lambda at: remember(at, "starts", ["../../outside"]), "leads out of"),
        (lambda at: remember(at, "starts", ["/etc"]), "leads out of"),
        (lambda at: setting(at, follow=True), "follows links out of"),
    ],
)
def test_a_root_elsewhere_must_be_named(strange: Path, change: Change, told: str) -> None:
    change(strange)
    with Index.open(strange) as index:
        assert index.root is None
        assert index.source("a.txt") is None
        assert told in (card(index).pending_missing or "")
    assert answers(strange, "crane")[0][0] == "a.txt"
    for full in (False, True):
        with pytest.raises(UsageError, match="was not made here") as caught:
            build(strange, full=full)
        assert told in caught.value.message
        assert "ragcli index" in (caught.value.hint or "")


def test_links_that_lead_out_are_followed_when_that_is_said_here(strange: Path) -> None:
    setting(strange, follow=True)
    execute(strange, "DELETE FROM meta WHERE key = 'origin'")
    (strange.parent / "docs/out").symlink_to(strange.parents[2] / "outside")
    with pytest.raises(UsageError, match="follows links"):
        build(strange, strange.parent / "docs")
    assert build(strange, strange.parent / "docs", follow=False).counts.unchanged == 3
    assert build(strange, follow=True).counts.indexed == 1
    assert build(strange).counts.unchanged == 4  # it is one's own by now
    with Index.open(strange) as index:
        assert index.source("out/more.txt") is not None


def test_an_index_of_ones_own_is_believed(tmp_path: Path) -> None:
    """Its root lies elsewhere, as with `--index`, and so does a link that was named."""
    write_files(tmp_path, {"docs/a.txt": "Harbour.", "far/b.txt": "Tea."})
    (tmp_path / "docs/link").symlink_to(tmp_path / "far")
    location = tmp_path / "elsewhere/deep/.rag"
    location.parent.mkdir(parents=True)
    build(location, tmp_path / "docs/a.txt", tmp_path / "docs/link")
    assert build(location).counts.unchanged == 2
    with Index.open(location) as index:
        assert index.root == tmp_path / "docs"
        assert index.source("link/b.txt") == tmp_path / "docs/link/b.txt"
    moved = location.rename(tmp_path / "elsewhere/moved")  # a rename keeps what it was
    assert build(moved).counts.unchanged == 2
    shutil.copytree(moved, tmp_path / "elsewhere/copy")
    with pytest.raises(UsageError, match="was not made here"):
        build(tmp_path / "elsewhere/copy")
    assert build(tmp_path / "elsewhere/copy", tmp_path / "docs").counts.unchanged == 1


def test_the_home_folder_must_be_named_again(
    strange: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(strange, "root", ".")
    monkeypatch.setenv("HOME", str(strange.parent))
    with pytest.raises(UsageError, match="was not made here"):
        build(strange)


def test_without_a_home_only_the_whole_disk_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither HOME nor an account, as in a container with a number for a user."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert holds_home(Path("/"))
    assert not holds_home(tmp_path)
    assert not holds_home(Path("/usr"))


def test_a_journal_of_several_databases_is_not_played(strange: Path, tmp_path: Path) -> None:
    """SQLite would remove the file that it names."""
    victim = tmp_path / "secret.txt"
    catalog = strange / "catalog.sqlite"
    page = catalog.read_bytes()[:4096]
    magic = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
    head = magic + struct.pack(">5I", 1, 0, catalog.stat().st_size // 4096, 512, 4096)
    total = sum(page[at] for at in range(4096 - 200, 0, -200))
    record = struct.pack(">I", 1) + page + struct.pack(">I", total)
    name = str(victim).encode()
    several = struct.pack(">I", 0x40000000 // 4096 + 1) + name
    several += struct.pack(">II", len(name), sum(name)) + magic
    (strange / "catalog.sqlite-journal").write_bytes(head.ljust(512, b"\0") + record + several)
    for attempt in (lambda: build(strange), lambda: build(strange, full=True)):
        with pytest.raises(IndexForeign, match="journal was not made by ragcli"):
            attempt()
    answers(strange, "crane")
    assert victim.read_text() == "secret: 12345"


def as_folder(place: Path) -> None:
    place.mkdir()


def as_empty_link(place: Path) -> None:
    place.symlink_to(place.parents[1] / "made-by-sqlite")


def as_linked_file(place: Path) -> None:
    far = place.parents[1] / "far.sqlite"
    shutil.copy(place.with_name("catalog.sqlite") if not place.exists() else place, far)
    place.unlink(missing_ok=True)
    place.symlink_to(far)


@pytest.mark.parametrize("plant", [as_folder, os.mkfifo, as_empty_link, as_linked_file])
@pytest.mark.parametrize("name", ["", "-journal", "-wal", "-shm"])
def test_a_catalogue_is_files_alone(strange: Path, name: str, plant: Change) -> None:
    """A folder in the place of the journal was a bug's exit, a pipe was waited for."""
    place = strange / f"catalog.sqlite{name}"
    if plant is not as_linked_file:
        place.unlink(missing_ok=True)
    plant(place)
    docs = strange.parent / "docs"
    for attempt in (lambda: answers(strange, "crane"), lambda: build(strange, docs)):
        with pytest.raises(IndexForeign, match=f"catalog.sqlite{name} is no plain file"):
            attempt()
    assert not (strange.parent / "made-by-sqlite").exists()


def test_links_in_the_index_are_not_written_through(strange: Path, tmp_path: Path) -> None:
    for name in ("lock", "CACHEDIR.TAG", ".gitignore"):
        (strange / name).unlink(missing_ok=True)
        (strange / name).symlink_to(tmp_path / f"made-{name}")
    with pytest.raises(RagcliError):
        build(strange)
    assert not list(tmp_path.glob("made-*"))
    (strange / "lock").unlink()
    build(strange)
    assert not list(tmp_path.glob("made-*"))


def test_segments_elsewhere_are_neither_read_nor_swept(strange: Path, tmp_path: Path) -> None:
    shutil.move(strange / "segments", tmp_path / "segments")
    write_files(tmp_path, {"segments/precious/a.txt": "precious"})
    (strange / "segments").symlink_to(tmp_path / "segments")
    for attempt in (lambda: answers(strange, "crane"), lambda: build(strange)):
        with pytest.raises(IndexForeign, match="is a link"):
            attempt()
    assert (tmp_path / "segments/precious/a.txt").read_text() == "precious"


def test_a_sweep_removes_links_and_not_where_they_lead(tmp_path: Path) -> None:
    write_files(tmp_path, {"far/a.txt": "precious"})
    (tmp_path / "segments").mkdir()
    (tmp_path / "segments/p-1").symlink_to(tmp_path / "far")
    assert sweep(tmp_path / "segments", set()) == ["p-1"]
    assert (tmp_path / "far/a.txt").exists()


def as_name(name: object) -> Change:
    return lambda at: execute(at, "UPDATE segments SET name = ?", name)


def in_segment(kind: str, change: Change) -> Change:
    return lambda at: change(next((at / "segments").glob(f"{kind}-*")))


def as_link(name: str) -> Change:
    def change(segment: Path) -> None:
        shutil.move(segment / name, segment.parents[2] / "moved")
        (segment / name).symlink_to(segment.parents[2] / "moved")

    return change


def as_pipe(name: str) -> Change:
    def change(segment: Path) -> None:
        (segment / name).unlink()
        os.mkfifo(segment / name)

    return change


@pytest.mark.parametrize(
    "change",
    [
        as_name("../../docs"),
        as_name("/etc"),
        as_name(b"\0"),
        as_name("p-1/../../.."),
        in_segment("p", as_link("manifest.json")),
        in_segment("p", as_pipe("manifest.json")),
        in_segment("p", as_pipe("chunks.npy")),
        in_segment("p", as_link("rows.npy")),
        in_segment("v", as_pipe("vectors.faiss")),
        in_segment("v", as_link("vectors.faiss")),
    ],
)
def test_a_segment_is_files_in_a_folder_of_its_own(strange: Path, change: Change) -> None:
    change(strange)
    with pytest.raises(IndexDamaged):
        answers(strange, "crane")
    build(strange)
    assert answers(strange, "crane")[0][0] == "a.txt"


def test_no_other_kind_of_vector_index_is_opened(strange: Path) -> None:
    """FAISS knows kinds that open files which they name."""
    (path,) = (strange / "segments").glob("v-*/vectors.faiss")
    path.write_bytes(b"IwFl" + path.read_bytes()[4:])
    with pytest.raises(IndexDamaged, match="cannot be read"):
        answers(strange, "crane")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("encoder", 5), ("dim", "x"), ("dim", True), ("glob", 5), ("glob", [1]), ("chunk", None),
        ("max_file_size", "9"), ("follow", "no"), ("device", 7), ("exclude", "*"),
    ],
)  # fmt: skip
def test_settings_of_another_type_are_damage(strange: Path, name: str, value: object) -> None:
    setting(strange, **{name: value})
    with pytest.raises(IndexDamaged, match=f"its setting {name} cannot be"):
        answers(strange, "crane")
    with pytest.raises(IndexDamaged):
        build(strange)


@pytest.mark.parametrize("value", ["[" * 200_000, "{", "\ud83d"])
def test_what_is_no_json_is_damage(strange: Path, value: str) -> None:
    text = value.encode("utf-8", "surrogatepass")
    for key in ("settings", "root"):
        execute(strange, "UPDATE meta SET value = CAST(? AS TEXT) WHERE key = ?", text, key)
        with pytest.raises((IndexDamaged, RagcliError)):
            answers(strange, "crane")
    execute(strange, "UPDATE chunks SET heading = CAST(? AS TEXT)", text)
    with pytest.raises(IndexDamaged):
        answers(strange, "crane")


@pytest.mark.parametrize("root", [7, "a\0b", "\ud800", None, ["docs"]])
def test_a_root_that_is_no_path_is_none(strange: Path, root: object) -> None:
    remember(strange, "root", root)
    with Index.open(strange) as index:
        assert index.root is None
    assert answers(strange, "crane")[0][0] == "a.txt"
