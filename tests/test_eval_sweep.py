"""Sweeps: what is tried, vectors taken over instead of made, the best and what equals it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import answers, build, write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neural import FakeEncoder

from ragcli.errors import IndexUnavailable, UsageError
from ragcli.evaluation import pace, temporary
from ragcli.evaluation.pace import Pace
from ragcli.evaluation.questions import Question, read_questions
from ragcli.evaluation.run import Way
from ragcli.evaluation.statistics import difference
from ragcli.evaluation.sweep import SweepReport, apply, parse_sweep, sweep
from ragcli.evaluation.temporary import TemporaryIndexes
from ragcli.indexing import index_folder
from ragcli.store import segments
from ragcli.store.index import Index
from ragcli.store.sharing import begin, share_vectors

LANTERN = Path(__file__).resolve().parents[1].parent / "shared" / "lantern"

FILES = {
    "ports.md": "The gate listens on port 7020. The mill listens on port 8080.\n",
    "people.md": "Priya leads the mill. Tomas leads the gate. Nobody leads the ferry.\n",
    "time.md": "A ferry leaves each hour. The mill rests on Sunday. The gate never rests.\n",
}
ASKED = [
    {"question": "Which port has the mill?", "relevant": ["ports.md:1"]},
    {"question": "Who leads the gate?", "relevant": ["people.md:1"]},
    {"question": "When does the ferry leave?", "relevant": ["time.md:1"]},
]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary indexes are made."""
    room = tmp_path / "temporary"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    return room


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    write_files(tmp_path / "docs", FILES)
    return tmp_path / "docs"


def questions(folder: Path, *asked: object) -> tuple[Question, ...]:
    file = folder / "questions.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in asked or ASKED), encoding="utf-8")
    return read_questions(file)


