"""Logistic regression with an L2 penalty, by Newton's method. Knows nothing of questions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcli.evaluation.statistics import Array

PENALTY = 1.0
"""On the weights of standardised features, half their squares: from .1 to 30 it hardly mattered."""

SMALLEST_SCALE = 1e-9
"""A feature that varies less counts as one that never varies."""

_MOST_STEPS = 100


@dataclass(frozen=True, slots=True)
class Logistic:
    """sigmoid(intercept + Σ weight · (value − mean) / scale); arrays (features,)."""

    means: Array
    scales: Array
    weights: Array
    intercept: float

    def chances(self, values: Array) -> Array:
        """The probability of each row of (rows, features), as (rows,)."""
        return _sigmoid((values - self.means) / self.scales @ self.weights + self.intercept)


def fitted(values: Array, labels: NDArray[np.bool_]) -> Logistic:
    """The minimum of log loss + PENALTY/2 · |weights|² over (rows, features); both labels occur.

    A step that goes uphill is halved. A feature that never varies gets weight 0.
    """
    means, scales = values.mean(axis=0), values.std(axis=0)
    scales[scales < SMALLEST_SCALE] = 1.0
    rows = np.c_[(values - means) / scales, np.ones(len(values))]
    penalty = np.full(rows.shape[1], PENALTY)
    penalty[-1] = 0.0

    def loss(weights: Array) -> float:
        odds = rows @ weights
        return float((np.logaddexp(0, odds) - labels * odds).sum() + penalty @ weights**2 / 2)

    weights = np.zeros(rows.shape[1])
    weights[-1] = math.log(labels.sum() / (~labels).sum())
    for _ in range(_MOST_STEPS):
        chances = _sigmoid(rows @ weights)
        slope = rows.T @ (chances - labels) + penalty * weights
        bend = (rows.T * (chances * (1 - chances))) @ rows + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        most = loss(weights) + 1e-12 * len(labels)
        while loss(weights - step) > most:
            step /= 2
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return Logistic(means, scales, weights[:-1], float(weights[-1]))


def _sigmoid(odds: Array) -> Array:
    chances: Array = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    return chances
