"""The index card and the ledger, held against the folder and the files of the index."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import build, write_files

from ragcli.cli.reports import card as card_report
from ragcli.cli.reports import ledger as ledger_report
from ragcli.inspection import card as module
from ragcli.inspection.card import Card, Pending, card
from ragcli.inspection.ledger import LedgerReport, ledger
from ragcli.inspection.spread import bins, spread
from ragcli.store.catalog import Catalog
from ragcli.store.index import Index

LONG_AGO = 1_600_000_000
COMMITS = ("made", "changed", "generation")


def read(location: Path) -> Card:
    with Index.open(location) as index:
        found = card(index)
    json.dumps(asdict(found), allow_nan=False)
    assert card_report.lines(found)
    return found


def problems(location: Path) -> tuple[LedgerReport, str]:
    with Index.open(location) as index:
        found = ledger(index)
    json.dumps(asdict(found), allow_nan=False)
    return found, "\n".join(ledger_report.lines(found))


def fact(found: Card, name: str) -> str:
    """What the text says behind `name`."""
    [line] = [line for line in card_report.lines(found) if line.startswith(f"{name} ")]
    return line.removeprefix(name).strip()


@pytest.fixture
def made(tmp_path: Path) -> Path:
    write_files(
        tmp_path / "docs",
        {
            "a.txt": "The harbour has a crane and it is red.",
            "b.md": "# Lamp\n\nThe lamp is green and it is at the gate.\n",
            "c.jsonl": '{"id": 1, "text": "Der Kran hebt vierzig Tonnen und ist am Hafen."}\n'
            '{"id": 2, "text": "Tee um vier."}\n',
            "broken.pdf": "%PDF-1.4 and no more",
        },
    )
    (tmp_path / "docs" / "noise").write_bytes(bytes(range(256)) * 40)
    build(tmp_path / "rag", tmp_path / "docs")
    return tmp_path / "rag"


def test_what_the_index_is_made_of(made: Path, tmp_path: Path) -> None:
    found = read(made)
    assert (found.index, found.root) == (str(made), str(tmp_path / "docs"))
    assert found.files == {"indexed": 3, "skipped": 1, "failed": 1}
    assert {(s.state, s.reason is None, s.files) for s in found.states} == {
        ("indexed", True, 3), ("skipped", False, 1), ("failed", False, 1),
    }  # fmt: skip
    assert [(k.kind, k.files, k.documents, k.chunks) for k in found.kinds] == [
        ("record", 1, 2, 2), ("markdown", 1, 1, 1), ("text", 1, 1, 1),
    ]  # fmt: skip
    assert (found.documents, found.chunks, found.embedded, found.embedded_share) == (4, 4, 4, 1)
    assert {(each.language, each.documents) for each in found.languages} >= {("english", 2)}
    assert sum(each.documents for each in found.languages) == 4
    assert (found.encoder, found.fingerprint, found.dimensions) == ("hash", "hash/1024", 1024)
    assert (found.chunking, found.settings) == ("auto", ())
    assert found.problems == 1
    assert [each.count for each in found.problems_by_kind] == [1]
    assert found.words
    assert found.tokens
    assert found.words.largest == 12
    assert found.tokens.largest <= found.words.largest
    assert sum(each.count for each in found.words_histogram) == 4
    assert "skipped (binary 1)" in fact(found, "files")


def test_bytes_are_those_on_disk(made: Path) -> None:
    size = read(made).bytes
    on_disk = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
    assert size.total == on_disk
    assert size.total == (
        size.catalogue + size.postings + size.vectors + size.encoder + size.other
    )  # fmt: skip
    assert size.catalogue >= (made / "catalog.sqlite").stat().st_size
    for part, prefix in ((size.postings, "p-"), (size.vectors, "v-")):
        folders = (made / "segments").glob(f"{prefix}*/*")
        assert part == sum(path.stat().st_size for path in folders) > 0


def test_settings_that_are_not_the_default(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "x", "b.md": "y"})
    build(tmp_path / "rag", tmp_path / "docs", exclude=("*.md", "x y"), hidden=True, dim=64)
    found = read(tmp_path / "rag")
    assert {each.name: each.value for each in found.settings} == {
        "exclude": ("*.md", "x y"), "hidden": True,
    }  # fmt: skip
    assert found.dimensions == 64
    assert fact(found, "settings") == "exclude *.md x y, hidden yes"


def test_an_index_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    build(tmp_path / "rag", tmp_path / "docs")
    found = read(tmp_path / "rag")
    assert (found.chunks, found.embedded_share, found.words, found.words_histogram) == (
        0, 0.0, None, (),
    )  # fmt: skip
    assert found.generation == 1


def test_an_index_without_an_encoder(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "crane"})
    build(tmp_path / "rag", tmp_path / "docs", encoder="none")
    found = read(tmp_path / "rag")
    assert (found.fingerprint, found.dimensions, found.tokens) == (None, None, None)
    assert found.tokens_missing == "no encoder"
    assert not any("cannot be counted" in line for line in card_report.lines(found))


def test_an_index_whose_vectors_are_to_come(tmp_path: Path, fake: object) -> None:
    write_files(tmp_path / "docs", {f"{i}.txt": f"crane {i}" for i in range(3)})
    build(tmp_path / "rag", tmp_path / "docs", encoder="fake")
    write_files(tmp_path / "docs", {"9.txt": "lamp"})
    build(tmp_path / "rag", lazy=True)
    found = read(tmp_path / "rag")
    assert (found.chunks, found.embedded, found.embedded_share) == (4, 3, 0.75)
    assert fact(found, "passages") == "4, 3 with vectors (75.0 %)"


def test_a_model_that_is_gone(made: Path, tmp_path: Path) -> None:
    catalog = Catalog.open_write(made)
    catalog.put("settings", {"encoder": f"onnx:{tmp_path / 'gone'}"})
    catalog.close()
    found = read(made)
    assert found.tokens is None
    assert "gone" in (found.tokens_missing or "")
    assert found.words is not None
    assert found.pending == Pending(0, 0, 1, 0, 0)  # files are compared all the same


# When it was made, and how often it changed


def test_commits_are_counted_and_dated(made: Path, tmp_path: Path) -> None:
    settle(tmp_path / "docs")
    (tmp_path / "docs" / "broken.pdf").unlink()  # it would be tried again by every run
    build(made)
    build(made)
    first = read(made)
    assert first.made is not None
    assert first.changed is not None
    assert first.generation is not None
    assert first.made <= first.changed
    build(made)
    again = read(made)
    for name in COMMITS:
        assert getattr(again, name) == getattr(first, name), name
    write_files(tmp_path / "docs", {"new.txt": "new"})
    build(made)
    later = read(made)
    assert later.changed is not None
    assert later.generation is not None
    assert later.made == first.made
    assert later.changed > first.changed
    assert later.generation > first.generation


def test_an_index_of_before_commits_were_counted(made: Path, tmp_path: Path) -> None:
    catalog = Catalog.open_write(made)
    catalog.connection.execute("DELETE FROM meta WHERE key IN (?, ?, ?)", COMMITS)
    catalog.close()
    found = read(made)
    assert (found.made, found.changed, found.generation) == (None, None, None)
    assert "made at a time unknown" in fact(found, "index")
    write_files(tmp_path / "docs", {"new.txt": "new"})
    build(made, hidden=True)
    found = read(made)
    assert (found.made, found.generation) == (None, None)
    assert found.changed is not None


# What has changed since


def settle(folder: Path) -> None:
    """Make the files old, so that their times alone tell that they are as they were."""
    for path in folder.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.mark.parametrize("settled", [True, False])
def test_what_a_run_would_do(tmp_path: Path, settled: bool) -> None:
    docs = tmp_path / "docs"
    write_files(docs, {f"{i}.txt": f"crane number {i}" for i in range(6)})
    if settled:
        settle(docs)
    build(tmp_path / "rag", docs)
    assert read(tmp_path / "rag").pending == Pending(0, 0, 0, 0, 0)
    write_files(docs, {"0.txt": "another", "new.txt": "new", "newer.txt": "newer"})
    (docs / "1.txt").rename(docs / "moved.txt")
    (docs / "2.txt").unlink()
    (docs / "3.txt").unlink()
    found = read(tmp_path / "rag")
    assert found.pending == Pending(new=2, changed=1, retried=0, moved=1, gone=2)
    assert fact(found, "to do") == "ragcli index   (2 new, 1 changed, 1 moved, 2 gone)"
    build(tmp_path / "rag")
    assert read(tmp_path / "rag").pending == Pending(0, 0, 0, 0, 0)


def test_files_that_failed_are_tried_again(made: Path) -> None:
    assert read(made).pending == Pending(new=0, changed=0, retried=1, moved=0, gone=0)


def test_files_too_large_to_look_into_count_as_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "docs", {"a.txt": "crane", "b.txt": "lamp and gate"})
    build(tmp_path / "rag", tmp_path / "docs")
    monkeypatch.setattr(module, "_COMPARED", 5)
    assert read(tmp_path / "rag").pending == Pending(new=0, changed=1, retried=0, moved=0, gone=0)


@pytest.mark.parametrize("emptied", [False, True])
def test_sources_that_are_not_there(made: Path, tmp_path: Path, emptied: bool) -> None:
    shutil.rmtree(tmp_path / "docs")
    if emptied:
        (tmp_path / "docs").mkdir()
    found = read(made)
    assert found.pending is None
    assert str(tmp_path / "docs") in (found.pending_missing or "")
    assert (found.root is None) != emptied
    assert fact(found, "to do").startswith("cannot be told: ")


# Sizes


def test_a_sample_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path / "docs", {"a.txt": "Crane. " * 40})
    build(tmp_path / "rag", tmp_path / "docs", chunk="sentences:1")
    monkeypatch.setattr(module, "SAMPLE", 7)
    found = read(tmp_path / "rag")
    assert (found.chunks, found.sampled) == (40, 7)
    assert sum(each.count for each in found.words_histogram) == 7
    assert any(line.startswith("size of 7 passages, evenly spread") for line in
               card_report.lines(found))  # fmt: skip


def test_spread() -> None:
    found = spread(range(101))
    assert found is not None
    assert asdict(found) == {
        "least": 0, "tenth": 10, "median": 50, "ninetieth": 90, "largest": 100, "mean": 50,
    }  # fmt: skip
    assert spread([]) is None


@pytest.mark.parametrize(
    "values", [[0], [7], [1000], list(range(300)), [*range(100)] * 3 + [10**6], [3, 3, 3], []]
)
def test_bins_hold_each_number_once(values: list[int]) -> None:
    found = bins(values)
    assert len(found) <= 11
    assert sum(each.count for each in found) == len(values)
    for each in found:
        inside = [v for v in values if each.low <= v and (each.high is None or v < each.high)]
        assert len(inside) == each.count
    assert all(before.high == after.low for before, after in pairwise(found))


def test_bins_are_not_squeezed_by_a_few_that_are_far_off() -> None:
    assert len([each for each in bins([*range(100)] * 3 + [10**6]) if each.count > 10]) >= 5


# The ledger


def test_the_ledger(made: Path, tmp_path: Path) -> None:
    found, said = problems(made)
    [problem] = found.problems
    assert (problem.path, problem.page) == ("broken.pdf", None)
    assert problem.since == pytest.approx(read(made).made, abs=60)
    assert [(each.kind, each.count) for each in found.kinds] == [(problem.kind, 1)]
    assert [(file.path, file.state) for file in found.unindexed] == [
        ("broken.pdf", "failed"), ("noise", "skipped"),
    ]  # fmt: skip
    assert f"{problem.kind}: 1\n  broken.pdf  " in said
    assert "skipped, binary: 1\n  noise\n" in said
    # A problem that stays keeps its date.
    build(made)
    assert problems(made)[0].problems[0].since == problem.since


def test_a_ledger_without_problems(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "crane"})
    build(tmp_path / "rag", tmp_path / "docs")
    found, said = problems(tmp_path / "rag")
    assert (found.problems, found.kinds, found.unindexed) == ((), (), ())
    assert said.startswith("no problems")


def test_the_ledger_has_pages_and_hides_nothing(tmp_path: Path) -> None:
    name = "evil\x1b[31m.pdf"
    (tmp_path / "docs").mkdir()
    corpus = Path(__file__).resolve().parents[1] / "examples" / "corpus"
    shutil.copy(corpus / "product" / "dipper-d3-datasheet.pdf", tmp_path / "docs" / name)
    build(tmp_path / "rag", tmp_path / "docs")
    found, said = problems(tmp_path / "rag")
    assert [(each.path, each.page, each.kind) for each in found.problems] == [
        (name, "3", "no_text")
    ]
    assert "evil\\x1b[31m.pdf p. 3  " in said
    assert "\x1b" not in said


def test_what_is_left_out_unread_is_named(tmp_path: Path) -> None:
    """Files too large, or binary by their names, were a number that nobody could look into."""
    location, docs = tmp_path / ".rag", tmp_path / "docs"
    write_files(docs, {"a.txt": "Tea.", "big.log": "x " * 600, "b.png": "PNG"})
    for indexed in (1, 0):
        report = build(location, docs, encoder="none", max_file_size=1000)
        assert report.skipped == {"too large": 1, "binary": 1}
        assert (report.counts.indexed, report.counts.skipped) == (indexed, 2)
        with Index.open(location) as index:
            told = ledger(index)
        assert [(file.path, file.reason) for file in told.unindexed] == [
            ("b.png", "binary"), ("big.log", "too large"),
        ]  # fmt: skip
        assert [(entry.path, entry.kind) for entry in told.problems] == [("big.log", "too_large")]
    report = build(location, max_file_size=10_000)
    assert (report.counts.indexed, report.skipped) == (1, {"binary": 1})
    report = build(location, max_file_size=1000)
    assert (report.counts.unchanged, report.documents) == (1, 1)
    (docs / "big.log").unlink()
    with Index.open(location) as index:
        assert len(ledger(index).unindexed) == 2
    assert build(location).counts.removed == 1
