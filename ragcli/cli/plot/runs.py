"""The figures of `ragcli eval --plot`: recall against k, risk against coverage, a sweep."""

from __future__ import annotations

from collections.abc import Sequence

from ragcli.cli.output import counted
from ragcli.cli.plot.figures import COLOURS, GREY, Figure, Page, Series
from ragcli.evaluation.report import EvalReport, recall_by_k
from ragcli.evaluation.run import Run
from ragcli.evaluation.sweep import SweepReport
from ragcli.evaluation.unanswerable import Refusal
from ragcli.generation.visible import visible

_ASIDE = 0.06
"""Intervals of several ways at one k stand beside each other."""


def evaluation(report: EvalReport) -> Page:
    """The page of a file of questions asked in one way or several."""
    figures = [
        *([recall(report.runs)] if report.runs[0].figures else []),
        *([risk(report.refusal)] if report.refusal else []),
    ]
    left_out = [] if report.runs[0].figures else ["No recall: no question has an answer here."]
    synthetic = f", {report.synthetic:,} of them synthetic" if report.synthetic else ""
    return Page(
        visible(report.file),
        f"{counted(report.questions, 'question')}{synthetic} · level {report.level} · "
        f"{counted(report.chunks, 'passage')}",
        tuple(figures),
        tuple(left_out),
    )


def recall(runs: Sequence[Run]) -> Figure:
    """Recall at every k up to the largest, a line for each way to ask."""
    ks = list(range(1, max(runs[0].ks) + 1))
    series: list[Series] = []
    for number, run in enumerate(runs):
        name = run.way.label or "as the index has it"
        values = recall_by_k(run)
        colour = COLOURS[number % len(COLOURS)]
        hover = [f"{name}\nrecall@{k} {value:.3f}" for k, value in zip(ks, values, strict=True)]
        series.append(Series(visible(name), "line", ks, values, colour, hover))
        for k in run.ks:  # its interval, where it was worked out
            of = run.figures[f"recall@{k}"]
            told = f"{name}\nrecall@{k} {of.mean:.3f} ({of.low:.3f} to {of.high:.3f})"
            at = k + (number - (len(runs) - 1) / 2) * _ASIDE
            series.append(Series("", "line", [at, at], [of.low, of.high], colour, [told, told]))
    return Figure(
        title="Recall against k",
        note="Upright lines: 95 % bootstrap intervals.",
        across="k",
        up="recall",
        series=tuple(series),
        named=len(runs) > 1,
    )


def risk(of: Refusal) -> Figure:
    """The share of answers that are wrong, against the share of questions answered."""
    hover = [
        f"from a score of {point.threshold:.3f}\nanswered {point.coverage:.0%}, of them wrong "
        f"{point.risk:.0%}"
        for point in of.curve
    ]
    coverage = [point.coverage for point in of.curve]
    return Figure(
        title="Risk against coverage",
        note=f"{of.sentence}. Wrong: no answer is here, or the hits do not hold it.",
        across="share of the questions that are answered",
        up="share of them that is wrong",
        series=(Series(of.score, "line", coverage, [p.risk for p in of.curve], COLOURS[0], hover),),
    )


def swept(report: SweepReport) -> Page:
    """The page of a sweep: the measure against what the hits cost, with intervals."""
    series: list[Series] = []
    for number, row in enumerate(report.rows):
        of = row.figures[report.measure]
        good = row.label == report.best or row.label in report.alike
        colour = COLOURS[number % len(COLOURS)] if good else GREY
        told = (
            f"{row.label}\n{report.measure} {of.mean:.3f} ({of.low:.3f} to {of.high:.3f})\n"
            f"{row.words:,.0f} words · {counted(row.chunks, 'passage')}"
        )
        name = visible(row.label)
        series.append(Series(name, "points", [row.words], [of.mean], colour, [told]))
        ends = [of.low, of.high]
        series.append(Series("", "line", [row.words] * 2, ends, colour, [told, told]))
    figure = Figure(
        title=f"{report.measure} against what the hits cost",
        note="Upright lines: 95 % bootstrap intervals. Grey: surely worse than the best.",
        across=f"words of the hits for a question, at k {max(report.ks)}",
        up=report.measure,
        series=tuple(series),
        named=True,
    )
    asked = next((row.figures[report.measure].questions for row in report.rows), 0)
    line = f"level {report.level} · {counted(asked, 'question')}"
    return Page("Sweep", line, (figure,) if report.rows else ())
