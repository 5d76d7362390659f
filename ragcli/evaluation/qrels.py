"""Relevance judgements as BEIR and TREC write them: query, document, grade."""

from __future__ import annotations

import re
from pathlib import Path

from ragcli.errors import UsageError
from ragcli.evaluation.lines import BadLine, name_of, read_lines

_GRADE = re.compile(r"([+-]?[0-9]{1,9})(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?[0-9.]+")
_FORM = "a line is query-id<TAB>corpus-id<TAB>score, or TREC's: query 0 document grade"


def read_qrels(file: Path) -> dict[str, dict[str, int]]:
    """Per query the grade of each document judged, those of 0 and less (not relevant) too.

    BEIR's three columns stand between tabs, below a line of their names; TREC's four between tabs
    or other white space, the second without meaning. Raises UsageError for a file that cannot be
    read, holds nothing, or has bad lines.
    """
    graded: dict[str, dict[str, int]] = {}
    heading = True

    def judge(_number: int, line: str) -> None:
        nonlocal heading
        fields = line.split("\t")
        if len(fields) not in (3, 4):
            fields = line.split()
        first, heading = heading, False
        if len(fields) not in (3, 4):
            raise BadLine(f"has {len(fields)} columns, not three or four")
        query, document, grade = fields[0].strip(), fields[-2].strip(), fields[-1].strip()
        if not _GRADE.fullmatch(grade):
            if first and not _NUMBER.fullmatch(grade):
                return
            raise BadLine(f"has a grade that is no whole number: {grade}")
        judged = graded.setdefault(query, {})
        whole = int(grade.partition(".")[0])
        if judged.setdefault(document, whole) != whole:
            raise BadLine(f"grades {document} for {query} again, and not as before")

    read_lines(file, judge, _FORM)
    if not graded:
        raise UsageError(f"{name_of(file)} holds no judgement", _FORM)
    return graded
