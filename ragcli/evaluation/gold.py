"""The relevant items of questions at one level, each checked to be in the index.

Owns what a target amounts to at each level, and the preflight: a wall of zeros for what was never
indexed would be a lie. Finding targets is `places`', answers' texts are `answers`'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ragcli.errors import UsageError
from ragcli.evaluation.answers import answered, normalised
from ragcli.evaluation.places import Nowhere, Place, Places
from ragcli.evaluation.questions import Gold, Question
from ragcli.store.index import Index, display_path


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that is relevant to a question. `label` is what reports call it: as written.

    `path` is the document's as hits have it, or that of a file of records as a whole. A `missing`
    item is not in the index: it counts, and no hit holds it.
    """

    label: str
    path: str
    lines: tuple[int, int] | None = None
    page: str | None = None
    span: tuple[int, int] | None = None
    grade: int = 1
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """A target, or an answer, that the index does not have; `line` is the question's."""

    question: str
    line: int
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """The items of each question by its id, and what is missing of them.

    At the level `answer` no question has items: its answers are what is looked for.
    """

    items: dict[str, tuple[Item, ...]]
    missing: tuple[Missing, ...]


TOLD = 3
"""So many missing targets are told one by one."""


def refuse_missing(missing: Sequence[Missing], where: str = "the index") -> None:
    """Raises UsageError that tells the first of `missing`, where there are any."""
    if not missing:
        return
    listed = "; ".join(f"line {m.line}: {m.target}: {m.reason}" for m in missing[:TOLD])
    more = f"; and {len(missing) - TOLD:,} more" if len(missing) > TOLD else ""
    noun = "target" if len(missing) == 1 else "targets"
    raise UsageError(
        f"{len(missing):,} {noun} not in {where}: {listed}{more}",
        "mend the file or run ragcli index; --allow-missing counts them as missed",
    )


def resolve(index: Index, questions: Sequence[Question], level: str) -> Resolved:
    """What is relevant to each of `questions` at `level`, each item once.

    At the level `document` they are documents, whatever part of them is named; at the level `span`
    white space at the ends of the gold that no chunk has is not asked for.

    Raises UsageError for the first question whose gold does not do for the level.
    """
    _check(questions, level)
    if level == "answer":
        return Resolved({question.id: () for question in questions}, _unanswered(index, questions))
    places = Places(index, dict.fromkeys(g for question in questions for g in question.relevant))
    items: dict[str, tuple[Item, ...]] = {}
    missing: list[Missing] = []
    for question in questions:
        found: dict[object, Item] = {}
        for gold in question.relevant:
            try:
                each = list(_items(gold, places.of(gold), level))
            except Nowhere as error:
                missing.append(Missing(question.id, question.line, gold.written, str(error)))
                whole = level == "document"
                part = (None, None, None) if whole else _part(gold)
                each = [Item(gold.written, gold.path, *part, gold.grade, missing=True)]
            for item in each:
                key = item.path, *_part(item), item.missing
                known = found.setdefault(key, item)
                if item.grade > known.grade:
                    found[key] = replace(known, grade=item.grade)
        items[question.id] = tuple(found.values())
    return Resolved(items, tuple(missing))


def _part(target: Gold | Item) -> tuple[tuple[int, int] | None, str | None, tuple[int, int] | None]:
    return target.lines, target.page, target.span


def _check(questions: Sequence[Question], level: str) -> None:
    """Raises UsageError for the first question that could be answered and has no such gold."""
    for question in questions:
        if not question.answerable:
            continue
        named = f"question {question.id} (line {question.line})"
        if level == "answer":
            if not question.answers:
                raise UsageError(
                    f"{named} has no `answers`, which the level answer looks for",
                    "--level document or chunk; or one file for each kind of gold",
                )
        elif not question.relevant:
            raise UsageError(
                f"{named} has no `relevant`, which the level {level} looks for",
                "--level answer; or one file for each kind of gold",
            )
        elif level == "span":
            whole = [gold for gold in question.relevant if not (gold.span or gold.lines)]
            if whole:
                raise UsageError(
                    f"{named} names neither lines nor characters of {whole[0].written}, which the "
                    "level span looks for",
                    "--level chunk",
                )


def _items(gold: Gold, place: Place, level: str) -> Iterator[Item]:
    part = (place.lines, place.page, place.span)
    if level == "document":
        paths = [place.path]
        if any(part):
            paths = list(dict.fromkeys(display_path(place.file, r.record) for r in place.rows))
        for path in paths:
            yield Item(gold.path if gold.record_only else path, path, grade=gold.grade)
    elif level == "span":
        yield Item(gold.written, place.path, *_held(place), grade=gold.grade)
    else:
        yield Item(gold.written, place.path, *part, grade=gold.grade)


def _held(place: Place) -> tuple[tuple[int, int] | None, None, tuple[int, int] | None]:
    """(lines, no page, span) without what no chunk holds at either end."""
    lines, span = place.lines, place.span
    if lines:
        touched = [row.lines for row in place.rows if row.lines]
        lines = (
            max(lines[0], min(first for first, _ in touched)),
            min(lines[1], max(last for _, last in touched)),
        )
    if span:
        span = (
            max(span[0], min(row.start for row in place.rows)),
            min(span[1], max(row.end for row in place.rows)),
        )
    return lines, None, span


def _unanswered(index: Index, questions: Sequence[Question]) -> tuple[Missing, ...]:
    asked = {question.id: question.answers for question in questions if question.answerable}
    found = answered(index, asked)
    return tuple(
        Missing(question.id, question.line, question.answers[0], _why_not(question.answers))
        for question in questions
        if question.answerable and question.id not in found
    )


def _why_not(answers: Sequence[str]) -> str:
    if any(map(normalised, answers)):
        return "no passage holds the answer"
    return "nothing is left of the answer without punctuation and articles"
