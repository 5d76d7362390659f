"""What can befall an index that lies there: cut files, a newer format, media that cannot be
written, no room, a writer that dies with the lock in its hand.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import answers, build, write_files

from ragcli.cli import app
from ragcli.errors import IndexForeign, IndexUnavailable
from ragcli.inspection.checking import check
from ragcli.store.catalog import FILE
from ragcli.store.identity import FORMAT
from ragcli.store.index import Index

DOCS = {f"{i}.txt": f"Old words {i}. Harbour crane number {i}." for i in range(6)}
QUESTIONS = ("harbour crane", "old words number")


@pytest.fixture
def location(tmp_path: Path) -> Path:
    write_files(tmp_path / "docs", DOCS)
    build(tmp_path / "rag", tmp_path / "docs")
    return tmp_path / "rag"


def everything(location: Path) -> list[object]:
    return [answers(location, question, 10) for question in QUESTIONS]


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = app.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


KINDS = (
    FILE, "lock", ".gitignore", "CACHEDIR.TAG", "p-*/manifest.json", "v-*/manifest.json",
    "p-*/chunks.npy", "p-*/documents.npy", "p-*/names.npy", "p-*/name_ends.npy",
    "p-*/starts.npy", "p-*/rows.npy", "p-*/counts.npy", "p-*/lengths.npy", "v-*/chunks.npy",
    "v-*/frequencies.npy", "v-*/vectors.faiss",
)  # fmt: skip


def test_every_kind_of_file_is_among_those_that_are_cut(location: Path) -> None:
    cut = {path for kind in KINDS for path in location.rglob(kind)}
    assert cut == {path for path in location.rglob("*") if path.is_file()}


@pytest.mark.parametrize("left", ["nothing", "half", "all but a byte"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_file_is_never_a_wrong_answer(location: Path, kind: str, left: str) -> None:
    wanted = everything(location)
    (path,) = location.rglob(kind)
    data = path.read_bytes()
    path.write_bytes(data[: {"nothing": 0, "half": len(data) // 2}.get(left, len(data) - 1)])
    try:
        assert everything(location) == wanted
        with Index.open(location) as index:
            named = bool(check(index).findings)
    except IndexUnavailable as error:
        named = True
        assert error.hint
    assert named or path.name in (FILE, "lock", ".gitignore", "CACHEDIR.TAG")
    try:
        # What is cut is seen by its length; within the catalogue a check has to look.
        build(location, location.parent / "docs", encoder="hash", full=path.name == FILE)
    except IndexUnavailable as error:
        assert path.name == FILE
        assert f"remove the folder {location}" in str(error.hint)
        shutil.rmtree(location)
        build(location, location.parent / "docs")
    assert everything(location) == wanted
    with Index.open(location) as index:
        assert check(index).findings == ()
    tag = (location / "CACHEDIR.TAG").read_text(encoding="ascii")
    assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert (location / ".gitignore").read_text(encoding="ascii") == "*\n"


def test_a_newer_format_is_one_line_of_every_command(
    location: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = location.parent / "q.jsonl"
    questions.write_text('{"question": "harbour", "relevant": ["0.txt"]}\n', encoding="utf-8")
    data = bytearray((location / FILE).read_bytes())
    data[60:64] = (FORMAT + 1).to_bytes(4, "big")
    (location / FILE).write_bytes(data)
    before = (location / FILE).read_bytes()
    for command in (["index"], ["query", "harbour"], ["inspect"], ["eval", str(questions)]):
        code, out, err = run_command(capsys, *command, "--index", str(location))
        assert (code, out) == (3, "")
        first, blank, hint = err.rstrip("\n").split("\n")
        assert first.startswith("ragcli: ")
        assert f"format {FORMAT + 1}" in first
        assert blank == ""
        assert hint.startswith("hint: ")
    assert (location / FILE).read_bytes() == before


def test_a_log_that_is_half_folded_in_is_no_foreign_catalogue(location: Path) -> None:
    """As a kill in the middle of it leaves them: the first page new, the others still to come."""
    with Index.open(location):  # a reader, so that the log is not folded in at once
        write_files(location.parent / "docs", {f"more{i}.txt": f"harbour {i}" for i in range(80)})
        build(location)
        copy = location.with_name("copy")
        shutil.copytree(location, copy)
    build(location)
    old, folded = (copy / FILE).read_bytes(), (location / FILE).read_bytes()
    assert len(folded) > len(old)
    for size in (4096, len(folded) // 2 // 4096 * 4096):
        (copy / FILE).write_bytes(folded[:size] + old[size:])
        shutil.rmtree(location)
        shutil.copytree(copy, location)
        assert len(answers(location, "harbour", 100)) == len(DOCS) + 80
        build(location, location.parent / "docs")
        assert len(answers(location, "harbour", 100)) == len(DOCS) + 80


def test_what_a_killed_first_run_began_is_ours(tmp_path: Path) -> None:
    """A journal alone, where the power took the catalogue's name, and tags without a letter."""
    write_files(tmp_path / "docs", DOCS)
    (tmp_path / "rag").mkdir()
    for name in (f"{FILE}-journal", ".gitignore", "CACHEDIR.TAG"):
        (tmp_path / "rag" / name).touch()
    assert build(tmp_path / "rag", tmp_path / "docs").counts.indexed == len(DOCS)
    assert (tmp_path / "rag" / ".gitignore").read_text(encoding="ascii") == "*\n"
    assert not (tmp_path / "rag" / f"{FILE}-journal").exists()


