"""How well a score tells the questions that the corpus can answer from those that it cannot.

Owns AUROC, the risk-coverage curve, and the best threshold on any score per question (the first
hit's, or a fitted probability). Where the score comes from is the caller's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcli.evaluation.statistics import Array, bounds, stratified_counts, stratified_folds

RESAMPLES = 1000
FOLDS = 10
CURVE = 200
"""So many points of the curve at most, spread evenly over its thresholds."""

Labels = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bounded:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Point:
    """Answer the questions that score `threshold` or more: `coverage` is their share of all.

    `risk` is the share of them that went wrong: unanswerable, or with hits that hold nothing
    relevant.
    """

    threshold: float
    coverage: float
    risk: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a threshold on one score can do; `score` says which score.

    `auroc` is the chance that an answerable question scores above an unanswerable one, ties
    counting half. `threshold` maximises Youden's J: of the answerable questions the share that is
    `answered`, less of the unanswerable the share that is `let_through`. That flatters, on the
    questions that it was chosen on; `youden` is J on questions that it was not chosen on, by
    cross-validation, None where a class has a single question. `separates` is false where the
    interval of `auroc` holds .5 or that of `youden` 0; then `sentence` says so.
    """

    score: str
    answerable: int
    unanswerable: int
    auroc: Bounded
    threshold: Bounded
    answered: float
    let_through: float
    youden: Bounded | None
    separates: bool
    curve: tuple[Point, ...]
    sentence: str


def refusal(
    scores: Sequence[float | None],
    answerable: Sequence[bool],
    found: Sequence[bool],
    score: str = "score of the first hit",
    seed: int = 0,
) -> Refusal | None:
    """Measure a score as a reason to refuse; None where there is nothing to tell apart.

    One of each for a question: its score (higher is surer; None without hits, which is below any
    threshold), whether the corpus has an answer, whether its hits hold something relevant.
    Nothing to tell apart is one class of questions alone, or no hit at all.
    """
    labels = np.array(answerable, dtype=bool)
    values = np.array([-np.inf if s is None else s for s in scores], dtype=np.float64)
    if labels.all() or not labels.any() or not np.isfinite(values).any():
        return None
    steps = _Steps(values, labels)
    areas, places = [], []
    for counts in stratified_counts(labels, RESAMPLES, seed):
        shares = steps.shares(counts)
        areas.append(_area(*shares))
        places.append(steps.best(*shares))
    once = steps.shares(np.ones((1, len(labels))))
    cut = float(steps.thresholds[steps.best(*once)[0]])
    passed = values >= cut
    area = Bounded(float(_area(*once)[0]), *bounds(np.concatenate(areas)))
    youden = _held_out(values, labels, seed)
    measured = Refusal(
        score=score,
        answerable=int(labels.sum()),
        unanswerable=int((~labels).sum()),
        auroc=area,
        threshold=Bounded(cut, *bounds(steps.thresholds[np.concatenate(places)])),
        answered=float(passed[labels].mean()),
        let_through=float(passed[~labels].mean()),
        youden=youden,
        separates=area.low > 0.5 and youden is not None and youden.low > 0,
        curve=_curve(values, labels & np.array(found, dtype=bool)),
        sentence="",
    )
    return replace(measured, sentence=_sentence(measured))


def auroc(scores: Array, labels: Labels, counts: NDArray[np.int64] | None = None) -> Array:
    """The area under the ROC curve for each row of `counts`, how often each question is drawn.

    `labels` is true where the score should be high, and has both classes. Without `counts` one
    row with each question once.
    """
    steps = _Steps(scores, labels)
    return _area(*steps.shares(np.ones((1, len(labels))) if counts is None else counts))


