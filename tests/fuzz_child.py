"""The process that fuzzes one kind: `python fuzz_child.py KIND SECONDS FIRST FOLDER`.

Under a limit of memory, and of time for each case. Its last line says how many cases it tried;
before each, `FOLDER/case` has the case's number, so that whoever started it knows which one ended
it. `python fuzz_child.py KIND 0 NUMBER FOLDER` runs one case again.
"""

from __future__ import annotations

import faulthandler
import sys
import time
import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from fuzz_mutations import case

from ragcli.corpus.chunking import chunk, parse_chunking
from ragcli.corpus.patterns import Patterns
from ragcli.corpus.readers import iter_documents
from ragcli.corpus.source import Source
from ragcli.encoders import WordTokenizer
from ragcli.errors import UnreadableFile, UsageError
from ragcli.evaluation.qrels import read_qrels
from ragcli.evaluation.questions import read_questions
from ragcli.generation.visible import visible
from ragcli.indexing.analysis import Analysis, FileTask
from ragcli.indexing.worker import limit_memory
from ragcli.records import Chunk, Document, Settings

SECONDS_A_CASE = 10
MEMORY = 1 << 30
KINDS = {"heading", "paragraph", "item", "code", "table", "other"}
CHUNKINGS = ("auto:20", "words:7", "sentences:1", "tokens:9/3")


def check_ledger(problems: Sequence[tuple[str, str, str | None]]) -> None:
    for kind, message, page in problems:
        assert kind and kind.replace("_", "").isalpha(), kind
        check_line(message)
        (page or "").encode()


def check_line(message: str) -> None:
    """One line that any output can carry, and a short one."""
    message.encode()
    assert message and len(message.splitlines()) == 1 and len(message) < 1000, message


def check_document(document: Document) -> None:
    text = document.text
    for part in (text, document.title or "", document.record or ""):
        part.encode()
    end = 0
    for block in document.blocks:
        assert end <= block.start < block.end <= len(text), block
        assert not text[end : block.start].strip(), "text between blocks"
        assert block.kind in KINDS, block
        "".join(block.headings).encode()
        end = block.end
    assert not document.blocks or not text[end:].strip(), "text behind the last block"
    assert document.blocks or not text.strip(), "text without blocks"
    starts = [page.start for page in document.pages]
    assert starts == sorted(starts) and (not starts or starts[0] == 0), starts
    for (a, first), (b, second) in pairwise(document.line_anchors or ()):
        assert a < b and first <= second, (a, first, b, second)


def check_chunks(document: Document, chunks: Sequence[Chunk], overlap: bool) -> None:
    end = 0
    pages = [page.start for page in document.pages]
    for piece in chunks:
        assert document.text[piece.start : piece.end] == piece.text
        assert piece.text.strip() == piece.text != ""
        assert piece.start >= end or overlap, "chunks overlap"
        assert not document.text[min(end, piece.start) : piece.start].strip(), "text between chunks"
        assert bisect_right(pages, piece.start) == bisect_right(pages, piece.end - 1) or overlap
        if piece.lines is not None:
            assert 1 <= piece.lines[0] <= piece.lines[1]
        end = max(end, piece.end)
    assert not document.text[end:].strip(), "text behind the last chunk"


def reading(name: str, folder: Path) -> Callable[[bytes], None]:
    """A check that reads bytes as the file `name`, chunks them, and analyses them as `index` does.

    Pages part chunks only where chunks follow structure (`auto`).
    """
    analysis = Analysis(Settings(encoder="hash", dim=64), folder, vectors=True)
    chunkings = [parse_chunking(chunking) for chunking in CHUNKINGS]

    def check(data: bytes) -> None:
        source = Source(name, data)
        try:
            for document in iter_documents(source):
                check_document(document)
                for chunking in chunkings:
                    pieces = chunk(document, chunking, WordTokenizer())
                    check_chunks(document, pieces, chunking.kind != "auto")
        except UnreadableFile:
            pass  # the ledger's line is that of the outcome, below
        (folder / name).write_bytes(data)
        task = FileTask(name, str(folder / name), len(data))
        outcomes = [outcome for part in analysis.run([task]) for outcome in part.outcomes]
        assert outcomes
        assert [outcome.more for outcome in outcomes] == [True] * (len(outcomes) - 1) + [False]
        for outcome in outcomes:
            check_ledger(outcome.problems)
            check_line(outcome.reason or "fine")

    return check


def parsing(kind: str, folder: Path) -> Callable[[bytes], None]:
    """A check of the parsers of questions, judgements and ignore patterns."""
    file = folder / "given"

    def check(data: bytes) -> None:
        file.write_bytes(data)
        try:
            if kind == "questions":
                for question in read_questions(file):
                    "".join((question.id, question.text, *question.answers)).encode()
            else:
                read_qrels(file)
        except UsageError as error:
            check_line(visible(error.message))

    def check_patterns(data: bytes) -> None:
        patterns = Patterns(data.decode("utf-8", "surrogateescape").split("\n"))
        for path in ("a", "a/b.log", "build/x", "docs/a/b/c/x", "a" * 200, "\n/\udcff"):
            patterns.deciding(path, path.rpartition("/")[2], is_dir=False)
            patterns.deciding(path, path.rpartition("/")[2], is_dir=True)

    return check_patterns if kind == ".gitignore" else check


def main(kind: str, seconds: float, first: int, folder: Path) -> None:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    limit_memory(MEMORY)
    kinds_parsed = ("questions", "qrels", ".gitignore")
    check = parsing(kind, folder) if kind in kinds_parsed else reading(kind, folder)
    end = time.monotonic() + seconds
    number = first
    while True:
        (folder / "case").write_text(str(number))
        faulthandler.dump_traceback_later(SECONDS_A_CASE, exit=True)
        check(case(kind, number))
        faulthandler.cancel_dump_traceback_later()
        number += 1
        if time.monotonic() >= end:
            break
    print(number - first)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
