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

_SCHEMA = "ragcli.run/1"


@dataclass(frozen=True, slots=True)
class Kept:
    """What a comparison needs of a kept run: its figures by question."""

    file: str
    level: str
    label: str
    metrics: dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of this run against the same of the baseline, over the questions of both.

    `won` and `lost` are the ids of the questions that are better and worse now.
    """

    figure: str
    baseline: float
    now: float
    difference: Difference
    won: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def regressed(self) -> bool:
        """Whether it is worse, and the interval of the difference does not hold 0."""
        return self.difference.high < 0


def keep(run: Run, file: Path, index: str) -> None:
    """Write a run to `file`, wholly or not at all. Raises UsageError where that cannot be."""
    value = {
        "schema": _SCHEMA,
        "index": index,
        "level": run.level,
        "ks": run.ks,
        "way": asdict(run.way),
        "label": run.way.label,
        "questions": [asdict(outcome) for outcome in run.outcomes],
    }
    part = file.with_name(f"{file.name}.part")
    try:
        try:
            part.write_text(json.dumps(value) + "\n", encoding="utf-8")
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}", "name another") from error


def read(file: Path) -> Kept:
    """A run that `keep` wrote. Raises UsageError for anything else."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        if value["schema"] != _SCHEMA:
            raise ValueError(value["schema"])
        metrics = {
            str(question["id"]): {str(k): float(v) for k, v in question["metrics"].items()}
            for question in value["questions"]
        }
        return Kept(str(file), str(value["level"]), str(value["label"]), metrics)
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", "name a run that --save kept"
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{file} is not a run that ragcli eval --save kept", "name one that is"
        ) from error


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
    return tuple(
        _comparison(name, baseline, asked)
        for name in asked[0].metrics
        if all(name in o.metrics and name in baseline.metrics[o.id] for o in asked)
    )


def _comparison(name: str, baseline: Kept, asked: Sequence[Outcome]) -> Comparison:
    before = [baseline.metrics[outcome.id][name] for outcome in asked]
    now = [outcome.metrics[name] for outcome in asked]
    changed = list(zip(asked, before, now, strict=True))
    return Comparison(
        figure=name,
        baseline=sum(before) / len(before),
        now=sum(now) / len(now),
        difference=difference(now, before),
        won=tuple(outcome.id for outcome, old, new in changed if new > old),
        lost=tuple(outcome.id for outcome, old, new in changed if new < old),
    )
