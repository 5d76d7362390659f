"""Files of questions: what is asked, and what counts as an answer, as it is written there.

Owns the forms of a line (ragcli's own, BEIR's, those of question-answering sets) and of a target.
Whether a target is in the index is `gold`'s business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragcli.corpus.source import without_surrogates
from ragcli.errors import UsageError
from ragcli.evaluation.lines import BadLine, name_of, read_lines
from ragcli.evaluation.qrels import read_qrels

_FORM = (
    'a line is {"question": "…", "relevant": ["guide.md:10-24"]}, or with "answers": ["…"], '
    'or "answerable": false'
)
_LINES = re.compile(r"(?s)(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?")
_PAGE = re.compile(r"(?s)(.+)#page=(.+)")
_PARTS = ({"start", "end"}, {"lines"}, {"page"}, set[str]())
_TARGETS = "guide.md, guide.md:10-24, guide.pdf#page=3, corpus.jsonl#ID"


@dataclass(frozen=True, slots=True)
class Gold:
    """One target as written: a whole document, or `lines`, a `page` or a `span` of it.

    `path` may end in `#ID` for a record. `span`: character offsets into the document's text,
    half-open. With `record_only`, `path` is what a judgement calls the document, mostly the bare id
    of a record.
    """

    path: str
    lines: tuple[int, int] | None = None
    page: str | None = None
    span: tuple[int, int] | None = None
    grade: int = 1
    record_only: bool = False

    @property
    def written(self) -> str:
        """As a person would write it."""
        if self.lines is not None:
            first, last = self.lines
            return f"{self.path}:{first}" + (f"-{last}" if last > first else "")
        if self.page is not None:
            return f"{self.path}#page={self.page}"
        if self.span is not None:
            return f"{self.path}[{self.span[0]}:{self.span[1]}]"
        return self.path


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its gold: `relevant` targets, texts of `answers`, or not `answerable`.

    `line` is its line in the file, from 1.
    """

    id: str
    text: str
    line: int
    relevant: tuple[Gold, ...] = ()
    answers: tuple[str, ...] = ()
    answerable: bool = True
    kind: str | None = None
    synthetic: bool = False


class Questions(tuple[Question, ...]):
    """The questions of a file. Of those with judgements from elsewhere (`qrels`):

    `left_out` is how many queries of the file have none that is relevant, and so are not here;
    `not_asked` how many queries are judged that the file does not have.
    """

    left_out: int = 0
    not_asked: int = 0


def read_questions(file: Path | None, qrels: Path | None = None) -> Questions:
    """The questions of a file of JSON lines (None: stdin), in order.

    A question without an id has the number of its line for one. With `qrels` the relevant documents
    are what these judge above 0, and questions without any are left out and counted.

    Raises UsageError for a file that cannot be read or holds no question, for all bad lines
    together, and where no question is judged.
    """
    judged = None if qrels is None else read_qrels(qrels)
    reader = _Reader(judged)
    questions = Questions(read_lines(file, reader.question, _FORM))
    if not reader.seen:
        raise UsageError(f"{name_of(file)} holds no question", _FORM)
    if judged is not None:
        questions.left_out = len(reader.seen) - len(questions)
        questions.not_asked = len(judged.keys() - reader.seen.keys())
        if questions.not_asked == len(judged):
            raise UsageError(
                f"none of the {len(judged):,} queries of {qrels} is in {name_of(file)}",
                f"ids must be the same: here {next(iter(judged))}, there {next(iter(reader.seen))}",
            )
        if not any(question.relevant for question in questions):
            raise UsageError(f"{qrels} judges no document relevant", "a grade above 0 says so")
    return questions


