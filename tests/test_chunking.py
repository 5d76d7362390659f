from __future__ import annotations

import re
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.corpus.chunking import AUTO_WORDS, Chunking, chunk, parse_chunking
from ragcli.errors import UsageError
from ragcli.records import Block, Chunk, Document, Page

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


class Words:
    """Tokens are words; `window` as given."""

    def __init__(self, window: int | None = None) -> None:
        self.window = window
        self.read = 0

    def count(self, text: str) -> int:
        return len(self.spans(text))

    def spans(self, text: str) -> list[tuple[int, int]]:
        self.read += len(text)
        return [match.span() for match in re.finditer(r"\S+", text)]


class Pieces(Words):
    """Up to three letters of a word to a token, and an emoji two tokens of the same place."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        self.read += len(text)
        found = []
        for match in re.finditer(r"[^\s\U0001f000-\U0001ffff]{1,3}|[\U0001f000-\U0001ffff]", text):
            found += [match.span()] * (2 if match[0] > "\U0001f000" else 1)
        return found


def cut(document: Document | str, how: str, window: int | None = None) -> list[Chunk]:
    document = Document(document, "text") if isinstance(document, str) else document
    return chunk(document, parse_chunking(how), Words(window))


def texts(document: Document | str, how: str, window: int | None = None) -> list[str]:
    return [piece.text for piece in cut(document, how, window)]


def prose(words: int, name: str = "w") -> str:
    """Sentences of ten words of six characters, the space included, no two alike."""
    made = [f"{name}{i:04}" for i in range(words)]
    return " ".join(
        w.upper() if i % 10 == 0 else w[:4] + "." if i % 10 == 9 else w for i, w in enumerate(made)
    )


def document(*blocks: tuple[str, str], between: str = "\n\n") -> Document:
    """A document of (kind, text) blocks; a heading says its level by its number signs."""
    text, made, path, levels = "", [], [], []
    for kind, body in blocks:
        text += between if text else ""
        if kind == "heading":
            level = len(body) - len(body.lstrip("#"))
            while levels and levels[-1] >= level:
                levels.pop()
            levels.append(level)
            path = [*path[: len(levels) - 1], body.strip("# ")]
        made.append(Block(len(text), len(text) + len(body), kind, tuple(path)))
        text += body
    return Document(text, "markdown", blocks=tuple(made))


# ---- parse_chunking


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auto", Chunking("auto", AUTO_WORDS)),
        ("auto:80", Chunking("auto", 80)),
        ("words:100", Chunking("words", 100)),
        ("sentences:1", Chunking("sentences", 1)),
        ("tokens:200/20", Chunking("tokens", 200, 20)),
        ("tokens:200", Chunking("tokens", 200)),
    ],
)
def test_parse(text: str, expected: Chunking) -> None:
    assert parse_chunking(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "word", "words", "words:", "words:0", "words:-1", "words:1.5", "words:100/10", "auto:x",
     "tokens:20/20", "tokens:20/", "pages:1", " words:1", "words:1\n", "words:٣", "words:1e9",
     "sentences:9999999"],
)  # fmt: skip
def test_parse_refuses(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_chunking(text)
    for form in ("auto", "words:100", "sentences:1", "tokens:200/20"):
        assert form in (error.value.hint or "")


# ---- words


def test_words_are_disjoint_windows() -> None:
    text = " ".join(f"w{i}" for i in range(250)) + "\n"
    found = texts(text, "words:100")
    assert [len(piece.split()) for piece in found] == [100, 100, 50]
    assert " ".join(found) == text.strip()


def test_words_do_not_see_structure() -> None:
    two = document(("heading", "# One"), ("paragraph", "a b c"), ("heading", "# Two"))
    assert texts(two, "words:4") == ["# One\n\na b", "c\n\n# Two"]


def test_a_character_is_a_word_where_none_are_divided_by_spaces() -> None:
    assert texts("熊猫吃竹子。 Panda", "words:3") == ["熊猫吃", "竹子。", "Panda"]
    assert texts("ไทยดี", "words:2") == ["ไท", "ยด", "ี"]


# ---- sentences


@pytest.mark.shared
@pytest.mark.parametrize(("how", "count"), [("sentences:1", 21), ("sentences:7", 3)])
def test_lantern(how: str, count: int) -> None:
    path = SHARED / "lantern" / "lantern.txt"
    if not path.exists():
        pytest.skip("needs the evaluation folder beside the checkout")
    lines = path.read_text(encoding="utf-8").splitlines()
    found = cut(path.read_text(encoding="utf-8"), how)
    size = 21 // count
    assert [piece.text for piece in found] == [
        "\n".join(lines[i : i + size]) for i in range(0, 21, size)
    ]
    assert [piece.lines for piece in found] == [(i, i + size - 1) for i in range(1, 22, size)]


def test_sentences_run_over_blocks() -> None:
    doc = document(
        ("heading", "# Dr. Who. A title"),
        ("paragraph", "One is here. Two is\nhere. Three"),
        ("item", "- four"),
        ("item", "- five. Six."),
        ("code", "a = 1\nb = 2. c"),
        ("table", "x | y\r\n1. | 2."),
    )
    assert texts(doc, "sentences:1") == [
        "# Dr. Who. A title",
        *("One is here.", "Two is\nhere.", "Three", "- four", "- five.", "Six."),
        *("a = 1", "b = 2. c", "x | y", "1. | 2."),
    ]
    assert texts(doc, "sentences:4")[1] == "- four\n\n- five. Six.\n\na = 1"


# ---- tokens


def test_tokens_overlap() -> None:
    text = "(a b c d e f g h i!)"
    assert texts(text, "tokens:4/1") == ["(a b c d", "d e f g", "g h i!)"]
    assert texts(text, "tokens:4") == ["(a b c d", "e f g h", "i!)"]


def test_text_outside_tokens_is_kept() -> None:
    class Letters(Words):
        def spans(self, text: str) -> list[tuple[int, int]]:
            return [match.span() for match in re.finditer(r"[a-z]+", text)]

    how = parse_chunking("tokens:2")
    found = [piece.text for piece in chunk(Document("«a» b, (c", "text"), how, Letters())]
    assert found == ["«a» b, (", "c"]
    found = [piece.text for piece in chunk(Document(" ?! ", "text"), how, Letters())]
    assert found == ["?!"]


def test_tokens_above_the_window_are_refused() -> None:
    assert len(texts("a b c", "tokens:2", window=2)) == 2
    with pytest.raises(UsageError) as error:
        cut("a b c", "tokens:3", window=2)
    assert "tokens:2" in (error.value.hint or "")


# ---- auto


def test_a_small_document_is_one_chunk() -> None:
    doc = document(("heading", "# A"), ("heading", "## B"), ("paragraph", "b"), ("item", "- c"))
    (found,) = cut(doc, "auto")
    assert found.text == doc.text
    assert found.heading == ("A", "B")
    assert found.lines == (1, 7)


def test_a_branch_that_fits_is_one_chunk_and_a_heading_never_stands_alone() -> None:
    doc = document(
        ("heading", "# Title"),
        ("heading", "## First"),
        ("paragraph", prose(40, "f")),
        ("heading", "### Below first"),
        ("paragraph", prose(30, "g")),
        ("heading", "## Second"),
        ("paragraph", prose(60, "s")),
        ("heading", "## Third"),
        ("heading", "### Below third"),
        ("paragraph", prose(60, "t")),
        ("heading", "## Empty"),
    )
    found = cut(doc, "auto:100")
    assert [piece.text.split("\n")[0] for piece in found] == ["# Title", "## Second", "## Third"]
    assert [piece.heading for piece in found] == [
        ("Title", "First"),
        ("Title", "Second"),
        ("Title", "Third", "Below third"),
    ]
    assert found[2].text.endswith("## Empty")


def test_small_sections_share_a_chunk_only_below_the_same_heading() -> None:
    doc = document(
        ("heading", "# A"),
        ("paragraph", prose(90, "a")),
        *[b for i in range(4) for b in (("heading", f"## A{i}"), ("paragraph", "Few words."))],
        ("heading", "# B"),
        ("paragraph", "Few words."),
    )
    found = texts(doc, "auto:100")
    assert [re.findall("^#+ .*", piece, re.M) for piece in found] == [
        ["# A"],
        ["## A0", "## A1", "## A2", "## A3"],
        ["# B"],
    ]


def test_a_long_section_is_cut_between_blocks_into_like_pieces() -> None:
    paragraphs = [prose(30, "opqrstu"[i]) for i in range(7)]
    doc = document(("heading", "# A"), *[("paragraph", body) for body in paragraphs])
    found = texts(doc, "auto:100")
    assert "\n\n".join(found).split("\n\n") == ["# A", *paragraphs]
    assert [piece.count("\n\n") for piece in found] == [2, 1, 2]


def test_a_long_paragraph_is_cut_between_sentences_without_a_crumb() -> None:
    text = prose(110)
    found = texts(text, "auto:100")
    assert " ".join(found) == text
    assert all(piece.endswith(".") for piece in found)
    assert min(len(piece.split()) for piece in found) > 30


def test_a_long_sentence_is_cut_at_clauses_then_at_spaces() -> None:
    clauses = ", ".join(" ".join(["clause", *"abcdefgh"]) for _ in range(40))
    assert all(piece.endswith((",", "h")) for piece in texts(clauses, "auto:20"))
    spaces = "word " * 400
    assert set(" ".join(texts(spaces, "auto:20")).split()) == {"word"}


def test_code_is_cut_at_line_ends_and_tables_at_rows() -> None:
    code = "\n".join(f"value_{i} = call(a, b)  # Do it. Now" for i in range(60))
    for kind in ("code", "table"):
        found = texts(document((kind, code)), "auto:50")
        assert len(found) > 5
        assert "\n".join(found) == code
    functions = "\n\n\n".join(f"def f{i}():\n    a = 1\n    return a" for i in range(40))
    found = texts(document(("code", functions)), "auto:30")
    assert len(found) > 5
    assert all(piece.startswith("def ") for piece in found)


@pytest.mark.parametrize("how", ["auto:45", "auto:50", "auto:55", "auto:60"])
def test_what_a_colon_or_an_indent_announces_stays_with_it(how: str) -> None:
    steps = [
        block
        for i in range(12)
        for block in (
            ("paragraph", f"Step {i} is done by typing this into the shell of yours:"),
            ("code", f"run --step {i} --and --some --more --words --to --fill --it"),
        )
    ]
    assert all(piece.startswith("Step") for piece in texts(document(*steps), how))
    text, blocks = "", []
    for i in range(12):
        for body in (f".. method:: call_{i}()", f"   Calls number {i}. " + prose(12)):
            text += "\n\n" if text else ""
            lead = len(body) - len(body.lstrip())
            blocks.append(Block(len(text) + lead, len(text) + len(body), "paragraph"))
            text += body
    found = texts(Document(text, "rst", blocks=tuple(blocks)), how)
    assert all(piece.startswith(".. method") for piece in found)


def test_no_crumb_is_left_behind() -> None:
    doc = document(("paragraph", prose(98)), ("paragraph", prose(10, "b")))
    one, two = texts(doc, "auto:100")
    assert one.endswith(".")
    assert 30 < len(two.split()) < 78


def test_a_heading_without_text_at_the_end_goes_with_what_precedes() -> None:
    doc = document(
        *(("heading", "# A"), ("paragraph", prose(90, "a"))),
        *(("heading", "## B"), ("paragraph", prose(90, "b")), ("heading", "# End")),
    )
    one, two = cut(doc, "auto:100")
    assert one.text.startswith("# A")
    assert two.text.startswith("## B")
    assert two.text.endswith("# End")
    assert two.heading == ("A", "B")


def test_a_small_window_does_not_cut_a_heading_from_its_text() -> None:
    doc = document(
        ("heading", "# All of it"),
        *[b for i in range(4) for b in (("heading", f"## Part {i}"), ("paragraph", prose(10)))],
    )
    assert len(texts(doc, "auto")) == 1
    for window in range(14, 30):
        found = texts(doc, "auto", window)
        assert len(found) > 1
        assert not any(piece.split("\n")[-1].startswith("#") for piece in found)


def test_no_chunk_crosses_a_page() -> None:
    text = "One page. Goes on\nhere. Next page."
    doc = Document(
        text,
        "pdf",
        blocks=(Block(0, len(text), "paragraph"),),
        pages=(Page(0, "i"), Page(text.index("here"), "1")),
        line_anchors=(),
    )
    assert [(c.text, c.page, c.lines) for c in cut(doc, "auto")] == [
        ("One page. Goes on", "i", None),
        ("here. Next page.", "1", None),
    ]
    assert [c.page for c in cut(doc, "words:4")] == ["i", "1"]
    assert [c.text for c in cut(doc, "sentences:1")] == [
        *("One page.", "Goes on", "here.", "Next page.")
    ]


def test_a_han_character_counts_for_half_a_word() -> None:
    text = "熊猫吃竹子。" * 100
    found = texts(text, "auto:60")
    assert all(60 <= len(piece) <= 120 and piece.endswith("。") for piece in found)


def test_a_character_is_not_parted() -> None:
    for character in ("e\u0301\u0302", "👩\u200d🚀", "👍🏽"):
        found = texts(character * 500, "auto:10")
        assert len(found) > 5
        assert all(piece.startswith(character[0]) for piece in found)
        assert all(len(piece) % len(character) == 0 for piece in found)


def test_empty_documents_have_no_chunks() -> None:
    for text in ("", " ", "\n\n\t\u3000"):
        for how in ("auto", "words:3", "sentences:1", "tokens:3/1"):
            assert cut(text, how) == []


def test_the_tokenizer_reads_little() -> None:
    tokenizer = Words(window=1000)
    text = prose(20_000)
    chunk(Document(text, "text"), parse_chunking("auto:150"), tokenizer)
    assert tokenizer.read == 0
    tokenizer.window = 140
    chunk(Document(text, "text"), parse_chunking("auto:150"), tokenizer)
    assert tokenizer.read < 3 * len(text)


@pytest.mark.parametrize("how", ["auto", "words:100", "sentences:1", "tokens:200/20"])
@pytest.mark.parametrize(
    "unit", ["x", "e\u0301", "\u0301", "熊", " ", "\n", "x ", ".", "a.", "(", "\r\n"]
)
def test_time_is_linear(how: str, unit: str) -> None:
    text = "y" + unit * (400_000 // len(unit)) + "y"
    began = time.process_time()
    found = cut(text, how)
    assert time.process_time() - began < 5
    assert sum(len(piece.text) for piece in found) <= len(text) * 1.2


def test_eight_megabytes_without_a_space() -> None:
    text = "x" * 8_000_000
    assert "".join(texts(text, "auto")) == text
    text = "x" * 100_000
    for how in WAYS:
        found = chunk(Document(text, "text"), parse_chunking(how), Pieces(window=200))
        assert max(len(piece.text) for piece in found) <= 600
        assert found[-1].end == len(text)


# ---- lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\n\nc\n", [1, 2, 4]),
        ("a\r\nb\r\n\r\nc", [1, 2, 4]),
        ("a\rb\r\rc", [1, 2, 4]),
        ("a\rb\n\nc", [1, 1, 3]),
        ("a\x0cb\x85\u2028c", [1, 1, 1]),
    ],
)
def test_lines_are_those_of_an_editor(text: str, expected: list[int]) -> None:
    assert [piece.lines for piece in cut(text, "words:1")] == [(n, n) for n in expected]
    assert [piece.lines for piece in cut(text, "words:3")] == [(expected[0], expected[-1])]


def test_anchors_say_the_lines() -> None:
    def lines(anchors: tuple[tuple[int, int], ...], how: str) -> list[tuple[int, int] | None]:
        return [piece.lines for piece in cut(Document("a b c", "x", line_anchors=anchors), how)]

    assert lines(((0, 7), (2, 9), (4, 40)), "words:1") == [(7, 7), (9, 9), (40, 40)]
    assert lines(((0, 7), (4, 40)), "words:2") == [(7, 7), (40, 40)]
    assert lines(((0, 7), (1, 8), (3, 9)), "words:2") == [(7, 8), (9, 9)]
    assert lines((), "words:1") == [None, None, None]


# ---- what holds for every way and every document


def lines_by_hand(doc: Document, start: int, end: int) -> tuple[int, int] | None:
    if doc.line_anchors == ():
        return None
    if doc.line_anchors:
        known = doc.line_anchors
        at = [max((p for p in known if p[0] <= i), default=known[0])[1] for i in (start, end - 1)]
        return at[0], at[1]
    line, numbers = 1, []
    for character in doc.text:
        numbers.append(line)
        if character == "\n" or (character == "\r" and "\n" not in doc.text):
            line += 1
    return numbers[start], numbers[end - 1]


def heading_by_hand(doc: Document, start: int, end: int) -> tuple[str, ...]:
    touched = [b for b in doc.blocks if b.start < end and b.end > start]
    bodies = [b for b in touched if b.kind != "heading"]
    return (bodies or touched)[0].headings if touched else ()


@st.composite
def documents(draw: st.DrawFn) -> Document:
    words = st.sampled_from(
        ["a", "The", "Dr.", "e.g.", "end.", "why?", "(so)", "3.2", "x:", "supercalifragilistic",
         "e\u0301t\u00e9", "👍🏽", "👩\u200d🚀", "熊猫吃竹子。", "ไทย", "-", "»",
         "\u200b", "다람쥐", "#"]
    )  # fmt: skip
    line_ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n", "\r", "\x0c"]]))
    spaces = st.sampled_from([" ", " ", " ", "  ", "\t", "\u3000", *line_ends])
    gaps = st.sampled_from(["", " ", *[end * n for end in line_ends for n in (1, 2, 3)]])
    text = draw(st.sampled_from(["", "\n", " "]))
    blocks: list[Block] = []
    path: tuple[str, ...] = ()
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(
            st.sampled_from(["heading", "heading", "paragraph", "item", "code", "table", "other"])
        )
        if kind == "heading":
            depth = draw(st.integers(0, min(3, len(path))))
            path = (*path[:depth], draw(st.sampled_from("AB")))
        start = len(text)
        count = draw(st.integers(1, 3 if kind == "heading" else 30))
        for i in range(count):
            text += (draw(spaces) if i else "") + draw(words)
        blocks.append(Block(start, len(text), kind, path))
        text += draw(gaps)
    offsets = st.lists(st.integers(0, len(text)), max_size=3, unique=True)
    starts = sorted({0, *draw(offsets)}) if draw(st.booleans()) else []
    anchors = draw(
        st.none()
        | st.just(())
        | offsets.map(lambda found: tuple((o, 2 * i + 1) for i, o in enumerate(sorted(found))))
    )
    return Document(
        text,
        "text",
        blocks=tuple(blocks) if draw(st.booleans()) else (),
        pages=tuple(Page(start, f"p{start}") for start in starts),
        line_anchors=anchors,
    )


def check(doc: Document, how: str, window: int | None, found: Sequence[Chunk]) -> None:
    text = doc.text
    tokenizer = Pieces(window)
    covered: set[int] = set()
    for piece in found:
        assert piece.text == text[piece.start : piece.end]
        assert piece.text
        assert piece.text == piece.text.strip()
        assert piece.lines == lines_by_hand(doc, piece.start, piece.end)
        assert piece.heading == heading_by_hand(doc, piece.start, piece.end)
        before = [page.label for page in doc.pages if page.start <= piece.start]
        assert piece.page == (before[-1] if before else None)
        if window is not None:
            assert len(tokenizer.spans(piece.text)) <= window or len(piece.text) == 1
        covered.update(range(piece.start, piece.end))
    assert {i for i, character in enumerate(text) if not character.isspace()} <= covered
    for one, two in pairwise(found):
        assert one.start < two.start
        assert one.end <= two.start or "/" in how


WAYS = [
    *("auto", "auto:1", "auto:7", "auto:20", "words:1", "words:9", "sentences:1", "sentences:3"),
    *("tokens:1", "tokens:5", "tokens:5/2", "tokens:3/2"),
]


@settings(deadline=None, max_examples=150)
@given(
    documents(),
    st.sampled_from(WAYS),
    st.none() | st.integers(5, 12),
)
def test_what_always_holds(doc: Document, how: str, window: int | None) -> None:
    chunking = parse_chunking(how)
    found = chunk(doc, chunking, Pieces(window))
    check(doc, how, window, found)
    assert found == chunk(doc, chunking, Pieces(window))
    if chunking.kind == "auto":
        for piece in found:
            assert not any(piece.start < page.start < piece.end for page in doc.pages)
            dense = len(re.findall("[\u3040-\u30ff\u4e00-\u9fff]", piece.text))
            assert len(piece.text) + 2 * dense <= 6 * chunking.size or len(piece.text) == 1
    elif window is None and chunking.kind == "words":
        spaced = re.compile("([\u0e00-\u0eff\u3040-\u30ff\u4e00-\u9fff])")
        counts = [len(spaced.sub(r" \1 ", piece.text).split()) for piece in found]
        assert all(count == chunking.size for count in counts[:-1])
    elif window is None and chunking.kind == "tokens" and "👍" not in doc.text:
        wanted = len(Pieces().spans(doc.text)) - chunking.overlap
        step = chunking.size - chunking.overlap
        assert len(found) <= max(1, -(-wanted // step))
