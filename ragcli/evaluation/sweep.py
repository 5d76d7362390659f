"""The same sources indexed in several ways, each asked the same questions: which way is best.

Owns the order of the work and what can be told apart. What is swept is `variants`', the indexes
are made in `temporary`, the figures are `run`'s. Only `apply` writes to the present index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ragcli.errors import IndexUnavailable, ModelUnavailable, RagcliError, UsageError
from ragcli.evaluation.gold import refuse_missing, resolve
from ragcli.evaluation.pace import Pace
from ragcli.evaluation.questions import Question
from ragcli.evaluation.run import CHARACTERS, MEASURES, Figure, Items, Run, Way, ask
from ragcli.evaluation.statistics import Difference, difference
from ragcli.evaluation.temporary import MadeIndex, TemporaryIndexes
from ragcli.evaluation.variants import Variant, parse_sweep
from ragcli.indexing import index_folder
from ragcli.records import IndexReport, Progress, Settings
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index

__all__ = ["FailedVariant", "SweepReport", "SweepRow", "Variant", "apply", "parse_sweep", "sweep"]

_PRIMARY_K = 5

Told = Callable[[int, int, str, str, "float | None"], None]
"""(variants done, of how many, label of the one at hand, stage, seconds left if that is known)."""


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One variant measured; `settings` is all that it changes, of the index and of the asking.

    `shared` of the `chunks` took their vector over from another index, so that `index_seconds`
    is less than indexing takes by itself. `words` is what the hits of a question cost, for the
    largest k. `against_best`: the measure of the best row less that of this one, None of itself.
    `missing` gold targets are not in this variant, and counted as not found.
    """

    label: str
    settings: dict[str, Any]
    chunks: int
    shared: int
    index_seconds: float
    figures: dict[str, Figure]
    words: float
    milliseconds_50: float
    missing: int
    against_best: Difference | None = None


@dataclass(frozen=True, slots=True)
class FailedVariant:
    """One whose index could not be made, and why."""

    label: str
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class SweepReport:
    """The rows in the order asked for.

    `best` is the label of the row whose `measure` is highest, of equal ones that with the fewest
    words; None where no row was done. `alike` are those that cannot be told from it: the interval
    of the difference holds 0. `changed` files are not as the present index has them.
    `interrupted`: the variants in neither `rows` nor `failed` were not tried.
    """

    level: str
    ks: tuple[int, ...]
    measure: str
    rows: tuple[SweepRow, ...]
    best: str | None
    alike: tuple[str, ...]
    failed: tuple[FailedVariant, ...]
    changed: int
    interrupted: bool
    seconds: float


def sweep(
    index_location: Path,
    questions: Sequence[Question],
    way: Way,
    ks: Sequence[int],
    level: str,
    variants: Sequence[Variant],
    *,
    measure: str | None = None,
    workers: int | None = None,
    allow_missing: bool = False,
    progress: Told = lambda *_: None,
) -> SweepReport:
    """Index the sources of `index_location` as each of `variants` has it, ask, and compare.

    `measure` is what the best is chosen by: recall at the largest k up to 5 unless it is said. An
    interrupt ends it with the rows done, an index that cannot be made costs its rows alone. Raises
    UsageError for sources that are not there, gold that is not in an index and what cannot be
    asked or measured; where no index could be made, what the first one raised.
    """
    began = time.monotonic()
    measure = _measure(measure, ks)
    with TemporaryIndexes(index_location, workers=workers) as indexes:
        _check_ways(variants, way, indexes.settings)
        asking = _Asking(tuple(questions), way, tuple(ks), level, measure, allow_missing)
        work = _Sweep(indexes, asking, variants, progress)
        interrupted = False
        try:
            work.run()
        except KeyboardInterrupt:
            interrupted = True
    if work.failed and not work.measured and not interrupted:
        raise work.failed[0][1]
    rows, best = _against_best(
        [work.measured[each.label] for each in variants if each.label in work.measured], measure
    )
    return SweepReport(
        level=level,
        ks=tuple(ks),
        measure=measure,
        rows=rows,
        best=best,
        alike=tuple(row.label for row in rows if row.against_best and row.against_best.low <= 0),
        failed=tuple(
            FailedVariant(each.label, error.message, error.hint) for each, error in work.failed
        ),
        changed=indexes.changed,
        interrupted=interrupted,
        seconds=time.monotonic() - began,
    )


