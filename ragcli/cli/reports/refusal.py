"""How well a score, and what was fitted, tell what has no answer, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from ragcli.cli.reports.tables import aligned
from ragcli.evaluation.calibration import Calibration
from ragcli.evaluation.unanswerable import Bounded, Point, Refusal

_SHARES = (1.0, 0.9, 0.75, 0.5, 0.25)


def refusal(of: Refusal) -> list[str]:
    """The sentence, the figures behind it, and the risk at some coverages."""
    lines = [
        f"{of.unanswerable:,} unanswerable against {of.answerable:,} answerable questions, by the "
        f"{of.score}",
        of.sentence,
    ]
    rows = [("AUROC", bounded(of.auroc)), ("best threshold", bounded(of.threshold))]
    if of.youden is not None:
        rows.append(("Youden's J, held out", bounded(of.youden)))
    lines += aligned(["", ""], rows, left=(0,))
    points = [(point.coverage, point.risk, point.threshold) for point in _some(of.curve)]
    if points:
        lines += aligned(["answered", "of them wrong", "from a score of"], points, ragged=False)
    return lines


def calibration(of: Calibration) -> list[str]:
    """What the fit is worth, and what each feature is alone."""
    rows = [
        ("P(answerable)", bounded(of.auroc), of.brier),
        ("score alone", bounded(of.score_auroc), of.score_brier),
        ("always the share", "", of.base_brier),
    ]
    features = [(each.name, bounded(each.auroc), each.weight) for each in of.features]
    return [
        f"calibration on {of.answerable:,} answerable, {of.unanswerable:,} unanswerable questions",
        of.sentence,
        "its level is that of this file: it supposes as many unanswerable questions as are here",
        *aligned(["held out", "AUROC", "Brier"], rows, left=(0,), ragged=False),
        *aligned(["feature", "AUROC alone", "weight"], features, left=(0,), ragged=False),
    ]


def bounded(of: Bounded) -> str:
    """`0.672 (0.590–0.750)`."""
    return f"{of.value:.3f} ({of.low:.3f}–{of.high:.3f})"


def _some(curve: Sequence[Point]) -> list[Point]:
    """The points of the curve nearest to some shares."""
    nearest = [min(curve, key=lambda p: abs(p.coverage - share)) for share in _SHARES if curve]
    return list(dict.fromkeys(nearest))
