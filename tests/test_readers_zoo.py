"""Every file of the zoo, a folder of real files that break ingestion, meets its expectation."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragcli.corpus.readers import read_document
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

ZOO = Path(__file__).resolve().parents[1].parent / "shared" / "zoo"
MANIFEST = ZOO / "manifest.jsonl"
SECONDS = 20
"""How long one file may take: far more than any needs, far less than for ever."""

WALKER = "tree/project/"
"""What the ignore rules decide, not a reader."""

# What cannot be met by a reader, and why.
EXCEPTIONS: dict[str, str] = {}

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not MANIFEST.exists(), reason="the zoo is not beside the checkout"),
]


def entries() -> list[Any]:
    if not MANIFEST.exists():
        return []
    rows = [json.loads(line) for line in MANIFEST.read_text("utf-8").splitlines()]
    return [
        pytest.param(
            row,
            id=row["path"],
            marks=[pytest.mark.xfail(reason=EXCEPTIONS[row["path"]], strict=True)]
            if row["path"] in EXCEPTIONS
            else [],
        )
        for row in rows
        if not row["path"].startswith(WALKER)
    ]


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check_invariants(document: Document) -> None:
    end = 0
    for block in document.blocks:
        assert end <= block.start < block.end <= len(document.text)
        assert not document.text[end : block.start].strip()
        end = block.end
    assert not document.text[end:].strip()
    document.text.encode("utf-8")
    if document.pages:
        starts = [page.start for page in document.pages]
        assert starts[0] == 0
        assert starts == sorted(starts)


def collapsed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("entry", entries())
def test_zoo(entry: dict[str, Any]) -> None:
    data = (ZOO / "files" / entry["path"]).read_bytes()
    expect = entry["expect"]
    try:
        with alarm(SECONDS):
            documents = read_document(Source(entry["path"], data))
    except UnreadableFile as error:
        assert "\n" not in error.message
        allowed = {
            "text": set(),
            "text_if_supported": {"unsupported", "missing_extra"},
            "text_or_error": {"corrupt", "no_text", "password"},
            "password": {"password"},
            "no_text": {"no_text"},
            "error": {"corrupt", "no_text", "decode", "unsupported"},
            "skip": {"binary", "unsupported"},
            "text_or_skip": {"generated", "minified"},
        }[expect]
        if entry.get("hard") and expect == "text":
            allowed = {"decode"}
        assert error.kind in allowed, f"{error.kind}: {error.message}"
        assert error.skip == (expect in ("skip", "text_or_skip") or error.kind == "decode")
        return
    assert expect in ("text", "text_if_supported", "text_or_error", "text_or_skip")
    for document in documents:
        check_invariants(document)
    text = collapsed("\n".join(document.text for document in documents))
    for words in entry.get("must_contain") or ():
        assert collapsed(words) in text
