"""`ragcli eval FILE`: ask, measure, explain the misses, compare, keep, and judge by the gates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.cli.calibrated import way_of
from ragcli.cli.output import print_json, print_result
from ragcli.cli.progress import AskedDisplay
from ragcli.cli.retrieval import searching
from ragcli.errors import NegativeResult, UsageError
from ragcli.evaluation import compare, trec
from ragcli.evaluation.calibration import Calibration, features, fit
from ragcli.evaluation.gold import Missing, refuse_missing, resolve
from ragcli.evaluation.questions import Question, Questions
from ragcli.evaluation.relevance import level_of
from ragcli.evaluation.report import EvalReport, Gate, failed, parse_gate, refused, worst
from ragcli.evaluation.run import CHARACTERS, MEASURES, Items, Run, ask
from ragcli.inspection.misses import GROUPS, Miss, Wanted, cause_of
from ragcli.records import SearchResult
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index
from ragcli.store.keeping import keep_calibration

if TYPE_CHECKING:
    from ragcli.cli.eval import Eval

MISSES = 20
"""So many of the worst questions are looked into."""


def measure(command: Eval) -> None:
    """All of it. Raises UsageError, and NegativeResult where a gate failed."""
    file = _file(command)
    kept = None if command.baseline is None else compare.read(command.baseline)
    questions = command.questions(file)
    level = command.level or level_of(questions)
    gates = _gates(command, level)
    if level == "document" and command.max_per_file is not None:
        raise UsageError(
            "--max-per-file says nothing at the level document: k counts documents there",
            "leave it out, or --level chunk",
        )
    seen = Seen()
    with searching(command.index) as (retriever, index):
        if command.path and not len(index.documents_at(command.path)):
            raise UsageError(
                f"no file of the index matches {' or '.join(command.path)}",
                "paths are relative to the indexed folder",
            )
        items, missing = _gold(command, index, questions, level)
        runs = _ask(command, retriever, questions, items, level, seen)
        misses = _misses(index, retriever, runs[0], items, missing)
        chunks, location = index.counts()[0], index.path
        calibration = _fit(index, seen, runs[0]) if command.calibrate else None
        before = index.calibration
    report = EvalReport(
        file=file,
        questions=len(questions),
        answerable=sum(question.answerable for question in questions),
        synthetic=sum(question.synthetic for question in questions),
        left_out=questions.left_out,
        level=level,
        ks=runs[0].ks,
        chunks=chunks,
        runs=tuple(runs),
        missing=missing,
        comparisons=() if kept is None else compare.compare(kept, runs[0]),
        baseline=None if kept is None else kept.file,
        refusal=refused(runs[0]),
        calibration=calibration,
    )
    _print(command, report, misses)
    if calibration is not None:
        _keep(location, calibration, before)
    if command.save is not None:
        compare.keep(runs[0], command.save, str(location))
    if command.trec is not None:
        trec.write(runs[0], items, command.trec)
    _judge(command, report, gates)


class Seen:
    """What a calibration is fitted on: the features of each question's hits in the first way."""

    def __init__(self) -> None:
        self.rows: list[Mapping[str, float]] = []
        self.labels: list[bool] = []
        self.last: SearchResult | None = None

    def look(self, question: Question, result: SearchResult) -> None:
        """One question, asked."""
        self.rows.append(features(result))
        self.labels.append(question.answerable)
        self.last = result


def _gates(command: Eval, level: str) -> list[Gate]:
    """The gates. Raises UsageError for one that could never be judged."""
    if command.fail_regression and command.baseline is None:
        raise UsageError("--fail-regression without --baseline", "name the run to compare with")
    try:
        gates = [parse_gate(text) for text in command.fail_under or []]
    except ValueError as error:
        raise UsageError(f"argument --fail-under: {error}", "ragcli eval --help") from error
    known = {f"{name}@{k}" for name in (*MEASURES, *CHARACTERS) for k in command.ks}
    for gate in gates:
        if gate.figure not in known:
            raise UsageError(
                f"argument --fail-under: there is no figure {gate.figure} at the level {level}",
                f"one of {', '.join(sorted(known))}",
            )
    return gates


