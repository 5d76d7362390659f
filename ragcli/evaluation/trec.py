"""Runs and relevance judgements in TREC's form, for other scorers.

An item has the name of what is relevant as written; a hit that holds none has its place for one.
A hit that holds several items not held before it stands there once for each.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from ragcli.errors import UsageError
from ragcli.evaluation.run import Items, Outcome, Run
from ragcli.store.writing import write_whole

_TAG = "ragcli"


def write(run: Run, items: Items, folder: Path) -> tuple[Path, Path]:
    """Write `run.trec` and `qrels.trec` into `folder`; returns both. Raises UsageError."""
    run_lines, judged = [], []
    for outcome in run.outcomes:
        question = _word(outcome.id)
        names = [_word(item.label) for item in items.get(outcome.id, ())] or (
            ["answer"] if outcome.answerable else []
        )
        grades = [item.grade for item in items.get(outcome.id, ())] or [1] * len(names)
        judged += [
            f"{question} 0 {name} {grade}" for name, grade in zip(names, grades, strict=True)
        ]
        listed = _listed(outcome, names)
        # Scorers order by score and not by rank; ours have ties that they would break otherwise.
        run_lines += [
            f"{question} Q0 {name} {rank} {len(listed) - rank + 1} {_TAG}"
            for rank, name in enumerate(listed, 1)
        ]
    paths = folder / "run.trec", folder / "qrels.trec"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, lines in zip(paths, (run_lines, judged), strict=True):
            content = "".join(f"{line}\n" for line in lines)
            write_whole(path, content.encode("utf-8", "replace"))
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}", "name another folder"
        ) from error
    return paths


def _listed(outcome: Outcome, names: list[str]) -> list[str]:
    """The names of the hits in order."""
    listed: list[str] = []
    seen: set[int] = set()
    for hit in outcome.hits:
        fresh = [item for item in hit.items if item not in seen]
        seen.update(fresh)
        place = _word(f"{hit.path}:{hit.start}-{hit.end}")
        listed += [names[item] for item in fresh] or [place]
    return listed


def _word(text: str) -> str:
    """TREC's columns are cut at white space: it is written as a URL has it, and so is `%`."""
    return re.sub(r"[\s%]", lambda found: quote(found[0]), text) or "%"
