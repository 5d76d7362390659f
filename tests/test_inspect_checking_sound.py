"""`inspect --check` finds nothing in what ragcli itself makes, and writes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from conftest import build, write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_incremental import apply, ask_and_keep, some_vectors, steps
from test_index_faults import as_a_user_without_power
from test_inspect_checking import FILES, alter, flip, found, look, put

from ragcli.cli.reports.checking import lines
from ragcli.indexing import index_folder
from ragcli.store import merging
from ragcli.store.index import Index


@pytest.fixture
def location(tmp_path: Path) -> Path:
    write_files(tmp_path / "docs", FILES)
    return tmp_path / "rag"


every_step = st.one_of(
    steps,
    st.tuples(st.sampled_from(["full", "hash", "none", "fake", "interrupt"]), *[st.just("")] * 2),
)
"""And runs that read all again, with another encoder, or are interrupted."""


def take(location: Path, step: tuple[str, str, str]) -> None:
    """One step; then nothing is found but what was deleted since the last run."""
    kind, name, _ = step
    if kind == "interrupt":
        told: list[object] = []

        def interrupt(progress: object) -> None:
            if not told:  # a second one would not wait for the file at hand
                os.kill(os.getpid(), signal.SIGINT)
            told.append(progress)

        assert index_folder(location, progress=interrupt).interrupted
    elif kind in ("hash", "none", "fake"):
        build(location, encoder=kind)
    elif kind in ("index", "lazy", "full"):
        build(location, lazy=kind == "lazy", full=kind == "full")
    elif kind == "some":
        with Index.open(location) as index:
            has_encoder = index.settings.encoder != "none"
        if has_encoder:
            some_vectors(location)
    elif kind == "ask":
        ask_and_keep(location, name)
    else:
        apply(location.parent / "docs", step)
    report = look(location)
    assert {finding.kind for finding in report.findings} <= {"gone"}
    with Index.open(location) as index:
        live, embedded = index.counts()
        none = index.settings.encoder == "none"
    assert report.waiting == (0 if none else live - embedded)
    assert (report.checked.chunks, report.checked.vectors >= embedded) == (live, True)


@pytest.mark.parametrize("encoder", ["hash", "fake", "none"])
@pytest.mark.parametrize("merge_at", [2, 8])
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(sequence=st.lists(every_step, max_size=10))
def test_nothing_is_found_in_what_ragcli_makes(
    encoder: str,
    merge_at: int,
    sequence: list[tuple[str, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    fake: object,
) -> None:
    monkeypatch.setattr(merging, "MERGE_AT", merge_at)
    monkeypatch.setattr(merging, "SMALL", 0 if merge_at == 8 else merging.SMALL)
    with TemporaryDirectory() as folder:
        location = Path(folder) / "rag"
        write_files(location.parent / "docs", {"keep.txt": "A root is not left empty. Tea."})
        build(location, location.parent / "docs", chunk="sentences:1", encoder=encoder)
        for step in sequence:
            take(location, step)
        build(location)
        assert look(location).findings == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder": "hash", "normalise": False},
        {"encoder": "hash", "dim": 7},
        {"encoder": "none"},
        {"encoder": "minilm"},
        {"encoder": "hash", "chunk": "tokens:4/2"},
    ],
)
def test_every_way_to_make_an_index_is_sound(location: Path, changes: dict[str, object]) -> None:
    docs = location.parent / "docs"
    write_files(docs, {
        "empty.txt": "", "signs.txt": "… — !!! ::", "a.txt": FILES["1.txt"],
        "none.jsonl": "", "nul.jsonl": '{"id": "a", "text": "be\\u0000fore and \\ud800after"}',
        "page.html": "<h1>Täg</h1><p>Ein Wort.</p>", "odd\udcff.md": "# A\n\n## B\n\nText.",
    })  # fmt: skip
    (docs / "bin.dat").write_bytes(bytes(range(256)) * 20)
    build(location, docs, **changes)
    report = look(location)
    assert report.findings == ()
    assert report.waiting == 0
    assert json.loads(json.dumps(asdict(report), allow_nan=False))["checked"]["files"] >= 10


def test_counts_beyond_what_is_stored_are_sound(location: Path) -> None:
    """A term's count stops at 65,535, the length of its row does not."""
    write_files(location.parent / "docs", {"long.txt": "tea " * 70_000 + "at four"})
    build(location, location.parent / "docs", chunk="words:99999")
    assert found(location) == []
    alter("p", "lengths", put(0, 65_000))(location)
    assert [kind for kind, _ in found(location)] == ["postings"]


def test_an_empty_index_is_sound(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    build(tmp_path / "rag", tmp_path / "docs")
    assert look(tmp_path / "rag").findings == ()


@pytest.mark.parametrize("inside", [True, False])
def test_a_moved_index_without_its_sources_is_sound(tmp_path: Path, inside: bool) -> None:
    """`.rag` in the folder that it covers finds another folder where it is moved to."""
    docs = tmp_path / "docs"
    location = docs / ".rag" if inside else tmp_path / "rag"
    write_files(docs, FILES)
    build(location, docs)
    (tmp_path / "elsewhere").mkdir()
    moved = location.rename(tmp_path / "elsewhere" / "rag")
    report = look(moved)
    assert (report.findings, report.sources) == ((), False)
    assert lines(report)[0] == "the sources are not here: nothing was held against them"
    flip("p", "rows.npy")(moved)
    [finding] = look(moved).findings
    assert finding.hint.startswith("ragcli index --full where the sources are")


def test_a_read_only_index_is_checked_and_nothing_written(location: Path) -> None:
    build(location, location.parent / "docs")

    def everything() -> dict[Path, bytes | None]:
        paths = sorted(location.rglob("*"))
        return {path: path.read_bytes() if path.is_file() else None for path in paths}

    before = everything()
    for path in (location, *location.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    program = (
        "import sys; from pathlib import Path;"
        "from ragcli.inspection.checking import check; from ragcli.store.index import Index;"
        "print(check(Index.open(Path(sys.argv[1]))).findings)"
    )
    try:
        done = subprocess.run(
            [*as_a_user_without_power(), sys.executable, "-c", program, str(location)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        for path in (location, *location.rglob("*")):
            path.chmod(0o755)
    assert done.stdout == "()\n", done
    assert everything() == before