class _Steps:
    """Questions in the order of their scores, those of equal score together.

    `thresholds` are the distinct scores, ascending: each answers what scores so much or more.
    """

    def __init__(self, scores: Array, labels: Labels) -> None:
        order = np.argsort(scores, kind="stable")
        self._high, self._low = order[labels[order]], order[~labels[order]]
        self.thresholds: Array = np.unique(scores)
        self._high_starts = np.searchsorted(scores[self._high], self.thresholds)
        self._low_starts = np.searchsorted(scores[self._low], self.thresholds)

    def shares(self, counts: NDArray[Any]) -> tuple[Array, Array]:
        """The shares of the answerable and of the unanswerable below each threshold.

        One row for each of `counts`, and one column more: below no threshold at all, 1.
        """
        return (
            _below(counts[:, self._high], self._high_starts),
            _below(counts[:, self._low], self._low_starts),
        )

    def best(self, high: Array, low: Array) -> NDArray[np.int64]:
        """The place of the finite threshold with the highest J, the lowest of equal ones."""
        youden = (low - high)[:, :-1] - 1e-12 * np.arange(len(self.thresholds))
        youden[:, ~np.isfinite(self.thresholds)] = -2.0
        places: NDArray[np.int64] = np.argmax(youden, axis=1)
        return places


def _below(counts: NDArray[Any], starts: NDArray[np.intp]) -> Array:
    sums = np.zeros((len(counts), counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=sums[:, 1:])
    sums /= sums[:, -1:]
    return sums[:, np.r_[starts, counts.shape[1]]]


def _area(high: Array, low: Array) -> Array:
    """By trapezoids, so that ties count half."""
    area: Array = (np.diff(high, axis=1) * (low[:, 1:] + low[:, :-1])).sum(axis=1) / 2
    return area


def _held_out(values: Array, labels: Labels, seed: int) -> Bounded | None:
    """J of decisions by thresholds that were chosen without the question decided on."""
    fewest = min(int(labels.sum()), int((~labels).sum()))
    if fewest < 2:
        return None
    folds = stratified_folds(labels, min(FOLDS, fewest), seed)
    passed = np.zeros(len(labels), dtype=bool)
    for fold in range(folds.max() + 1):
        others = folds != fold
        steps = _Steps(values[others], labels[others])
        if np.isfinite(steps.thresholds).any():
            shares = steps.shares(np.ones((1, int(others.sum()))))
            cut = steps.thresholds[steps.best(*shares)[0]]
            passed[~others] = values[~others] >= cut
    generator = np.random.default_rng(seed)
    answered, let_through = ((float(passed[of].mean()), int(of.sum())) for of in (labels, ~labels))
    # To draw decisions with replacement is to draw how many of them are passed.
    drawn = [
        generator.binomial(number, share, RESAMPLES) / number
        for share, number in (answered, let_through)
    ]
    return Bounded(answered[0] - let_through[0], *bounds(drawn[0] - drawn[1]))


def _curve(values: Array, right: Labels) -> tuple[Point, ...]:
    """From the highest threshold, which answers least, to the lowest."""
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    last = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True] & np.isfinite(ordered))
    kept = last[np.unique(np.linspace(0, len(last) - 1, min(CURVE, len(last))).round().astype(int))]
    wrong = np.cumsum(~right[order])
    return tuple(
        Point(float(ordered[at]), (at + 1) / len(values), float(wrong[at] / (at + 1)))
        for at in kept.tolist()
    )


def _sentence(of: Refusal) -> str:
    area = f"AUROC {of.auroc.value:.2f} ({of.auroc.low:.2f}–{of.auroc.high:.2f})"
    if of.separates:
        return (
            f"a {of.score} of {of.threshold.value:.3g} or more answers {of.answered:.0%} of what "
            f"has an answer here and lets through {of.let_through:.0%} of what has none; {area}"
        )
    told = f"no threshold on the {of.score} tells what has no answer here: {area}, .5 is chance"
    if of.auroc.low <= 0.5 or of.youden is None:
        return told
    return (
        f"{told}; Youden's J on questions that it was not chosen on "
        f"{of.youden.value:.2f} ({of.youden.low:.2f} to {of.youden.high:.2f}), 0 is chance"
    )
