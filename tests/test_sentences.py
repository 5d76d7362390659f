from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.corpus.sentences import sentence_ends


def split(text: str) -> list[str]:
    edges = [0, *sentence_ends(text, 0, len(text)), len(text)]
    pieces = [text[a:b].strip() for a, b in pairwise(edges)]
    return [piece for piece in pieces if piece]


# Each case is written as its sentences; joined by one space they must come apart again.
CASES = {
    "plain": ["It works.", "Does it?", "Yes!", "Good…", "End."],
    "titles": ["Dr. Smith met Mr. and Mrs. J. K. Rowling.", "Prof. Li came, too."],
    "latin": ["Use a tool, e.g. a saw, i.e. this one.", "Compare cf. Miller vs. Jones."],
    "numbered": ["See Fig. 3 and No. 5, pp. 7 ff., in vol. 2.", "The answer is no.", "Go on."],
    "decimals": ["Version 3.2 added it.", "It is 1.0.21 now, for $4.50.", "Then 0.5."],
    "files": ["Edit lantern.toml.", "See a.b.c, os.path and example.com/a.html.", "Done."],
    "initialisms": ["The U.S. Army moved at 5 p.m. on Sunday.", "She has a Ph.D. in law."],
    "initialism last": ["He lives in the U.S.", "It is big.", "They met at 5 p.m.", "The end."],
    "companies": ["Acme Inc. and Foo Co. Ltd. merged.", "They grew."],
    "etc": ["Bring nails, screws, etc. to the site.", "Apples, pears, etc.", "Lantern waits."],
    "ellipsis": ["He waited... and then left.", "Nothing...", "Then it came.", "Well… maybe."],
    "spaced ellipsis": ["He waited . . . and left.", "Nothing . . .", "Then it came."],
    "quotes": ['"Is it?" she asked.', '"It is."', "“Good.”", "‘Fine.’", "(It was.)", "[So.] end."],
    "footnotes": ["It ended.[1]", "Then it began.[2][3]", "All was well."],
    "emphasis": ["**Note.**", "It is *so.*", "`x` is set."],
    "list numbers": ["1. Open the door.", "2. Close it.", "a. Wait."],
    "lower case": ["the market fell.", "it rose again.", "why?", "nobody knows."],
    "german": [
        "Am 3. Oktober kam Hr. Meier, z.B. mit d. h. ohne Hut.",
        "Das kostet ca. 5 Mio. Euro bzw. mehr, vgl. Abs. 2 usw.",
        "Im 19. Jahrhundert war das anders.",
    ],
    "french": ["M. Dupont et Mme. Durand sont là, p.ex. ici.", "« Oui. »", "Il part."],
    "spanish": ["El Sr. López y la Sra. Ruiz viven en EE.UU. y aquí.", "¿Por qué?", "¡Vamos!"],
    "russian": ["Это так.", "Правда?", "Да!"],
    "hindi": ["यह सच है।", "वह आया।"],
    "arabic": ["هل هذا صحيح؟", "نعم.", "جيد۔"],
}


@pytest.mark.parametrize("name", CASES)
def test_sentences_come_apart(name: str) -> None:
    assert split(" ".join(CASES[name])) == CASES[name]


def test_scripts_without_spaces_need_none() -> None:
    assert split("你好。世界！「是吗？」他说。") == ["你好。", "世界！", "「是吗？」", "他说。"]


def test_sentences_pasted_together_at_a_question() -> None:
    assert split("Could it be so?It could. See a?b and x?Y.") == [
        "Could it be so?",
        "It could.",
        "See a?b and x?Y.",
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends(line_end: str) -> None:
    lines = [
        "A sentence that is wrapped by",
        "Mr.",
        "Smith ends here.",
        "The next is on its own line in the U.S.",
        "Government lines begin.",
        "",
        "A title without a stop",
        "",
        "Last one",
    ]
    assert [" ".join(sentence.split()) for sentence in split(line_end.join(lines))] == [
        "A sentence that is wrapped by Mr. Smith ends here.",
        "The next is on its own line in the U.S.",
        "Government lines begin.",
        "A title without a stop",
        "Last one",
    ]


def test_only_the_stretch_is_read() -> None:
    text = "One. Two. Three. Four."
    assert list(sentence_ends(text, 5, 16)) == [9, 16]


@given(st.text(alphabet='aB1. \n\r?!…。」")]»[*\u0301'), st.data())
def test_ends_ascend_and_follow_text(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    ends = list(sentence_ends(text, start, end))
    assert ends == sorted(set(ends))
    assert all(start <= offset <= end for offset in ends)


RUNS = [".", "(", " ", "a."]
MORE_RUNS = [
    *("\n", "\r", ". ", "a. ", "?A", '."', "[1]", ".[1] ", ".\n", "\n ", "»", ". (", "a.b "),
    *("1. ", "。", "\xa0", ".\xa0", "e.g. ", "?!)", ". . "),
]


@pytest.mark.parametrize(
    ("unit", "length"), [(u, 1_000_000) for u in RUNS] + [(u, 100_000) for u in MORE_RUNS]
)
def test_time_is_linear(unit: str, length: int) -> None:
    text = unit * (length // len(unit)) + "x"
    began = time.process_time()
    for _ in sentence_ends(text, 0, len(text)):
        pass
    assert time.process_time() - began < 10
