"""Which reader reads what, and how failures of parsers become one kind of error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from ragcli.corpus import readers
from ragcli.corpus.readers import (
    BINARY_SUFFIXES,
    ISOLATED,
    READERS,
    effective_suffix,
    is_plain,
    iter_documents,
    read_document,
)
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document


def test_the_tables_agree() -> None:
    assert ISOLATED.issubset(READERS)
    assert BINARY_SUFFIXES.isdisjoint(READERS)
    for suffix in (*READERS, *BINARY_SUFFIXES):
        assert suffix.startswith(".")
        assert suffix == suffix.lower()


@pytest.mark.parametrize(
    ("path", "suffix"),
    [
        ("a/README.MD", ".md"),
        ("docs/re.rst.txt", ".rst"),
        ("Dockerfile", ".dockerfile"),
        ("build/Dockerfile.dev", ".dockerfile"),
        ("Makefile", ".mk"),
        ("CMakeLists.txt", ".cmake"),
        ("LICENSE", ""),
        (".gitignore", ""),
    ],
)
def test_effective_suffix(path: str, suffix: str) -> None:
    assert effective_suffix(path) == suffix
    known = suffix in READERS
    assert effective_suffix(path, b"%PDF-1.7") == (suffix if known else ".pdf")
    assert is_plain(path) == known


def test_unknown_suffixes_are_told_by_content() -> None:
    (document,) = read_document(Source("notes.unheard-of", b"one\n\ntwo\n"))
    assert (document.kind, len(document.blocks)) == ("text", 2)
    for path, data, kind in (
        ("blob.unheard-of", bytes(range(256)), "binary"),
        ("report", b"%PDF-1.4 and nothing more", "corrupt"),
        ("photo.jpg", b"whatever", "binary"),
        ("renamed.txt", b"%PDF-1.4 in disguise", "binary"),
        ("old.ppt", b"whatever", "unsupported"),
    ):
        with pytest.raises(UnreadableFile) as caught:
            read_document(Source(path, data))
        assert caught.value.kind == kind
        assert caught.value.skip == (kind == "binary")


@pytest.mark.parametrize("text", [b"", b" \n\t\n", b"\xef\xbb\xbf", b"\r\n"])
@pytest.mark.parametrize("path", ["a.txt", "a.md", "a.rst", "a.py", "a.html", "a.xml", "a.ipynb"])
def test_empty_files_say_so(path: str, text: bytes) -> None:
    (document,) = read_document(Source(path, text))
    assert document.blocks == ()
    assert document.problems == (("empty", "no text in this file", None),)


def test_whatever_a_parser_raises_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: Source) -> Iterator[Document]:
        yield Document("one", "text")
        raise KeyError("xref\nsecond line")

    monkeypatch.setitem(readers.READERS, ".broken", broken)
    documents = iter_documents(Source("a.broken", b"x"))
    with pytest.raises(UnreadableFile) as caught:
        list(documents)
    assert caught.value.kind == "corrupt"
    assert caught.value.message.startswith("KeyError: ")
    assert "\n" not in caught.value.message


def test_problems_of_the_file_are_on_its_last_document() -> None:
    source = Source("a.jsonl", b'{"text": "a"}\nbad\n{"text": "b"}\n')
    first, last = iter_documents(source)
    assert first.problems == ()
    assert [kind for kind, _, _ in last.problems] == ["bad_record"]


def test_importing_the_readers_loads_no_parser() -> None:
    heavy = (
        "lxml pypdf docx pptx openpyxl markdown_it chardet zipfile email logging"
        " numpy html.entities"
    )
    code = (
        "import sys, ragcli.corpus.readers\n"
        f"print([name for name in {heavy.split()!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
