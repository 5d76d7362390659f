"""`--ocr`: the program tesseract over pages without text, its limits, and what is told of it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("pypdfium2")

from test_readers_pdf import bytes_of, with_contents, writer_of

from ragcli.corpus.readers import pdf_ocr, read_document
from ragcli.corpus.readers.pdf_ocr import check_ocr
from ragcli.corpus.source import Source
from ragcli.errors import ModelUnavailable, RagcliError, UnreadableFile, UsageError
from ragcli.indexing import index_folder
from ragcli.indexing.scope import reading_of
from ragcli.records import Counts, IndexReport, Settings

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
HEAD = "level page_num block_num par_num line_num word_num left top width height conf text"
WORDS = [
    ("1", "1", "1", "96.0", "Scanned"),
    ("1", "1", "1", "90.0", "words"),
    ("1", "1", "2", "84.0", "below"),
    ("1", "1", "2", "7.5", "~|"),
    ("2", "1", "1", "90.0", "apart"),
]
"""Block, paragraph, line, confidence, text."""
SCAN = b"q 600 0 0 800 0 0 cm /I Do Q"


def install(folder: Path, script: str, words: Sequence[Sequence[str]] = WORDS) -> None:
    """Put a program `tesseract` into `folder` that speaks its command line.

    `script` runs after the picture on stdin went to `picture` and the arguments to `arguments`.
    """
    folder.mkdir(exist_ok=True)
    table = ["\t".join(HEAD.split()), "4" + "\t1" * 9 + "\t-1\t"]
    for block, paragraph, line, confidence, text in words:
        table.append("\t".join(["5", "1", block, paragraph, line, *"11111", confidence, text]))
    (folder / "table").write_text("\n".join(table) + "\n")
    program = folder / "tesseract"
    program.write_text(
        "#!/bin/sh\n"
        'here=$(dirname "$0")\n'
        'if [ "$1" = --list-langs ]; then echo "List (2):"; echo deu; echo eng; exit; fi\n'
        'echo "$@" >> "$here/arguments"\n'
        'cat > "$here/picture"\n'
        f'{script}\ncat "$here/table"\n'
    )
    program.chmod(0o755)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    install(folder, ":")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def read(data: bytes, ocr: str | None = "eng") -> tuple[str, list[tuple[str, str, str | None]]]:
    (document,) = read_document(Source("a.pdf", data, ocr=ocr))
    return document.text, list(document.problems)


def scan(beside: bytes = b"") -> bytes:
    return bytes_of(with_contents(SCAN + beside))


def test_a_page_without_text_is_read_and_told(program: Path) -> None:
    text, problems = read(scan(), "deu+eng")
    assert text == "Scanned words\nbelow\n\napart"
    assert problems == [("ocr", "text by OCR, mean confidence 90 %", "1")]
    arguments = (program / "arguments").read_text().split()
    assert arguments == [
        *("stdin", "stdout", "-l", "deu+eng", "--dpi", "300", "-c", "tessedit_create_tsv=1")
    ]
    kind, width, height, top = (program / "picture").read_bytes().split(maxsplit=4)[:4]
    assert (kind, top) == (b"P5", b"255")
    assert (int(width), int(height)) == (2500, 3334)  # 600 and 800 points at 300 dots an inch
    size = (program / "picture").stat().st_size
    assert size == len(f"P5 {int(width)} {int(height)} 255\n") + int(width) * int(height)


def test_pages_with_text_and_blank_pages_are_left_alone(program: Path) -> None:
    writer = writer_of([["words " * 40], []])
    text, problems = read(bytes_of(writer))
    assert text.startswith("words words")
    assert [(kind, page) for kind, _, page in problems] == [("blank", "2")]
    assert not (program / "arguments").exists()


def test_a_stamp_on_a_scan_gives_way_to_the_scan(program: Path) -> None:
    stamp = b" BT /F1 12 Tf 50 750 Td (No 7) Tj ET"
    assert read(scan(stamp))[0] == "Scanned words\nbelow\n\napart"
    longer = b" BT /F1 12 Tf 50 750 Td (Received on the seventh of May) Tj ET"
    text, problems = read(scan(longer))
    assert text == "Received on the seventh of May"
    assert [kind for kind, _, _ in problems] == ["little_text"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no such thing >&2; exit 3", "tesseract failed: no such thing"),
        ("exec sleep 60", "tesseract took longer than 1 s"),
        ("head -1 $here/table; exit", "OCR found none"),
    ],
)
def test_what_comes_of_a_page_that_fails(
    program: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    install(program, script)
    monkeypatch.setattr(pdf_ocr, "SECONDS", 0.6)
    began = time.monotonic()
    with pytest.raises(UnreadableFile) as caught:
        read(scan())
    assert time.monotonic() - began < 20
    assert caught.value.kind == "no_text"
    assert caught.value.message == f"no text layer: scanned or image only (1 page); {message}"


def test_what_is_missing_is_said(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_ocr("eng+deu")
    for languages in ("--version", "eng deu", "", "a;b"):
        with pytest.raises(UsageError):
            check_ocr(languages)
    with pytest.raises(ModelUnavailable, match=r"no data for fra \(it has deu, eng\)") as caught:
        check_ocr("eng+fra")
    assert caught.value.hint is not None and "tesseract-ocr-fra" in caught.value.hint
    monkeypatch.setenv("PATH", str(program / "nowhere"))
    with pytest.raises(ModelUnavailable, match="tesseract is not installed") as caught:
        check_ocr("eng")
    assert caught.value.exit_code == 6


def run(folder: Path, **changes: object) -> IndexReport:
    changes = {"encoder": "none", **changes}
    return index_folder(folder / ".rag", [folder / "files"], changes, workers=1)


def kinds(report: IndexReport) -> list[str]:
    return [problem.kind for problem in report.problems]


def test_languages_that_are_none_reach_no_program(program: Path) -> None:
    with pytest.raises(pdf_ocr.OcrFailed, match="there is no language"):
        pdf_ocr.recognise(b"P5 1 1 255 x", 300, "../../etc/passwd")


def test_an_index_remembers_and_forgets_it(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "scan.pdf").write_bytes(scan())
    (tmp_path / "files" / "text.md").write_text("text")
    assert kinds(run(tmp_path)) == ["no_text"]
    report = run(tmp_path, ocr="eng")
    assert (kinds(report), report.counts.failed) == (["ocr"], 0)
    report = run(tmp_path)
    assert (kinds(report), report.counts.unchanged) == (["ocr"], 2)
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelUnavailable):
        run(tmp_path, ocr="deu")
    (tmp_path / "files" / "more.md").write_text("more text")
    assert run(tmp_path).counts == Counts(indexed=1, unchanged=2)
    assert kinds(run(tmp_path, ocr="")) == ["no_text"]
    monkeypatch.setenv("PATH", path)
    assert kinds(run(tmp_path)) == ["no_text"]


def test_only_what_may_be_a_pdf_is_read_again_for_ocr(tmp_path: Path) -> None:
    without = reading_of(Settings(encoder="none"), tmp_path)
    with_it = reading_of(Settings(encoder="none", ocr="eng"), tmp_path)
    other = reading_of(Settings(encoder="none", ocr="deu"), tmp_path)
    for path in ("a.pdf", "sub/B.PDF", "scan", "scan.xyz"):
        assert len({reading.of(path) for reading in (without, with_it, other)}) == 3
    for path in ("a.txt", "a.md", "a.docx", "a.html", "Makefile"):
        assert len({reading.of(path) for reading in (without, with_it, other)}) == 1


@pytest.mark.slow
def test_slow_pages_ask_for_time(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page may take longer than a file without OCR does."""
    install(program, "sleep 12")
    monkeypatch.setattr("ragcli.indexing.pool.SECONDS", 8.0)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "scan.pdf").write_bytes(scan())
    assert kinds(run(tmp_path, ocr="eng")) == ["ocr"]