def test_a_copy_is_held_to_its_checksums_by_its_first_run(location: Path) -> None:
    wanted = everything(location)
    copy = location.with_name("copy")
    shutil.copytree(location, copy)
    for place, mended in ((location, False), (copy, True)):
        (counts,) = place.glob("segments/p-*/counts.npy")
        data = bytearray(counts.read_bytes())
        data[-2] += 1
        counts.write_bytes(data)
        build(place, location.parent / "docs")
        assert (everything(place) == wanted) is mended


HOLDER = """
import sys, time
from pathlib import Path
from ragcli.store.catalog import Catalog
from ragcli.store.lock import write_lock
with write_lock(Path(sys.argv[1]), 0.0):
    catalog = Catalog.open_write(Path(sys.argv[1]))
    with catalog.transaction() as connection:
        connection.execute("DELETE FROM chunks")
        print("held", flush=True)
        time.sleep(600)
"""


@pytest.mark.slow
def test_a_writer_killed_with_the_lock_in_its_hand(location: Path) -> None:
    wanted = everything(location)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(location)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert everything(location) == wanted
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    began = time.monotonic()
    assert build(location).counts.unchanged == len(DOCS)
    assert time.monotonic() - began < 5
    assert everything(location) == wanted


def in_a_mount_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """`script` where one may mount; skips the test where that is not allowed."""
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"],
            capture_output=True,
            check=False,
        ).returncode
    ):
        pytest.skip("nothing can be mounted here: unshare -rm")
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False
    )


def command(*words: object) -> str:
    return shlex.join([sys.executable, "-m", "ragcli", *map(str, words)])


@pytest.mark.slow
def test_a_medium_that_is_read_only(location: Path, tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"new.txt": "Something new."})
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"question": "harbour crane", "relevant": ["0.txt"]}\n', encoding="utf-8")
    here = ("--index", location)
    done = in_a_mount_namespace(
        f"mount --bind {location} {location} && mount -o remount,bind,ro {location} || exit 99\n"
        f"{command('query', 'harbour crane', '-k', 1, *here)}; echo query $?\n"
        f"{command('inspect', *here)} > /dev/null; echo inspect $?\n"
        f"{command('inspect', '--check', *here)}; echo check $?\n"
        f"{command('eval', questions, *here)} > /dev/null; echo eval $?\n"
        f"{command('index', *here)}; echo index $?\n"
    )
    assert "Harbour crane" in done.stdout
    for name, code in (("query", 0), ("inspect", 0), ("check", 0), ("eval", 0), ("index", 3)):
        assert f"{name} {code}\n" in done.stdout, done
    assert f"{location} cannot be written: Read-only file system" in done.stderr
    assert "Traceback" not in done.stderr
    assert build(location).counts.indexed == 1


def as_a_user_without_power() -> list[str]:
    """A prefix that takes root's power to write anywhere, [] where there is none to take."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root can write anywhere, and setpriv is not here to take that away")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]


@pytest.mark.slow
def test_an_index_of_another_user_is_searched_and_not_written(
    location: Path, tmp_path: Path
) -> None:
    (tmp_path / "docs" / "new.txt").write_text("Something new.")
    folders = [location, *(path for path in location.rglob("*") if path.is_dir())]
    for path in location.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    location.chmod(0o555)
    prefix = [*as_a_user_without_power(), sys.executable, "-m", "ragcli"]
    try:
        asked, wrote = (
            subprocess.run(
                [*prefix, *words, "--index", str(location)],
                capture_output=True,
                text=True,
                check=False,
            )
            for words in (["query", "harbour crane", "-k", "1"], ["index"])
        )
    finally:
        for path in folders:
            path.chmod(0o755)
    assert asked.returncode == 0, asked
    assert "Harbour crane" in asked.stdout
    assert wrote.returncode == 3, wrote
    assert "Traceback" not in wrote.stderr
    assert "cannot be written" in wrote.stderr


@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """The old state stays and answers; with room again the next run goes on."""
    docs, disk = tmp_path / "docs", tmp_path / "disk"
    write_files(docs, DOCS)
    disk.mkdir()
    big = "\n\n".join(f"word{i} in a big file" for i in range(30_000))
    (tmp_path / "big.txt").write_text(big, encoding="utf-8")
    index = command("index", docs, "--encoder", "hash", "--index", disk / "rag")
    query = command("query", "harbour crane", "-k", 1, "--index", disk / "rag")
    done = in_a_mount_namespace(
        f"mount -t tmpfs -o size=1m none {disk} || exit 99\n"
        f"{index} > /dev/null; echo first $?\n"
        f"cp {tmp_path}/big.txt {docs}\n{index}; echo full $?\n"
        f"{query}; echo query $?\n"
        f"mount -o remount,size=200m {disk}\n{index}; echo room $?\n"
        f"{command('query', 'word29999', '-k', 1, '--index', disk / 'rag')}\n"
        f"{command('inspect', '--check', '--index', disk / 'rag')}; echo check $?\n"
    )
    for name, code in (("first", 0), ("full", 3), ("query", 0), ("room", 0), ("check", 0)):
        assert f"{name} {code}\n" in done.stdout, done
    assert "Harbour crane" in done.stdout
    assert "word29999" in done.stdout
    assert "Traceback" not in done.stderr
    assert "cannot be written" in done.stderr
    assert "hint: free some space" in done.stderr


def test_an_index_without_its_sources_answers(location: Path, tmp_path: Path) -> None:
    before = everything(location)
    shutil.rmtree(tmp_path / "docs")
    shutil.move(location, tmp_path / "elsewhere")
    assert everything(tmp_path / "elsewhere") == before


def test_a_catalogue_of_noise_is_refused(location: Path) -> None:
    (location / FILE).write_bytes(b"\x00" * 8192)
    with pytest.raises(IndexUnavailable):
        everything(location)
    with pytest.raises(IndexForeign, match="it is no SQLite database"):
        build(location)
