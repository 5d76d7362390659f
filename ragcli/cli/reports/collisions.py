"""The report of `inspect --collisions` on an index made with `hash`."""

from __future__ import annotations

from ragcli.cli.output import counted
from ragcli.cli.reports.tables import aligned
from ragcli.inspection.collisions import CollisionReport, SharedBucket

TOKENS = 12
"""So many tokens of a bucket are shown: JSON has them all."""


def lines(report: CollisionReport) -> list[str]:
    """The report as plain lines."""
    told = [
        f"{counted(report.vocabulary, 'token')} in {counted(report.buckets, 'bucket')}: "
        f"{report.used:,} used, {counted(report.collisions, 'collision')}"
    ]
    if report.colliding:
        told += [
            "",
            "Buckets that tokens share, the costliest first. cost = idf² · Σ (passages − passages "
            "of the token):",
            "what false matches add to the dot products if each token is asked for once.",
            "",
            *aligned(
                ["bucket", "cost", "idf", "passages", "tokens (passages with it, idf alone)"],
                [
                    (str(each.bucket), each.cost, each.idf, each.frequency, _tokens(each))
                    for each in report.colliding
                ],
            ),
        ]
    if report.left_out:
        told.append(f"and {counted(report.left_out, 'bucket')} more")
    told += [
        "",
        *aligned(
            ["buckets", "collisions", ""],
            [(each.buckets, each.collisions, "") for each in report.dimensions],
        ),
        _enough(report),
    ]
    return told


def _tokens(bucket: SharedBucket) -> str:
    """The commonest first, as the report has them."""
    every = list(zip(bucket.tokens, bucket.frequencies, bucket.idfs, strict=True))
    told = [f"{token} ({frequency:,}, {idf:.2f})" for token, frequency, idf in every[:TOKENS]]
    if len(every) > TOKENS:
        told.append(f"and {len(every) - TOKENS:,} more")
    return ", ".join(told)


def _enough(report: CollisionReport) -> str:
    wanted = f"fewer than {counted(report.fewer_than, 'collision')}"
    if report.enough is None:
        return f"No number of buckets gives {wanted}: a token is hashed to 32 bits."
    if report.enough == report.buckets:
        return f"There are {wanted} now."
    return f"For {wanted}: ragcli index --dim {report.enough}"
