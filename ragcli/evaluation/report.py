"""What `ragcli eval` found, put together: one value for people, JSON and gates.

Owns the gates. The figures are `run`'s, comparisons `compare`'s, refusal `unanswerable`'s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragcli.errors import UsageError
from ragcli.evaluation.calibration import Calibration
from ragcli.evaluation.compare import Comparison
from ragcli.evaluation.gold import Missing
from ragcli.evaluation.metrics import recall
from ragcli.evaluation.run import Outcome, Run
from ragcli.evaluation.unanswerable import Refusal, refusal

_GATE = re.compile(r"\s*([a-z_]+(?:@[0-9]+)?)\s*=\s*([0-9]*\.?[0-9]+)\s*")


@dataclass(frozen=True, slots=True)
class EvalReport:
    """`runs` has one run for each way to ask; `misses` are of the first one, as is `refusal`.

    `missing` are gold targets that the index does not have, counted as not found. `left_out`
    queries had no judgement.
    """

    file: str
    questions: int
    answerable: int
    synthetic: int
    left_out: int
    level: str
    ks: tuple[int, ...]
    chunks: int
    runs: tuple[Run, ...]
    missing: tuple[Missing, ...]
    comparisons: tuple[Comparison, ...]
    baseline: str | None
    refusal: Refusal | None
    calibration: Calibration | None


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure that must not be below a value."""

    figure: str
    least: float


def parse_gate(text: str) -> Gate:
    """Reads `recall@5=.8`. Raises ValueError."""
    match = _GATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not FIGURE=VALUE, such as recall@5=.8")
    if float(match[2]) > 1:
        raise ValueError(f"{text} asks for more than 1, which no figure reaches")
    return Gate(match[1], float(match[2]))


def failed(gates: Sequence[Gate], run: Run) -> list[str]:
    """What each gate that failed says. Raises UsageError for a figure that the run has not."""
    told = []
    for gate in gates:
        figure = run.figures.get(gate.figure)
        if figure is None:
            raise UsageError(
                f"no question has the figure {gate.figure} of --fail-under",
                f"these have: {', '.join(run.figures) or 'none, for no question has an answer'}",
            )
        if figure.mean < gate.least:
            told.append(f"{gate.figure} is {figure.mean:.4f}, below {gate.least:g}")
    return told


def refused(run: Run) -> Refusal | None:
    """What a threshold on the first hit's score would refuse; None where that means nothing."""
    outcomes = run.outcomes
    return refusal(
        [outcome.hits[0].score if outcome.hits else None for outcome in outcomes],
        [outcome.answerable for outcome in outcomes],
        [any(hit.items for hit in outcome.hits) for outcome in outcomes],
    )


def recall_by_k(run: Run) -> list[float]:
    """Mean recall at 1, 2, … up to the largest k."""
    found = [
        [
            recall([frozenset(hit.items) for hit in o.hits], [1] * len(_items(o, run)), k)
            for k in range(1, max(run.ks) + 1)
        ]
        for o in run.outcomes
        if o.metrics
    ]
    return [sum(column) / len(column) for column in zip(*found, strict=True)]


def _items(outcome: Outcome, run: Run) -> Sequence[str]:
    """What could be found: of answers, any one of them."""
    return outcome.relevant[:1] if run.level == "answer" else outcome.relevant


def worst(run: Run, most: int) -> list[Outcome]:
    """The questions that missed something, the worst first, at most so many."""
    recall, order = f"recall@{max(run.ks)}", f"ndcg@{max(run.ks)}"
    missed = [o for o in run.outcomes if o.metrics and o.metrics[recall] < 1]
    return sorted(missed, key=lambda o: (o.metrics[recall], o.metrics[order]))[:most]
