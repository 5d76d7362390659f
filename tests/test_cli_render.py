"""The score table: what is shown, that it fits, and that no document can write on the screen."""

from __future__ import annotations

import io
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ragcli.cli.render import ProgressBar, console, score_table
from ragcli.cli.reports.tables import aligned
from ragcli.cli.snippet import densest, matched_spans
from ragcli.generation.prompt import assemble
from ragcli.generation.visible import visible
from ragcli.records import Hit, Leg, Progress, SearchResult, TermShare

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^;]*;[^\x1b]*\x1b\\")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "25")


def hit(rank: int, text: str, path: str = "docs/a.md", **more: object) -> Hit:
    return Hit(
        rank=rank, chunk=rank, path=path, start=0, end=len(text), text=text, score=1.0 / rank,
        weight=0.5, **{"lexical": Leg(rank, 12.5), **more},  # type: ignore[arg-type]
    )  # fmt: skip


def result(*hits: Hit, terms: tuple[str, ...] = ("workers",), **more: object) -> SearchResult:
    return SearchResult(
        question="how many workers", hits=hits, fusion="mix", terms=terms, problems=0,
        **{"mode": "lexical", "alpha": None, "chunks": 1234, "embedded": 0,
           "timings_ms": {"total": 7.4}, **more},  # type: ignore[arg-type]
    )  # fmt: skip


def shown(
    found: SearchResult, *, terminal: bool = False, color: bool = True, explain: bool = False,
    root: Path | None = None,
) -> str:  # fmt: skip
    stream = Terminal() if terminal else io.StringIO()
    score_table(
        console(stream, color=color), found, root=root, languages=("english",), explain=explain
    )
    return stream.getvalue()


def test_a_table_off_a_terminal_is_plain_and_whole() -> None:
    text = "Set the [bold]number[/bold] of workers. " * 20
    table = shown(
        result(
            hit(1, text, "a/[brackets].tsx", lines=(10, 24), heading=("Setup", "Install")),
            hit(10, "none", "b.pdf", page="iv", lexical=Leg(None, 0.0), dense=Leg(2, 0.25)),
            mode="hybrid", alpha=0.45, embedded=1234,
        )
    )  # fmt: skip
    assert table.splitlines() == [
        " #  score  weight  lexical  dense  source",
        " 1  1.000   0.500   12.500      –  a/[brackets].tsx:10-24 · Setup › Install",
        "    " + " ".join(text.split()),
        "10  0.100   0.500    0.000  0.250  b.pdf · p. iv",
        "    none",
        "hybrid: mix with 0.45 dense · 1,234 passages searched · 7 ms",
    ]


def test_a_terminal_gets_links_and_marked_words_and_without_color_nothing() -> None:
    found = result(hit(1, "Two workers work.", "sub dir/[x].md", lines=(3, 4)))
    table = shown(found, terminal=True, root=Path("/root of/it"))
    assert "file:///root%20of/it/sub%20dir/%5Bx%5D.md\x1b\\" in table
    assert "\x1b[1mworkers\x1b[0m" in table
    assert "\x1b[1mwork\x1b[0m" not in table
    assert ESCAPE.sub("", table) == shown(found, terminal=True, color=False)
    assert "\x1b" not in shown(found, terminal=True, color=False)


def test_a_link_of_a_record_leads_to_its_file() -> None:
    found = result(hit(1, "workers", "c.jsonl#a#7", record="a#7"))
    assert "file:///r/c.jsonl\x1b" in shown(found, terminal=True, root=Path("/r"))


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize(
    ("path", "heading", "text"),
    [
        ("a" * 300 + ".md", ("Heading " * 40,), "workers " * 300),
        ("🚀" * 80 + ".md", ("数据库 " * 40,), "数据库工作进程" * 100),
        ("👩‍🚀 e\u0301.md", ("\x1b[31m",), "x" * 2000),
    ],
)
def test_it_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, path: str, heading: tuple[str], text: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = result(
        hit(1, text, path, lines=(1, 2), heading=heading, dense=Leg(1, 0.5)),
        terms=("workers", "工作"),
    )
    table = ESCAPE.sub("", shown(found, terminal=True, root=Path("/r")))
    assert all(cell_len(line) <= columns for line in table.splitlines())
    assert ":1-2" in table
    assert len(table.splitlines()) <= 5


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(codec=None), min_size=1, max_size=120), st.booleans(), st.booleans())
def test_no_document_can_write_on_the_screen(text: str, terminal: bool, explain: bool) -> None:
    one = hit(
        1, text, "p" + text, heading=(text,), page=text, lines=(1, 1),
        terms=(TermShare(text, 1, 1, 1.0),),
    )  # fmt: skip
    found = result(one, terms=(text,))
    table = shown(found, terminal=terminal, color=False, explain=explain)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", table)
    lines = table.split("\n")
    if not terminal:
        assert len(lines) == 5 + explain * 6
    elif not explain:
        assert len(lines) <= 6


def test_markup_is_text() -> None:
    table = shown(result(hit(1, "[red]workers[/red] :smile: [link=x]", "[b].md")), terminal=True)
    assert "[red]workers[/red] :smile: [link=x]" in ESCAPE.sub("", table)
    assert "[b].md" in ESCAPE.sub("", table)


def test_explain_tells_each_retriever_and_each_word() -> None:
    one = hit(
        1, "workers 数据", lines=(3, 4), lexical=Leg(2, 8.0), dense=Leg(None, 0.125),
        terms=(TermShare("workers", 2, 17, 6.0), TermShare("数据", 1, 1, 2.0)),
    )  # fmt: skip
    table = shown(result(one), explain=True)
    assert table.split("\n\n")[1].splitlines() == [
        "[1] docs/a.md:3-4",
        "    lexical  8.000  rank 2",
        "    dense    0.125  not among its candidates",
        "    term     in passage  in index  score  share",
        "    workers           2        17  6.000    75%",
        "    数据              1         1  2.000    25%",
    ]