@pytest.mark.slow
def test_the_program_ends_with_the_run(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(program, 'echo $$ > "$here/pid"; exec sleep 600')
    monkeypatch.setattr("ragcli.indexing.pool._Child.ask", _impatient(program / "pid"))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "scan.pdf").write_bytes(scan())
    assert kinds(run(tmp_path, ocr="eng")) == ["crashed"]
    number = int((program / "pid").read_text())
    until = time.monotonic() + 10
    while _runs(number):
        assert time.monotonic() < until, "the program outlived its reader"
        time.sleep(0.05)


def _impatient(sign: Path) -> object:
    """`ask` that ends the child once the file `sign` has something in it."""
    import threading

    from ragcli.indexing.pool import _Child

    ask = _Child.ask

    def wait(child: _Child, files: object, seconds: float) -> object:
        def end() -> None:
            until = time.monotonic() + 30
            while time.monotonic() < until and not (sign.exists() and sign.read_text().strip()):
                time.sleep(0.05)
            child.kill()

        threading.Thread(target=end, daemon=True).start()
        return ask(child, files, seconds)  # type: ignore[arg-type]

    return wait


def _runs(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.shared
@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_the_real_program_over_a_real_scan() -> None:
    path = SHARED / "zoo" / "files" / "pdf" / "misc" / "privategpt-file_scanned.pdf"
    if not path.exists():
        pytest.skip("the zoo is not beside the checkout")
    try:
        check_ocr("eng")
    except RagcliError as error:
        pytest.skip(error.message)
    text, problems = read(path.read_bytes())
    assert len(text.split()) > 5
    assert [kind for kind, _, _ in problems] == ["ocr"]
