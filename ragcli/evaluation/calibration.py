"""P(answerable): a logistic regression on what the first hit shows, and whether it is worth it.

Owns the features, the fit, its honest comparison with the raw score, and the model as data, which
may come with a stranger's index. Where it is kept is the store's business.

The raw score is a weak reason to refuse: a mix scaled over its own candidates is near 1 whatever
was asked, and BM25 grows with the length of the question. The features are those that held up on
data they were not chosen on; all are of the first hit alone, so that k changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields

import numpy as np

from ragcli.errors import IndexDamaged, UsageError
from ragcli.evaluation.logistic import SMALLEST_SCALE, Logistic, fitted
from ragcli.evaluation.statistics import Array, bounds, stratified_counts, stratified_folds
from ragcli.evaluation.unanswerable import Bounded, Labels, auroc
from ragcli.records import Hit, SearchResult
from ragcli.store.lexical import idf

NAMES = ("lexical", "share", "complete", "dense")
"""The features that a model can use."""

FEWEST = 10
"""Of either class: fitted on 5 of each it was often worse than the raw score; on 10, where it was
no better, it was no worse by more than .005 of AUROC in the mean."""

FOLDS = 10
REPEATS = 10
"""Partitions into folds; a question's held-out probability is the mean over them."""

RESAMPLES = 4000
"""Whether to keep a model hangs on an end of an interval: with 1,000 that moves by .01."""

_SCHEMA = "ragcli.calibration/1"
_LARGEST = 1e6
"""Of any number in a model that is read: none can make a sum that is not finite."""


def features(result: SearchResult) -> dict[str, float]:
    """What the first hit shows, each higher where an answer is likelier.

    `score`: what it is ranked by, the raw score to beat; absent without hits. `lexical`: BM25.
    `share`: BM25 of the most that a passage could have for this question. `complete`: 1 where it
    holds every word of the question, 0 where it lacks one that no passage has, between them by
    the weight of the rarest word that it lacks. `dense`: the dot product, 0 where the hit has no
    vector. Of one retriever alone the features of the other are absent.
    """
    first = result.hits[0] if result.hits else None
    found = {} if first is None else {"score": first.score}
    if result.mode != "dense":
        found |= _by_words(first, result.chunks)
    if result.mode != "lexical":
        dense = None if first is None or first.dense is None else first.dense.score
        found["dense"] = 0.0 if dense is None else dense
    return found


def _by_words(first: Hit | None, chunks: int) -> dict[str, float]:
    if first is None or first.lexical is None:
        return {"lexical": 0.0, "share": 0.0, "complete": 0.0}
    weights = [idf(chunks, term.frequency) for term in first.terms]
    lacking = [w for w, term in zip(weights, first.terms, strict=True) if not term.count]
    score = first.lexical.score or 0.0
    return {
        "lexical": score,
        "share": score / sum(weights) if weights else 0.0,
        "complete": 1.0 - max(lacking, default=0.0) / idf(chunks, 0),
    }


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted logistic regression: sigmoid(intercept + Σ weight · (value − mean) / scale).

    `way` says what it belongs to, such as mode, fusion and encoder: of another way of asking it
    knows nothing. `auroc` and `score_auroc` are the held-out figures that it was kept for.
    """

    names: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float
    answerable: int
    unanswerable: int
    auroc: float
    score_auroc: float
    way: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As `from_json` reads it."""
        return {"schema": _SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, value: object) -> Model:
        """A model that `to_json` gave. Raises IndexDamaged for anything else."""
        try:
            return _read(value)
        except (ValueError, TypeError) as error:
            raise IndexDamaged(
                f"the calibration in the index cannot be used: {error}",
                "fit it again: ragcli eval FILE --calibrate",
            ) from error


def _read(value: object) -> Model:
    if not isinstance(value, dict) or value.get("schema") != _SCHEMA:
        raise ValueError("not of a form that this version knows")
    lacking = [each.name for each in fields(Model) if each.name not in value]
    if lacking:
        raise ValueError(f"without {', '.join(lacking)}")
    names = tuple(name for name in NAMES if name in value["names"])
    if not names or list(names) != list(value["names"]):
        raise ValueError("features that ragcli does not have")
    way = value["way"]
    if not isinstance(way, dict) or not all(isinstance(part, str) for part in way.values()):
        raise ValueError("what it belongs to is not said in words")

    def numbers(key: str, low: float = -_LARGEST) -> tuple[float, ...]:
        if len(value[key]) != len(names):
            raise ValueError(f"{key} of other features")
        return tuple(_number(each, low) for each in value[key])

    return Model(
        names=names,
        means=numbers("means"),
        scales=numbers("scales", SMALLEST_SCALE),
        weights=numbers("weights"),
        intercept=_number(value["intercept"]),
        answerable=int(_number(value["answerable"], 0)),
        unanswerable=int(_number(value["unanswerable"], 0)),
        auroc=_number(value["auroc"], 0, 1),
        score_auroc=_number(value["score_auroc"], 0, 1),
        way=dict(way),
    )


def _number(value: object, low: float = -_LARGEST, high: float = _LARGEST) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError("a number that no fit has")
    return float(value)


def probability(model: Model, result: SearchResult) -> float:
    """P(answerable) by the model, 0 to 1.

    Raises ValueError where the result lacks what the model was fitted on: asked in another mode.
    """
    found = features(result)
    lacking = [name for name in model.names if name not in found]
    if lacking:
        raise ValueError(
            f"fitted on {', '.join(lacking)}, which {result.mode} search does not have"
        )
    return predicted(model, [found])[0]


