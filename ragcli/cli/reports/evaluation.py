"""What `ragcli eval` found, as lines: the figures, by kind, ways beside each other, the misses."""

from __future__ import annotations

from collections.abc import Sequence

from ragcli.cli.output import counted
from ragcli.cli.reports.refusal import calibration, refusal
from ragcli.cli.reports.tables import aligned, cell, glimpse
from ragcli.evaluation.compare import Comparison
from ragcli.evaluation.report import EvalReport
from ragcli.evaluation.run import CHARACTERS, MEASURES, Figure, Run
from ragcli.evaluation.statistics import Difference
from ragcli.inspection.misses import Miss

_LISTED = 5
"""So many questions won or lost, or missed for one cause, are named; JSON has them all."""

SYNTHETIC = (
    "synthetic questions compare chunk sizes well; figures run high, and dense and hybrid "
    "retrieval are understated"
)

_SAID = {
    "document": "documents (k counts documents, each by its best passage)",
    "chunk": "passages that overlap the gold",
    "span": "passages that hold the whole gold",
    "answer": "passages that hold an answer's text",
}


def lines(report: EvalReport, misses: Sequence[Miss]) -> list[str]:
    """Blocks with an empty line between them."""
    blocks = [_head(report)]
    if report.runs[0].figures:
        blocks.append(_figures(report.runs[0]) if len(report.runs) == 1 else _grid(report.runs))
        if report.runs[0].kinds:
            blocks.append(_kinds(report.runs[0]))
    if report.comparisons:
        blocks.append(_comparisons(report))
    if report.refusal is not None:
        blocks.append(refusal(report.refusal))
    if report.calibration is not None:
        blocks.append(calibration(report.calibration))
    blocks += _misses(misses)
    return [line for block in blocks for line in (*block, "")][:-1]


def _head(report: EvalReport) -> list[str]:
    parts = [counted(report.questions, "question")]
    if report.answerable < report.questions:
        parts.append(f"{report.questions - report.answerable:,} of them without an answer here")
    if report.synthetic:
        parts.append(f"{report.synthetic:,} SYNTHETIC")
    if report.left_out:
        parts.append(f"{report.left_out:,} more have no judgement")
    parts.append(counted(report.chunks, "passage"))
    run = report.runs[0]
    lines = [
        f"{cell(report.file)}: {', '.join(parts)}",
        f"level {report.level}: {_SAID[report.level]}",
        f"{counted(len(report.runs), 'way')} to ask" if len(report.runs) > 1 else
        f"{run.seconds:.1f} s; a question {run.milliseconds_50:.1f} ms (median), "
        f"{run.milliseconds_95:.1f} ms (95 %); the hits of one have {run.words:,.0f} words",
    ]  # fmt: skip
    if report.synthetic:
        lines.append(SYNTHETIC)
    if report.missing:
        lines.append(
            f"{counted(len(report.missing), 'target')} not in the index, counted as missed"
        )
    return lines


def figure(of: Figure | None) -> str:
    """`0.672 (0.59–0.75)`."""
    return "–" if of is None else f"{of.mean:.3f} ({of.low:.2f}–{of.high:.2f})"


def _figures(run: Run) -> list[str]:
    asked = next(iter(run.figures.values())).questions
    names = [*MEASURES, *(n for n in CHARACTERS if f"{n}@{run.ks[0]}" in run.figures)]
    rows = [
        (_named_figure(name, run, asked), *(figure(run.figures.get(f"{name}@{k}")) for k in run.ks))
        for name in names
    ]
    return [
        f"means over {counted(asked, 'question')} with 95 % bootstrap intervals",
        *aligned(["", *(f"@{k}" for k in run.ks)], rows, left=(0,), ragged=False),
    ]


def _named_figure(name: str, run: Run, asked: int) -> str:
    """With the number of questions where not all have it."""
    of = run.figures[f"{name}@{run.ks[0]}"].questions
    return name.replace("_", " ") + (f" ({of:,} questions)" if of != asked else "")


def _kinds(run: Run) -> list[str]:
    rows = [
        (
            kind,
            next(iter(figures.values())).questions,
            *(figure(figures.get(f"recall@{k}")) for k in run.ks),
        )
        for kind, figures in run.kinds.items()
    ]
    return aligned(
        ["kind", "questions", *(f"recall@{k}" for k in run.ks)], rows, left=(0,), ragged=False
    )


def _grid(runs: Sequence[Run]) -> list[str]:
    most = max(runs[0].ks)
    names = [*(f"recall@{k}" for k in runs[0].ks), f"mrr@{most}", f"ndcg@{most}"]
    rows = [
        (
            run.way.label or "as the index has it",
            *(figure(run.figures.get(name)) for name in names),
            round(run.words),
            f"{run.milliseconds_50:.1f} ms",
        )
        for run in runs
    ]
    return aligned(["way", *names, "words", "median"], rows, left=(0,), ragged=False)


def _comparisons(report: EvalReport) -> list[str]:
    rows = [
        (
            each.figure,
            each.baseline,
            each.now,
            _gap(each.difference),
            each.difference.p,
            len(each.won),
            len(each.lost),
        )
        for each in report.comparisons
        if "@" in each.figure and each.figure.split("@")[0] in ("recall", "mrr", "ndcg")
    ]
    told = [
        f"compared with {cell(report.baseline)}, question by question, over "
        f"{counted(report.comparisons[0].questions, 'question')}",
        *aligned(
            ["", "baseline", "now", "difference (95 %)", "p", "won", "lost"],
            rows,
            left=(0,),
            ragged=False,
        ),
    ]
    last = next((c for c in reversed(report.comparisons) if c.figure.startswith("recall@")), None)
    if last is not None:
        told += _named(last)
    return told


def _gap(gap: Difference) -> str:
    return f"{gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"


def _named(of: Comparison) -> list[str]:
    told = []
    for word, ids in (("won", of.won), ("lost", of.lost)):
        if ids:
            more = f" and {len(ids) - _LISTED:,} more" if len(ids) > _LISTED else ""
            told.append(f"{of.figure} {word}: {', '.join(map(cell, ids[:_LISTED]))}{more}")
    return told


def _misses(misses: Sequence[Miss]) -> list[list[str]]:
    """The worst questions by the cause of their miss, the commonest first."""
    groups: dict[str, list[Miss]] = {}
    for miss in misses:
        groups.setdefault(miss.group, []).append(miss)
    return [
        [
            f"missed, {group}: {len(of):,}",
            *(
                line
                for miss in of[:_LISTED]
                for line in (
                    f"  {cell(miss.question)}  {glimpse(miss.text)}",
                    f"      {cell(miss.missed)}: {cell(miss.because)}",
                )
            ),
            *([f"  and {len(of) - _LISTED:,} more"] if len(of) > _LISTED else []),
        ]
        for group, of in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]
