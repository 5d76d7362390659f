"""Runs kept in files, and one run against another, question by question.

Owns the form of a kept run, which is data and may come from a stranger.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ragcli.errors import UsageError
from ragcli.evaluation.run import Outcome, Run
from ragcli.evaluation.statistics import Difference, difference
from ragcli.store.writing import write_whole

_SCHEMA = "ragcli.run/1"
_SURE = 0.05


@dataclass(frozen=True, slots=True)
class Kept:
    """What a comparison needs of a kept run: its figures by question."""

    file: str
    level: str
    label: str
    metrics: dict[str, dict[str, float]]
    texts: dict[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of this run against the same of the baseline, over the questions of both.

    `won` and `lost` are the ids of the questions that are better and worse now. `regressed`: it is
    surely worse: the interval of the difference is below 0, and chance alone hardly does that
    (p < .05).
    """

    figure: str
    questions: int
    baseline: float
    now: float
    difference: Difference
    won: tuple[str, ...]
    lost: tuple[str, ...]
    regressed: bool


def keep(run: Run, file: Path, index: str) -> None:
    """Write a run to `file`, wholly or not at all.

    Raises UsageError where that cannot be, and for a file that is there and no kept run.
    """
    if file.is_file() and file.stat().st_size:
        try:
            read(file)
        except UsageError as error:
            raise UsageError(
                f"{file} is there and is no run: it stays as it is", "name another file"
            ) from error
    value = {
        "schema": _SCHEMA,
        "index": index,
        "level": run.level,
        "ks": run.ks,
        "way": asdict(run.way),
        "label": run.way.label,
        "questions": [asdict(outcome) for outcome in run.outcomes],
    }
    write_whole(file, (json.dumps(value) + "\n").encode("utf-8", "surrogatepass"))


def read(file: Path) -> Kept:
    """A run that `keep` wrote. Raises UsageError for anything else."""
    try:
        value = json.loads(file.read_bytes().decode("utf-8", "surrogatepass"))
        if value["schema"] != _SCHEMA:
            raise ValueError(value["schema"])
        questions = value["questions"]
        return Kept(
            str(file),
            str(value["level"]),
            str(value["label"]),
            {str(q["id"]): {str(k): _share(v) for k, v in q["metrics"].items()} for q in questions},
            {str(q["id"]): str(q["question"]) for q in questions},
        )
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", "name a run that --save kept"
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{file} is not a run that ragcli eval --save kept", "name one that is"
        ) from error


def _share(value: object) -> float:
    """A figure of one question, 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(value)
    return float(value)


def compare(baseline: Kept, run: Run) -> tuple[Comparison, ...]:
    """Each figure that both have. Raises UsageError where nothing can be compared."""
    if baseline.level != run.level:
        raise UsageError(
            f"{baseline.file} is of the level {baseline.level}, this run of {run.level}",
            f"--level {baseline.level}",
        )
    asked = [o for o in run.outcomes if o.metrics and baseline.metrics.get(o.id)]
    if not asked:
        raise UsageError(f"{baseline.file} has none of these questions", "compare the same file")
    other = next((o for o in asked if baseline.texts[o.id] != o.question), None)
    if other is not None:
        raise UsageError(
            f"question {other.id} is another one in {baseline.file}",
            "give the questions an id, so that lines may come and go",
        )
    compared = tuple(
        _comparison(name, baseline, asked)
        for name in asked[0].metrics
        if all(name in o.metrics and name in baseline.metrics[o.id] for o in asked)
    )
    if not compared:
        raise UsageError(f"{baseline.file} has none of these figures", "ask for the same -k")
    return compared


def _comparison(name: str, baseline: Kept, asked: Sequence[Outcome]) -> Comparison:
    before = [baseline.metrics[outcome.id][name] for outcome in asked]
    now = [outcome.metrics[name] for outcome in asked]
    changed = list(zip(asked, before, now, strict=True))
    gap = difference(now, before)
    return Comparison(
        figure=name,
        questions=len(asked),
        baseline=sum(before) / len(before),
        now=sum(now) / len(now),
        difference=gap,
        won=tuple(outcome.id for outcome, old, new in changed if new > old),
        lost=tuple(outcome.id for outcome, old, new in changed if new < old),
        regressed=gap.high < 0 and gap.p < _SURE,
    )