class _Reader:
    """Lines to questions. `seen`: the line of each id."""

    def __init__(self, judged: Mapping[str, Mapping[str, int]] | None) -> None:
        self._judged = judged
        self.seen: dict[str, int] = {}

    def question(self, number: int, line: str) -> Question | None:
        """The question of a line; None where judgements are given and none is for it.

        Raises BadLine.
        """
        entry = _entry(line)
        identity = _identity(entry, number)
        before = self.seen.setdefault(identity, number)
        if before != number:
            raise BadLine(f"has the id of line {before}: {identity}")
        question = Question(
            id=identity,
            text=_text(entry),
            line=number,
            relevant=_relevant(entry),
            answers=_answers(entry),
            answerable=_flag(entry, "answerable", True),
            kind=_kind(entry),
            synthetic=_flag(entry, "synthetic", False),
        )
        if self._judged is not None:
            if question.relevant:
                raise BadLine("has `relevant`, but the judgements come from elsewhere")
            judged = self._judged.get(identity, {})
            question = replace(question, relevant=_of_judgements(judged))
        if not question.answerable and (question.relevant or question.answers):
            raise BadLine("says `answerable: false`, and yet what answers it")
        if self._judged is not None and question.answerable and not question.relevant:
            return None
        if question.answerable and not (question.relevant or question.answers):
            raise BadLine("has neither `relevant` nor `answers` nor `answerable: false`")
        return question


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadLine(f"is not JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise BadLine(f"cannot be read as JSON: {error}") from error
    if not isinstance(entry, dict):
        raise BadLine("is not a JSON object")
    return entry


def _identity(entry: dict[str, Any], number: int) -> str:
    identity = next((entry[key] for key in ("id", "_id") if entry.get(key) is not None), number)
    if isinstance(identity, bool) or not isinstance(identity, (str, int)) or identity == "":
        raise BadLine("has an id that is neither text nor a whole number")
    return without_surrogates(str(identity))


def _text(entry: dict[str, Any]) -> str:
    text = next((entry[key] for key in ("question", "text") if entry.get(key) is not None), None)
    if text is None:
        raise BadLine("has no question")
    if not isinstance(text, str):
        raise BadLine("has a question that is not text")
    if not text.strip():
        raise BadLine("has an empty question")
    return without_surrogates(text)


def _flag(entry: dict[str, Any], name: str, default: bool) -> bool:
    value = entry.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadLine(f"has `{name}` that is neither true nor false")
    return default if value is None else value


def _kind(entry: dict[str, Any]) -> str | None:
    kind = entry.get("kind")
    if kind is not None and not isinstance(kind, str):
        raise BadLine("has a `kind` that is not text")
    return None if kind is None else without_surrogates(kind)


def _answers(entry: dict[str, Any]) -> tuple[str, ...]:
    given = entry["answers"] if entry.get("answers") is not None else entry.get("answer")
    if given is None:
        return ()
    answers = tuple(dict.fromkeys(without_surrogates(text) for text in _texts(given)))
    if not all(map(str.strip, answers)):
        raise BadLine("has an empty answer")
    if not answers and entry.get("answerable") is not False:
        raise BadLine("has empty `answers`")
    return answers


def _texts(given: object) -> Iterable[str]:
    """The texts of `answers`: one, several, or SQuAD's objects with `text`."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, list):
        for each in given:
            yield from _texts(each)
    elif isinstance(given, dict) and "text" in given:
        yield from _texts(given["text"])
    else:
        raise BadLine("has `answers` that are not text")


def _relevant(entry: dict[str, Any]) -> tuple[Gold, ...]:
    given = entry.get("relevant")
    if given is None:
        return ()
    if not isinstance(given, list):
        raise BadLine("has `relevant` that is not a list")
    if not given and entry.get("answerable") is not False:
        raise BadLine("has empty `relevant`")
    return tuple(dict.fromkeys(map(_gold, given)))


def _gold(target: object) -> Gold:
    if isinstance(target, str) and target.strip():
        return _of_text(target)
    if isinstance(target, dict):
        return _of_object(target)
    raise BadLine(f"has a target that is none of {_TARGETS}: {_shown(target)}")


def _of_text(target: str) -> Gold:
    """What a text names, unless the index has a file or record of the whole name (`gold`)."""
    page = _PAGE.fullmatch(target)
    if page:
        return Gold(page[1], page=page[2])
    lines = _LINES.fullmatch(target)
    if not lines:
        return Gold(target)
    first, last = int(lines[2]), int(lines[3] or lines[2])
    if 1 <= first <= last:
        return Gold(lines[1], lines=(first, last))
    if "#" in target:
        return Gold(target)
    raise BadLine(f"has a target whose lines do not count up from 1: {target}")


def _of_object(target: dict[str, Any]) -> Gold:
    path, parts = target.get("path"), target.keys() - {"path"}
    if not isinstance(path, str) or not path.strip() or parts not in _PARTS:
        raise BadLine(
            "has a target that is not an object of `path` and `start`, `end`, or `lines`, or "
            f"`page`: {_shown(target)}"
        )
    if "page" in parts:
        page = target["page"]
        if isinstance(page, bool) or not isinstance(page, (str, int)) or page == "":
            raise BadLine(f"has a target whose page is no label: {_shown(target)}")
        return Gold(path, page=str(page))
    if "lines" in parts:
        first, last = _pair(target["lines"], target)
        if not 1 <= first <= last:
            raise BadLine(f"has a target whose lines do not count up from 1: {_shown(target)}")
        return Gold(path, lines=(first, last))
    if "start" in parts:
        start, end = _pair([target["start"], target["end"]], target)
        if not 0 <= start < end:
            raise BadLine(f"has a target that ends before it starts: {_shown(target)}")
        return Gold(path, span=(start, end))
    return Gold(path)


def _pair(values: object, target: dict[str, Any]) -> tuple[int, int]:
    if not isinstance(values, list) or [type(value) for value in values] != [int, int]:
        raise BadLine(f"has a target whose range is not two whole numbers: {_shown(target)}")
    return values[0], values[1]


def _of_judgements(judged: Mapping[str, int]) -> tuple[Gold, ...]:
    return tuple(
        Gold(document, grade=grade, record_only=True)
        for document, grade in judged.items()
        if grade > 0
    )


def _shown(target: object) -> str:
    text = json.dumps(target, ensure_ascii=False)
    return without_surrogates(text if len(text) <= 80 else f"{text[:79]}…")