def predicted(model: Model, rows: Sequence[Mapping[str, float]]) -> list[float]:
    """P(answerable) for the features of each question."""
    logistic = Logistic(
        np.array(model.means), np.array(model.scales), np.array(model.weights), model.intercept
    )
    chances: list[float] = logistic.chances(_values(rows, model.names)).tolist()
    return chances


def _values(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    return np.array([[row[name] for name in names] for row in rows], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature: its AUROC alone, and its weight in the model, per standard deviation."""

    name: str
    auroc: Bounded
    weight: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a fit is worth, on questions that it was not fitted on.

    `auroc` and `brier` (mean squared error of the probability, lower is better) are the model's by
    cross-validation, `score_auroc` and `score_brier` those of the raw score alone, its
    probability fitted in the same folds; `gain` and `brier_gain` how much better the model is,
    paired. `base_brier` is that of always saying the share of answerable questions. `kept` is
    whether the model is worth keeping: the interval of `gain` is above 0, and the
    probability is better than the score's and than saying the share. `model` is fitted on all.
    """

    answerable: int
    unanswerable: int
    folds: int
    auroc: Bounded
    score_auroc: Bounded
    gain: Bounded
    brier: float
    score_brier: float
    base_brier: float
    brier_gain: Bounded
    features: tuple[Feature, ...]
    kept: bool
    model: Model
    sentence: str


def fit(
    rows: Sequence[Mapping[str, float]],
    labels: Sequence[bool],
    seed: int = 0,
    way: Mapping[str, str] | None = None,
) -> Calibration:
    """Fit P(answerable) on the `features` of questions, all asked in one `way`, and judge it.

    `labels`: which of them the corpus can answer. Raises UsageError for too few of either.
    """
    of = np.array(labels, dtype=bool)
    answerable, unanswerable = int(of.sum()), int((~of).sum())
    if min(answerable, unanswerable) < FEWEST:
        raise UsageError(
            f"{answerable} questions with and {unanswerable} without an answer are too few to "
            f"calibrate on: at least {FEWEST} of either are needed",
            'add questions with "answerable": false',
        )
    names = tuple(name for name in NAMES if all(name in row for row in rows))
    values = _values(rows, names)
    scores = _scores(rows)
    by_model = _held_out(values, of, seed)
    by_score = _held_out(scores[:, None], of, seed)
    areas = _areas(np.c_[by_model, scores, values].T, of, seed)
    errors = np.square(np.c_[by_model, by_score].T - of)
    area, score_area, *alone = (_bounded(row) for row in areas)
    gain = _bounded(areas[0] - areas[1])
    brier_gain = _bounded(_means(errors[1] - errors[0], of, seed))
    brier, score_brier = (float(each.mean()) for each in errors)
    base = answerable * unanswerable / len(of) ** 2
    whole = fitted(values, of)
    weights = whole.weights.tolist()
    kept = gain.low > 0 and brier < min(score_brier, base)
    return Calibration(
        answerable=answerable,
        unanswerable=unanswerable,
        folds=FOLDS,
        auroc=area,
        score_auroc=score_area,
        gain=gain,
        brier=brier,
        score_brier=score_brier,
        base_brier=base,
        brier_gain=brier_gain,
        features=tuple(map(Feature, names, alone, weights)),
        kept=kept,
        model=Model(
            names,
            tuple(whole.means.tolist()),
            tuple(whole.scales.tolist()),
            tuple(weights),
            whole.intercept,
            answerable,
            unanswerable,
            area.value,
            score_area.value,
            dict(way or {}),
        ),
        sentence=_sentence(area, score_area, gain, kept=kept),
    )


def _scores(rows: Sequence[Mapping[str, float]]) -> Array:
    """The raw scores; that of a question without hits is the lowest of the others."""
    given = [row["score"] for row in rows if "score" in row]
    lowest = min(given, default=0.0)
    return np.array([row.get("score", lowest) for row in rows], dtype=np.float64)


def _held_out(values: Array, labels: Labels, seed: int) -> Array:
    """P(answerable) of each question by fits that did not see it, the mean over partitions."""
    chances = np.zeros(len(labels))
    for repeat in range(REPEATS):
        folds = stratified_folds(labels, FOLDS, seed + repeat)
        for fold in range(FOLDS):
            seen = folds != fold
            logistic = fitted(values[seen], labels[seen])
            chances[~seen] += logistic.chances(values[~seen]) / REPEATS
    return chances


def _areas(columns: Array, labels: Labels, seed: int) -> Array:
    """AUROC of each of (C, questions) scores: itself, then under each resample, (C, 1 + R)."""
    blocks = [[auroc(column, labels)] for column in columns]
    for counts in stratified_counts(labels, RESAMPLES, seed):
        for block, column in zip(blocks, columns, strict=True):
            block.append(auroc(column, labels, counts))
    return np.array([np.concatenate(block) for block in blocks])


def _means(values: Array, labels: Labels, seed: int) -> Array:
    """The mean of the values: itself, then under each resample, (1 + R,)."""
    drawn = [c @ values / len(values) for c in stratified_counts(labels, RESAMPLES, seed)]
    return np.concatenate([[values.mean()], *drawn])


def _bounded(figures: Array) -> Bounded:
    return Bounded(float(figures[0]), *bounds(figures[1:]))


def _sentence(model: Bounded, score: Bounded, gain: Bounded, *, kept: bool) -> str:
    told = (
        f"on questions that it was not fitted on P(answerable) has AUROC {model.value:.3f} "
        f"({model.low:.3f}–{model.high:.3f}), the score alone {score.value:.3f}: "
        f"{gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})"
    )
    if kept:
        return f"kept: {told}"
    if gain.low > 0:
        return f"not kept, for the probability itself is no better: {told}"
    return f"not kept, for it is not surely better: {told}"