def swept(location: Path, asked: tuple[Question, ...], *texts: str, **options: Any) -> SweepReport:
    options = {"way": Way(), "ks": (1, 3), "level": "chunk", **options}
    return sweep(location, asked, variants=parse_sweep(texts), workers=1, **options)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of an index; what SQLite makes to look into it aside."""
    return {
        path.relative_to(folder).as_posix(): blake2b(path.read_bytes()).digest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


def vectors(location: Path) -> dict[str, tuple[bytes, float | None]]:
    """The codes and the factor of each text."""
    found = {}
    with Index.open(location) as index:
        for segment in index.view(scoring=True).vectors:
            rows = segment.kept()
            encoded = segment.encoded(rows)
            for at, chunk in enumerate(segment.chunks[rows].tolist()):
                factor = None if encoded.factors is None else float(encoded.factors[at])
                codes = encoded.codes[at].astype(np.int32).tobytes()
                found[index.chunks([chunk])[chunk].chunk.text] = codes, factor
    return found


# What is tried


def test_the_product_of_all_dimensions_in_order() -> None:
    variants = parse_sweep(["chunk=words:50,auto", "encoder=hash,none"])
    assert [variant.label for variant in variants] == [
        "chunk=words:50 encoder=hash",
        "chunk=words:50 encoder=none",
        "chunk=auto encoder=hash",
        "chunk=auto encoder=none",
    ]
    assert variants[0].settings == {"chunk": "words:50", "encoder": "hash"}
    assert variants[0].way(Way(rerank="r")) == Way(rerank="r")


def test_ways_to_ask_are_no_settings_of_the_index() -> None:
    [mixed, ranked] = parse_sweep(["chunk=auto", "fusion=mix,rrf", "alpha=.25"])
    assert mixed.settings == ranked.settings == {"chunk": "auto"}
    assert mixed.way(Way(max_per_file=2)) == Way(None, "mix", 0.25, max_per_file=2)
    assert ranked.way(Way()) == Way(None, "rrf")
    assert ranked.label == "chunk=auto fusion=rrf"


def test_what_has_no_effect_is_not_tried_twice() -> None:
    labels = [v.label for v in parse_sweep(["encoder=hash,none", "mode=dense,hybrid,lexical",
                                            "alpha=.1,.2"])]  # fmt: skip
    assert labels == [
        "encoder=hash mode=dense",
        "encoder=hash mode=hybrid alpha=.1",
        "encoder=hash mode=hybrid alpha=.2",
        "encoder=hash mode=lexical",
        "encoder=none mode=lexical",
    ]
    assert [v.label for v in parse_sweep(["encoder=none", "alpha=.1,.2"])] == ["encoder=none"]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([], "nothing to sweep"),
        (["k=1,2"], "chunk, encoder, mode, fusion, alpha"),
        (["chunk"], "cannot be swept"),
        (["=auto"], "cannot be swept"),
        (["chunk="], "empty"),
        (["chunk=auto,,words:5"], "empty"),
        (["chunk=auto,auto"], "comes twice"),
        (["chunk=auto,auto:150"], "the same as chunk=auto"),
        (["alpha=.4,0.40"], "the same as alpha=.4"),
        (["chunk=auto", "chunk=words:5"], "swept twice"),
        (["chunk=words"], "words:100"),
        (["encoder=bert"], "minilm, hash, none"),
        (["mode=fuzzy"], "hybrid, dense, lexical"),
        (["fusion=sum"], "mix, rrf"),
        (["alpha=nan"], "between 0 and 1"),
        (["alpha=2"], "between 0 and 1"),
        (["alpha=half"], "between 0 and 1"),
        (["encoder=none", "mode=dense"], "no vectors"),
    ],
)
def test_what_cannot_be_swept_is_refused(texts: list[str], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_sweep(texts)
    assert told in f"{caught.value.message} {caught.value.hint}"


# Vectors of equal texts


def shared(place: Path, donor: Path, root: Path, **changes: object) -> int:
    """An index of `root` in `place` that takes over what `donor` has; how many vectors."""
    with Index.open(donor) as index:
        begin(place, root, [""], index.settings, [donor])
    index_folder(place, (), changes, lazy=True, workers=1)
    taken = share_vectors(place, donor)
    index_folder(place, (), workers=1)
    return taken


def test_a_shared_text_is_not_encoded_again(
    fake: type[FakeEncoder], tmp_path: Path, sources: Path
) -> None:
    present, place, fresh = (tmp_path / name for name in ("present", "place", "fresh"))
    build(present, sources, encoder="fake", chunk="sentences:1")
    fake.texts.clear()
    # The first file is one sentence longer: all the others are as they were.
    longer = FILES["ports.md"] + "The ferry has no port.\n"
    write_files(sources, {"ports.md": longer})
    assert shared(place, present, sources) == 8
    assert fake.texts == ["The ferry has no port."]
    build(fresh, sources, encoder="fake", chunk="sentences:1")
    assert vectors(place) == vectors(fresh)
    for asked in ASKED:
        for mode in ("dense", "hybrid"):
            question = str(asked["question"])
            assert answers(place, question, mode=mode) == answers(fresh, question, mode=mode)


@settings(
    max_examples=8, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(
    st.lists(
        st.lists(st.sampled_from("ox elk owl ant bee cat dog".split()), max_size=30), min_size=1,
        max_size=4,
    ),
    st.sampled_from(["words:2", "words:3", "words:5"]),
    st.sampled_from(["words:1", "words:3", "auto"]),
)  # fmt: skip
def test_an_index_with_shared_vectors_answers_as_one_from_nothing(
    fake: type[FakeEncoder], tmp_path: Path, texts: list[list[str]], before: str, now: str
) -> None:
    work = Path(tempfile.mkdtemp(dir=tmp_path))
    write_files(work / "docs", {f"{i}.txt": " ".join(words) for i, words in enumerate(texts)})
    fake.texts.clear()
    build(work / "present", work / "docs", encoder="fake", chunk=before)
    had = set(fake.texts)
    fake.texts.clear()
    shared(work / "place", work / "present", work / "docs", chunk=now)
    assert not had & set(fake.texts)
    build(work / "fresh", work / "docs", encoder="fake", chunk=now)
    assert vectors(work / "place") == vectors(work / "fresh")
    assert answers(work / "place", "owl bee") == answers(work / "fresh", "owl bee")


def test_counts_too_large_for_a_byte_are_shared_exactly(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "owl " * 300 + "ant", "b.txt": "a bee and an ant"})
    build(tmp_path / "present", tmp_path / "docs", chunk="words:400")
    assert shared(tmp_path / "place", tmp_path / "present", tmp_path / "docs") == 2
    build(tmp_path / "fresh", tmp_path / "docs", chunk="words:400")
    assert vectors(tmp_path / "place") == vectors(tmp_path / "fresh")
    assert answers(tmp_path / "place", "owl ant") == answers(tmp_path / "fresh", "owl ant")


def test_vectors_of_another_encoder_are_not_shared(
    fake: type[FakeEncoder], tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "present", sources, encoder="fake")
    fake.texts.clear()
    monkeypatch.setattr(fake, "fingerprint", "fake/2")
    assert shared(tmp_path / "place", tmp_path / "present", sources) == 0
    assert len(fake.texts) == 3


def test_equal_hashes_do_not_make_texts_equal(
    fake: type[FakeEncoder], tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "present", sources, encoder="fake", chunk="sentences:1")
    monkeypatch.setattr("ragcli.store.sharing.hash", lambda _: 7, raising=False)
    shared(tmp_path / "place", tmp_path / "present", sources)
    build(tmp_path / "fresh", sources, encoder="fake", chunk="sentences:1")
    assert vectors(tmp_path / "place") == vectors(tmp_path / "fresh")


# The sweep


@pytest.mark.usefixtures("fake")
def test_each_variant_is_measured_and_the_best_is_named(
    tmp_path: Path, sources: Path, room: Path
) -> None:
    present = tmp_path / "present"
    build(present, sources, encoder="fake")
    before = contents(present)
    report = swept(
        present, questions(tmp_path), "chunk=sentences:1,auto", "encoder=hash,none", measure="mrr@3"
    )
    assert [row.label for row in report.rows] == [
        "chunk=sentences:1 encoder=hash",
        "chunk=sentences:1 encoder=none",
        "chunk=auto encoder=hash",
        "chunk=auto encoder=none",
    ]
    assert [row.chunks for row in report.rows] == [8, 8, 3, 3]
    assert report.rows[0].words < report.rows[2].words
    means = {row.label: row.figures["mrr@3"].mean for row in report.rows}
    best = next(row for row in report.rows if row.label == report.best)
    assert means[best.label] == max(means.values())
    assert best.against_best is None
    for row in report.rows:
        if row is not best:
            assert row.against_best is not None
            assert row.against_best.mean == pytest.approx(means[best.label] - means[row.label])
            assert (row.label in report.alike) == (row.against_best.low <= 0)
    assert (report.measure, report.changed, report.interrupted) == ("mrr@3", 0, False)
    assert contents(present) == before
    assert list(room.iterdir()) == []
    json.dumps(asdict(report), allow_nan=False)


def test_of_equal_variants_the_cheaper_one_is_best(
    tmp_path: Path, sources: Path, room: Path
) -> None:
    build(tmp_path / "present", sources)
    report = swept(
        tmp_path / "present",
        questions(tmp_path),
        "chunk=auto,sentences:1",
        level="document",
        ks=[3],
    )
    assert {row.figures["recall@3"].mean for row in report.rows} == {1.0}
    assert report.best == "chunk=sentences:1"
    assert report.alike == ("chunk=auto",)


@pytest.mark.usefixtures("room")
def test_a_clear_difference_is_told_from_the_best(tmp_path: Path) -> None:
    # Each file says where one thing is, after forty words that all of them share.
    files = {
        f"{i:02}.txt": f"{'river bridge tower market ' * 10}. The item{i} is in place{i}."
        for i in range(20)
    }
    write_files(tmp_path / "docs", files)
    build(tmp_path / "present", tmp_path / "docs")
    asked = [
        {"question": f"river bridge tower market item{i}", "answers": [f"item{i} is in place{i}"]}
        for i in range(20)
    ]
    report = swept(
        tmp_path / "present", questions(tmp_path, *asked), "chunk=sentences:2,words:41",
        level="answer", way=Way("lexical"), ks=[1],
    )  # fmt: skip
    good, bad = report.rows
    assert (good.figures["recall@1"].mean, report.best) == (1.0, good.label)
    assert bad.against_best == difference([1.0] * 20, [0.0] * 20)
    assert report.alike == ()


def test_variants_that_ask_differently_share_one_index(
    fake: type[FakeEncoder], tmp_path: Path, sources: Path, room: Path
) -> None:
    build(tmp_path / "present", sources, encoder="fake")
    fake.texts.clear()
    stages: list[tuple[str, str]] = []
    report = swept(
        tmp_path / "present", questions(tmp_path), "mode=dense,lexical", "chunk=sentences:1,auto",
        progress=lambda done, total, label, stage, left: stages.append((label, stage)),
    )  # fmt: skip
    assert [row.label for row in report.rows] == [
        "mode=dense chunk=sentences:1",
        "mode=dense chunk=auto",
        "mode=lexical chunk=sentences:1",
        "mode=lexical chunk=auto",
    ]
    assert report.rows[3].settings == {"mode": "lexical", "chunk": "auto"}
    assert {label for label, stage in stages if stage != "ask"} == {
        "mode=dense chunk=sentences:1",
        "mode=dense chunk=auto",
    }
    # The chunks of `auto` are those of the present index.
    assert sorted(fake.texts) == sorted(
        sentence.strip(". \n") + "." for text in FILES.values() for sentence in text.split(". ")
    )
    assert [row.shared for row in report.rows] == [0, 3, 0, 3]
    assert report.rows[0].index_seconds == report.rows[2].index_seconds


def test_a_later_variant_shares_with_an_earlier_one(
    fake: type[FakeEncoder], tmp_path: Path, sources: Path, room: Path
) -> None:
    build(tmp_path / "present", sources, encoder="none")
    report = swept(
        tmp_path / "present", questions(tmp_path), "chunk=sentences:1,words:6", "encoder=fake"
    )
    assert len(fake.texts) == len(set(fake.texts))
    assert report.rows[0].shared == 0
    six = [row for row in report.rows if row.label.startswith("chunk=words:6")]
    # "The gate listens on port 7020." is a sentence of six words, and so is the one after it.
    assert six[0].shared == 2
    assert not any("7020" in text for text in fake.texts[8:])


def test_progress_counts_variants_and_tells_the_time_left(
    tmp_path: Path, sources: Path, room: Path
) -> None:
    build(tmp_path / "present", sources)
    told: list[tuple[int, int, str, str, float | None]] = []
    swept(
        tmp_path / "present", questions(tmp_path), "chunk=sentences:1,words:5,auto",
        progress=lambda *each: told.append(each),
    )  # fmt: skip
    done = [each[0] for each in told]
    assert done == sorted(done)
    assert set(done) == {0, 1, 2}
    assert {each[1] for each in told} == {3}
    assert {"scan", "share", "ask"} <= {each[3] for each in told}
    assert told[0][4] is None
    assert all(each[4] is not None and each[4] >= 0 for each in told if each[0])
    assert told[-1][4] == pytest.approx(0, abs=1)


def test_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: clock[0])
    of = Pace({"index": 3, "ask": 4})
    of.begin("index")
    clock[0] = 10.0
    assert of.seconds_left(0.0) is None
    assert of.seconds_left(0.5) == 10 + 2 * 20
    clock[0] = 20.0
    of.end()
    of.begin("ask")
    clock[0] = 21.0
    assert of.seconds_left(0.5) == 1 + 2 * 20 + 3 * 2
    clock[0] = 22.0
    of.end()
    of.drop("ask", 1)
    of.begin("index")
    clock[0] = 27.0
    assert of.seconds_left(0.0) == 15 + 20 + 2 * 2
    clock[0] = 99.0
    assert of.seconds_left(0.0) == 20 + 2 * 2


@pytest.mark.parametrize("stage", ["scan", "embed", "ask"])
@pytest.mark.usefixtures("fake")
def test_an_interrupt_keeps_the_rows_done(
    tmp_path: Path, sources: Path, room: Path, stage: str
) -> None:
    build(tmp_path / "present", sources, encoder="fake")
    before = contents(tmp_path / "present")
    sent: list[str] = []

    def interrupt(done: int, total: int, label: str, at: str, left: float | None) -> None:
        if done == 1 and at == stage and not sent:
            sent.append(at)
            os.kill(os.getpid(), signal.SIGINT)

    # A run in the background ignores the signal, and Python then leaves it so.
    outside = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        report = swept(
            tmp_path / "present", questions(tmp_path), "chunk=sentences:1,words:4,auto",
            progress=interrupt,
        )  # fmt: skip
        handler = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, outside)
    assert sent == [stage]
    assert report.interrupted
    assert [row.label for row in report.rows] == ["chunk=sentences:1"] == [report.best]
    assert report.alike == report.failed == ()
    assert list(room.iterdir()) == []
    assert contents(tmp_path / "present") == before
    assert handler == signal.default_int_handler


def test_an_interrupt_before_the_first_row_leaves_none(
    tmp_path: Path, sources: Path, room: Path
) -> None:
    build(tmp_path / "present", sources)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    report = swept(tmp_path / "present", questions(tmp_path), "chunk=auto", progress=interrupt)
    assert (report.rows, report.best, report.interrupted) == ((), None, True)
    assert list(room.iterdir()) == []


@pytest.mark.usefixtures("fake")
def test_a_variant_that_cannot_be_made_costs_its_row_alone(
    tmp_path: Path, sources: Path, room: Path
) -> None:
    build(tmp_path / "present", sources, encoder="fake")
    report = swept(
        tmp_path / "present", questions(tmp_path), "chunk=tokens:500,auto", "mode=dense,lexical"
    )
    assert [each.label for each in report.failed] == [
        "chunk=tokens:500 mode=dense",
        "chunk=tokens:500 mode=lexical",
    ]
    assert "64 tokens" in report.failed[0].message
    assert [row.label for row in report.rows] == [
        "chunk=auto mode=dense",
        "chunk=auto mode=lexical",
    ]
    with pytest.raises(UsageError, match="64 tokens"):
        swept(tmp_path / "present", questions(tmp_path), "chunk=tokens:500")
    assert list(room.iterdir()) == []


def test_a_full_disk_is_said_to_be_where_it_is(
    tmp_path: Path, sources: Path, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "present", sources)

    def full(*_: object) -> tuple[str, str]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(segments, "write_segment", full)
    with pytest.raises(IndexUnavailable) as caught:
        swept(tmp_path / "present", questions(tmp_path), "chunk=auto")
    assert str(room) in caught.value.message
    assert "No space left" in caught.value.message
    assert "TMPDIR" in str(caught.value.hint)
    assert list(room.iterdir()) == []


def test_a_full_disk_while_vectors_are_taken_over(
    tmp_path: Path, sources: Path, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "present", sources)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(temporary, "share_vectors", full)
    with pytest.raises(IndexUnavailable, match=f"{room}.*No space left"):
        swept(tmp_path / "present", questions(tmp_path), "chunk=auto")


# Sources, gold, and what cannot be asked


def test_files_that_changed_are_counted(tmp_path: Path, sources: Path, room: Path) -> None:
    build(tmp_path / "present", sources)
    write_files(sources, {"time.md": "The ferry has gone.\n", "new.md": "The mill is new.\n"})
    (sources / "people.md").rename(sources / "folk.md")
    asked = questions(tmp_path, {"question": "What is new?", "relevant": ["new.md"]})
    report = swept(tmp_path / "present", asked, "chunk=auto,sentences:1")
    assert report.changed == 4  # another content, a new file, and both names of the one renamed
    assert report.rows[0].chunks == 4
    os.utime(sources / "time.md")
    build(tmp_path / "present")
    os.utime(sources / "time.md", (1, 1))
    assert swept(tmp_path / "present", asked, "chunk=auto").changed == 0


@pytest.mark.usefixtures("room")
def test_sources_that_are_gone(tmp_path: Path, sources: Path) -> None:
    build(tmp_path / "present", sources)
    asked = questions(tmp_path, {"question": "Which port?", "answers": ["7020"]})
    for file in sources.iterdir():
        file.unlink()
    with pytest.raises(UsageError, match="has no text now"):
        swept(tmp_path / "present", asked, "chunk=auto", level="answer")
    shutil.rmtree(sources)
    with pytest.raises(UsageError, match="is not there"):
        swept(tmp_path / "present", asked, "chunk=auto", level="answer")


def test_the_starts_and_settings_of_the_index_hold(tmp_path: Path, room: Path) -> None:
    write_files(
        tmp_path / "docs",
        {"a/x.md": "an owl", "a/y.txt": "a bee", "b/z.md": "an ant", "c.md": "no"},
    )
    build(tmp_path / "p", tmp_path / "docs/a", tmp_path / "docs/b", glob=("*.md",))
    asked = questions(tmp_path, {"question": "Which owl?", "relevant": ["a/x.md"]})
    report = swept(tmp_path / "p", asked, "chunk=words:9", level="document")
    assert report.rows[0].chunks == 2
    assert report.changed == 0


@pytest.mark.usefixtures("room")
def test_gold_that_is_not_in_the_index(tmp_path: Path, sources: Path) -> None:
    build(tmp_path / "present", sources)
    asked = questions(
        tmp_path, *ASKED, {"question": "What does the book say?", "relevant": ["book.md"]}
    )
    with pytest.raises(UsageError, match=r"line 4: book\.md"):
        swept(tmp_path / "present", asked, "chunk=auto")
    report = swept(tmp_path / "present", asked, "chunk=auto", allow_missing=True, measure="hit@3")
    assert report.rows[0].missing == 1
    assert report.rows[0].figures["hit@3"].mean == 0.75


@pytest.mark.usefixtures("room")
def test_an_answer_that_a_chunking_cuts_in_two_is_missed(tmp_path: Path, sources: Path) -> None:
    build(tmp_path / "present", sources)
    asked = questions(
        tmp_path, {"question": "Where listens the mill?", "answers": ["on port 8080"]}
    )
    report = swept(tmp_path / "present", asked, "chunk=sentences:1,words:5", level="answer")
    assert [row.missing for row in report.rows] == [0, 1]
    assert [row.figures["recall@3"].mean for row in report.rows] == [1.0, 0.0]


@pytest.mark.usefixtures("room")
def test_what_cannot_be_asked_is_told_before_anything_is_made(
    tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "present", sources, encoder="none")
    monkeypatch.setattr(TemporaryIndexes, "make", lambda *_: pytest.fail("an index was made"))
    asked = questions(tmp_path)
    for texts, options in (
        (["mode=dense"], {}),
        (["encoder=hash,none"], {"way": Way("hybrid")}),
        (["chunk=auto"], {"measure": "recall@7"}),
        (["chunk=auto"], {"measure": "speed"}),
    ):
        with pytest.raises(UsageError):
            swept(tmp_path / "present", asked, *texts, **options)


@pytest.mark.usefixtures("room")
def test_the_measure_is_the_recall_at_the_largest_k_up_to_five(
    tmp_path: Path, sources: Path
) -> None:
    build(tmp_path / "present", sources, encoder="none")
    for ks, measure in (((1, 3, 5, 10), "recall@5"), ((10, 3), "recall@3"), ((7, 9), "recall@7")):
        report = swept(tmp_path / "present", questions(tmp_path), "chunk=auto", ks=ks)
        assert report.measure == measure


def test_nothing_is_made_inside_the_sources(
    tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "present", sources)
    (tmp_path / "link").symlink_to(sources)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "link"))
    with pytest.raises(UsageError, match="which is indexed") as caught:
        swept(tmp_path / "present", questions(tmp_path), "chunk=auto")
    assert "TMPDIR" in str(caught.value.hint)
    assert sorted(path.name for path in sources.iterdir()) == sorted(FILES)


def test_apply_makes_the_present_index_so(tmp_path: Path, sources: Path) -> None:
    build(tmp_path / "present", sources, encoder="none")
    [variant] = parse_sweep(["chunk=sentences:1", "encoder=hash", "mode=dense"])
    assert apply(tmp_path / "present", variant, workers=1).chunks == 8
    with Index.open(tmp_path / "present") as index:
        assert (index.settings.chunk, index.settings.encoder) == ("sentences:1", "hash")


# Chunk size, as the paper has it


@pytest.fixture
def lantern(tmp_path: Path) -> Iterator[Callable[..., SweepReport]]:
    if not LANTERN.is_dir():
        pytest.skip("the lantern figures are not beside the checkout")
    (tmp_path / "docs").mkdir()
    shutil.copy(LANTERN / "lantern.txt", tmp_path / "docs")
    expected = json.loads((LANTERN / "expected.json").read_text())
    asked = questions(
        tmp_path,
        *(
            {"question": row["question"], "relevant": [f"lantern.txt:{row['answer_chunk'] + 1}"]}
            for row in expected["cosine_top3"][:3]
        ),
    )
    build(tmp_path / "present", tmp_path / "docs")
    yield lambda **options: swept(
        tmp_path / "present", asked, "chunk=sentences:1,sentences:7", "encoder=hash",
        way=Way("dense"), **options,
    )  # fmt: skip


@pytest.mark.shared
def test_lantern(lantern: Callable[..., SweepReport], room: Path) -> None:
    small, large = lantern(ks=[1]).rows
    assert (small.chunks, large.chunks) == (21, 3)
    assert round(small.figures["recall@1"].mean * 3) == 3
    assert round(large.figures["recall@1"].mean * 3) == 1
    assert large.words > 3 * small.words
