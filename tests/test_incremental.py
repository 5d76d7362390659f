"""Incremental equals rebuilt, whatever the sequence of edits."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from conftest import answers, build, write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neural import FakeEncoder

from ragcli.corpus.readers import pdf_ocr
from ragcli.errors import IndexDamaged, IndexUnavailable, ModelUnavailable, RagcliError
from ragcli.indexing import analysis, pool, run, tasks
from ragcli.indexing.held import held
from ragcli.indexing.rebuild import encode_pending
from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store import merging
from ragcli.store.catalog import Catalog
from ragcli.store.index import Index
from ragcli.store.lock import write_lock
from ragcli.store.writer import Writer

NAMES = ["a.md", "b.txt", "c.py", "sub/d.md", "sub/e.txt"]
SENTENCES = [
    "The harbour crane lifts forty tonnes.",
    "Der Kran hebt vierzig Tonnen und die Häuser stehen am Hafen.",
    "max_workers defaults to eight workers.",
    "Error ERR_4012 means that the queue is full.",
    "Cranes and harbours close at night.",
    "数据库在夜间关闭。",
    "Release 1.0.21 fixed the crane.",
    "# Harbour",
    "Tea is served at four.",
]
QUESTIONS = ["crane harbour", "ERR_4012", "Häuser am Hafen", "夜间", "1.0.21", "workers queue tea"]

texts = st.lists(st.sampled_from(SENTENCES), max_size=6).map("\n\n".join)
steps = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), texts),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just("")),
    st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("index"), st.just(""), st.just("")),
    st.tuples(st.just("lazy"), st.just(""), st.just("")),
    st.tuples(st.just("some"), st.just(""), st.just("")),
    st.tuples(st.just("ask"), st.sampled_from(QUESTIONS), st.just("")),
)
"""Edits; runs with all vectors, none, or a batch of them; a question whose vectors are kept."""


def apply(root: Path, step: tuple[str, str, str]) -> None:
    kind, name, value = step
    path = root / name
    if kind == "write":
        write_files(root, {name: value})
    elif kind == "delete":
        path.unlink(missing_ok=True)
    elif kind == "rename" and path.exists() and name != value:
        (root / value).parent.mkdir(exist_ok=True)
        path.rename(root / value)


def some_vectors(location: Path) -> None:
    """A run that dies after its first batch of vectors."""
    with write_lock(location, 0.0):
        catalog = Catalog.open_write(location)
        with Index.open(location) as index:
            encoder = run.open_encoder(index.settings, index.path)
        assert encoder is not None
        writer = Writer(location, catalog)
        for _ in encode_pending(writer, encoder):
            break
        writer.commit()
        catalog.close()


def ask_and_keep(location: Path, question: str) -> None:
    with Index.open(location) as index:
        retriever = Retriever(index)
        found = retriever.search(SearchRequest(question))
        before = index.counts()[1]
    assert retriever.keep()
    with Index.open(location) as index:
        assert index.counts()[1] == before + found.embedded_now


def check_the_books(location: Path) -> None:
    """What the catalogue says of its segments is so, and its sums are the sums."""
    with Index.open(location) as index:
        view = index.view(scoring=True)
        ask = index.catalog.connection.execute
        live = {chunk for (chunk,) in ask("SELECT id FROM chunks")}
        for kind in view:
            held = [chunk for rows in kind for chunk in rows.chunks[rows.kept()].tolist()]
            assert len(held) == len(set(held))
            assert set(held) <= live
        both = (*view.postings, *view.vectors)
        every = {chunk for rows in both for chunk in rows.chunks.tolist()}
        dead = {chunk for (chunk,) in ask("SELECT chunk FROM tombstones")}
        assert dead == every - live
        assert set(ask("SELECT * FROM tallies")) == set(
            ask(
                "SELECT coalesce(language, ''), count(*), sum(words), sum(pieces)"
                " FROM documents GROUP BY 1"
            )
        )


def everything(location: Path) -> dict[Any, Any]:
    return {
        (question, mode): answers(location, question, 10, mode=mode)
        for question in QUESTIONS
        for mode in ("lexical", "dense", "hybrid")
    }


@pytest.mark.parametrize("encoder", ["hash", "fake"])
@pytest.mark.parametrize("chunk", ["auto", "sentences:1"])
@pytest.mark.parametrize("merge_at", [2, 8])
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(sequence=st.lists(steps, max_size=14))
def test_incremental_equals_rebuilt(
    encoder: str,
    chunk: str,
    merge_at: int,
    sequence: list[tuple[str, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    fake: object,
) -> None:
    monkeypatch.setattr(merging, "MERGE_AT", merge_at)
    monkeypatch.setattr(merging, "SMALL", 0 if merge_at == 8 else merging.SMALL)
    with TemporaryDirectory() as folder:
        root = Path(folder) / "docs"
        write_files(root, {"keep.txt": "An index whose root is empty is asked about first."})
        grown, fresh = Path(folder) / "grown", Path(folder) / "fresh"
        build(grown, root, chunk=chunk, encoder=encoder)
        for step in [*sequence, ("index", "", "")]:
            if step[0] in ("index", "lazy"):
                build(grown, lazy=step[0] == "lazy")
                check_the_books(grown)
            elif step[0] == "some":
                some_vectors(grown)
            elif step[0] == "ask":
                ask_and_keep(grown, step[1])
            else:
                apply(root, step)
        build(fresh, root, chunk=chunk, encoder=encoder)
        assert everything(grown) == everything(fresh)


def test_an_edit_keeps_the_chunks_whose_text_stayed(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "\n\n".join(SENTENCES[:4])})
    build(tmp_path / "rag", tmp_path / "docs", chunk="sentences:1")

    def ids() -> dict[str, int]:
        with Index.open(tmp_path / "rag") as index:
            return dict(index.catalog.connection.execute("SELECT text, id FROM chunks"))

    before = ids()
    write_files(tmp_path / "docs", {"a.txt": "\n\n".join(["Quite new.", *SENTENCES[1:4]])})
    report = build(tmp_path / "rag")
    after = ids()
    assert report.counts.indexed == 1
    assert [text for text in after if after[text] == before.get(text)] == SENTENCES[1:4]
    assert "Quite new." in after
    [(_, start, end, lines, text, *_)] = answers(tmp_path / "rag", "Häuser", 1)
    assert (start, end, lines, text) == (12, 12 + len(SENTENCES[1]), (3, 3), SENTENCES[1])


def test_counts(tmp_path: Path) -> None:
    root, location = tmp_path / "docs", tmp_path / "rag"
    write_files(root, {name: f"{name} says {i}. " * 3 for i, name in enumerate(NAMES)})
    first = build(location, root)
    assert (first.counts.indexed, first.chunks, first.embedded) == (5, 5, 5)
    write_files(root, {"a.md": "Edited."})
    (root / "b.txt").rename(root / "moved.txt")
    (root / "c.py").unlink()
    (root / "new.bin").write_bytes(bytes(range(256)) * 9)
    counts = build(location).counts
    assert (counts.indexed, counts.moved, counts.removed, counts.skipped) == (1, 1, 1, 1)
    assert (counts.unchanged, counts.failed) == (2, 0)
    again = build(location).counts
    assert (again.unchanged, again.skipped, again.indexed) == (4, 1, 0)


def disk(location: Path) -> bytes:
    return b"".join(path.read_bytes() for path in location.rglob("*") if path.is_file())


def test_deleted_text_is_found_nowhere_and_lies_nowhere(tmp_path: Path) -> None:
    root, location = tmp_path / "docs", tmp_path / "rag"
    write_files(root, {"keep.md": "Harbour crane.", "gone.md": "Xylograph zibeline quokka."})
    build(location, root)
    assert answers(location, "zibeline")
    assert b"zibelin" in disk(location)
    (root / "gone.md").unlink()
    build(location)
    assert answers(location, "zibeline", mode="lexical") == []
    for word in (b"zibelin", b"Zibelin", b"xylograph", b"quokka", b"gone.md"):
        assert word not in disk(location)


def test_a_change_of_chunking_reads_every_file_again(tmp_path: Path) -> None:
    root, location = tmp_path / "docs", tmp_path / "rag"
    write_files(root, {"a.txt": "One two. Three four. Five six."})
    build(location, root, chunk="sentences:1")
    report = build(location, chunk="words:100")
    assert (report.counts.indexed, report.chunks) == (1, 1)
    assert build(location).counts.unchanged == 1


def test_a_change_of_encoder_reads_no_file(tmp_path: Path) -> None:
    root, location = tmp_path / "docs", tmp_path / "rag"
    write_files(root, {"a.txt": "Harbour crane.", "b.txt": "Tea at four."})
    assert build(location, root, encoder="none").embedded == 0
    report = build(location, encoder="hash", dim=64)
    assert (report.counts.unchanged, report.embedded) == (2, 2)
    before = answers(location, "crane", mode="dense")
    shutil.rmtree(location)
    build(location, root, encoder="hash", dim=64)
    assert answers(location, "crane", mode="dense") == before


def test_vectors_of_text_that_stayed_are_not_made_again(
    tmp_path: Path, fake: type[FakeEncoder]
) -> None:
    root, location = tmp_path / "docs", tmp_path / "rag"
    write_files(root, {"a.txt": "\n\n".join(SENTENCES[:4]), "b.txt": SENTENCES[4]})
    build(location, root, chunk="sentences:1", encoder="fake")
    assert sorted(fake.texts) == sorted(SENTENCES[:5])
    fake.texts.clear()
    write_files(root, {"a.txt": "\n\n".join(["Quite new.", *SENTENCES[1:4]])})
    (root / "b.txt").rename(root / "c.txt")
    build(location)
    assert fake.texts == ["Quite new."]
    build(location, full=True)
    assert sorted(fake.texts) == sorted(["Quite new.", "Quite new.", *SENTENCES[1:5]])


@pytest.mark.parametrize("encoder", ["hash", "fake"])
def test_lost_and_damaged_segments_are_made_again(
    tmp_path: Path, encoder: str, fake: object
) -> None:
    root, location = tmp_path / "docs", tmp_path / "rag"
    write_files(root, {name: "\n\n".join(SENTENCES) for name in NAMES})
    build(location, root, encoder=encoder)
    before = everything(location)
    for kind in ("p-*", "v-*"):
        for victim in (location / "segments").glob(kind):
            shutil.rmtree(victim)
        report = build(location)
        assert report.counts.unchanged == len(NAMES)
        assert everything(location) == before


def test_the_catalogue_alone_is_whole_after_a_run(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "Harbour crane."})
    build(tmp_path / "rag", tmp_path / "docs")
    for leftover in (tmp_path / "rag").glob("catalog.sqlite-*"):
        assert leftover.stat().st_size == 0
    catalog = Catalog.open_read(tmp_path / "rag")
    assert catalog.count("chunks") == 1
    catalog.close()


def test_a_large_file_comes_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n\n".join(f"{SENTENCES[i % 9]} Number n{i}." for i in range(400))
    write_files(tmp_path / "docs", {"long.txt": text, "short.txt": SENTENCES[0]})
    build(tmp_path / "whole", tmp_path / "docs")
    monkeypatch.setattr(analysis, "SLICE", 500)
    build(tmp_path / "cut", tmp_path / "docs")
    assert everything(tmp_path / "cut") == everything(tmp_path / "whole")
    write_files(tmp_path / "docs", {"long.txt": text.replace("n77.", "n77 altered.")})
    assert build(tmp_path / "cut").counts.indexed == 1
    build(tmp_path / "fresh", tmp_path / "docs")
    assert everything(tmp_path / "cut") == everything(tmp_path / "fresh")


@pytest.mark.slow
def test_a_file_that_kills_its_child_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "INLINE_BYTES", 0)
    monkeypatch.setattr(pool, "MEMORY", 150 << 20)
    files = {f"{i}.txt": f"Harbour crane {i}." for i in range(5)}
    write_files(tmp_path / "docs", {**files, "2b.txt": "word " * 12_000_000})
    report = build(tmp_path / "rag", tmp_path / "docs")
    assert (report.counts.indexed, report.counts.failed) == (5, 1)
    assert [(p.path, p.kind) for p in report.problems] == [("2b.txt", "memory")]
    assert len(answers(tmp_path / "rag", "crane", 10)) == 5


def test_ocr_reads_no_text_again_and_is_asked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    monkeypatch.setattr(pdf_ocr, "check_ocr", checked.append)
    docs, location = tmp_path / "docs", tmp_path / "rag"
    write_files(docs, {"a.txt": SENTENCES[0], "b.md": SENTENCES[1]})
    build(location, docs)
    assert build(location, ocr="eng").counts.unchanged == 2
    # A machine that has lost tesseract since goes on indexing text.
    write_files(docs, {"c.txt": SENTENCES[2]})
    assert build(location).counts.indexed == 1
    assert checked == ["eng"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), IndexUnavailable),
        (OSError(errno.EIO, "Input/output error"), IndexUnavailable),
        (PermissionError(errno.EACCES, "Permission denied", ".rag/segments/p1"), IndexUnavailable),
        (PermissionError(errno.EACCES, "Permission denied", "."), IndexUnavailable),
        (PermissionError(errno.EACCES, "Permission denied", "models/x.bin"), ModelUnavailable),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), ModelUnavailable),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), ModelUnavailable),
        (sqlite3.OperationalError("database or disk is full"), IndexUnavailable),
        (sqlite3.DatabaseError("malformed"), IndexDamaged),
    ],
)
def test_only_errors_of_the_index_blame_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, told: type[RagcliError]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RagcliError) as caught, held(Path(".rag"), new=True):
        raise error
    assert type(caught.value) is told
    assert (".rag" in caught.value.message) is issubclass(told, IndexUnavailable)
