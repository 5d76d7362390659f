"""`inspect --check`: planted damage is found, its hint mends it, and a sound index has none."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from conftest import build, write_files
from neural import FakeEncoder
from test_incremental import SENTENCES

from ragcli.cli.app import run
from ragcli.cli.reports.checking import lines
from ragcli.encoders.minilm import FOLDER
from ragcli.errors import IndexBusy, IndexUnavailable
from ragcli.inspection import checking
from ragcli.inspection.checking import CheckReport, check
from ragcli.store.index import Index
from ragcli.store.lock import write_lock

FILES = {f"{i}.txt": "\n\n".join(SENTENCES[i : i + 4]) for i in range(5)}
Plant = Callable[[Path], object]


def look(location: Path) -> CheckReport:
    with Index.open(location) as index:
        return check(index)


def found(location: Path) -> list[tuple[str, str]]:
    return [(finding.kind, finding.part) for finding in look(location).findings]


def sql(location: Path, statement: str, *values: object) -> list[Any]:
    connection = sqlite3.connect(location / "catalog.sqlite", isolation_level=None)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def segment(location: Path, kind: str) -> Path:
    """The largest segment of a kind, `p` or `v`."""
    table = {"p": "segments", "v": "vectors"}[kind]
    [(name,)] = sql(location, f"SELECT name FROM {table} ORDER BY rows DESC LIMIT 1")
    return location / "segments" / str(name)


def reseal(folder: Path, *, manifest: bytes | None = None) -> None:
    """Checksums as if the segment had been written as it is now."""
    if manifest is None:
        files = {
            path.name: {
                "bytes": path.stat().st_size,
                "blake2b": blake2b(path.read_bytes(), digest_size=16).hexdigest(),
            }
            for path in sorted(folder.iterdir())
            if path.name != "manifest.json"
        }
        manifest = json.dumps({"files": files}).encode()
    (folder / "manifest.json").write_bytes(manifest)
    checksum = blake2b(manifest, digest_size=16).hexdigest()
    for table in ("segments", "vectors"):
        statement = f"UPDATE {table} SET checksum = ? WHERE name = ?"
        sql(folder.parents[1], statement, checksum, folder.name)


def alter(kind: str, name: str, change: Callable[[np.ndarray], object]) -> Plant:
    """Change an array of a segment (in place, or to what `change` returns) and seal it."""

    def plant(location: Path) -> None:
        path = segment(location, kind) / f"{name}.npy"
        array = np.load(path)
        changed = change(array)
        np.save(path, array if changed is None else changed)
        reseal(path.parent)

    return plant


def put(at: int, value: object) -> Callable[[np.ndarray], None]:
    def change(array: np.ndarray) -> None:
        array[at] = value

    return change


def swap(array: np.ndarray) -> None:
    array[[0, 1]] = array[[1, 0]]


def flip(kind: str, name: str) -> Plant:
    def plant(location: Path) -> None:
        path = segment(location, kind) / name
        raw = bytearray(path.read_bytes())
        raw[-3] ^= 16
        path.write_bytes(raw)

    return plant


def cut(location: Path) -> None:
    path = segment(location, "p") / "rows.npy"
    path.write_bytes(path.read_bytes()[:-4])


def older(location: Path, edit: Callable[[Path, Path], object]) -> None:
    """Give `edit` a copy of the postings before an edit, and those after it."""
    old = shutil.copytree(segment(location, "p"), location.parent / "old")
    write_files(location.parent / "docs", {"0.txt": "Something else stands here now."})
    build(location)
    edit(old, segment(location, "p"))


def replace_with(old: Path, live: Path) -> None:
    shutil.rmtree(live)
    old.rename(live)


def replace_and_seal(old: Path, live: Path) -> None:
    replace_with(old, live)
    reseal(live)
    rows = len(np.load(live / "chunks.npy"))
    sql(live.parents[1], "UPDATE segments SET rows = ? WHERE name = ?", rows, live.name)


def twice(location: Path) -> None:
    folder = segment(location, "p")
    shutil.copytree(folder, folder.with_name("p-again"))
    sql(
        location,
        "INSERT INTO segments SELECT 'p-again', checksum, rows FROM segments WHERE name = ?",
        folder.name,
    )


def other_vectors(change: Callable[[Any], Any]) -> Plant:
    """Another FAISS file in the place of the one there."""

    def plant(location: Path) -> None:
        path = segment(location, "v") / "vectors.faiss"
        faiss.write_index(change(faiss.read_index(str(path))), str(path))
        reseal(path.parent)

    return plant


def flat(index: Any, value: float) -> Any:
    codes = index.reconstruct_n(0, index.ntotal)
    codes[2, 5] = value
    other = faiss.IndexFlatIP(index.d)
    other.add(codes)
    return other


def with_nan(index: Any) -> Any:
    return flat(index, np.nan)


def narrower(index: Any) -> Any:
    codes = index.reconstruct_n(0, index.ntotal)[:, 1:].copy()
    uniform = faiss.ScalarQuantizer.QT_8bit_uniform
    other = faiss.IndexScalarQuantizer(index.d - 1, uniform, faiss.METRIC_INNER_PRODUCT)
    other.train(codes)
    other.add(codes)
    return other


def graph(index: Any) -> Any:
    other = faiss.IndexHNSWFlat(index.d, 4, faiss.METRIC_INNER_PRODUCT)
    other.add(index.reconstruct_n(0, index.ntotal))
    return other


def noise(location: Path) -> None:
    path = segment(location, "v") / "vectors.faiss"
    path.write_bytes(b"IxSQ" + bytes(range(200)))
    reseal(path.parent)


def execute(*statements: str) -> Plant:
    return lambda location: [sql(location, statement) for statement in statements]


PLANTS: dict[str, tuple[str, Plant, str]] = {
    # name: (encoder, plant, the kind that must be found)
    "a flipped byte of vectors": ("fake", flip("v", "vectors.faiss"), "checksum"),
    "a flipped byte of counted vectors": ("hash", flip("v", "vectors.faiss"), "checksum"),
    "a flipped byte of factors": ("fake", flip("v", "factors.npy"), "checksum"),
    "a flipped byte of postings": ("hash", flip("p", "rows.npy"), "checksum"),
    "a lost segment of postings": ("hash", lambda at: shutil.rmtree(segment(at, "p")), "segment"),
    "a lost segment of vectors": ("fake", lambda at: shutil.rmtree(segment(at, "v")), "segment"),
    "a lost file": ("hash", lambda at: (segment(at, "p") / "counts.npy").unlink(), "segment"),
    "a cut file": ("hash", cut, "segment"),
    "a segment that never was": (
        "hash", execute("INSERT INTO segments VALUES ('p-none', '00', 3)"), "segment",
    ),
    "all segments lost": ("fake", lambda at: shutil.rmtree(at / "segments"), "segment"),
    "a manifest that is none": (
        "hash", lambda at: reseal(segment(at, "p"), manifest=b"[]"), "segment",
    ),
    "a manifest without an array": (
        "hash", lambda at: reseal(segment(at, "p"), manifest=b'{"files": {}}'), "postings",
    ),
    "older postings beside the live ones": (
        "hash", lambda at: older(at, lambda old, live: old.rename(live.with_name("p-old"))),
        "orphan",
    ),
    "older postings in place of the live ones": (
        "hash", lambda at: older(at, replace_with), "segment",
    ),
    "older postings in place, and sealed": (
        "hash", lambda at: older(at, replace_and_seal), "reference",
    ),
    "an unfinished segment": (
        "hash", lambda at: (at / "segments" / ".unfinished-p-1").mkdir(), "orphan",
    ),
    "a row of files without its file": (
        "hash", lambda at: (at.parent / "docs" / "3.txt").unlink(), "gone",
    ),
    "a document without its row of files": (
        "fake", execute("DELETE FROM files WHERE id = 2"), "reference",
    ),
    "chunks without their document": (
        "fake", execute("DELETE FROM documents WHERE id = 2"), "reference",
    ),
    "a row of segments that is lost": ("hash", execute("DELETE FROM segments"), "counts"),
    "a chunk that is lost": ("hash", execute("DELETE FROM chunks WHERE id = 3"), "reference"),
    "a problem of no file": (
        "hash", execute("INSERT INTO problems VALUES (99, 'decode', 'x', NULL, 0)"), "reference",
    ),
    "a chunk under another document": (
        "hash", execute("UPDATE chunks SET document = 1 WHERE document = 2"), "reference",
    ),
    "a tombstone of a chunk that lives": (
        "fake", execute("INSERT INTO tombstones VALUES (2)"), "reference",
    ),
    "a file in a state that cannot be": (
        "hash", execute("UPDATE files SET state = 'seen' WHERE id = 1"), "reference",
    ),
    "documents of a file that failed": (
        "hash", execute("UPDATE files SET state = 'failed', reason = 'x' WHERE id = 1"),
        "reference",
    ),
    "sums that are none": ("hash", execute("UPDATE tallies SET documents = 9"), "counts"),
    "a sum of nothing": (
        "hash", execute("INSERT INTO tallies VALUES ('welsh', 1, 0, 0)"), "counts",
    ),
    "another number of rows": ("fake", execute("UPDATE vectors SET rows = rows + 1"), "vectors"),
    "an end beyond the text": ("hash", execute("UPDATE chunks SET end = end + 1"), "offsets"),
    "an end before the start": (
        "hash", execute("UPDATE chunks SET start = end + 4, end = start"), "offsets",
    ),
    "a line without the other": ("hash", execute("UPDATE chunks SET last_line = NULL"), "offsets"),
    "lines that descend": ("hash", execute("UPDATE chunks SET first_line = 99"), "offsets"),
    "a heading that is no list": ("hash", execute("UPDATE chunks SET heading = '{}'"), "offsets"),
    "a text that is no UTF-8": (
        "hash", execute("UPDATE chunks SET text = CAST(x'ff' || substr(text, 2) AS TEXT)"),
        "offsets",
    ),
    "chunks twice": ("hash", twice, "reference"),
    "chunks out of order": ("hash", alter("p", "chunks", swap), "postings"),
    "a chunk that never was": ("fake", alter("v", "chunks", put(-1, 999)), "reference"),
    "a row of another document": ("hash", alter("p", "documents", put(0, 4)), "reference"),
    "a length": ("hash", alter("p", "lengths", put(1, 77)), "postings"),
    "a count of 0": ("hash", alter("p", "counts", put(4, 0)), "postings"),
    "a row beyond the last": ("hash", alter("p", "rows", put(4, 2000)), "postings"),
    "rows out of order": (
        "hash", alter("p", "rows", lambda rows: np.sort(rows)[::-1].copy()), "postings",
    ),
    "terms out of order": ("hash", alter("p", "names", put(0, ord("z"))), "postings"),
    "a term that is no UTF-8": ("hash", alter("p", "names", put(-1, 0xFF)), "postings"),
    "terms divided otherwise": ("hash", alter("p", "name_ends", swap), "postings"),
    "a term less": (
        "hash", alter("p", "starts", lambda ends: np.delete(ends, 3)), "postings",
    ),
    "a term without rows": ("hash", alter("p", "starts", put(1, 0)), "postings"),
    "another type": ("hash", alter("p", "rows", lambda rows: rows.astype(np.int64)), "postings"),
    "another shape": ("hash", alter("p", "rows", lambda rows: rows[np.newaxis]), "postings"),
    "a NaN among the factors": ("fake", alter("v", "factors", put(2, np.nan)), "vectors"),
    "a factor without end": ("fake", alter("v", "factors", put(2, np.inf)), "vectors"),
    "a factor of 0": ("fake", alter("v", "factors", put(2, 0.0)), "vectors"),
    "a factor below 0": ("fake", alter("v", "factors", lambda f: -f), "vectors"),
    "a vector too long": ("fake", alter("v", "factors", lambda f: f * 1.1), "vectors"),
    "a factor less": ("fake", alter("v", "factors", lambda f: f[1:]), "vectors"),
    "frequencies": ("hash", alter("v", "frequencies", put(7, 5)), "vectors"),
    "a NaN among the codes": ("fake", other_vectors(with_nan), "vectors"),
    "a NaN among the counts": ("hash", other_vectors(with_nan), "vectors"),
    "half a count": ("hash", other_vectors(lambda index: flat(index, 0.5)), "vectors"),
    "a count below 0": ("hash", other_vectors(lambda index: flat(index, -1.0)), "vectors"),
    "another dimension": ("fake", other_vectors(narrower), "vectors"),
    "another kind of FAISS index": ("fake", other_vectors(graph), "vectors"),
    "noise for vectors": ("fake", noise, "vectors"),
    "a strange file": ("hash", lambda at: (at / "notes.txt").write_text("mine"), "stranger"),
    "a strange folder": ("hash", lambda at: (at / "mine").mkdir(), "stranger"),
    "a strange file in a segment": (
        "hash", lambda at: (segment(at, "p") / "copy.npy").write_bytes(b""), "stranger",
    ),
    "settings that are no JSON": (
        "hash", execute("UPDATE meta SET value = '{' WHERE key = 'settings'"), "catalogue",
    ),
    "settings of another type": (
        "hash", execute("UPDATE meta SET value = '{\"dim\": \"x\"}' WHERE key = 'settings'"),
        "catalogue",
    ),
    "an encoder that nobody knows": (
        "hash", execute("UPDATE meta SET value = '\"fake/0\"' WHERE key = 'encoder'"), "model",
    ),
}  # fmt: skip


@pytest.fixture
def location(tmp_path: Path) -> Path:
    write_files(tmp_path / "docs", FILES)
    return tmp_path / "rag"


def follow(hint: str, location: Path, part: str, encoder: str) -> None:
    """Do what a hint says, as a person would."""
    command = hint.partition("   ")[0].split()
    if command[:2] == ["ragcli", "index"]:
        assert run([*command[1:], "--quiet", "--index", str(location)]) == 0
    elif hint.endswith("make it again: ragcli index FOLDER"):
        assert f"remove {location} and" in hint
        shutil.rmtree(location)
        build(location, location.parent / "docs", encoder=encoder, chunk="sentences:1")
    elif hint.startswith("remove it"):
        [stray] = [p for p in (location / part, location / "segments" / part) if p.exists()]
        (shutil.rmtree if stray.is_dir() else os.unlink)(stray)
    else:
        raise AssertionError(hint)


@pytest.mark.parametrize("name", PLANTS)
def test_damage_is_found_and_its_hint_mends_it(name: str, location: Path, fake: object) -> None:
    encoder, plant, kind = PLANTS[name]
    build(location, location.parent / "docs", encoder=encoder, chunk="sentences:1")
    assert look(location).findings == ()
    plant(location)
    report = look(location)
    assert kind in {finding.kind for finding in report.findings}, report
    assert all("\n" not in finding.message for finding in report.findings)
    for hint, part in dict.fromkeys((each.hint, each.part) for each in report.findings):
        if any(each.hint == hint for each in look(location).findings):
            follow(hint, location, part, encoder)
    assert look(location).findings == ()


def test_several_damages_are_told_apart(location: Path, fake: object) -> None:
    build(location, location.parent / "docs", encoder="fake", chunk="sentences:1")
    postings, vectors = segment(location, "p").name, segment(location, "v").name
    flip("v", "vectors.faiss")(location)
    (location.parent / "docs" / "3.txt").unlink()
    shutil.copytree(location / "segments" / postings, location / "segments" / "p-old")
    shutil.rmtree(location / "segments" / postings)
    assert found(location) == [
        ("segment", postings),
        ("checksum", vectors),
        ("orphan", "segments/p-old"),
        ("gone", "3.txt"),
    ]


def test_a_nan_is_seen_by_looking_at_the_numbers_alone(location: Path, fake: object) -> None:
    build(location, location.parent / "docs", encoder="fake")
    alter("v", "factors", put(1, np.nan))(location)
    with Index.open(location) as index:
        for part in (*index.view().postings, *index.view().vectors):
            part.segment.verify()
    [finding] = look(location).findings
    assert (finding.kind, finding.part) == ("vectors", segment(location, "v").name)
    assert "no number" in finding.message


def test_a_broken_catalogue_is_told_or_refused(location: Path) -> None:
    write_files(location.parent / "docs", {f"more{i}.txt": f"Tea {i}. " * 99 for i in range(60)})
    build(location, location.parent / "docs")
    path = location / "catalog.sqlite"
    whole = path.read_bytes()
    told = 0
    for page in range(1, len(whole) // 4096):
        raw = bytearray(whole)
        raw[page * 4096 : page * 4096 + 64] = b"\x05" * 64
        path.write_bytes(raw)
        try:
            report = look(location)
        except IndexUnavailable:
            continue
        told += 1
        assert [finding.kind for finding in report.findings] == ["catalogue"], page
    assert told > 5
    follow(report.findings[0].hint, location, "", "hash")
    assert look(location).findings == ()


# A writer at the same time.


def test_what_another_process_is_writing_is_no_orphan(location: Path) -> None:
    build(location, location.parent / "docs")
    (location / "segments" / "p-new").mkdir()
    with write_lock(location, 0.0):
        assert found(location) == []
    assert found(location) == [("orphan", "segments/p-new")]


def test_what_was_swept_since_the_index_was_opened_is_not_lost(location: Path) -> None:
    build(location, location.parent / "docs")
    with Index.open(location) as index:
        assert index.settings.encoder == "hash"
        write_files(location.parent / "docs", {"0.txt": "Quite new."})
        build(location)
        assert not set(map(str, index.catalog.column("SELECT name FROM segments"))) <= {
            path.name for path in (location / "segments").iterdir()
        }
        assert check(index).findings == ()


def test_commits_without_end_are_told(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(location, location.parent / "docs")
    cut(location)
    monkeypatch.setattr(checking, "is_current", lambda _: False)
    with pytest.raises(IndexBusy):
        look(location)


# Sources and model.


def test_waiting_and_changed_are_no_findings(location: Path, fake: object) -> None:
    build(location, location.parent / "docs", encoder="fake", lazy=True)
    write_files(location.parent / "docs", {"0.txt": "Changed since."})
    report = look(location)
    assert (report.findings, report.changed) == ((), 1)
    assert report.waiting == report.checked.chunks > 0
    told = lines(report)
    assert told[0] == f"{report.waiting} passages without a vector yet: ragcli index"
    assert told[1] == "1 file changed since it was read: ragcli index"


def test_a_file_that_may_not_be_looked_at_is_not_gone(
    location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(location, location.parent / "docs")
    real = os.stat

    def refused(path: Any, *more: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("3.txt"):
            raise PermissionError(13, "Permission denied")
        return real(path, *more, **options)

    monkeypatch.setattr(checking.os, "stat", refused)
    report = look(location)
    assert (report.findings, report.changed) == ((), 0)


def test_a_model_that_is_lost_or_changed(location: Path, tmp_path: Path) -> None:
    model = shutil.copytree(FOLDER, tmp_path / "model")
    build(location, location.parent / "docs", encoder=f"onnx:{model}")
    assert found(location) == []
    (model / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    [changed] = look(location).findings
    assert (changed.kind, changed.part) == ("model", f"onnx:{model}")
    follow(changed.hint, location, "", "")
    assert found(location) == []
    (model / "model.onnx").write_text("no graph")
    assert [kind for kind, _ in found(location)] == ["model"]
    shutil.rmtree(model)
    [lost] = look(location).findings
    assert (lost.kind, "holds no model.onnx" in lost.message) == ("model", True)


def test_a_sentence_model_that_is_not_beside_its_index(location: Path) -> None:
    build(location, location.parent / "docs")
    remembered = json.loads(sql(location, "SELECT value FROM meta WHERE key = 'settings'")[0][0])
    changed = json.dumps({**remembered, "encoder": "st:some/model"})
    sql(location, "UPDATE meta SET value = ? WHERE key = 'settings'", changed)
    [finding] = look(location).findings
    assert (finding.kind, finding.part) == ("model", "st:some/model")
    assert finding.message == "st:some/model is not prepared for this index"


# What people read.


def test_each_hint_is_told_once(location: Path, fake: type[FakeEncoder]) -> None:
    write_files(location.parent / "docs", {f"gone{i:02}.txt": "Tea." for i in range(30)})
    build(location, location.parent / "docs", encoder="fake")
    for path in (location.parent / "docs").glob("gone*"):
        path.unlink()
    vectors = segment(location, "v").name
    flip("v", "vectors.faiss")(location)
    (location / "segments" / "p-\x1b[1mold").mkdir()
    report = look(location)
    told = lines(report)
    assert told[:6] == [
        f"checksum  {vectors}/vectors.faiss of the index has changed",
        "hint: ragcli index --full   (checks every part and makes it again)",
        "",
        "orphan  segments/p-\\x1b[1mold belongs to no commit",
        "hint: ragcli index   (removes what no commit names)",
        "",
    ]
    assert told[6] == "gone  gone00.txt is in the index and no longer in the folder"
    assert told[26:29] == ["… and 10 more", "hint: ragcli index   (forgets what is gone)", ""]
    assert told[29].startswith("35 passages without a vector yet")
    assert told[-1].startswith("32 findings in 2 segments, 35 passages, ")


def test_nothing_wrong_is_one_line(location: Path) -> None:
    build(location, location.parent / "docs", chunk="sentences:1")
    report = look(location)
    [line] = lines(report)
    size = report.checked.bytes / 1000
    assert (
        line == f"nothing wrong in 2 segments, 20 passages, {size:.0f} kB: {report.seconds:.1f} s"
    )
    assert report.checked.bytes == sum(
        path.stat().st_size
        for path in (location / "catalog.sqlite", *location.glob("segments/*/*"))
        if path.name != "manifest.json"
    )


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE chunks SET text = CAST(text AS BLOB)",
        "UPDATE chunks SET page = X'ff'",
        "UPDATE chunks SET heading = 'nonsense'",
        "UPDATE documents SET language = 'klingon'",
        "UPDATE documents SET words = 'many'",
        "UPDATE tallies SET words = words + 5",
        "UPDATE files SET path = X'00' WHERE id = 1",
        "UPDATE files SET path = X'2f657463' WHERE id = 1",
        "UPDATE files SET path = X'2e2e2f78' WHERE id = 1",
        "UPDATE files SET path = 5 WHERE id = 1",
        "UPDATE segments SET rows = 'x'",
        "INSERT INTO problems VALUES (1, 'x', 'y', NULL, 'abc')",
        "DELETE FROM meta",
        "UPDATE meta SET value = 'zz'",
        "UPDATE meta SET value = 'null' WHERE key = 'settings'",
    ],
)
def test_rows_that_no_ragcli_wrote(tmp_path: Path, edit: str) -> None:
    """Each is found by the check, and no command ends in a bug over it."""
    write_files(tmp_path / "docs", {"a.md": "# Crane\n\nA harbour crane.\n", "b.txt": "Tea.\n"})
    build(tmp_path / ".rag", tmp_path / "docs")
    connection = sqlite3.connect(tmp_path / ".rag" / "catalog.sqlite")
    with connection:
        connection.execute(edit)
    connection.close()
    for arguments, codes in (
        (["inspect", "--check"], {1, 3}),
        (["query", "harbour crane"], {0, 1, 3}),
    ):
        assert run([*arguments, "--index", str(tmp_path / ".rag")]) in codes, arguments