def test_explain_tells_what_each_part_gives() -> None:
    one = hit(
        1, "workers", lexical=Leg(2, 8.0), dense=Leg(None, 0.125), parts=(0.25, 0.0),
        neighbour=0.03, rerank=-2.5,
    )  # fmt: skip
    assert shown(result(one), explain=True).split("\n\n")[1].splitlines()[1:] == [
        "             own score  gives",
        "    lexical      8.000  0.250  rank 2",
        "    dense        0.125  0.000  not among its candidates",
        "    beside           –  0.030  of the better passage beside it",
        "    rerank      -2.500      –  the order",
    ]


@pytest.mark.parametrize(
    ("text", "words", "marked"),
    [
        ("The workers; a worker.", ["worker"], ["workers", "worker"]),
        ("max_workers=4 in lantern.toml", ["workers", "lantern"], ["max_workers", "lantern.toml"]),
        ("Code ERR-4012 and 4013", ["4012"], ["ERR-4012"]),
        ("数据库在端口监听", ["端口"], ["端口"]),
        ("数据库在端口监听", ["在"], ["在"]),
        ("Города и города", ["город"], ["Города", "города"]),
        ("naïve Größe", ["größe"], ["Größe"]),
        ("nothing here", ["workers"], []),
        ("nothing here", [], []),
        ("", ["x"], []),
    ],
)  # fmt: skip
def test_the_words_that_matched_are_found_as_the_index_finds_them(
    text: str, words: list[str], marked: list[str]
) -> None:
    spans = matched_spans(text, words, ("english", "german"))
    assert [text[start:end] for start, end in spans] == marked


@settings(max_examples=200)
@given(st.text(max_size=80), st.lists(st.text(max_size=8), max_size=4))
def test_spans_ascend_within_the_text(text: str, words: list[str]) -> None:
    spans = matched_spans(text, words, ("english",))
    flat = [offset for span in spans for offset in span]
    assert flat == sorted(flat)
    assert all(0 <= start < end <= len(text) for start, end in spans)


@given(st.text("ab \u6570", max_size=300), st.integers(10, 120), st.data())
def test_the_stretch_is_short_enough_and_holds_a_match(
    text: str, size: int, data: st.DataObject
) -> None:
    starts = sorted(data.draw(st.sets(st.integers(0, max(0, len(text) - 3)), max_size=5)))
    spans = [(start, start + 1) for start in starts if start < len(text)]
    start, end = densest(text, spans, size)
    assert 0 <= start <= end <= len(text)
    assert end - start <= size
    if len(text) <= size:
        assert (start, end) == (0, len(text))
    elif spans:
        assert any(start <= a and b <= end for a, b in spans)


def test_the_progress_bar_counts_and_leaves_nothing_behind(monkeypatch) -> None:
    screen = Terminal()
    bar = ProgressBar(console(screen, color=True))
    bar.show(Progress("scan", files_done=3))
    bar.show(Progress("read", files_done=100, files_total=2000, bytes_done=5, bytes_total=50))
    bar._live.refresh()
    bar.show(Progress("embed", chunks=640, chunks_total=12_345))
    bar._live.refresh()
    bar.close()
    written = ESCAPE.sub("", screen.getvalue())
    assert "read" in written
    assert "embedding" in written
    assert "5% · 640/12,345 passages" in written
    assert "100/2,000 files" in written
    assert "10%" in written
    assert screen.getvalue().endswith("\x1b[2K")


HIDDEN = [
    "\u200b",
    "\u2060",
    "\u2063",
    "\u180e",
    "\u200c",
    "\U000e0041",
    "\U000e007f",
    "\U0001d173",
]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_is_hidden_in_a_name_is_written_out(hidden: str) -> None:
    told = hidden.encode("ascii", "backslashreplace").decode()
    name = f"a{hidden}b"
    found = result(hit(1, f"Many{hidden}workers.", name, page=name, heading=(name, "Tea")))
    for terminal in (False, True):
        text = ESCAPE.sub("", shown(found, terminal=terminal))
        first, snippet = text.splitlines()[1:3]
        assert first.count(f"a{told}b") == 3
        assert hidden not in first
        assert f"Many{hidden}workers." in snippet  # the text of a passage is as it is
    assert aligned(["file"], [[name]], left=(0,)) == ["file", f"a{told}b"]
    assert f"a{told}b" in assemble("q", found.hits).text
    assert f"Many{hidden}workers." in assemble("q", found.hits).text


@pytest.mark.parametrize(
    "name", ["می\u200cخواهم.txt", "क\u094d\u200dष.md", "👩\u200d🚀.txt", "co\u00adoperate.md"]
)
def test_what_joins_inside_a_word_stays(name: str) -> None:
    assert visible(name) == name


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("می\u200c", r"می\u200c"),
        ("\u200dक", r"\u200dक"),
        ("a\u200db", r"a\u200db"),
        ("ক\u200b\u200cখ", r"ক\u200b\u200cখ"),
    ],
)
def test_a_joiner_that_joins_nothing_is_written_out(name: str, told: str) -> None:
    assert visible(name) == told


@given(st.text(st.characters(categories=["Cf"]), min_size=1))
def test_no_format_character_that_hides_is_in_a_name(text: str) -> None:
    shapes = (
        "\u00ad\u0600\u0601\u0602\u0603\u0604\u0605"
        "\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    )
    left = {each for each in visible(text) if unicodedata.category(each) == "Cf"} - set(shapes)
    assert all("\U00013430" <= each <= "\U0001345f" for each in left)  # hieroglyphs' places
