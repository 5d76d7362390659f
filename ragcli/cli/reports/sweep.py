"""What a sweep found, as lines: a row for each variant, the best, and what is as good."""

from __future__ import annotations

from ragcli.cli.output import counted
from ragcli.cli.reports.evaluation import SYNTHETIC, figure
from ragcli.cli.reports.tables import aligned, cell
from ragcli.evaluation.sweep import SweepReport


def lines(report: SweepReport, synthetic: int) -> list[str]:
    """The table, then the sentences."""
    most = max(report.ks)
    names = [*(f"recall@{k}" for k in report.ks), f"ndcg@{most}"]
    spans = any(f"characters_iou@{most}" in row.figures for row in report.rows)
    if spans:
        names += [f"characters_{name}@{most}" for name in ("recall", "precision", "iou")]
    rows = [
        (
            row.label,
            row.chunks,
            *(figure(row.figures.get(name)) for name in names),
            round(row.words),
            f"{row.index_seconds:.1f} s",
        )
        for row in report.rows
    ]
    heads = [name.replace("_", " ") for name in names]
    told = [
        f"level {report.level}; means with 95 % bootstrap intervals; words: of the hits for one "
        f"question at k {most}",
        *aligned(
            ["variant", "passages", *heads, "words", "indexed in"], rows, left=(0,), ragged=False
        ),
        "",
    ]
    if report.best is not None:
        told.append(f"best {report.measure}: {cell(report.best)}")
        if report.alike:
            told.append(f"not to be told from it: {'; '.join(map(cell, report.alike))}")
        elif len(report.rows) > 1:
            told.append("the others here are surely worse")
    if synthetic:
        told.append(f"{counted(synthetic, 'question')} SYNTHETIC: {SYNTHETIC}")
    told += [f"failed: {cell(each.label)}: {cell(each.message)}" for each in report.failed]
    if any(row.missing for row in report.rows):
        told.append("targets that a variant does not have were counted as missed")
    if report.changed:
        told.append(f"{counted(report.changed, 'file')} not as the index has them: "
                    "variants read them as they are now")  # fmt: skip
    if report.interrupted:
        told.append("interrupted: the rows above are done, the others were not tried")
    return told
