"""Questions made from an index's own texts: exact, answerable in one place, and repeatable."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from conftest import build, write_files
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.evaluation.forms import Forms
from ragcli.evaluation.gold import resolve
from ragcli.evaluation.questions import Question, read_questions
from ragcli.evaluation.standalone import stands_alone, stretches
from ragcli.evaluation.synthetic import as_lines, make_questions
from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "corpus"

NOUNS = [a + b + c for a in "har lan tur orch glac".split() for b in "bo te da li".split()
         for c in "ur rn met x ven lo".split()]  # fmt: skip
VERBS = "measures protects replaces surveys restores supplies inspects monitors".split()


def essay(number: int, sentences: int = 30) -> str:
    """Prose in which every sentence is another one, with lines broken inside of it."""
    draw = random.Random(number)
    lines = []
    for i in range(sentences):
        a, b, c, d = draw.sample(NOUNS, 4)
        lines.append(
            f"The {a} near station {number * 100 + i} {draw.choice(VERBS)} every {b},\nalthough the"
            f" {c} and the {d} were closed for {draw.randint(13, 900)} days."
        )
    return " ".join(lines) + "\n"


def made(
    folder: Path, files: dict[str, str], number: int, chunk: str = "words:40", seed: int = 0
) -> tuple[Question, ...]:
    write_files(folder / "docs", files)
    build(folder / ".rag", folder / "docs", encoder="none", chunk=chunk)
    with Index.open(folder / ".rag") as index:
        return make_questions(index, number, seed)


def check(questions: tuple[Question, ...], files: dict[str, str]) -> None:
    """What holds of any questions made from plain texts, against the texts themselves."""
    assert len({question.text for question in questions}) == len(questions)
    spans = [(gold.path, gold.span) for q in questions for gold in q.relevant]
    assert len(set(spans)) == len(spans) == len(questions)
    for number, question in enumerate(questions, 1):
        (gold,) = question.relevant
        assert gold.span
        text = files[gold.path][slice(*gold.span)]
        assert text == text.strip() != ""
        assert question.synthetic
        assert question.id == f"syn-{number:04d}"
        assert question.kind in ("cloze", "cloze-masked", "cloze-reworded", "heading")
        assert bool(question.answers) == (question.kind != "heading")
        for answer in question.answers:
            assert answer in text
            assert answer.casefold() not in question.text.casefold()


def test_spans_answers_and_spread(tmp_path: Path) -> None:
    files = {f"{i}.txt": essay(i) for i in range(12)}
    questions = made(tmp_path, files, 36)
    assert len(questions) == 36
    check(questions, files)
    assert set(Counter(q.relevant[0].path for q in questions).values()) == {3}
    for question in questions:  # whole sentences, from the first letter to the full stop
        (gold,) = question.relevant
        assert gold.span
        text = files[gold.path][slice(*gold.span)]
        assert text.startswith("The ")
        assert text.endswith("days.")
        assert text.count(".") == 1


def test_a_sentence_may_be_cut_by_the_chunks(tmp_path: Path) -> None:
    files = {"a.txt": essay(1), "b.txt": essay(2)}
    questions = made(tmp_path, files, 6, chunk="words:7")
    check(questions, files)
    assert len(questions) == 6  # and each sentence has 17 words or more


def test_the_chunks_do_not_choose_the_sentences(tmp_path: Path) -> None:
    files = {f"{i}.txt": essay(i) for i in range(5)}
    found = []
    for chunk in ("words:20", "words:60", "auto"):
        made(tmp_path / chunk, files, 0, chunk=chunk)
        with Index.open(tmp_path / chunk / ".rag") as index:
            drawn = [
                [(s.path, s.start, s.end, s.text.split()) for s in each]
                for each in stretches(index, 0)
            ]
        found.append(drawn)
    assert found[0] == found[1] == found[2]
    assert sum(map(len, found[0])) == 5 * 30


def test_the_same_again_whatever_the_numbers_of_the_chunks(tmp_path: Path) -> None:
    files = {f"{i}.txt": essay(i) for i in range(6)}
    whole = made(tmp_path / "whole", files, 12)
    docs, index = tmp_path / "grown" / "docs", tmp_path / "grown" / ".rag"
    for name in sorted(files, reverse=True):
        write_files(docs, {name: files[name], "gone.txt": essay(99)})
        build(index, docs, encoder="none", chunk="words:40")
    (docs / "gone.txt").unlink()
    build(index)
    with Index.open(index) as grown:
        assert make_questions(grown, 12) == whole
        assert make_questions(grown, 5) == whole[:5]
        other = make_questions(grown, 12, seed=1)
    assert [q.relevant for q in other] != [q.relevant for q in whole]


def test_what_stands_twice_is_not_asked(tmp_path: Path) -> None:
    twice = (
        "All visitors register at the northern gatehouse before entering the laboratory building."
    )
    once = (
        "Captain Moreau painted thirteen copper lighthouses along the abandoned Breton coastline."
    )
    nearly = twice.replace("northern", "main")
    files = {"a.txt": f"{twice} {once}\n", "b.txt": f"{essay(3)} {nearly}\n", "c.txt": essay(4)}
    questions = made(tmp_path, files, 60)
    check(questions, files)
    asked = {files[g.path][slice(*g.span)] for q in questions for g in q.relevant if g.span}
    assert once in asked
    assert twice not in asked
    assert nearly not in asked


def test_near_copies_are_found_though_a_chunk_ends_in_them(tmp_path: Path) -> None:
    line = (
        "Captain Moreau painted thirteen copper lighthouses along the abandoned Breton coastline."
    )
    files = {"a.txt": f"{line}\n", "b.txt": "Here it is said again: " + line + "\n"}
    assert made(tmp_path, files, 9, chunk="words:9") == ()


def test_lines_are_read_back(tmp_path: Path) -> None:
    write_files(
        tmp_path / "docs",
        {"a.txt": essay(1), "r.jsonl": json.dumps({"id": "x#1", "text": essay(2)}) + "\n"},
    )
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    file = tmp_path / "q.jsonl"
    with Index.open(tmp_path / ".rag") as index:
        questions = make_questions(index, 8)
        assert {q.relevant[0].path for q in questions} == {"a.txt", "r.jsonl#x#1"}
        file.write_text("".join(f"{line}\n" for line in as_lines(questions)), encoding="utf-8")
        again = read_questions(file)
        assert tuple(again) == questions
        found = resolve(index, again, "chunk")
        assert not found.missing
        assert set(found.items) == {question.id for question in questions}


def test_the_examples_are_neither_trivial_nor_noise(tmp_path: Path) -> None:
    build(tmp_path / ".rag", EXAMPLES, encoder="none")
    with Index.open(tmp_path / ".rag") as index:
        questions = make_questions(index, 120)
        assert len(questions) == 120
        assert len({q.relevant[0].path.split("#")[0] for q in questions}) > 25
        kinds = Counter(question.kind for question in questions)
        assert set(kinds) == {"cloze", "cloze-masked", "cloze-reworded", "heading"}
        assert min(kinds.values()) >= 10
        retriever = Retriever(index)
        first: dict[str, list[bool]] = {}
        for question in questions:
            (gold,) = question.relevant
            assert gold.span
            (hit, *_) = retriever.search(SearchRequest(question.text, 1)).hits
            right = hit.path == gold.path and hit.start < gold.span[1] and hit.end > gold.span[0]
            first.setdefault(question.kind or "", []).append(right)
    share = {kind: sum(right) / len(right) for kind, right in first.items()}
    assert share["cloze"] > 0.9
    assert 0.4 < share["heading"] < 0.95
    assert 0.4 < share["cloze-reworded"] < share["cloze"]


def test_headings(tmp_path: Path) -> None:
    files = {
        "a.md": "# Boats\n\n## Ferry crossings\n\n" + essay(1, 8) + "\n\n## Fares\n\n" + essay(2, 8)
    }
    questions = made(tmp_path, files, 40, chunk="auto")
    check(questions, files)
    headed = [question for question in questions if question.kind == "heading"]
    assert headed
    for question in headed:
        (gold,) = question.relevant
        assert gold.span
        under = "Fares" if gold.span[0] > files["a.md"].index("## Fares") else "Ferry crossings"
        assert question.text.startswith(f"What does {under} say about ")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "german",
            "Die Brücke über den {n} wurde im Jahr {y} von einem Zimmermann aus {n}dorf gebaut und"
            " später verstärkt. Der Müller {n} zahlte dafür {y} Taler an die Gemeinde und pflanzte"
            " Kirschbäume. ",
        ),
        (
            None,
            "{y}年{n}博物馆收藏了古代青铜器和丝绸织物。"
            "来自{n}的考古学家认为这座城市曾经是重要的贸易中心{y}。",
        ),
    ],
)
def test_other_languages(tmp_path: Path, language: str | None, text: str) -> None:
    names = "Aller Biele Donau Eider Fulda Havel Isar Jagst Kocher Lahn".split()
    if language is None:
        names = "北京 上海 广州 深圳 成都 杭州 武汉 西安 南京 天津".split()
    files = {f"{i}.txt": text.format(n=name, y=1501 + 7 * i) for i, name in enumerate(names)}
    questions = made(tmp_path, files, 10)
    check(questions, files)
    assert len(questions) >= 5


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"empty.txt": "", "one.txt": "word", "space.txt": " \n\n "},
        {"code.py": "def f(x):\n    return {k: v for k, v in x.items() if k != 'a'}\n" * 30},
        {"table.md": "| a | b |\n|---|---|\n" + "| one cell | 12 |\n" * 50},
        {"links.md": "- [A page about ships](https://ship.example/a.html).\n" * 30},
        {"long.txt": "x" * 50_000, "spaced.txt": "word " * 20_000},
        {"emoji.txt": "🚀🚀 👩‍👩‍👧 🎉. " * 300, "stops.txt": "." * 9000 + "!?" * 4000},
        {"same.txt": "The same sentence is written here again, for the hundredth time now. " * 90},
    ],
)
def test_nothing_to_ask_about(tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / "docs").mkdir()
    assert made(tmp_path, files, 20) == ()


def test_none_are_wanted(tmp_path: Path) -> None:
    assert made(tmp_path, {"a.txt": essay(1)}, 0) == ()


PIECES = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "שלום עולם, זה משפט שלם על נמל ישן ועל סירות רבות בים. ",
            "هذه جملة كاملة عن ميناء قديم وسفن كثيرة في البحر الأبيض. ",
            "The İstanbul ferry (IF) of captain ﬁnch carried 12 goats and ß sheep to Kadıköy. ",
            "He\u0301le\u0300ne bought \u202eseven lanterns\u202c from the Straße museum in 1999. ",
            "今天的港口有十二艘渡轮和三座灯塔。これは古い港の長い物語です。",
            "\n\n# Heading\n\n",
            "```\ncode()\n```\n",
            "| a | b |\n",
            "\r\n",
            "\u2028",
            essay(5, 2),
            essay(6, 2),
        ]
    ),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=3), st.integers(0, 3))
def test_hostile_texts(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], seed: int
) -> None:
    files = {f"{i}.jsonl#r": text for i, text in enumerate(texts)}
    folder = tmp_path_factory.mktemp("hostile")
    written = {
        name.split("#")[0]: json.dumps({"id": "r", "text": text}) for name, text in files.items()
    }
    (folder / "docs").mkdir()
    questions = made(folder, written, 12, chunk="words:15", seed=seed)
    with Index.open(folder / ".rag") as index:
        assert make_questions(index, 12, seed) == questions
    check(questions, files)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("The harbour master keeps seven spare lanterns in the old customs house.", True),
        ("It keeps seven spare lanterns in the old customs house of the harbour.", False),
        ("the harbour master keeps seven spare lanterns in the old customs house.", False),
        ("The harbour master keeps seven spare lanterns in the customs house", False),
        ("Harbour master lanterns customs house ferry crossing goats sheep.", False),
        ("See https://harbour.example for seven spare lanterns in the customs house.", False),
        ("The harbour burns.", False),
        ("The call `open(path, mode)` returns a handle of the lantern and a harbour.", False),
        ("The sum of 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21.", False),
        ("The " + "very " * 100 + "long harbour master keeps seven spare lanterns.", False),
    ],
)
def test_sentences_that_stand_alone(text: str, whole: bool) -> None:
    assert stands_alone(text, "english") is whole


def test_other_forms() -> None:
    forms = Forms()
    forms.learn(
        "Programmers of the wave program; programming is accidental. The Wave Guide (WG) narrows"
        " the beam. Not defined here (XY). An accident, a company, they compare.",
        "english",
    )
    assert forms.related("accidental", "english") == "accident"
    assert forms.related("Accidental", "english") == "Accident"
    assert forms.related("company", "english") is None
    assert forms.inflected("programs", "english") == "program"
    assert forms.related("seven", "english") == "7"
    assert forms.related("7", "english") == "seven"
    assert forms.related("7", "german") == "sieben"
    assert forms.related("1000000", "english") is None
    assert forms.related("one", "english") is None
    assert forms.related("WG", "english") == "Wave Guide"
    assert forms.related("XY", "english") is None
    assert forms.abbreviated("where the Wave Guide is") == "where the WG is"
