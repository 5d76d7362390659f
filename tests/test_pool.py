"""The child processes that read files: what is their fault, what a file's, and their limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import build, write_files

from ragcli.errors import ModelUnavailable
from ragcli.indexing import pool
from ragcli.store.index import Index

PAGE = {"a.html": "<p>The harbour crane.</p>"}


def test_children_that_do_not_start_cost_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were all "its parser crashed" once, and their passages gone."""
    write_files(tmp_path / "docs", PAGE)
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    write_files(tmp_path, {"broken/numpy/__init__.py": "raise ImportError('numpy is broken')"})
    write_files(tmp_path / "docs", {"a.html": "<p>The lifted bridge.</p>"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    with pytest.raises(ModelUnavailable, match="does not start: ImportError: numpy is broken"):
        build(tmp_path / ".rag", tmp_path / "docs")
    with Index.open(tmp_path / ".rag") as index:
        assert index.counts()[0] == 1
    monkeypatch.delenv("PYTHONPATH")
    assert build(tmp_path / ".rag", tmp_path / "docs").counts.indexed == 1


@pytest.mark.skipif(not hasattr(os, "nice"), reason="no limits of work on this system")
def test_the_limit_is_of_work_and_not_of_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "=?utf-8?q?crane?= " * 50_000
    write_files(tmp_path / "docs", {**PAGE, "long.eml": f"Subject: {words}\n\nHello.\n"})
    monkeypatch.setattr(pool, "SECONDS", 0.1)
    monkeypatch.setattr(pool, "_BYTES_A_SECOND", 10**9)
    monkeypatch.setattr(pool, "PATIENCE", 1000.0)
    report = build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    assert (report.counts.indexed, report.counts.failed) == (1, 1)
    (problem,) = report.problems
    assert (problem.path, problem.kind) == ("long.eml", "timeout")
    assert problem.message == "took longer than 0 s to read"