def _file(command: Eval) -> str:
    words = command.words or []
    if len(words) != 1:
        told = "more than one FILE" if words else "no FILE of questions"
        raise UsageError(told, "ragcli eval questions.jsonl")
    return words[0]


def _fit(index: Index, seen: Seen, run: Run) -> Calibration:
    """P(answerable) for the first way to ask. Raises UsageError for too few questions."""
    assert seen.last is not None
    way = way_of(index, seen.last, run.way.rerank)
    return fit(seen.rows, seen.labels, way=way)


def _keep(location: Path, calibration: Calibration, before: object) -> None:
    """What is worth it; else nothing stays of an older one for the same way."""
    if calibration.kept:
        keep_calibration(location, calibration.model.to_json())
    elif isinstance(before, dict) and before.get("way") == calibration.model.way:
        keep_calibration(location, None)


def _gold(
    command: Eval, index: Index, questions: Questions, level: str
) -> tuple[Items, tuple[Missing, ...]]:
    """The relevant items. Raises UsageError where some are not in the index."""
    resolved = resolve(index, questions, level)
    if not command.allow_missing:
        refuse_missing(resolved.missing)
    return resolved.items, resolved.missing


def _ask(
    command: Eval,
    retriever: Retriever,
    questions: Questions,
    items: Items,
    level: str,
    seen: Seen,
) -> list[Run]:
    runs: list[Run] = []
    ways = command.ways()
    look: Callable[[Question, SearchResult], None]
    with AskedDisplay(command.output, len(questions) * len(ways)) as display:
        for number, way in enumerate(ways):
            done = number * len(questions)

            def told(now: int, done: int = done) -> None:
                display.show(done + now)

            look = seen.look if number == 0 and command.calibrate else _nothing
            runs.append(
                ask(
                    retriever, questions, items, way, command.ks, level,
                    looked=look, progress=told,
                )
            )  # fmt: skip
    return runs


def _nothing(_question: Question, _result: SearchResult) -> None:
    """Nobody wants to see the results."""


def _print(command: Eval, report: EvalReport, misses: Sequence[Miss]) -> None:
    if command.as_json:
        from ragcli.cli.jsonout import evaluation

        print_json(evaluation(report, misses))
    else:
        from ragcli.cli.reports.evaluation import lines

        print_result("\n".join(lines(report, misses)))
    if command.plot is not None:
        from ragcli.cli import plot
        from ragcli.cli.plot.runs import evaluation as page

        plot.write(command.plot, page(report))


def _judge(command: Eval, report: EvalReport, gates: Sequence[Gate]) -> None:
    """Raises NegativeResult where a gate failed."""
    told = failed(gates, report.runs[0])
    if command.fail_regression:
        told += [
            f"{each.figure} fell from {each.baseline:.4f} to {each.now:.4f}"
            for each in report.comparisons
            if each.regressed and each.figure.split("@")[0] in ("recall", "ndcg", "mrr")
        ]
    if told:
        raise NegativeResult("; ".join(told), "ragcli eval shows the worst questions, and why")


def _misses(
    index: Index,
    retriever: Retriever,
    run: Run,
    items: Items,
    missing: Sequence[Missing],
) -> list[Miss]:
    """Why the worst questions missed what they did."""
    reasons = {(each.question, each.target): each.reason for each in missing}
    misses = []
    for outcome in worst(run, MISSES):
        found = {number for hit in outcome.hits for number in hit.items}
        gold = items.get(outcome.id, ())
        if gold:
            item = gold[min(set(range(len(gold))) - found)]
            wanted, missed = Wanted(item.path, item.lines, item.page, item.span), item.label
        else:
            wanted, missed = Wanted(text=outcome.relevant[0]), outcome.relevant[0]
        if (outcome.id, missed) in reasons:
            cause, because = "left_out", reasons[outcome.id, missed]
        elif found:
            cause, because = "two_hop", f"{len(found)} of {len(gold)} were found"
        else:
            request = run.way.request(outcome.question, max(run.ks))
            cause, because = cause_of(index, retriever, request, wanted)
        misses.append(
            Miss(outcome.id, outcome.question, missed, cause, GROUPS.get(cause, cause), because)
        )
    return misses