def apply(
    index_location: Path,
    variant: Variant,
    *,
    workers: int | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> IndexReport:
    """Make the present index as `variant` has it. Raises as `index_folder` does."""
    return index_folder(index_location, (), variant.settings, workers=workers, progress=progress)


Measured = tuple[SweepRow, dict[str, float]]
"""A row, and the measure by question."""


class _Sweep:
    """What is done so far: `measured` by label, and `failed` with the error of each."""

    def __init__(
        self,
        indexes: TemporaryIndexes,
        asking: _Asking,
        variants: Sequence[Variant],
        progress: Told,
    ) -> None:
        self._indexes = indexes
        self._asking = asking
        self._groups = _by_index(variants)
        self._total = len(variants)
        self._progress = progress
        self._pace = Pace({"index": len(self._groups), "ask": len(variants)})
        self.measured: dict[str, Measured] = {}
        self.failed: list[tuple[Variant, RagcliError]] = []

    def run(self) -> None:
        """Make each index once, and ask it in every way that it is to be asked."""
        for group in self._groups:
            made = self._make(group)
            if made is not None:
                with Index.open(made.place) as index:
                    self._ask(index, made, group)

    def _make(self, group: Sequence[Variant]) -> MadeIndex | None:
        """The index that the variants of `group` share; None where it failed."""
        self._pace.begin("index")
        try:
            return self._indexes.make(group[0].settings, partial(self._tell, group[0].label))
        except (IndexUnavailable, ModelUnavailable, UsageError) as error:
            self.failed += [(variant, error) for variant in group]
            self._pace.drop("ask", len(group))
            return None
        finally:
            self._pace.end()

    def _ask(self, index: Index, made: MadeIndex, group: Sequence[Variant]) -> None:
        try:
            items, missing = self._asking.gold(index, group[0].label)
        except UsageError as error:
            if not self.measured:
                raise
            # The rows done stay: the sources changed under the sweep.
            self.failed += [(variant, error) for variant in group]
            self._pace.drop("ask", len(group))
            return
        retriever = Retriever(index)
        for variant in group:
            self._pace.begin("ask")
            run = self._asking.run(
                retriever, items, variant, partial(self._tell, variant.label, "ask")
            )
            self._pace.end()
            values = self._asking.values(run)
            self.measured[variant.label] = _row(variant, made, run, missing), values

    def _tell(self, label: str, stage: str, share: float) -> None:
        done = len(self.measured) + len(self.failed)
        self._progress(done, self._total, label, stage, self._pace.seconds_left(share))


@dataclass(frozen=True, slots=True)
class _Asking:
    """The questions, and how they are asked and measured."""

    questions: tuple[Question, ...]
    way: Way
    ks: tuple[int, ...]
    level: str
    measure: str
    allow_missing: bool

    def gold(self, index: Index, label: str) -> tuple[Items, int]:
        """The relevant items in `index`, and how many are not there.

        An answer that no passage holds any more is what this way of chunking costs. Raises
        UsageError for any other that is not there.
        """
        resolved = resolve(index, self.questions, self.level)
        if not (self.allow_missing or self.level == "answer"):
            refuse_missing(resolved.missing, f"the index with {label}")
        return resolved.items, len(resolved.missing)

    def run(
        self, retriever: Retriever, items: Items, variant: Variant, told: Callable[[float], None]
    ) -> Run:
        """All questions as `variant` has them asked; tells which share of them is done."""
        return ask(
            retriever, self.questions, items, variant.way(self.way), self.ks, self.level,
            progress=lambda done: told(done / len(self.questions)),
        )  # fmt: skip

    def values(self, run: Run) -> dict[str, float]:
        """The measure by question. Raises UsageError where no question has it."""
        values = {
            outcome.id: outcome.metrics[self.measure]
            for outcome in run.outcomes
            if self.measure in outcome.metrics
        }
        if not values:
            raise UsageError(
                f"there is no figure {self.measure} here",
                f"one of {', '.join(run.figures) or 'none: no question has an answer'}",
            )
        return values


def _measure(measure: str | None, ks: Sequence[int]) -> str:
    """The figure that the best is chosen by. Raises UsageError for one that there is not."""
    if measure is None:
        return f"recall@{max((k for k in ks if k <= _PRIMARY_K), default=min(ks))}"
    names = [f"{name}@{k}" for name in (*MEASURES, *CHARACTERS) for k in ks]
    if measure not in names:
        raise UsageError(f"there is no figure {measure} here", f"one of {', '.join(names)}")
    return measure


def _check_ways(variants: Sequence[Variant], base: Way, settings: Settings) -> None:
    """Raises UsageError where vectors are asked of an index without, before any is made."""
    for variant in variants:
        mode = variant.way(base).mode
        without = variant.settings.get("encoder", settings.encoder) == "none"
        if without and mode not in (None, "lexical"):
            raise UsageError(
                f"mode {mode} needs vectors, and with encoder none there are none",
                "leave one of them out",
            )


def _by_index(variants: Sequence[Variant]) -> list[list[Variant]]:
    """Variants of the same settings of the index together."""
    groups: dict[tuple[tuple[str, str], ...], list[Variant]] = {}
    for variant in variants:
        groups.setdefault(tuple(sorted(variant.settings.items())), []).append(variant)
    return list(groups.values())


def _row(variant: Variant, made: MadeIndex, run: Run, missing: int) -> SweepRow:
    return SweepRow(
        label=variant.label,
        settings={**variant.settings, **variant.asking},
        chunks=made.chunks,
        shared=made.shared,
        index_seconds=made.seconds,
        figures=run.figures,
        words=run.words,
        milliseconds_50=run.milliseconds_50,
        missing=missing,
    )


def _against_best(
    measured: Sequence[Measured], measure: str
) -> tuple[tuple[SweepRow, ...], str | None]:
    """The rows, each compared with the best one question by question, and its label."""
    if not measured:
        return (), None
    best, most = min(measured, key=lambda of: (-of[0].figures[measure].mean, of[0].words))
    rows = []
    for row, values in measured:
        both = [question for question in most if question in values]
        against = difference([most[q] for q in both], [values[q] for q in both])
        rows.append(row if row is best else replace(row, against_best=against))
    return tuple(rows), best.label
