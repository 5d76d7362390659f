"""Files and folders made to cost whoever reads them: bounded, told, and the run goes on."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from conftest import write_files
from hostile_files import FILES, SECRET

from ragcli.corpus.chunking import chunk, parse_chunking
from ragcli.corpus.readers import archive, iter_documents, read_document
from ragcli.corpus.source import Source
from ragcli.encoders import WordTokenizer
from ragcli.errors import UnreadableFile
from ragcli.records import Document

ROOT = Path(__file__).parents[1]
BYTES = 1_200_000_000
"""For all processes of a run together: one child may have 1 GB."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def family(process: int) -> list[int]:
    """The process and all below it that are still there."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        below = [int(n) for task in tasks for n in (task / "children").read_text().split()]
    except OSError:
        return []
    return [process, *(each for child in below for each in family(child))]


def resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096
    except (OSError, IndexError):
        return 0


def handles(process: int) -> int:
    try:
        return len(list(Path(f"/proc/{process}/fd").iterdir()))
    except OSError:
        return 0


class Watched:
    """A run of `ragcli index` and the most that it had at once, looked at fifty times a second."""

    def __init__(self, work: Path, *arguments: str, seconds: float = 300) -> None:
        (work / "tmp").mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "ragcli", "index", "--encoder", "hash", "--json", *arguments],
            cwd=work,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(work / "tmp")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.bytes = self.handles = self.children = 0
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(0.02):
                every = family(process.pid)
                self.bytes = max(self.bytes, sum(map(resident, every)))
                self.handles = max(self.handles, *map(handles, every), 0)
                self.children = max(self.children, len(every) - 1)

        watcher = threading.Thread(target=look)
        watcher.start()
        began = time.monotonic()
        try:
            out, self.errors = process.communicate(timeout=seconds)
        finally:
            process.kill()
            ended.set()
            watcher.join()
        self.seconds = time.monotonic() - began
        self.code = process.returncode
        self.report: dict[str, Any] = json.loads(out or "{}")
        self.left = sorted(path.name for path in (work / "tmp").iterdir())


def read(name: str) -> tuple[list[Document], str]:
    """The documents of a hostile file, or the kind of its refusal."""
    try:
        return read_document(Source(name, FILES[name]())), ""
    except UnreadableFile as error:
        return [], error.kind


QUICK = [
    name
    for name in FILES
    if name.endswith((".md", ".rst", ".py", ".go", ".txt", ".ini", ".org", ".mediawiki"))
]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_no_text_makes_a_pattern_or_a_cut_slow(name: str) -> None:
    """These kinds are read in the process itself when they are small: seconds for a megabyte."""
    data = FILES[name]()[: 1 << 20]
    began = time.process_time()
    for document in iter_documents(Source(name, data)):
        pieces = chunk(document, parse_chunking("auto"), WordTokenizer())
        assert sum(len("".join(piece.heading)) for piece in pieces) <= 4000 * len(pieces)
    assert time.process_time() - began < 8


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("big_member.odt", "too_large"),
        ("overlap.odt", "too_large"),
        ("lying.odt", "corrupt"),
        ("lying.epub", "corrupt"),
        ("deep.json", "minified"),
        ("deep.ipynb", "corrupt"),
        ("declaration.xml", "corrupt"),
    ],
)
def test_bombs_are_refused(name: str, kind: str) -> None:
    began = time.process_time()
    assert read(name) == ([], kind)
    assert time.process_time() - began < 10


def test_an_archive_is_inflated_no_further_than_it_says() -> None:
    with archive.open_archive(Source("a.odt", FILES["lying.odt"]())) as opened:
        tracemalloc.start()
        with pytest.raises(UnreadableFile, match="CRC"):
            archive.read_member(opened, "content.xml")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 10_000_000  # it unpacks to 300 MB


@pytest.mark.parametrize(
    "name", ["laughs.xml", "quadratic.xml", "laughs.html", "laughs.xhtml", "laughs.odt"]
)
def test_entities_are_not_multiplied(name: str) -> None:
    (document,), _ = read(name)
    assert "kept" in document.text or document.problems
    assert len(document.text) < 100_000


def test_entities_read_and_fetch_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = f"127.0.0.1:{server.getsockname()[1]}/".encode()
        for name in ("external.xml", "external.xhtml"):
            data = FILES[name]().replace(b"127.0.0.1:9/", port)
            assert port in data
            (document,) = read_document(Source(name, data))
            assert "kept" in document.text
            assert SECRET not in document.text
        with pytest.raises(TimeoutError):
            server.accept()
    documents, _ = read("external.odt")
    assert all(SECRET not in document.text for document in documents)


def test_what_is_nested_too_deep_is_told() -> None:
    (document,), _ = read("deep.html")
    assert [kind for kind, _, _ in document.problems] == ["truncated", "empty"]
    page = b"<p>before</p>" + b"<div>x" * 1500 + b"kept" + b"</div>" * 1500 + b"<p>after</p>"
    (document,) = read_document(Source("a.html", page))
    assert "kept" in document.text and document.text.endswith("after")
    assert document.problems == ()


def test_a_chapter_named_a_thousand_times_is_read_once() -> None:
    (document,), _ = read("same_chapter.epub")
    assert len(document.text.split()) == 20_000


def test_a_declaration_that_does_not_end_is_looked_for_once() -> None:
    began = time.process_time()
    assert read("declaration.xml") == ([], "corrupt")
    assert time.process_time() - began < 2


def test_a_heading_of_a_megabyte_is_not_above_each_passage() -> None:
    data = b"# " + b"word " * 50_000 + b"\n\n" + b"text of it\n\n" * 500
    (document,) = read_document(Source("a.md", data))
    pieces = chunk(document, parse_chunking("words:50"), WordTokenizer())
    assert max(len(part) for piece in pieces for part in piece.heading) == 300
    assert pieces[-1].heading[0].endswith("…")
    assert document.blocks[0].headings[0] == "word " * 49_999 + "word"


@pytest.mark.slow
def test_the_run_goes_on(tmp_path: Path) -> None:
    """One folder of bombs: each is told, the file beside them is found, nothing is left over."""
    names = [
        *("nested.odt", "lying.odt", "lying.docx", "lying.pptx", "lying.xlsx", "overlap.odt"),
        *("laughs.xml", "deep.html", "deep.xml", "deep.jsonl", "deep.ipynb", "number.jsonl"),
        *("million_columns.csv", "deep.eml", "boundary.eml", "many_escaped.xml", "tables.html"),
    ]
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in names:
        (docs / name).write_bytes(FILES[name]())
    write_files(docs, {"fine.txt": "The fine file is there."})
    run = Watched(tmp_path, "docs", "--workers", "1")
    assert run.code == 0, run.errors
    counts = run.report["counts"]
    assert counts["indexed"] + counts["failed"] + counts["skipped"] == len(names) + 1
    told = {problem["path"] for problem in run.report["problems"]}
    assert told >= {*names} - {"many_escaped.xml", "tables.html", "boundary.eml", "nested.odt"}
    assert all(problem["message"].isprintable() for problem in run.report["problems"])
    assert "fine.txt" not in told
    assert run.bytes < BYTES
    assert run.left == []
    assert not list((tmp_path / ".rag" / "segments").glob(".unfinished-*"))


@pytest.mark.slow
def test_a_file_that_never_ends_costs_itself_alone(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "slow.html").write_bytes(FILES["attributes.html"]())
    write_files(docs, {f"{n}.txt": f"fine {n} " * 20_000 for n in range(8)})
    run = Watched(tmp_path, "docs", "--workers", "2")
    assert run.code == 0, run.errors
    assert {problem["path"] for problem in run.report["problems"]} <= {"slow.html"}
    assert run.report["counts"]["indexed"] >= 8
    assert run.seconds < 120


def test_no_kind_of_file_is_read_that_cannot_end(tmp_path: Path) -> None:
    """Sparse files of 10 GB, pipes, sockets, links out and links in a circle."""
    docs = tmp_path / "docs"
    docs.mkdir()
    sparse = [f"sparse{suffix}" for suffix in (".txt", ".md", ".pdf", ".jsonl", ".html", ".docx")]
    for name in sparse:
        with (docs / name).open("wb") as file:
            file.truncate(10 << 30)
    os.mkfifo(docs / "pipe.txt")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.path.relpath(docs / "sock.txt"))
    for name, target in (("etc", "/etc"), ("loop", "."), ("self", "self"), ("e", "/proc/self/mem")):
        (docs / name).symlink_to(target)
    names = ["new\nline.txt", "esc\x1b[2J.txt", "rtl\u202egpj.txt", "n" * 251 + ".txt", "[b]x.txt"]
    write_files(docs, dict.fromkeys(names, "kept"))
    Path(os.fsdecode(os.fsencode(docs) + b"/bad\xff.txt")).write_text("kept")
    run = Watched(tmp_path, "docs", "--workers", "1")
    listening.close()
    assert run.code == 0, run.errors
    assert run.report["counts"] == {
        "indexed": 6, "unchanged": 0, "moved": 0, "removed": 0, "skipped": 12, "failed": 0,
    }  # fmt: skip
    assert run.report["skipped"]["too large"] == len(sparse)
    shown = subprocess.run(
        [sys.executable, "-m", "ragcli", "query", "kept", "-k", "9", "--show", "table"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert shown.isprintable() or set(filter(lambda c: not c.isprintable(), shown)) == {"\n"}
    for name in (r"new\nline.txt", r"esc\x1b[2J.txt", r"rtl\u202egpj.txt", r"bad\xff.txt"):
        assert name in shown


def test_a_folder_deeper_than_the_system_opens_is_told(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    write_files(tmp_path, {"fine.txt": "fine"})
    try:
        run = Watched(tmp_path, ".", "--workers", "1")
        assert run.code == 0, run.errors
        assert run.report["counts"]["indexed"] == 1
        (problem,) = run.report["problems"]
        assert problem["message"] == "path too long"
    finally:  # deeper than pytest's own clearing up goes
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


@pytest.mark.slow
def test_workers_memory_and_handles_are_bounded(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    write_files(docs, {f"{n % 50}/{n}.txt": f"file {n} of many words\n" * 20 for n in range(5000)})
    run = Watched(tmp_path, "docs", "--workers", "2")
    assert run.code == 0, run.errors
    assert run.report["counts"]["indexed"] == 5000
    assert 1 <= run.children <= 2
    assert run.handles < 64
    assert run.bytes < 500_000_000
    assert run.left == []


def test_the_ledger_holds_one_short_line_whatever_a_parser_says(tmp_path: Path) -> None:
    from ragcli.indexing.analysis import Analysis, FileTask
    from ragcli.records import Settings

    data = b"<z><a>kept</a><![CDATA[\n<p>raw\x1b[2J" + b"long " * 500
    (tmp_path / "a.xml").write_bytes(data)
    task = FileTask("a.xml", str(tmp_path / "a.xml"), len(data))
    (analysed,) = Analysis(Settings(encoder="none"), tmp_path, vectors=False).run([task])
    ledger = [problem for outcome in analysed.outcomes for problem in outcome.problems]
    assert ledger
    for kind, message, _ in ledger:
        assert kind in ("corrupt", "empty", "decode")
        assert len(message.splitlines()) == 1 and len(message) <= 300


def test_a_bad_line_of_a_megabyte_is_told_in_one_short_line(tmp_path: Path) -> None:
    from ragcli.errors import UsageError
    from ragcli.evaluation.qrels import read_qrels
    from ragcli.evaluation.questions import read_questions

    (tmp_path / "q").write_text('{"question": "x", "relevant": ["' + "a" * 1_000_000 + ':3-1"]}\n')
    (tmp_path / "r").write_text("1\ta\t" + "<" * 1_000_000 + "\n1\ta\t" + "<" * 1_000_000 + "\n")
    for parse, name in ((read_questions, "q"), (read_qrels, "r")):
        with pytest.raises(UsageError) as caught:
            parse(tmp_path / name)
        assert "\n" not in caught.value.message
        assert len(caught.value.message) < 1000
