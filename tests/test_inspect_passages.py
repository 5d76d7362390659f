"""`inspect TARGET`: what a target names, and what is shown of a file, its chunks and vectors."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from dataclasses import asdict
from math import log, sqrt
from pathlib import Path
from zlib import crc32

import pytest
from conftest import build, write_files
from hypothesis import given
from hypothesis import strategies as st

from ragcli.cli.reports.passages import lines, missing
from ragcli.corpus.chunking import Chunking, chunk
from ragcli.encoders import WordTokenizer
from ragcli.errors import UsageError
from ragcli.inspection.measure import Measure
from ragcli.inspection.passages import FileView, show
from ragcli.inspection.targets import Target, resolve
from ragcli.records import Document
from ragcli.store.catalog import Catalog
from ragcli.store.contents import chunk_numbers
from ragcli.store.index import Index
from ragcli.store.matrix import matrix

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "lantern"
CORPUS = Path(__file__).resolve().parents[1] / "examples" / "corpus"

GUIDE = """\
---
title: Guide
---

# Install

Unpack it anywhere.

## Ports

The crane listens on port 4000.


The lamp listens on port 5000.
"""


@pytest.fixture
def made(tmp_path: Path) -> Path:
    write_files(
        tmp_path / "docs",
        {
            "guide.md": GUIDE,
            "deep/guide.md": "# Deep\n\nBelow the water.\n",
            "deep/only.txt": "One line.\n",
            "empty.txt": "",
            "17": "A file that is called seventeen.\n",
            "a:3": "A colon.\n\nAnd more.\n",
            "a#b.txt": "A hash.\n",
            "records.jsonl": '{"id": "x", "text": "First."}\n{"id": "x:1", "text": "Second."}\n'
            '{"id": "y", "text": "Third."}\n',
            "build.log": "noise\n",
            ".ragcliignore": "*.log\n",
        },
    )
    build(tmp_path / "rag", tmp_path / "docs", chunk="auto:8")
    return tmp_path / "rag"


def target(location: Path, name: str) -> Target:
    with Index.open(location) as index:
        return resolve(index, name)


def view(location: Path, name: str, *, vectors: bool = False) -> FileView:
    with Index.open(location) as index:
        shown = show(index, resolve(index, name), vectors=vectors)
    json.dumps(asdict(shown), allow_nan=False)
    assert all(isinstance(line, str) and "\n" not in line for line in lines(shown))
    return shown


def texts(location: Path, name: str) -> list[str]:
    return [each.text for each in view(location, name).chunks]


# What a target names


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("guide.md", "guide.md"),
        ("./guide.md", "guide.md"),
        ("deep/../guide.md", "guide.md"),
        ("deep//guide.md", "deep/guide.md"),
        ("17", "17"),
        ("./17", "17"),
        ("a:3", "a:3"),
        ("a#b.txt", "a#b.txt"),
        ("./a#b.txt", "a#b.txt"),
    ],
)
def test_a_path_names_its_file(made: Path, name: str, path: str) -> None:
    named = target(made, name)
    assert named.file is not None
    assert (named.path, named.file.path, named.why) == (path, path, None)
    assert len(named.chunks) >= 1
    with Index.open(made) as index:
        assert {stored.file for stored in index.chunks(named.chunks).values()} == {path}


def test_the_working_folder_counts_where_the_root_has_no_such_path(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "docs" / "deep")
    assert target(made, "only.txt").path == "deep/only.txt"
    assert target(made, "guide.md").path == "guide.md"  # as the index writes it
    assert target(made, "./guide.md").path == "deep/guide.md"
    assert target(made, "../guide.md").path == "guide.md"
    assert target(made, "../guide.md:6").lines == (6, 6)
    assert target(made, str(tmp_path / "docs" / "deep" / "guide.md")).path == "deep/guide.md"
    (tmp_path / "other").symlink_to(tmp_path / "docs")
    assert target(made, str(tmp_path / "other" / "deep" / "only.txt")).path == "deep/only.txt"


def test_a_number_names_a_chunk(made: Path) -> None:
    with Index.open(made) as index:
        numbers = chunk_numbers(index)
    for number in numbers:
        named = target(made, str(number))
        if number != 17:
            assert named.chunks == (number,)
            assert named.file is not None
    for number in ("0", str(numbers[-1] + 1), "9" * 18):
        named = target(made, number)
        assert (named.file, named.chunks, named.why) == (None, (), "no such chunk")
        assert view(made, number).chunks == ()


def test_each_line_names_the_chunks_that_touch_it(made: Path) -> None:
    every = view(made, "guide.md").chunks
    assert len(every) >= 3
    for line in range(1, GUIDE.count("\n") + 3):
        named = target(made, f"guide.md:{line}")
        touching = [c.chunk for c in every if c.lines and c.lines[0] <= line <= c.lines[1]]
        assert list(named.chunks) == touching
        assert named.why == (None if touching else "line has no passage")
    assert target(made, "guide.md:1-99").chunks == tuple(c.chunk for c in every)


def test_a_line_without_a_chunk_tells_those_around_it(made: Path) -> None:
    every = view(made, "guide.md").chunks
    before, after = every[-2], every[-1]
    assert before.lines
    named = target(made, f"guide.md:{before.lines[1] + 1}")
    assert (named.why, named.near) == ("line has no passage", (before.chunk, after.chunk))
    said = missing(view(made, named.given))
    assert said.endswith(f"line has no passage; around it: {before.chunk} and {after.chunk}")
    assert target(made, "guide.md:999").near == (after.chunk,)


@pytest.mark.parametrize("part", [":0", ":0-3", ":5-3", ":x", ":3-"])
def test_lines_that_cannot_be_are_refused(made: Path, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        target(made, f"guide.md{part}")
    assert "names no lines" in caught.value.message
    assert "guide.md:" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("only.txt", "deep/only.txt"),
        ("giude.md", "guide.md"),
        ("deep/onyl.txt:3", "deep/only.txt"),
        ("nothing like it at all", "guide.md:120"),
        ("", "guide.md:120"),
        (":3", "guide.md:120"),
        ("\x00", "guide.md:120"),
        ("x" * 5000, "guide.md:120"),
    ],
)
def test_an_unknown_path_is_refused_with_the_nearest(made: Path, name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        target(made, name)
    assert "neither in the index nor on disk" in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_folder_is_refused(made: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        target(made, "deep")


def test_records(made: Path) -> None:
    assert texts(made, "records.jsonl#x") == ["First."]
    assert texts(made, "records.jsonl#x:1") == ["Second."]  # the record of that very name
    assert texts(made, "records.jsonl#y:3") == ["Third."]  # as query writes the place of a hit
    assert texts(made, "records.jsonl:2") == ["Second."]
    assert target(made, "records.jsonl#y").record == "y"
    assert target(made, "records.jsonl#y:1").why == "line has no passage"
    missing = target(made, "records.jsonl#z")
    assert (missing.record, missing.why) == ("z", "no such record")
    assert view(made, "records.jsonl").documents == 3


def test_what_lies_on_disk_and_not_in_the_index_says_why(made: Path, tmp_path: Path) -> None:
    ignored = view(made, "build.log:3")
    assert (ignored.path, ignored.state, ignored.why) == ("build.log", "not indexed", "not indexed")
    assert ignored.reason == "ignored (.ragcliignore:1: *.log)"
    write_files(tmp_path, {"docs/new.txt": "New.", "beside.txt": "Beside.", "docs/x.png": "no"})
    assert "has not run since" in (view(made, "new.txt").reason or "")
    assert view(made, "x.png").reason == "binary"
    assert "outside" in (view(made, str(tmp_path / "beside.txt")).reason or "")
    assert len(lines(ignored)) == 1


def test_a_file_beside_the_one_that_is_indexed(tmp_path: Path) -> None:
    write_files(tmp_path, {"docs/a.txt": "One.", "docs/b.txt": "Two."})
    build(tmp_path / "rag", tmp_path / "docs" / "a.txt")
    assert view(tmp_path / "rag", "b.txt").reason == "not among what is indexed: a.txt"


# A file without chunks, a file that has gone


def test_a_file_without_text(made: Path) -> None:
    shown = view(made, "empty.txt")
    assert (shown.state, shown.chunks, shown.why) == ("indexed", (), "file has no passage")
    assert target(made, "empty.txt:3").why == "file has no passage"


def test_files_that_were_skipped_or_failed(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "Harbour.", "broken.pdf": "%PDF-1.4 and no more"})
    (tmp_path / "docs" / "noise.txt").write_bytes(bytes(range(256)) * 40)
    build(tmp_path / "rag", tmp_path / "docs")
    failed, skipped = (view(tmp_path / "rag", name) for name in ("broken.pdf:3", "noise.txt"))
    assert (failed.state, failed.why, failed.chunks) == ("failed", "failed", ())
    assert failed.problems
    assert failed.reason == failed.problems[0].message
    assert (skipped.state, skipped.reason) == ("skipped", "binary")
    assert lines(skipped)[0].startswith("noise.txt · skipped: binary · 10 kB")


def test_a_file_that_changed_or_went(made: Path, tmp_path: Path) -> None:
    assert view(made, "guide.md").stale is False
    (tmp_path / "docs" / "guide.md").write_text("Other.")
    (tmp_path / "docs" / "17").unlink()
    assert view(made, "guide.md").stale is True
    assert view(made, "17").stale is True
    assert "changed or gone since" in lines(view(made, "17"))[0]


def test_an_index_without_its_sources(made: Path, tmp_path: Path) -> None:
    before = texts(made, "guide.md")
    shutil.rmtree(tmp_path / "docs")
    shown = view(made, "./guide.md", vectors=True)
    assert [each.text for each in shown.chunks] == before
    assert shown.stale is None
    with pytest.raises(UsageError):
        target(made, "build.log")


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    write_files(tmp_path / "docs", {name: "Coffee at four.\n"})
    build(tmp_path / "rag", tmp_path / "docs")
    shown = view(tmp_path / "rag", f"{name}:1")
    assert [each.text for each in shown.chunks] == ["Coffee at four."]
    assert lines(shown)[0].startswith("caf\\xe9.txt · ")


# Bounds


@pytest.mark.parametrize("chunking", ["auto:8", "words:5", "sentences:1", "tokens:6/2"])
def test_bounds_are_those_of_the_text(tmp_path: Path, chunking: str) -> None:
    text = "\n\n".join(f"Line {i} of the harbour, where cranes stand. Tea." for i in range(9))
    write_files(tmp_path / "docs", {"a.txt": text})
    build(tmp_path / "rag", tmp_path / "docs", chunk=chunking)
    chunks = view(tmp_path / "rag", "a.txt").chunks
    held = end = 0
    for each in chunks:
        assert text[each.start : each.end] == each.text
        assert each.start == end + each.gap - each.overlap
        assert text[end : end + each.gap].strip() == ""
        assert min(each.gap, each.overlap) == 0
        assert each.words == len(each.text.split())
        held += len(each.text) + each.gap - each.overlap
        end = each.end
    assert held == len(text)
    assert any(each.overlap for each in chunks) == (chunking == "tokens:6/2")
    # One chunk alone knows the one before it.
    assert view(tmp_path / "rag", str(chunks[2].chunk)).chunks == (chunks[2],)


def test_the_bounds_are_shown_in_the_text(made: Path) -> None:
    shown = view(made, "guide.md")
    said = "\n".join(lines(shown))
    ports = next(each for each in shown.chunks if "crane" in each.text)
    assert ports.lines is not None
    assert (
        f"── {ports.chunk} · lines {ports.lines[0]}-{ports.lines[1]} · Install › Ports · " in said
    )
    for each in shown.chunks:
        assert each.text in said


def test_what_a_terminal_would_obey_is_written_out(tmp_path: Path) -> None:
    text = "Red \x1b[31m alert \u202eback.\r\nשלום tab\there\r\n中文没有空格"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_bytes(text.encode())
    build(tmp_path / "rag", tmp_path / "docs")
    shown = view(tmp_path / "rag", "a.txt")
    said = lines(shown)
    assert "Red \\x1b[31m alert \\u202eback." in said
    assert "שלום tab\there" in said
    assert shown.chunks[0].words == 4 + 3 + 6
    assert shown.chunks[0].text == text


@given(st.text("ab 中文のタイไทย한국\n\u3000.é", max_size=40))
def test_words_are_those_of_the_chunking(text: str) -> None:
    words = chunk(Document(text, "text"), Chunking("words", 1), WordTokenizer())
    assert Measure.words(text) == len(words)


# Pages


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "docs").mkdir()
    for name in ("dipper-d3-datasheet.pdf", "pricing.xlsx", "roadmap-2025.pptx"):
        shutil.copy(CORPUS / "product" / name, folder / "docs")
    build(folder / "rag", folder / "docs")
    return folder / "rag"


@pytest.mark.parametrize("name", ["dipper-d3-datasheet.pdf", "pricing.xlsx", "roadmap-2025.pptx"])
def test_a_page_names_the_chunks_that_begin_on_it(pages: Path, name: str) -> None:
    every = view(pages, name).chunks
    labels = {each.page for each in every}
    assert len(labels) > 1
    for label in labels:
        on_it = tuple(each.chunk for each in every if each.page == label)
        assert target(pages, f"{name}#page={label}").chunks == on_it


def test_a_page_without_text_says_so(pages: Path) -> None:
    named = target(pages, "dipper-d3-datasheet.pdf#page=3")
    assert (named.chunks, named.why) == ((), "page has no passage")
    assert named.detail == "no_text: the page has no text"
    assert target(pages, "dipper-d3-datasheet.pdf#page=99").detail is None
    asked_for_a_line = target(pages, "dipper-d3-datasheet.pdf:3")
    assert asked_for_a_line.why == "file has no lines"
    assert "#page=1" in (asked_for_a_line.detail or "")


def test_a_page_that_a_chunk_runs_over(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copy(CORPUS / "product" / "dipper-d3-datasheet.pdf", tmp_path / "docs" / "d.pdf")
    build(tmp_path / "rag", tmp_path / "docs", chunk="words:1000")
    [whole] = view(tmp_path / "rag", "d.pdf").chunks
    assert whole.page == "1"
    build(tmp_path / "rag", chunk="tokens:40/20")
    every = view(tmp_path / "rag", "d.pdf").chunks
    first = next(i for i, each in enumerate(every) if each.page == "2")
    assert every[first].overlap
    on_it = [each.chunk for each in every if each.page == "2"]
    assert target(tmp_path / "rag", "d.pdf#page=2").chunks == (every[first - 1].chunk, *on_it)


def test_a_text_has_no_pages(made: Path) -> None:
    assert target(made, "guide.md#page=1").why == "file has no pages"


# Vectors and terms


def test_the_table_of_a_hashed_vector_is_the_formula(tmp_path: Path) -> None:
    docs = ["Red crane, red lamp.", "The crane is at the harbour.", "Tea at four."]
    write_files(tmp_path / "docs", {f"{i}.txt": text for i, text in enumerate(docs)})
    build(tmp_path / "rag", tmp_path / "docs", dim=4096)
    [each] = view(tmp_path / "rag", "0.txt", vectors=True).chunks
    counts, frequency = {"red": 2, "crane": 1, "lamp": 1}, {"red": 1, "crane": 2, "lamp": 1}
    idf = {token: log(4 / (frequency[token] + 1)) + 1 for token in counts}
    norm = sqrt(sum((counts[token] * idf[token]) ** 2 for token in counts))
    assert each.vector is not None
    assert [
        (row.token, row.bucket, row.count, row.frequency, row.shares)
        for row in each.vector.tokens
    ] == [
        (token, crc32(token.encode()) % 4096, counts[token], frequency[token], ())
        for token in counts
    ]  # fmt: skip
    for row in each.vector.tokens:
        assert row.idf == pytest.approx(idf[row.token], abs=1e-12)
        assert row.weight == pytest.approx(counts[row.token] * idf[row.token] / norm, abs=1e-12)
        assert each.vector.values[row.bucket] == row.weight
    assert (each.vector.dimensions, each.vector.nonzero) == (4096, 3)
    assert each.vector.norm == pytest.approx(1, abs=1e-12)
    assert each.vector.entries.largest == max(each.vector.values)


def test_tokens_of_one_bucket_are_marked(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "crane lamp tea crane"})
    build(tmp_path / "rag", tmp_path / "docs", dim=1, normalise=False)
    [each] = view(tmp_path / "rag", "a.txt", vectors=True).chunks
    assert each.vector is not None
    assert [row.shares for row in each.vector.tokens] == [
        ("lamp", "tea"), ("crane", "tea"), ("crane", "lamp"),
    ]  # fmt: skip
    assert {row.weight for row in each.vector.tokens} == {4.0}
    assert any("shares its bucket with lamp, tea" in line for line in lines(
        view(tmp_path / "rag", "a.txt", vectors=True)))  # fmt: skip


def test_terms_are_counted_over_live_chunks_alone(tmp_path: Path) -> None:
    docs = {f"{i}.txt": "crane lamp harbour " + "tea " * (i + 1) for i in range(6)}
    write_files(tmp_path / "docs", docs)
    build(tmp_path / "rag", tmp_path / "docs")
    write_files(tmp_path / "docs", {"1.txt": "crane Otters", "9.txt": "otter"})
    (tmp_path / "docs" / "2.txt").unlink()
    build(tmp_path / "rag")
    live = ["crane lamp harbour tea", "crane otter"] + [
        "crane lamp harbour " + "tea " * (i + 1) for i in (3, 4, 5)
    ] + ["otter"]  # fmt: skip
    frequency = Counter(term for text in live for term in set(text.split()))
    for name, text in (("1.txt", live[1]), ("5.txt", live[4])):
        [each] = view(tmp_path / "rag", name, vectors=True).chunks
        assert each.terms is not None
        assert {(t.term, t.count, t.frequency) for t in each.terms} == {
            (term, count, frequency[term]) for term, count in Counter(text.split()).items()
        }
        for term in each.terms:
            expected = log(1 + (6 - term.frequency + 0.5) / (term.frequency + 0.5))
            assert term.idf == pytest.approx(expected, abs=1e-12)
        assert [t.idf for t in each.terms] == sorted((t.idf for t in each.terms), reverse=True)


@pytest.mark.parametrize("settings", [{"encoder": "hash"}, {"encoder": "hash", "normalise": False},
                                      {"encoder": "fake"}])  # fmt: skip
def test_vectors_are_those_that_score(
    tmp_path: Path, fake: object, settings: dict[str, object]
) -> None:
    write_files(tmp_path / "docs", {f"{i}.txt": f"crane lamp {'tea ' * i}" for i in range(5)})
    build(tmp_path / "rag", tmp_path / "docs", **settings)
    write_files(tmp_path / "docs", {"1.txt": "another crane"})
    build(tmp_path / "rag")
    with Index.open(tmp_path / "rag") as index:
        rows = dict(zip(*(part.tolist() for part in matrix(index)), strict=True))
    for i in range(5):
        [each] = view(tmp_path / "rag", f"{i}.txt", vectors=True).chunks
        assert each.vector is not None
        assert each.vector.values == pytest.approx(rows[each.chunk], abs=1e-6)
        assert bool(each.vector.tokens) == (settings["encoder"] == "hash")
        assert each.tokens is not None


@pytest.mark.parametrize("how", ["lazy", "none"])
def test_chunks_without_vectors(tmp_path: Path, fake: object, how: str) -> None:
    write_files(tmp_path / "docs", {"a.txt": "crane"})
    encoder = "none" if how == "none" else "fake"
    build(tmp_path / "rag", tmp_path / "docs", encoder=encoder, lazy=how == "lazy")
    shown = view(tmp_path / "rag", "a.txt", vectors=True)
    [each] = shown.chunks
    assert (each.has_vector, each.vector) == (False, None)
    assert [term.term for term in each.terms or ()] == ["crane"]
    assert (each.tokens is None) == (how == "none")
    assert "no vector" in lines(shown)[2]


def test_a_model_that_is_gone(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "crane"})
    build(tmp_path / "rag", tmp_path / "docs", encoder="hash")
    catalog = Catalog.open_write(tmp_path / "rag")
    catalog.put("settings", {"encoder": f"onnx:{tmp_path / 'gone'}"})
    catalog.close()
    shown = view(tmp_path / "rag", "a.txt", vectors=True)
    assert shown.chunks[0].tokens is None
    assert "gone" in (shown.tokens_missing or "")
    assert any("tokens cannot be counted" in line for line in lines(shown))


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the lantern figures are not beside the checkout")
def test_lantern_to_the_digit(tmp_path: Path) -> None:
    shutil.copy(SHARED / "lantern.txt", tmp_path)
    build(tmp_path / "rag", tmp_path / "lantern.txt", chunk="sentences:1")
    expected = json.loads((SHARED / "expected.json").read_text())
    wanted = expected["chunk_4"]
    shown = view(tmp_path / "rag", "lantern.txt", vectors=True)
    assert len(shown.chunks) == expected["chunks"]
    vector = shown.chunks[4].vector
    assert vector is not None
    rows = vector.tokens
    assert [row.token for row in rows] == wanted["tokens"]
    assert [row.bucket for row in rows] == wanted["buckets"]
    assert [round(row.idf, 2) for row in rows] == wanted["idf"]
    assert [round(row.weight, 3) for row in rows] == wanted["weight"]
    assert (vector.nonzero, round(vector.norm, 12)) == (wanted["nonzero"], wanted["norm"])
    assert vector.dimensions == expected["dimension"]
    assert rows[0].frequency == expected["document_frequency_lantern"]
