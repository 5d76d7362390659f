"""What counts as found: which relevant items a hit holds, at each level.

document: a hit of the same document. chunk: a hit that overlaps the gold. span: the whole gold
inside one hit; where the gold is lines, a hit that touches the first and the last of them counts.
answer: a hit with the text of an answer, whatever document it is of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragcli.evaluation.answers import holds, normalised
from ragcli.evaluation.gold import Item
from ragcli.evaluation.questions import Question
from ragcli.records import Hit

LEVELS = ("document", "chunk", "span", "answer")


def level_of(questions: Sequence[Question]) -> str:
    """The level that the gold is made for.

    Answers alone: `answer`; whole documents: `document`; where a part of one is named: `chunk`.
    """
    asked = [question for question in questions if question.answerable]
    golds = [gold for question in asked for gold in question.relevant]
    if not all(question.relevant for question in asked) and all(each.answers for each in asked):
        return "answer"
    parts = any(gold.lines or gold.page or gold.span for gold in golds)
    return "chunk" if parts else "document"


def held(
    hits: Sequence[Hit], items: Sequence[Item], answers: Sequence[str], level: str
) -> list[frozenset[int]]:
    """Of each hit, in order, the numbers of the `items` that it holds.

    At the level `answer` there is one item, number 0: any of `answers`.
    """
    if level == "answer":
        wanted = [normalised(answer) for answer in answers]
        return [frozenset([0] if holds(normalised(hit.text), wanted) else []) for hit in hits]
    by_path: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        if not item.missing:
            by_path.setdefault(item.path, []).append(number)
    is_held = _HELD[level]
    return [
        frozenset(
            number
            for path in _names(hit)
            for number in by_path.get(path, ())
            if is_held(hit, items[number])
        )
        for hit in hits
    ]


def _names(hit: Hit) -> tuple[str, ...]:
    """The document's path, and of a record the file's: gold may mean a file as a whole."""
    if hit.record is None:
        return (hit.path,)
    return hit.path, hit.path[: -len(hit.record) - 1]


def _anywhere(hit: Hit, item: Item) -> bool:
    return True


def _overlaps(hit: Hit, item: Item) -> bool:
    if item.span is not None:
        return item.span[0] < hit.end and hit.start < item.span[1]
    if item.lines is not None:
        first, last = item.lines
        return hit.lines is not None and hit.lines[0] <= last and first <= hit.lines[1]
    return item.page is None or item.page == hit.page


def _covers(hit: Hit, item: Item) -> bool:
    if item.span is not None:
        return hit.start <= item.span[0] and item.span[1] <= hit.end
    assert item.lines is not None
    return hit.lines is not None and hit.lines[0] <= item.lines[0] and item.lines[1] <= hit.lines[1]


_HELD: dict[str, Callable[[Hit, Item], bool]] = {
    "document": _anywhere,
    "chunk": _overlaps,
    "span": _covers,
}
