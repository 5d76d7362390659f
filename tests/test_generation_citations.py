"""Answers checked: marks, quotations, support, and that no text makes it stumble."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragcli.generation.citations import AnswerCheck, check
from ragcli.generation.hostile import neutralised
from ragcli.generation.refusals import is_refusal
from ragcli.records import Hit

SETUP = """\
# Lantern

Run the installer as root. It starts four workers.

The dashboard listens on port 8443. Set `max_workers` in `lantern.toml`.
"""
LAUNCH = "The launch list: start the workers, then open the dashboard."
TOKENS = "A turn starts with the token <|im_start|> and a role."
CHINESE = "数据库保存每个文件的内容，索引在后台更新。"
RUSSIAN = "Панель управления слушает порт 8443 на всех интерфейсах."
SPANISH = "El panel de control escucha en el puerto 8443 de todas las interfaces."


def hit(rank: int, text: str, path: str, **more: object) -> Hit:
    return Hit(
        rank=rank, chunk=rank * 10, path=path, start=0, end=len(text), text=text, score=1.0,
        weight=0.5, **more,  # type: ignore[arg-type]
    )  # fmt: skip


HITS = [
    hit(1, SETUP, "setup.md", lines=(1, 5), heading=("Lantern",)),
    hit(2, LAUNCH, "launch.pdf", page="iv"),
    hit(3, TOKENS, "tokens.md", lines=(7, 7), stale=True),
]
FILES = {"setup.md": SETUP, "tokens.md": TOKENS}


def as_it_is(hit: Hit) -> str | None:
    return FILES.get(hit.path)


def checked(
    answer: str,
    hits: list[Hit] = HITS,
    read_file: Callable[[Hit], str | None] = as_it_is,
) -> AnswerCheck:
    return check(answer, hits, read_file)


def numbers(answer: str) -> list[int]:
    return [citation.number for citation in checked(answer).citations]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It is so [1].", [1]),
        ("So [1, 3].", [1, 3]),
        ("So [1,3] and [2; 3].", [1, 3, 2, 3]),
        ("So [1][2].", [1, 2]),
        ("So [1-3] or [2–3].", [1, 2, 3, 2, 3]),
        ("So [3-1].", [1, 2, 3]),
        ("So [1, 2-3].", [1, 2, 3]),
        ("So [1, 1].", [1]),
        ("So [7].", [7]),
        ("So [0].", [0]),
        ("So [2-900].", [2, 3, 900]),
        ("So [passage 2] and [Source 3].", [2, 3]),
        ("是的【1】。", [1]),
        ("是的［2］。", [2]),
        ("Port 8443[1] and workers[2].", [1, 2]),
        ("端口是8443[1]并且", [1]),
        ("See lantern.toml[1].", [1]),
        ("It's so[1].", [1]),
        ("[1] says so.", [1]),
        ("(see [1])", [1]),
        ("**So** [1]!", [1]),
        ("So [١].", [1]),
        ("Set `max_workers` [1].", [1]),
        ("Set `max_workers`[1].", [1]),
        ("So [1000].", [1000]),
        ("So. [99999999]", [99999999]),
        ("So [2021, 3].", [2021, 3]),
        ("So【1†source】 and [2†L1-L9].", [1, 2]),
        ("So【1†source】【3†L12】.", [1, 3]),
        # none
        ("As Smith [2021] and others [1999-2003; 2024] say", []),
        ("char name[4096] and a[1000]", []),
        ("In [2024] it was [x], [], [1a] and [-1].", []),
        ("Use `rows[1]` or ``a ` [2]``.", []),
        ("```python\nx = y [1]\n```", []),
        ("~~~\n[1]\n", []),
        ("array[1], sys.argv[2], x[3] and x[1][2]", []),
        ("rows[1].name and rows[1] = 2 and rows[2] += 1", []),
        ("https://example.com/a[1]", []),
        ("A task: - [ ] open, - [x] done", []),
        # a backtick that is never closed is no code, and none reaches over an empty line
        ("A ` alone [1].", [1]),
        ("A ` alone\n\nand [1] a ` more", [1]),
        ("``` and [1]", []),
        ("```\n[1]\n```\nbut [2]", [2]),
    ],
)
def test_what_is_a_mark(answer: str, expected: list[int]) -> None:
    assert numbers(answer) == expected


def test_a_mark_is_resolved_to_its_place() -> None:
    answer = "It listens on 8443 [1], then open it [2], with a token [3] or not [4]."
    first, second, third, fourth = checked(answer).citations
    assert answer[first.start : first.end] == "[1]"
    assert (first.rank, first.chunk, first.path, first.lines) == (1, 10, "setup.md", (1, 5))
    assert (second.path, second.page, second.lines) == ("launch.pdf", "iv", None)
    assert third.stale is True
    assert (fourth.number, fourth.rank, fourth.path) == (4, None, None)


def test_a_passage_that_was_left_out_is_out_of_range() -> None:
    found = checked("So it starts four workers [1].", hits=HITS[1:])
    assert found.out_of_range == 1
    assert "out_of_range" in found.sentences[0].flags


def parts(answer: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(answer[s.start : s.end], s.citations) for s in checked(answer).sentences]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("One [1]. Two [2].", [("One [1].", (1,)), ("Two [2].", (2,))]),
        ("One. [1] Two. [2]", [("One. [1]", (1,)), ("Two. [2]", (2,))]),
        ("One.[1] Two.[2]", [("One.[1]", (1,)), ("Two.[2]", (2,))]),
        ("One. [1][2], [3] Two.", [("One. [1][2], [3]", (1, 2, 3)), ("Two.", ())]),
        ("One [1]. [2] says two.", [("One [1].", (1,)), ("[2] says two.", (2,))]),
        ("[2] says two.", [("[2] says two.", (2,))]),
        ("One [1]. [2].", [("One [1]. [2].", (1, 2))]),
        ("- One [1]\n- Two [2]\n", [("- One [1]", (1,)), ("- Two [2]", (2,))]),
        ("1. One [1]\n2. Two [2]", [("1. One [1]", (1,)), ("2. Two [2]", (2,))]),
        ("# Head\nOne [1].", [("# Head", ()), ("One [1].", (1,))]),
        ("One\ntwo [1].", [("One\ntwo [1].", (1,))]),
        ("One [1].\n\nTwo.", [("One [1].", (1,)), ("Two.", ())]),
        (
            'He says "One. Two. Three four." [1] Five.',
            [('He says "One. Two. Three four." [1]', (1,)), ("Five.", ())],
        ),
        ("是的。[1] 不是。[2]", [("是的。[1]", (1,)), ("不是。[2]", (2,))]),
        ("One [1].\n```\ncode.\n```\nTwo.", [("One [1].", (1,)), ("Two.", ())]),
        ("", []),
        (" \n ", []),
    ],
)
def test_marks_belong_to_their_sentence(
    answer: str, expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert parts(answer) == expected


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("The dashboard listens on port 8443.", "statement"),
        ("8443.", "statement"),
        ("Yes.", "other"),
        ("## Ports", "other"),
        ("**Ports**", "other"),
        ("Do this:", "other"),
        ("Shall I go on?", "other"),
        ("The context does not say it.", "refusal"),
        ("The context does not say it, but the port is 9.", "statement"),
    ],
)
def test_kinds_of_sentences(answer: str, kind: str) -> None:
    assert [sentence.kind for sentence in checked(answer).sentences] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "The context does not say who wrote it.",
        "The provided context doesn't contain the answer.",
        "The passages do not mention a password.",
        "None of the documents gives a date; it is not stated in the context.",
        "This is not mentioned in the provided passages.",
        "There is no information in the context about that.",
        "The context says nothing about it.",
        "I don't know.",
        "I cannot answer the question from the context.",
        "The answer cannot be determined.",
        "There is not enough information.",
        "Der Kontext sagt darüber nichts.",
        "Das geht aus den Passagen nicht hervor.",
        "Le contexte ne le dit pas.",
        "El contexto no lo dice.",
        "O contexto não diz.",
        "Il contesto non lo dice.",
        "В контексте об этом не сказано.",
        "上下文中没有提到。",
        "文脈には答えがありません。",
    ],
)
def test_refusals_are_known_and_not_flagged(text: str) -> None:
    assert is_refusal(text)
    found = checked(text)
    assert found.sentences[0].flags == ()
    assert (found.refused, found.well, found.uncited) == (True, True, 0)


@pytest.mark.parametrize(
    "text",
    [
        "The dashboard does not listen on port 80.",
        "The installer cannot run without root.",
        "Set it in the context menu.",
        "The index does not keep vectors.",
        "The document lists four workers.",
    ],
)
def test_what_is_no_refusal(text: str) -> None:
    assert not is_refusal(text)


@pytest.mark.parametrize(
    ("answer", "support", "flags"),
    [
        ("The dashboard listens on port 8443 [1].", 1.0, ()),
        ("The dashboards are listening on ports [1].", 1.0, ()),
        ("max_workers is set in lantern.toml [1].", 1.0, ()),
        ("Page iv: open the dashboard [2].", 3 / 4, ()),
        ("According to setup.md it starts four workers [1].", 4 / 5, ()),
        ("Bananas grow quickly on islands [1].", 0.0, ("unsupported",)),
        ("The dashboard eats bananas and apples [1].", 1 / 4, ("unsupported",)),
        ("The dashboard bananas [1].", 1 / 2, ()),
        ("The dashboard listens on port 8443 [2].", 1 / 4, ("unsupported", "figure")),
        ("The dashboard listens on port 8443 [2][1].", 1.0, ()),
        ("The dashboard listens on port 9000 [1].", 3 / 4, ("figure",)),
        ("The dashboard listens on port 8,443 [1].", None, ()),
        ("It starts 4 workers [1].", None, ()),
        ("The dashboard listens on port 8443.", 1.0, ("uncited",)),
        ("Bananas grow quickly.", 0.0, ("uncited", "unsupported")),
        ("It starts four workers [9].", 1.0, ("out_of_range",)),
        ("It starts four workers [1][9].", 1.0, ("out_of_range",)),
    ],
)
def test_support_is_a_share_of_words(
    answer: str, support: float | None, flags: tuple[str, ...]
) -> None:
    [sentence] = checked(answer).sentences
    assert sentence.flags == flags
    if support is not None:
        assert sentence.support == pytest.approx(support)


def test_what_is_missing_is_named() -> None:
    [sentence] = checked("The dashboard eats 9000 bananas [1].").sentences
    assert sentence.missing == ("eats", "9000", "bananas")
    assert sentence.figures == ("9000",)


@pytest.mark.parametrize(
    ("answer", "text", "flags"),
    [
        ("索引在后台更新[1]。", CHINESE, ()),
        ("香蕉是黄色的水果[1]。", CHINESE, ("unsupported",)),
        ("Панели управления слушают порт 8443 [1].", RUSSIAN, ()),
        ("Бананы растут на островах [1].", RUSSIAN, ("unsupported",)),
        ("El panel escucha en el puerto 8443 [1].", SPANISH, ()),
        # another language than the passage's: the words tell nothing, the figures do
        ("El panel de la máquina escucha en el puerto 8443 y no en otro [1].", SETUP, ()),
        ("El panel de la máquina escucha en el puerto 9000 y no en otro [1].", SETUP, ("figure",)),
        ("Панель слушает порт 8443 [1].", SETUP, ()),
    ],
)
def test_support_in_other_languages(answer: str, text: str, flags: tuple[str, ...]) -> None:
    [sentence] = checked(answer, hits=[hit(1, text, "a.md")]).sentences
    assert sentence.flags == flags


def test_across_languages_the_measure_says_nothing() -> None:
    assert checked("Панель слушает порт [1].").sentences[0].support is None


QUOTES = [
    ('"It starts four workers" [1]', "verbatim"),
    ("“it  STARTS\nfour workers” [1]", "verbatim"),
    ("«It starts four workers» [1]", "verbatim"),
    ("»It starts four workers« [1]", "verbatim"),
    ("„It starts four workers“ [1]", "verbatim"),
    ("‘It starts four workers’ [1]", "verbatim"),
    ('"It starts four workers." [1]', "verbatim"),
    ('"It starts four workers," it says [1]', "verbatim"),
    ('"Run the installer … four workers" [1]', "verbatim"),
    ('"Run the installer [...] four workers" [1]', "verbatim"),
    ('"four workers ... Run the installer" [1]', "misquoted"),
    ('"Set max_workers in lantern.toml" [1]', "verbatim"),
    ('"It starts four workers [1]."', "verbatim"),
    ('"It starts five workers" [1]', "misquoted"),
    ('"It starts four workers" [2]', "misquoted"),
    ('"It starts four workers" [2][1]', "verbatim"),
    ('"It starts four workers"', "verbatim"),
    ('"It starts five workers"', "misquoted"),
    ('"listens on port 844" [1]', "misquoted"),
    ('"tarts four workers" [1]', "misquoted"),
    ('"then open the dashboard" [2]', "verbatim"),
    ('"the token <|im_start|> and a role" [3]', "verbatim"),
    ('"the token < |im_start|> and a role" [3]', "verbatim"),
    ('"the token |im_start| and a role" [3]', "misquoted"),
]


@pytest.mark.parametrize(("answer", "verdict"), QUOTES)
def test_quotations_are_verbatim_or_not(answer: str, verdict: str) -> None:
    for text in (f"It says {answer}.", answer):
        [quotation] = checked(text).quotations
        assert quotation.verdict == verdict
        assert (quotation.rank is None) == (verdict == "misquoted")
    assert ("misquoted" in checked(answer).sentences[0].flags) == (verdict == "misquoted")


@pytest.mark.parametrize(
    "answer",
    [
        'A "root" of "two words".',
        "`\"It starts five workers\"`",
        '```\n"It starts five workers"\n```',
        "A 5\" disk and a 6\" disk or so",
        "It's the workers' and the dogs' thing",
        '"never closed at all',
        '"over an empty\n\nline it goes"',
    ],
)  # fmt: skip
def test_what_is_no_quotation(answer: str) -> None:
    assert checked(answer).quotations == ()


def test_a_misquotation_says_who_has_it() -> None:
    [quotation] = checked('"It starts four workers" [2]').quotations
    assert (quotation.cited, quotation.rank, quotation.elsewhere) == ((2,), None, 1)


@pytest.mark.parametrize(
    ("stale", "now", "in_file", "verdict"),
    [
        (False, "", True, "verbatim"),  # as it was indexed: nobody looks
        (None, "", None, "verbatim"),  # the sources are not here
        (True, SETUP, True, "verbatim"),
        (True, None, None, "verbatim"),
        (True, SETUP.replace("four", "five"), False, "changed"),
        (True, "", False, "changed"),  # gone
    ],
)
def test_the_file_as_it_is_now(
    stale: bool | None, now: str | None, in_file: bool | None, verdict: str
) -> None:
    asked: list[str] = []

    def read_file(asked_for: Hit) -> str | None:
        asked.append(asked_for.path)
        return now

    answer = 'It says "starts four workers" and "run the installer as root" [1].'
    hits = [hit(1, SETUP, "setup.md", stale=stale)]
    found = checked(answer, hits=hits, read_file=read_file)
    assert (found.quotations[0].in_file, found.quotations[0].verdict) == (in_file, verdict)
    assert found.changed == [each.verdict for each in found.quotations].count("changed")
    assert found.well == (verdict == "verbatim")
    assert asked == (["setup.md"] if stale else [])


def test_a_mark_that_the_passage_has_in_the_quotation_is_the_passages() -> None:
    hits = [hit(1, "As shown before [3], heat rises slowly.", "a.md"), *HITS[1:]]
    found = checked('It says "as shown before [3], heat rises" [1].', hits=hits)
    assert [citation.number for citation in found.citations] == [1]
    assert found.quotations[0].verdict == "verbatim"
    other = checked('It says "heat rises slowly [1]."', hits=hits)
    assert [citation.number for citation in other.citations] == [1]
    assert other.quotations[0].verdict == "verbatim"


def test_quotations_without_spaces() -> None:
    hits = [hit(1, CHINESE, "a.md")]
    assert checked("“索引在后台更新”[1]。", hits=hits).quotations[0].verdict == "verbatim"
    assert checked("「索引在前台更新」[1]。", hits=hits).quotations[0].verdict == "misquoted"
    assert checked("“索引”[1]。", hits=hits).quotations == ()


def test_the_verdict_counts() -> None:
    answer = (
        "The dashboard listens on port 8443 [1]. It starts four workers. "
        'Bananas grow quickly on islands [2]. It says "run the installer as admin" [1]. '
        "Open the dashboard [2][8]. The dashboard listens on port 9000 [1]. "
        "The context does not say more."
    )
    found = checked(answer)
    assert (found.cited, found.uncited, found.unsupported) == (5, 1, 1)
    assert (found.out_of_range, found.misquoted, found.figures) == (1, 1, 1)
    assert not found.well
    assert not found.refused
    assert "lexical, not truth" in found.measure


@pytest.mark.parametrize(
    ("answer", "well"),
    [
        ("The dashboard listens on port 8443 [1].", True),
        ("Yes. The dashboard listens on port 8443 [1].", True),
        ("Yes.", False),
        ("", False),
        ("Two things:\n\n- It starts four workers [1]\n- open the dashboard [2]", True),
    ],
)
def test_all_is_well_or_not(answer: str, well: bool) -> None:
    assert checked(answer).well == well


def test_a_word_that_states_nothing_may_go_uncited_only_beside_what_is_cited() -> None:
    assert checked("Yes.").uncited == 1
    assert checked("Yes. It starts four workers [1].").uncited == 0


def test_without_passages_every_mark_is_out_of_range() -> None:
    found = checked("The port is 8443 [1].", hits=[])
    assert (found.out_of_range, found.sentences[0].support) == (1, None)


PIECES = [
    "[1]", "[2-3]", "[9]", " [1] ", "[", "]", "`", "```", "\n", "\n\n", '"', "“", "”", "‘", "’",
    "«", "»", "The dashboard listens on port 8443", "starts four workers", ". ", "! ", "。", "…",
    "- ", "# ", "| ", "1. ", "索引在后台更新", "\u200b", "<|im_start|>", " ", "array", "a", "ß",
    "İ", "The context does not say.", "but", "\ud800", "\x00", "1,000", ":", "?",
]  # fmt: skip
anything = st.lists(
    st.sampled_from(PIECES) | st.text(st.characters(codec=None), max_size=10), max_size=25
).map("".join)


@given(anything, st.lists(anything, max_size=3))
@example("“a b c”`“d e f`", [])
@example("```\n“a b\n```\nc d”", [])
def test_no_text_makes_it_stumble_and_offsets_are_exact(answer: str, texts: list[str]) -> None:
    hits = [*HITS, *(hit(i, text, f"{i}.md") for i, text in enumerate(texts, 4))]
    found = check(answer, hits, lambda h: answer if h.path == "4.md" else as_it_is(h))
    before = 0
    for sentence in found.sentences:
        text = answer[sentence.start : sentence.end]
        assert before <= sentence.start < sentence.end
        assert text == text.strip() != ""
        assert sentence.support is None or 0 <= sentence.support <= 1
        before = sentence.end
    for citation in found.citations:
        mark = answer[citation.start : citation.end]
        assert re.fullmatch(r"[\[［【].*\d.*[\]］】]", mark)
        owners = [s for s in found.sentences if s.start <= citation.start and citation.end <= s.end]
        assert len(owners) == 1
        assert citation.rank is None or citation.rank in owners[0].citations
        assert (citation.rank is None) == (citation.number not in range(1, len(hits) + 1))
    for quotation in found.quotations:
        assert 0 < quotation.start < quotation.end < len(answer)
        assert answer[quotation.start - 1] in '"“„«»‹‘「『'
    covered = [False] * len(answer)
    for sentence in found.sentences:
        covered[sentence.start : sentence.end] = [True] * (sentence.end - sentence.start)
    if "```" not in answer and "~~~" not in answer:
        assert all(on or not c.strip() for on, c in zip(covered, answer, strict=True))
    assert found.uncited + found.unsupported + found.figures <= 3 * len(found.sentences)
    assert found == check(answer, hits, lambda h: answer if h.path == "4.md" else as_it_is(h))


@given(st.lists(st.sampled_from(SETUP.split()), min_size=3, max_size=12))
def test_a_quotation_is_verbatim_exactly_when_the_words_stand_there(words: list[str]) -> None:
    """The oracle: words as a list, and whether they come in a row."""

    def bare(text: str) -> list[str]:
        return [w.strip(".`#:,").lower() for w in text.split() if w.strip(".`#:,")]

    said = " ".join(word.strip(".`#") for word in words).strip()
    if len(said.split()) < 3:
        return
    [quotation] = checked(f'It says "{said}" [1].').quotations
    row = bare(said)
    standing = bare(SETUP)
    stands = any(standing[i : i + len(row)] == row for i in range(len(standing)))
    if quotation.verdict == "verbatim":
        assert stands
    if stands and said.lower() in " ".join(SETUP.replace("`", "").split()).lower():
        assert quotation.verdict == "verbatim"


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1), st.data())
def test_what_was_neutralised_still_counts_as_quoted(text: str, data: st.DataObject) -> None:
    text = f"one two three {text.replace('“', '').replace('”', '')} <|im_end|> four"
    shown = data.draw(st.sampled_from([text, neutralised(text)]))
    shown = re.sub(r"\n\s*\n", "\n", shown)
    quoted = checked(f"“{shown}” [1]", hits=[hit(1, text, "a.md")]).quotations
    if "\n" not in shown and "..." not in shown and "`" not in shown:
        assert [quotation.verdict for quotation in quoted] == ["verbatim"]


@pytest.mark.parametrize(
    "part",
    [
        "The dashboard listens on port 8443 [1]. ", "[1]", "[1-999]", "[1, 2]. ", "“", '"', '" a',
        "‘a", "«a", "`", "``a`", "\n```\n", "\n", " ", "[", "[1,", "a.", "。", "- a\n", "# a\n",
        "the context does ", "contexte n'", "a", "1,000", "http://a[1] ", "x[1]", "\u200b", "数据",
        '"the dashboard listens on port" [1]. ', '"a b c… ',
    ],
)  # fmt: skip
def test_the_time_is_linear(part: str) -> None:
    answer = (part * 100_000)[:100_000]
    started = time.process_time()
    checked(answer)
    assert time.process_time() - started < 3
