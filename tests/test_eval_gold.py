"""Gold in the index and in hits: each level, every reason why not, against slow oracles."""

from __future__ import annotations

import json
import re
import string
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from conftest import build, write_files
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.errors import UsageError
from ragcli.evaluation.answers import normalised
from ragcli.evaluation.gold import Item, Missing, resolve
from ragcli.evaluation.questions import Gold, Question, read_questions
from ragcli.evaluation.relevance import LEVELS, held, level_of
from ragcli.records import Hit
from ragcli.store.index import Index
from ragcli.store.terms import UNSPACED

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "eval"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

GUIDE = """\
# Install

Unpack it anywhere.


# Ports

The crane listens on port 4000.
The U.S. lamp listens on port 5000.
"""
FILES = {
    "guide.md": GUIDE,
    "Deep/Only.txt": "One line.\n",
    "odd:3": "An odd name.\n",
    "twice/same.md": "# One\n\ntext\n",
    "other/same.md": "# Two\n\ntext\n",
    "empty.md": "   \n",
    "rows.csv": "id,name\nr1,Ann\nr2,Bob\nr3,Cy\n",
    "corpus.jsonl": "".join(
        json.dumps({"_id": name, "text": f"Text of {name}."}) + "\n"
        for name in ("a", "b#c", "d:5", "page=2", "guide.md")
    ),
    "more.jsonl": '{"_id": "a", "text": "Another a."}\n',
    "left.png": "\x89PNG\r\n\x1a\n",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("gold") / "docs"
    write_files(root, FILES)
    build(root / ".rag", root, encoder="none", chunk="sentences:1")
    with Index.open(root / ".rag") as opened:
        yield opened


def gold_of(target: object) -> Gold:
    """A target as a file of questions has it."""
    from ragcli.evaluation.questions import _gold

    return target if isinstance(target, Gold) else _gold(target)


def question(*targets: object, **more: object) -> Question:
    return Question("q", "?", 1, tuple(map(gold_of, targets)), **more)  # type: ignore[arg-type]


def found(index: Index, *targets: object, level: str = "chunk") -> tuple[Item, ...]:
    resolved = resolve(index, [question(*targets)], level)
    assert resolved.missing == ()
    return resolved.items["q"]


def missing(index: Index, target: object, level: str = "chunk") -> str:
    gold = gold_of(target)
    resolved = resolve(index, [question(gold)], level)
    (item,) = resolved.items["q"]
    part = (None, None, None) if level == "document" else (gold.lines, gold.page, gold.span)
    assert item == Item(gold.written, gold.path, *part, gold.grade, missing=True)
    assert held([hit(gold.path, 0, 10**6, lines=(1, 10**6))], [item], (), "document") == [set()]
    (lost,) = resolved.missing
    assert lost == Missing("q", 1, gold.written, lost.reason)
    return lost.reason


def hit(
    path: str,
    start: int = 0,
    end: int = 10,
    text: str = "",
    lines: tuple[int, int] | None = None,
    page: str | None = None,
    record: str | None = None,
) -> Hit:
    return Hit(1, 1, path, start, end, text, 1.0, 1.0, lines, page, record=record)


# where targets stand


@pytest.mark.parametrize(
    ("target", "item"),
    [
        ("guide.md", Item("guide.md", "guide.md")),
        ("guide.md:8-9", Item("guide.md:8-9", "guide.md", lines=(8, 9))),
        ("guide.md:9-700", Item("guide.md:9-700", "guide.md", lines=(9, 700))),
        ("odd:3", Item("odd:3", "odd:3")),
        ("rows.csv", Item("rows.csv", "rows.csv")),
        ("rows.csv#r2", Item("rows.csv#r2", "rows.csv#r2")),
        ("rows.csv:3", Item("rows.csv:3", "rows.csv", lines=(3, 3))),
        ("rows.csv#r2:3", Item("rows.csv#r2:3", "rows.csv#r2", lines=(3, 3))),
        ("corpus.jsonl#b#c", Item("corpus.jsonl#b#c", "corpus.jsonl#b#c")),
        ("corpus.jsonl#d:5", Item("corpus.jsonl#d:5", "corpus.jsonl#d:5")),
        ("corpus.jsonl#page=2", Item("corpus.jsonl#page=2", "corpus.jsonl#page=2")),
        (
            {"path": "guide.md", "start": 3, "end": 9},
            Item("guide.md[3:9]", "guide.md", span=(3, 9)),
        ),
        (
            {"path": "corpus.jsonl#a", "start": 0, "end": 4},
            Item("corpus.jsonl#a[0:4]", "corpus.jsonl#a", span=(0, 4)),
        ),
        (Gold("b#c", grade=2, record_only=True), Item("b#c", "corpus.jsonl#b#c", grade=2)),
        (Gold("Deep/Only.txt", record_only=True), Item("Deep/Only.txt", "Deep/Only.txt")),
        (Gold("more.jsonl#a", record_only=True), Item("more.jsonl#a", "more.jsonl#a")),
        # a file of that name goes before a record of that id
        (Gold("guide.md", record_only=True), Item("guide.md", "guide.md")),
    ],
    ids=str,
)
def test_a_target_is_found(index: Index, target: object, item: Item) -> None:
    assert found(index, target) == (item,)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no.md", "not in the index"),
        ("Guide.md", "not in the index; did you mean guide.md?"),
        ("./guide.md:8", "not in the index; did you mean guide.md?"),
        ("deep\\only.txt", "not in the index; did you mean Deep/Only.txt?"),
        ("/somewhere/Only.txt", "not in the index; did you mean Deep/Only.txt?"),
        ("Corpus.jsonl#a", "not in the index; did you mean corpus.jsonl?"),
        ("same.md", "not in the index"),
        ("Deep", "is there, but not in the index: ragcli inspect says why"),
        ("x" * 5000, "not in the index"),
        ("nul\0\ud83d", "not in the index"),
        ("corpus.jsonl#z", "corpus.jsonl has no record z"),
        ("corpus.jsonl#z:4", "corpus.jsonl has no record z:4"),
        ("guide.md#z", "guide.md has no record z"),
        ("empty.md", "has no passage: no text in this file"),
        ("guide.md:700", "the last line with text is 9"),
        ("guide.md:4-5", "no text stands at these lines"),
        ("guide.md#page=1", "the file has no pages"),
        ({"path": "guide.md", "start": 9, "end": 11}, "only white space stands at these char"),
        ({"path": "guide.md", "start": 50, "end": 200}, "the text ends at character 109 (char"),
        ({"path": "rows.csv", "start": 0, "end": 2}, "each record has its own characters: name"),
        (Gold("a", record_only=True), "2 files have a record of that id: corpus.jsonl, more.jsonl"),
        (Gold("zz", record_only=True), "no record has that id"),
        (Gold("corpus.jsonl#zz", record_only=True), "no record has that id"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_why_a_target_is_missing(index: Index, target: object, reason: str) -> None:
    assert missing(index, target).startswith(reason)
    assert missing(index, target, "document").startswith(reason)


def test_a_file_that_failed_says_so(tmp_path: Path) -> None:
    write_files(tmp_path, {"bad.pdf": "%PDF-1.4 nothing", "good.md": "text\n"})
    build(tmp_path / ".rag", tmp_path, encoder="none")
    with Index.open(tmp_path / ".rag") as index:
        reason = missing(index, "bad.pdf#page=2")
    assert reason.startswith("failed: PdfStreamError")


def test_a_skipped_file_says_so(index: Index) -> None:
    assert missing(index, "left.png").startswith(("skipped: binary", "is there, but not in"))


def test_an_item_counts_once(index: Index) -> None:
    # the same place in two spellings, the better grade of two
    assert found(index, "guide.md:8", {"path": "guide.md", "lines": [8, 8]}) == (
        Item("guide.md:8", "guide.md", (8, 8)),
    )
    assert found(index, Gold("b#c", record_only=True), Gold("corpus.jsonl#b#c", grade=3)) == (
        Item("b#c", "corpus.jsonl#b#c", grade=3),
    )


def test_documents_are_what_is_relevant_at_their_level(index: Index) -> None:
    items = found(
        index, "guide.md:8", "guide.md:3", {"path": "guide.md", "start": 0, "end": 5},
        "rows.csv:3-4", Gold("d:5", record_only=True), "corpus.jsonl", level="document",
    )  # fmt: skip
    assert [(item.label, item.path) for item in items] == [
        ("guide.md", "guide.md"),
        ("rows.csv#r2", "rows.csv#r2"),
        ("rows.csv#r3", "rows.csv#r3"),
        ("d:5", "corpus.jsonl#d:5"),
        ("corpus.jsonl", "corpus.jsonl"),
    ]
    assert all((item.lines, item.page, item.span) == (None, None, None) for item in items)


def test_a_span_need_not_hold_what_no_chunk_has(index: Index) -> None:
    # lines 4 and 5 and the line ends around them are in no chunk
    lines, span = found(index, "guide.md:5-9", {"path": "guide.md", "start": 30, "end": 39},
                        level="span")  # fmt: skip
    assert GUIDE[30:39] == "\n\n\n# Port"
    assert (lines.lines, lines.label) == ((6, 9), "guide.md:5-9")
    assert (span.span, span.label) == ((33, 39), "guide.md[30:39]")
    assert found(index, {"path": "guide.md", "start": 30, "end": 39})[0].span == (30, 39)


def test_pages(tmp_path: Path) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    paper = canvas.Canvas(str(tmp_path / "c.pdf"))
    for words in (["one"] * 4, ["two"], [], ["four"] * 9):
        paper.drawString(72, 700, " ".join(words))
        paper.showPage()
    paper.save()
    build(tmp_path / ".rag", tmp_path, encoder="none")
    with Index.open(tmp_path / ".rag") as index:
        assert found(index, "c.pdf#page=2") == (Item("c.pdf#page=2", "c.pdf", page="2"),)
        assert missing(index, "c.pdf#page=3").startswith("the page has no passage")
        assert missing(index, "c.pdf#page=5") == "the page has no passage"
        assert missing(index, "c.pdf:1") == "the file has no lines; name a page of it"
    build(tmp_path / ".rag", chunk="words:8", encoder="none")
    with Index.open(tmp_path / ".rag") as index:  # the passage of page 1 runs on to page 2
        assert found(index, "c.pdf#page=2") == (Item("c.pdf#page=2", "c.pdf", page="1"),)
        assert missing(index, "c.pdf#page=3").startswith("the page has no passage: ")


# levels


def test_the_level_that_gold_is_made_for() -> None:
    part, whole, judged = Gold("a", lines=(1, 2)), Gold("a"), Gold("a", record_only=True)
    nothing = Question("n", "?", 1, answerable=False)
    assert level_of([question(part), question(whole), nothing]) == "chunk"
    assert level_of([question(Gold("a", page="1"))]) == "chunk"
    assert level_of([question(Gold("a", span=(0, 1)), answers=("x",))]) == "chunk"
    assert level_of([question(whole, answers=("x",)), question(judged)]) == "document"
    assert level_of([question(answers=("x",)), nothing]) == "answer"
    assert level_of([question(answers=("x",)), question(whole, answers=("y",))]) == "answer"
    assert level_of([question(answers=("x",)), question(whole)]) == "document"
    assert level_of([nothing]) in LEVELS


@pytest.mark.parametrize(
    ("level", "second", "told"),
    [
        ("answer", Question("b", "?", 7, (Gold("guide.md"),)), "has no `answers`"),
        ("chunk", Question("b", "?", 7, answers=("x",)), "has no `relevant`"),
        ("document", Question("b", "?", 7, answers=("x",)), "has no `relevant`"),
        ("span", Question("b", "?", 7, answers=("x",)), "has no `relevant`"),
        ("span", Question("b", "?", 7, (Gold("guide.md", lines=(8, 8)), Gold("guide.md"))),
         "names neither lines nor characters of guide.md"),
        ("span", Question("b", "?", 7, (Gold("c.pdf", page="3"),)), "characters of c.pdf#page=3"),
    ],
)  # fmt: skip
def test_gold_that_does_not_do_for_the_level(
    index: Index, level: str, second: Question, told: str
) -> None:
    first = Question("a", "?", 1, (Gold("guide.md", lines=(8, 8)),), ("lamp",))
    unanswerable = Question("n", "?", 2, answerable=False)
    assert resolve(index, [first, unanswerable], level).missing == ()
    with pytest.raises(UsageError) as caught:
        resolve(index, [first, unanswerable, second, second], level)
    assert caught.value.message.startswith("question b (line 7) ")
    assert told in caught.value.message


def test_answers_are_looked_for_in_every_passage(index: Index) -> None:
    asked = {
        "case": ("THE CRANE LISTENS",),
        "across": ("port 4000 The U.S. lamp",),
        "dots": ("us lamp",),
        "second": ("nowhere at all", "Unpack it!"),
        "part": ("anywher",),
        "gone": ("nowhere at all", "nor here"),
        "nothing": ("The", "?!"),
        "record": ("text of d:5",),
    }
    questions = [Question(name, "?", 3, answers=texts) for name, texts in asked.items()]
    resolved = resolve(index, [*questions, Question("n", "?", 4, answerable=False)], "answer")
    assert resolved.items == dict.fromkeys([*asked, "n"], ())
    assert resolved.missing == (
        Missing("across", 3, "port 4000 The U.S. lamp", "no passage holds the answer"),
        Missing("part", 3, "anywher", "no passage holds the answer"),
        Missing("gone", 3, "nowhere at all", "no passage holds the answer"),
        Missing(
            "nothing", 3, "The", "nothing is left of the answer without punctuation and articles"
        ),
    )


# what hits hold


def slowly_held(hit: Hit, item: Item, level: str) -> bool:
    """By the sets of characters and lines, one by one."""
    file = hit.path[: len(hit.path) - len(f"#{hit.record}")] if hit.record is not None else None
    if item.missing or item.path not in (hit.path, file):
        return False
    if level == "document":
        return True
    for wanted, has in (
        (item.span and set(range(*item.span)), set(range(hit.start, hit.end))),
        (
            item.lines and set(range(item.lines[0], item.lines[1] + 1)),
            set(range(hit.lines[0], hit.lines[1] + 1)) if hit.lines else set(),
        ),
        (item.page and {item.page}, {hit.page}),
    ):
        if wanted:
            return wanted <= has if level == "span" else bool(wanted & has)
    return True


PATHS = st.sampled_from([("a", None), ("b", None), ("a#1", "1"), ("a#2", "2"), ("a#", "")])
SPANS = st.tuples(st.integers(0, 9), st.integers(1, 9)).map(lambda s: (s[0], s[0] + s[1]))
LINES = SPANS.map(lambda span: (span[0] + 1, span[1]))
HITS = st.builds(
    lambda path, span, lines, page: hit(path[0], *span, "", lines, page, path[1]),
    PATHS, SPANS, st.none() | LINES, st.none() | st.sampled_from("12"),
)  # fmt: skip
PARTS = st.one_of(
    SPANS.map(lambda span: {"span": span}),
    LINES.map(lambda lines: {"lines": lines}),
    st.sampled_from("12").map(lambda page: {"page": page}),
    st.just({}),
)
ITEMS = st.builds(
    lambda path, part, missing: Item("label", path[0], missing=missing, **part),
    PATHS, PARTS, st.sampled_from([False, False, True]),
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(HITS, max_size=6), st.lists(ITEMS, max_size=5), st.sampled_from(LEVELS[:3]))
def test_held_is_what_the_sets_say(hits: list[Hit], items: list[Item], level: str) -> None:
    if level == "span":
        items = [item for item in items if item.span or item.lines]
    assert held(hits, items, (), level) == [
        {number for number, item in enumerate(items) if slowly_held(hit, item, level)}
        for hit in hits
    ]


def test_an_answer_in_a_hit() -> None:
    hits = [hit("a", text=text) for text in ("It's The Blue-Lamp, 2024.", "bluelamps", "", "us")]
    assert held(hits, (), ("nothing", "a blue lamp"), "answer") == [set(), set(), set(), set()]
    assert held(hits, (), ("nothing", "a Bluelamp 2024"), "answer") == [{0}, set(), set(), set()]
    assert held(hits, (), ("U.S.", "The"), "answer") == [set(), set(), set(), {0}]


def squad_normalize_answer(s: str) -> str:
    """As the evaluation script of SQuAD v1.1 and v2.0 has it."""

    def remove_articles(text: str) -> str:
        return re.sub(r"\b(a|an|the)\b", " ", text, flags=re.UNICODE)

    def white_space_fix(text: str) -> str:
        return " ".join(text.split())

    def remove_punc(text: str) -> str:
        exclude = set(string.punctuation)
        return "".join(ch for ch in text if ch not in exclude)

    return white_space_fix(remove_articles(remove_punc(s.lower())))


PHRASES = st.lists(
    st.sampled_from(
        ["a", "The", "an", "then", "U.S.", "x-y", "$5", "(b)", " ", "\n", "'s", "a\x00"]
    )
).map("".join)


@given(st.text(st.characters(max_codepoint=127)) | PHRASES)
def test_the_normal_form_is_squads(text: str) -> None:
    assert normalised(text) == squad_normalize_answer(text)


@given(
    st.text(st.characters(exclude_categories=["P"])).filter(
        lambda text: not re.search(f"[{UNSPACED}]", text.lower())
    )
)
def test_the_normal_form_is_squads_beyond_ascii(text: str) -> None:
    assert normalised(text) == squad_normalize_answer(text)


@given(st.text())
def test_the_normal_form_is_its_own(text: str) -> None:
    plain = normalised(text)
    assert plain == " ".join(plain.split())
    assert not set(plain) & set(string.punctuation)


@pytest.mark.parametrize(
    ("text", "answer", "is_there"),
    [
        ("Der „Rekord“ – 308 Punkte – fiel.", "308", True),
        ("Der „Rekord“ – 308 Punkte – fiel.", "Rekord", True),
        ("黑豹队的防守只丢了308分，在联赛中排名第六。", "308", True),
        ("黑豹队的防守只丢了308分，在联赛中排名第六。", "第六", True),
        ("黑豹队的防守只丢了308分，在联赛中排名第六。", "六第", False),
        ("黑豹队的防守只丢了1308分", "308", False),
        ("서울은 수도이다", "서울", True),
        ("МОСКВА — столица", "москва", True),
    ],
)
def test_answers_beyond_english(text: str, answer: str, is_there: bool) -> None:
    assert held([hit("a", text=text)], (), (answer,), "answer") == [{0} if is_there else set()]


# preflight and the hits of an index agree


def every_hit(index: Index) -> list[Hit]:
    """Each chunk of the index as a hit."""
    from ragcli.store.contents import chunk_numbers

    stored = index.chunks(chunk_numbers(index))
    return [
        hit(s.path, s.chunk.start, s.chunk.end, s.chunk.text, s.chunk.lines, s.chunk.page, s.record)
        for s in stored.values()
    ]


TARGETS = st.one_of(
    st.builds(
        lambda a, n: Gold("guide.md", lines=(a, a + n)), st.integers(1, 14), st.integers(0, 9)
    ),
    st.builds(
        lambda a, n: Gold("guide.md", span=(a, a + n)), st.integers(0, 120), st.integers(1, 60)
    ),
    st.builds(
        lambda a, n: Gold("rows.csv", lines=(a, a + n)), st.integers(1, 6), st.integers(0, 3)
    ),
    st.sampled_from(list(map(Gold, ("guide.md", "corpus.jsonl", "rows.csv#r1", "rows.csv#r9")))),
)


@settings(deadline=None, max_examples=200)
@given(TARGETS, st.sampled_from(["document", "chunk"]))
def test_what_is_found_some_passage_holds_and_no_passage_what_is_missing(
    index: Index, gold: Gold, level: str
) -> None:
    resolved = resolve(index, [question(gold)], level)
    items = resolved.items["q"]
    holding = [held(every_hit(index), [item], (), level) for item in items]
    assert all(any(each) for each in holding) == (not resolved.missing)
    if gold.path == "guide.md" and gold.lines:
        lines = GUIDE.split("\n")[gold.lines[0] - 1 : gold.lines[1]]
        assert bool(resolved.missing) == (not any(line.strip() for line in lines))
    if gold.path == "guide.md" and gold.span:
        held_at = {
            place
            for each in every_hit(index)
            if each.path == "guide.md"
            for place in range(each.start, each.end)
        }
        past = gold.span[1] > len(GUIDE.rstrip())
        assert bool(resolved.missing) == (past or held_at.isdisjoint(range(*gold.span)))


# real files


def test_the_examples_resolve(tmp_path: Path) -> None:
    for reader in ("docx", "pptx", "openpyxl"):
        pytest.importorskip(reader)
    build(tmp_path / ".rag", EXAMPLES / "corpus", encoder="none")
    questions = read_questions(EXAMPLES / "questions.jsonl")
    assert level_of(questions) == "chunk"
    with Index.open(tmp_path / ".rag") as index:
        hits = every_hit(index)
        for level in ("document", "chunk", "answer"):
            resolved = resolve(index, questions, level)
            assert resolved.missing == ()
            for each in questions:
                holds = held(hits, resolved.items[each.id], each.answers, level)
                wanted = 1 if level == "answer" else len(resolved.items[each.id])
                assert len(frozenset().union(*holds)) == (wanted if each.answerable else 0)
        with pytest.raises(UsageError, match=r"question p09 .* names neither lines"):
            resolve(index, questions, "span")


def shared(name: str) -> Path:
    if not (SHARED / name).is_dir():
        pytest.skip("the evaluation sets are not beside the checkout")
    return SHARED / name


@pytest.mark.shared
@pytest.mark.parametrize("name", ["scifact", "claude_docs"])
def test_public_judgements_resolve(tmp_path: Path, name: str) -> None:
    folder = shared(name)
    build(tmp_path / ".rag", folder / "corpus.jsonl", encoder="none")
    questions = read_questions(folder / "queries.jsonl", folder / "qrels.tsv")
    assert level_of(questions) == "document"
    with Index.open(tmp_path / ".rag") as index:
        resolved = resolve(index, questions, "document")
    assert resolved.missing == ()
    assert {(each.id, item.path) for each in questions for item in resolved.items[each.id]} == {
        (each.id, f"corpus.jsonl#{gold.path}") for each in questions for gold in each.relevant
    }


@pytest.mark.shared
@pytest.mark.parametrize("name", ["xquad_de", "xquad_zh"])
def test_public_answers_are_found(tmp_path: Path, name: str) -> None:
    """Each answer is a stretch of its paragraph, cut where annotators cut it."""
    folder = shared(name)
    build(tmp_path / ".rag", folder / "corpus.jsonl", encoder="none")
    questions = read_questions(folder / "queries.jsonl")
    assert level_of(questions) == "answer"
    with Index.open(tmp_path / ".rag") as index:
        missed = resolve(index, questions, "answer").missing
    assert len(missed) < 0.03 * len(questions)


@pytest.mark.shared
def test_public_character_ranges_resolve(tmp_path: Path) -> None:
    folder = shared("chroma_chunking")
    build(tmp_path / ".rag", folder / "corpora", encoder="none")
    lines = map(json.loads, (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines())
    questions = [
        Question(
            line["id"], line["question"], number,
            tuple(Gold(Path(line["file"]).name, span=(r["start"], r["end"]))
                  for r in line["references"]),
        )
        for number, line in enumerate(lines, 1)
    ]  # fmt: skip
    with Index.open(tmp_path / ".rag") as index:
        for level in ("document", "chunk", "span"):
            assert resolve(index, questions, level).missing == ()


@pytest.mark.slow
def test_many_questions_over_many_passages(tmp_path: Path) -> None:
    """10,000 targets of each form among 20,000 documents, in the time of a few scans."""
    docs = tmp_path / "docs"
    write_files(
        docs,
        {
            "corpus.jsonl": "".join(
                f'{{"_id": "r{n}", "text": "Passage {n} is about item{n}."}}\n'
                for n in range(20_000)
            ),
            "long.txt": "".join(
                f"Line {n} has its own words, as number{n}.\n\n" for n in range(20_000)
            ),
        },
    )
    build(tmp_path / ".rag", docs, encoder="none", chunk="sentences:1")
    forms: Sequence[Sequence[Gold]] = [
        [Gold(f"corpus.jsonl#r{n}") for n in range(10_000)],
        [Gold(f"r{n}", record_only=True) for n in range(10_000)],
        [Gold("long.txt", lines=(2 * n + 1, 2 * n + 2)) for n in range(10_000)],
        [Gold("corpus.jsonl", lines=(n + 1, n + 1)) for n in range(10_000)],
        [Gold("long.txt", span=(30 * n, 30 * n + 20)) for n in range(10_000)],
    ]
    with Index.open(tmp_path / ".rag") as index:
        for golds in forms:
            questions = [Question(str(n), "?", n, (gold,)) for n, gold in enumerate(golds)]
            began = time.process_time()
            assert resolve(index, questions, "chunk").missing == ()
            assert time.process_time() - began < 10
        asked = [Question(str(n), "?", n, answers=(f"about item{n}",)) for n in range(10_000)]
        began = time.process_time()
        assert resolve(index, asked, "answer").missing == ()
        assert time.process_time() - began < 10
