"""What becomes an index term."""

from __future__ import annotations

import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.retrieval.question import parse_question
from ragcli.store.languages import detect
from ragcli.store.terms import Analyzer, expand, surfaces


def terms(text: str, language: str = "english") -> list[str]:
    return [term for surface in surfaces(text) for term in expand(surface, language)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Running jobs", ["run", "job"]),
        ("max_workers", ["max_workers", "max", "worker"]),
        ("camelCase", ["camelcase", "camel", "case"]),
        ("HTTPServerError", ["httpservererror", "http", "server", "error"]),
        ("ERR_4012", ["err_4012", "err", "4012"]),
        ("ERR-4012", ["err-4012", "err", "4012"]),
        ("release v1.0.21.", ["releas", "v1.0.21", "1.0.21", "v1", "0", "21"]),
        ("1.0.21", ["1.0.21", "1", "0", "21"]),
        ("lantern.toml", ["lantern.toml", "lantern", "toml"]),
        ("dead-letter", ["dead", "letter"]),
        ("Fennel's", ["fennel"]),
        ("l'homme", ["homm"]),
        ("数据库", ["数据", "据库", "数", "据", "库"]),
        ("使用FastAPI", ["使用", "使", "用", "fastapi", "fast", "api"]),
        ("नमस्ते", ["नमस्त"]),
        ("", []),
        ("... -- !", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_combining_marks_do_not_break_a_word() -> None:
    assert surfaces("हिन्दी العَرَبِيَّة") == ["हिन्दी", "العَرَبِيَّة"]


def test_a_very_long_run_is_cut() -> None:
    assert [len(term) for term in terms("x" * 5000)] == [80]


def test_stemming_follows_the_language() -> None:
    assert terms("Häuser", "german") == ["haus"]
    assert terms("книги") == terms("книга")


def test_a_word_that_is_all_ending_stays() -> None:
    assert terms("leri", "turkish") == ["leri"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The workers pull their jobs from the queue and retry them when they fail.", "english"),
        ("Wie viele Punkte gab die Verteidigung der Panthers ab?", "german"),
        ("Quelle est la durée de la période d'essai pour les employés ?", "french"),
        ("¿Cuál es el puerto en el que escucha el panel de control?", "spanish"),
        ("timeout 45 seconds", None),
        ("黑豹队的防守丢了多少分？", None),
    ],
)
def test_language(text: str, language: str | None) -> None:
    assert detect(text) == language


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=200), max_size=6))
def test_postings_hold_every_term_of_every_text(texts: list[str]) -> None:
    postings = Analyzer().postings(texts, ["english"] * len(texts))
    found: list[Counter[str]] = [Counter() for _ in texts]
    for i, name in enumerate(postings.names):
        for at in range(postings.starts[i], postings.starts[i + 1]):
            found[postings.rows[at]][name] = int(postings.counts[at])
    expected = [Counter(terms(text)) for text in texts]
    assert found == expected
    assert postings.lengths.tolist() == [sum(counter.values()) for counter in expected]
    assert list(postings.names) == sorted(postings.names)


def words(question: str, *languages: str) -> list[str]:
    return [word.text for word in parse_question(question, languages or ("english",))]


def test_stop_words_are_dropped_unless_nothing_else_is_left() -> None:
    assert words("What is the default job timeout?") == ["default", "job", "timeout"]
    assert words("who is it") == ["who", "is", "it"]
    assert words("the IT department") == ["IT", "department"]
    assert words("") == []


def test_an_identifier_is_asked_whole_and_in_parts() -> None:
    assert words("max_workers") == ["max_workers", "max", "worker"]


def test_a_chinese_question_asks_for_pairs_only() -> None:
    assert words("数据库") == ["数据", "据库"]
    assert words("水") == ["水"]


def test_without_a_told_language_every_language_of_the_index_counts() -> None:
    (word,) = parse_question("Häuser", ("german", "english"))
    assert word.variants == ("haus", "häuser")
    told = parse_question("Wo sind die Häuser und die Gärten?", ("german", "english"))
    assert [word.variants for word in told] == [("haus",), ("gart",)]


def test_every_combining_mark_is_part_of_a_word() -> None:
    marks = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) in ("Mn", "Mc")]
    selectors = [mark for mark in marks if ord(mark) >= 0xE0000]
    for mark in set(marks) - set(selectors):
        assert surfaces(f"a{mark}b") == [f"a{mark}b"], f"U+{ord(mark):04X}"
