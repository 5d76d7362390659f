"""Files of questions: the forms of a line and of a target, and every bad line named."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcli.errors import UsageError
from ragcli.evaluation.questions import Gold, Question, Questions, read_questions

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "eval"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def read(tmp_path: Path, *lines: object, qrels: str | None = None) -> Questions:
    """The questions of `lines` (text as it is, the rest as JSON)."""
    file = tmp_path / "questions.jsonl"
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    if qrels is None:
        return read_questions(file)
    judged = tmp_path / "qrels.tsv"
    judged.write_text(qrels, encoding="utf-8")
    return read_questions(file, judged)


def told(tmp_path: Path, *lines: object, qrels: str | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, *lines, qrels=qrels)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value.message


def relevant(tmp_path: Path, *targets: object) -> tuple[Gold, ...]:
    return read(tmp_path, {"question": "q", "relevant": targets})[0].relevant


# what a line may say


def test_a_full_line(tmp_path: Path) -> None:
    (question,) = read(
        tmp_path,
        {"id": "p1", "question": "Why?", "kind": "plain", "relevant": ["a.md:10-24"],
         "answers": ["so"], "synthetic": True, "answerable": True, "other": {"is": "ignored"}},
    )  # fmt: skip
    assert question == Question(
        "p1", "Why?", 1, (Gold("a.md", lines=(10, 24)),), ("so",), True, "plain", True
    )


def test_without_an_id_the_line_number_is_the_id(tmp_path: Path) -> None:
    found = read(tmp_path, "", {"question": "a", "answers": ["x"]}, "  \r",
                 {"id": 7, "question": "b", "answers": ["x"]})  # fmt: skip
    assert [(q.id, q.line) for q in found] == [("2", 2), ("7", 4)]


@pytest.mark.parametrize(
    ("given", "gold"),
    [
        ("a.md", Gold("a.md")),
        ("b.md:10-24", Gold("b.md", lines=(10, 24))),
        ("b.md:10", Gold("b.md", lines=(10, 10))),
        ("c.pdf#page=3", Gold("c.pdf", page="3")),
        ("c.pdf#page=iv", Gold("c.pdf", page="iv")),
        ("corpus.jsonl#ID", Gold("corpus.jsonl#ID")),
        ("corpus.jsonl#a:5", Gold("corpus.jsonl#a", lines=(5, 5))),
        ("corpus.jsonl#a:0", Gold("corpus.jsonl#a:0")),
        ("C:/x.md", Gold("C:/x.md")),
        ("odd:name", Gold("odd:name")),
        ({"path": "a.md"}, Gold("a.md")),
        ({"path": "a.md", "start": 0, "end": 5}, Gold("a.md", span=(0, 5))),
        ({"path": "a.md", "lines": [3, 3]}, Gold("a.md", lines=(3, 3))),
        ({"path": "c.pdf", "page": 3}, Gold("c.pdf", page="3")),
        ({"path": "c.pdf", "page": "iv"}, Gold("c.pdf", page="iv")),
        ({"path": "caf\udce9.md"}, Gold("caf\udce9.md")),
    ],
)
def test_targets(tmp_path: Path, given: object, gold: Gold) -> None:
    assert relevant(tmp_path, given) == (gold,)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    for target in ("a.md", "b.md:10-24", "b.md:10", "c.pdf#page=3", "corpus.jsonl#ID"):
        assert relevant(tmp_path, target)[0].written == target
    assert relevant(tmp_path, {"path": "a", "start": 1, "end": 3})[0].written == "a[1:3]"


def test_a_target_twice_is_one(tmp_path: Path) -> None:
    assert len(relevant(tmp_path, "a.md:3", {"path": "a.md", "lines": [3, 3]}, "a.md")) == 2


@pytest.mark.parametrize(
    "entry",
    [
        {"answers": ["x", "y"]},
        {"answers": ["x", "y", "x"]},
        {"answers": [{"text": "x"}, {"text": "y", "answer_start": 3}]},
        {"answers": {"text": ["x", "y"], "answer_start": [0, 3]}},
        {"answer": ["x", "y"]},
        {"answers": None, "answer": ["x", "y"], "relevant": None},
    ],
)
def test_answers_as_question_answering_sets_have_them(
    tmp_path: Path, entry: dict[str, object]
) -> None:
    assert read(tmp_path, {"question": "q", **entry})[0].answers == ("x", "y")


def test_one_answer_as_text(tmp_path: Path) -> None:
    assert read(tmp_path, {"question": "q", "answer": "x"})[0].answers == ("x",)
    assert read(tmp_path, {"question": "q", "answers": "x"})[0].answers == ("x",)


def test_the_unanswerable(tmp_path: Path) -> None:
    (question,) = read(
        tmp_path, {"question": "q", "answerable": False, "answers": [], "relevant": []}
    )
    assert (question.answerable, question.relevant, question.answers) == (False, (), ())


def test_bytes_around_the_lines(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    line = json.dumps({"question": "é\u2028x", "answers": ["x"]}, ensure_ascii=False).encode()
    file.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n\r\n   \n" + line)
    assert [(q.line, q.text) for q in read_questions(file)] == [(1, "é\u2028x"), (4, "é\u2028x")]


def test_lone_surrogates_are_replaced_in_what_is_asked(tmp_path: Path) -> None:
    (question,) = read(tmp_path, r'{"id": "a\ud83d", "question": "q\ud83d", "answers": ["\udc00"]}')
    assert (question.id, question.text, question.answers) == ("a\ufffd", "q\ufffd", ("\ufffd",))


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'{"question": "q", "answers": ["x"]}\n'
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert [question.text for question in read_questions(None)] == ["q"]
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="stdin holds no question"):
        read_questions(None)


# what is wrong with a line


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "is not JSON: "),
        ('{"question": "q",}', "at column 18"),
        ("[" * 100_000, "cannot be read as JSON"),
        ('{"id": ' + "9" * 5000 + "}", "cannot be read as JSON"),
        ("caf\udce9", "is not UTF-8"),
        ("[1]", "is not a JSON object"),
        ('"text"', "is not a JSON object"),
        ({"answers": ["x"]}, "has no question"),
        ({"question": None, "answers": ["x"]}, "has no question"),
        ({"question": 5, "answers": ["x"]}, "has a question that is not text"),
        ({"question": " \n", "answers": ["x"]}, "has an empty question"),
        ({"id": "", "question": "q", "answers": ["x"]}, "has an id that is neither"),
        ({"id": 1.5, "question": "q", "answers": ["x"]}, "has an id that is neither"),
        ({"id": True, "question": "q", "answers": ["x"]}, "has an id that is neither"),
        ({"question": "q"}, "has neither `relevant` nor `answers` nor `answerable: false`"),
        ({"question": "q", "answerable": "no"}, "has `answerable` that is neither true nor false"),
        ({"question": "q", "synthetic": 1}, "has `synthetic` that is neither true nor false"),
        ({"question": "q", "kind": 1, "answers": ["x"]}, "has a `kind` that is not text"),
        ({"question": "q", "answers": []}, "has empty `answers`"),
        ({"question": "q", "answers": ["x", " "]}, "has an empty answer"),
        ({"question": "q", "answers": [5]}, "has `answers` that are not text"),
        ({"question": "q", "answers": {"value": "x"}}, "has `answers` that are not text"),
        ({"question": "q", "relevant": "a.md"}, "has `relevant` that is not a list"),
        ({"question": "q", "relevant": []}, "has empty `relevant`"),
        ({"question": "q", "relevant": [5]}, "has a target that is none of"),
        ({"question": "q", "relevant": [" "]}, "has a target that is none of"),
        ({"question": "q", "relevant": ["a.md:24-10"]}, "do not count up from 1: a.md:24-10"),
        ({"question": "q", "relevant": ["a.md:0"]}, "do not count up from 1: a.md:0"),
        ({"question": "q", "relevant": [{"file": "a"}]}, "is not an object of `path`"),
        ({"question": "q", "relevant": [{"path": "a", "line": 3}]}, "is not an object of `path`"),
        ({"question": "q", "relevant": [{"path": "a", "start": 3}]}, "is not an object of `path`"),
        (
            {"question": "q", "relevant": [{"path": "a", "start": 3, "end": 3}]},
            "ends before it starts",
        ),
        (
            {"question": "q", "relevant": [{"path": "a", "start": -1, "end": 3}]},
            "ends before it starts",
        ),
        ({"question": "q", "relevant": [{"path": "a", "lines": [3]}]}, "not two whole numbers"),
        ({"question": "q", "relevant": [{"path": "a", "lines": [3, 2]}]}, "do not count up"),
        (
            {"question": "q", "relevant": [{"path": "a", "start": True, "end": 3}]},
            "not two whole numbers",
        ),
        ({"question": "q", "relevant": [{"path": "a", "page": 1.5}]}, "page is no label"),
        (
            {"question": "q", "answerable": False, "relevant": ["a.md"]},
            "says `answerable: false`, and yet what answers it",
        ),
        (
            {"question": "q", "answerable": False, "answers": ["x"]},
            "says `answerable: false`, and yet what answers it",
        ),
    ],
)
def test_a_bad_line_is_named_with_its_reason(tmp_path: Path, line: object, reason: str) -> None:
    message = told(tmp_path, {"question": "q", "answers": ["x"]}, line)
    assert message.startswith(f"{tmp_path / 'questions.jsonl'}: line 2 ")
    assert reason in message


def test_an_id_twice_names_both_lines(tmp_path: Path) -> None:
    line = {"id": "x", "question": "q", "answers": ["x"]}
    assert told(tmp_path, line, "", line).endswith("line 3 has the id of line 1: x")
    # the number of a line is an id too
    assert told(
        tmp_path, {"id": "2", "question": "q", "answers": ["x"]}, {"question": "q", "answer": "x"}
    ).endswith("line 2 has the id of line 1: 2")


def test_many_bad_lines_are_told_together(tmp_path: Path) -> None:
    good = {"question": "q", "answers": ["x"]}
    four = told(tmp_path, "1", good, "2", "3", "4")
    assert four.endswith(
        "questions.jsonl has 4 bad lines: line 1 is not a JSON object; line 3 is not a JSON object;"
        " line 4 is not a JSON object; also lines 5"
    )
    many = told(tmp_path, *["1"] * 1234)
    assert "has 1,234 bad lines" in many
    assert many.endswith("also lines 4, 5, 6, 7, 8, 9, 10, 1,224 more")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_questions(tmp_path / "no.jsonl")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_questions(tmp_path)
    assert "holds no question" in told(tmp_path)
    assert "holds no question" in told(tmp_path, "\ufeff", "", " \t")


# judgements


BEIR = "query-id\tcorpus-id\tscore\n"
TWO = ({"_id": "1", "text": "a", "metadata": {}}, {"id": 2, "question": "b"})


@pytest.mark.parametrize(
    "qrels",
    [
        BEIR + "1\td one\t1\n1\td2\t0\n2\td2\t2\n",
        "\ufeff" + BEIR.replace("\n", "\r\n") + "1\td one\t1\r\n\r\n2\td2\t2\r\n2\td3\t-1\r\n",
        "1\td one\t1\n2\td2\t2\n",
        "1\t0\td one\t1\n2\t0\td2\t2\n",
        "1\tQ0\td one\t1\n2 0   d2 2\n",
        "1\td one\t1\n1\td one\t1\n2\td2\t2\n",
    ],
)
def test_judgements_of_both_forms(tmp_path: Path, qrels: str) -> None:
    found = read(tmp_path, *TWO, qrels=qrels)
    assert [(q.id, q.text, q.relevant) for q in found] == [
        ("1", "a", (Gold("d one", record_only=True),)),
        ("2", "b", (Gold("d2", grade=2, record_only=True),)),
    ]
    assert (found.left_out, found.not_asked) == (0, 0)


def test_queries_without_judgements_are_left_out_and_counted(tmp_path: Path) -> None:
    lines = (
        *TWO,
        {"id": "3", "question": "c", "answers": ["x"]},
        {"id": "4", "question": "d", "answerable": False},
    )
    found = read(tmp_path, *lines, qrels=BEIR + "1\td\t1\n3\td\t0\n8\td\t1\n9\td\t0\n")
    assert [question.id for question in found] == ["1", "4"]
    assert (found.left_out, found.not_asked) == (2, 2)
    assert found == (found[0], found[1])


def test_answers_stay_beside_judgements(tmp_path: Path) -> None:
    (question,) = read(tmp_path, {"id": "1", "question": "a", "answers": ["x"]}, qrels="1 0 d 1")
    assert question.answers == ("x",)
    assert question.relevant


@pytest.mark.parametrize(
    ("qrels", "reason"),
    [
        ("", "holds no judgement"),
        (BEIR, "holds no judgement"),
        (BEIR + "1\td\n", "line 2 has 2 columns, not three or four"),
        (BEIR + "1\td\tgood\n", "line 2 has a grade that is no whole number: good"),
        (BEIR + "1\td\t1.5\n", "line 2 has a grade that is no whole number"),
        (BEIR + "1\td\t1\n1\td\t2\n", "line 3 grades d for 1 again, and not as before"),
        ("8 0 d 1\n9 0 d 1\n", "none of the 2 queries of"),
        ("1 0 d 0\n", "judges no document relevant"),
    ],
)
def test_bad_judgements(tmp_path: Path, qrels: str, reason: str) -> None:
    assert reason in told(tmp_path, *TWO, qrels=qrels)


def test_gold_in_the_file_beside_judgements_is_an_error(tmp_path: Path) -> None:
    assert "line 1 has `relevant`, but" in told(
        tmp_path, {"id": "1", "question": "a", "relevant": ["a"]}, qrels="1 0 d 1"
    )
    assert "line 1 says `answerable: false`" in told(
        tmp_path, {"id": "1", "question": "a", "answerable": False}, qrels="1 0 d 1"
    )


# properties, size, real files


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["path", "start", "end", "lines", "page", "text"]), inner, max_size=4
        )
    ),
    max_leaves=6,
)
ENTRIES = st.dictionaries(
    st.sampled_from(
        ["id", "_id", "question", "text", "relevant", "answers", "answer", "answerable", "kind"]
    ),
    JSON,
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(ENTRIES, max_size=4))
def test_any_json_gives_questions_or_is_told(
    tmp_path: Path, entries: list[dict[str, object]]
) -> None:
    try:
        questions = read(tmp_path, *entries)
    except UsageError as error:
        assert "\n" not in error.message
        error.message.encode()
        return
    assert len(questions) == len(entries) == len({question.id for question in questions})
    for question in questions:
        assert question.text.strip()
        assert question.answerable == bool(question.relevant or question.answers)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(NAMES, st.integers(1, 10**8), st.integers(0, 99))
def test_lines_and_pages_are_split_off_at_the_end(name: str, first: int, more: int) -> None:
    from ragcli.evaluation.questions import _gold

    gold = _gold(f"{name}:{first}-{first + more}")
    if "#page=" not in name:
        assert gold == Gold(name, lines=(first, first + more))
    assert _gold(f"{name}#page={first}").page is not None
    assert _gold(gold.written) == gold


@pytest.mark.slow
def test_many_lines_in_the_time_and_memory_of_their_number(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    with file.open("w") as stream:
        for number in range(100_000):
            stream.write(
                f'{{"question": "what is {number}?", "relevant": ["a.md:{number + 1}"]}}\n'
            )
    began = time.process_time()
    assert len(read_questions(file)) == 100_000
    assert time.process_time() - began < 10


def test_the_examples() -> None:
    questions = read_questions(EXAMPLES / "questions.jsonl")
    assert len(questions) == 107
    assert sum(not question.answerable for question in questions) == 18


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "asked"), [("scifact", 300), ("claude_docs", 100), ("xquad_de", 1190)]
)
def test_public_sets(name: str, asked: int) -> None:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip("the evaluation sets are not beside the checkout")
    questions = read_questions(folder / "queries.jsonl", folder / "qrels.tsv")
    lines = (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert len(questions) == asked
    assert {(q.id, gold.path) for q in questions for gold in q.relevant} == {
        tuple(line.split("\t")[:2]) for line in lines
    }
