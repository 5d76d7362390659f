"""One document per record: JSON Lines and delimited tables."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.corpus.readers import read_document
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document


def read(text: str, name: str) -> list[Document]:
    return read_document(Source(name, text.encode("utf-8")))


def covered(document: Document) -> str:
    """The text inside of blocks, without white space."""
    joined = "".join(document.text[b.start : b.end] for b in document.blocks)
    return "".join(joined.split())


def test_beir_corpus() -> None:
    rows = [
        {"_id": "4983", "title": "Scans", "text": "Alterations of water.\n\nMore.", "metadata": {}},
        {"_id": 17, "title": "Scans of", "text": "Scans of the brain."},
        {"_id": "x", "title": "", "text": "No title."},
    ]
    first, second, third = read("".join(json.dumps(row) + "\n" for row in rows), "corpus.jsonl")
    assert (first.record, first.title, first.line_anchors) == ("4983", "Scans", ((0, 1),))
    assert first.text == "Scans\n\nAlterations of water.\n\nMore."
    assert [(b.kind, first.text[b.start : b.end]) for b in first.blocks] == [
        ("heading", "Scans"),
        ("paragraph", "Alterations of water."),
        ("paragraph", "More."),
    ]
    assert (second.record, second.text) == ("17", "Scans of the brain.")
    assert (third.record, third.title, third.text) == ("x", None, "No title.")


def test_records_of_other_shapes() -> None:
    rows = [
        '{"key": 5, "contents": "in contents"}',
        "",
        '{"passage": ["two", "parts"]}',
        '{"question": "what?", "answers": [{"text": "that"}], "n": 3}',
    ]
    documents = read("\n".join(rows), "a.ndjson")
    assert [(d.record, d.text) for d in documents] == [
        ("5", "in contents"),
        ("3", "two\n\nparts"),
        ("4", "what?\n\nthat"),
    ]


def test_bad_lines_are_problems_and_reading_goes_on() -> None:
    lines = ['{"id": "a", "text": "one"}', "{broken", "[1]", '{"id": "a", "text": "again"}']
    first, last = read("\n".join(lines), "a.jsonl")
    assert (first.record, last.record) == ("a", "a#4")
    assert not first.problems
    kinds = {kind for kind, _, _ in last.problems}
    messages = [message for _, message, _ in last.problems]
    assert kinds == {"bad_record"}
    assert [message.split(":")[0] for message in messages] == ["line 2", "line 3", "line 4"]


def test_many_bad_lines_are_counted_not_listed() -> None:
    (document,) = read("nonsense\n" * 500 + '{"text": "one"}\n', "a.jsonl")
    assert len(document.problems) == 11
    assert "490 more" in document.problems[-1][1]


@pytest.mark.parametrize("text", ["nonsense\n", "[1, 2]\n", "[" * 100_000 + "\n"])
def test_no_record_at_all_is_an_error(text: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read(text, "a.jsonl")
    assert caught.value.kind == "corrupt"


def test_half_an_emoji_does_not_reach_the_index() -> None:
    line = '{"id": "\\ud83d", "title": "\\ud800", "text": "a\\udfffb \\ud83d\\ude00"}'
    (document,) = read(line, "a.jsonl")
    assert document.text == "\ufffd\n\na\ufffdb 😀"
    assert document.record == "\ufffd"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["_id", "id", "title", "text", "x"]), JSON_VALUES),
        max_size=4,
    )
)
def test_any_objects_become_sound_records(rows: list[dict[str, object]]) -> None:
    documents = read("".join(json.dumps(row) + "\n" for row in rows), "a.jsonl")
    assert len(documents) == len(rows)
    assert len({document.record for document in documents}) == len(rows)
    for line, document in enumerate(documents, 1):
        assert document.line_anchors == ((0, line),)
        assert covered(document) == "".join(document.text.split())


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_rows_are_lines_of_column_and_value(delimiter: str) -> None:
    rows = [["id", "title", "note"], ["7", "Ann", "two\nlines, really"], ["8", "Bo", ""]]
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows(rows)
    first, second = read(stream.getvalue(), "people.csv")
    assert first.text == "id: 7\ntitle: Ann\nnote: two\nlines, really"
    assert (first.record, first.title, first.line_anchors) == ("7", "Ann", ((0, 2),))
    cells = [first.text[block.start : block.end].split(":")[0] for block in first.blocks]
    assert cells == ["id", "title", "note"]
    assert (second.text, second.record) == ("id: 8\ntitle: Bo", "8")
    assert second.line_anchors == ((0, 4),)


def test_rows_without_unique_ids_are_numbered() -> None:
    documents = read("id,word\n1,a\n\n1,b\n", "a.csv")
    assert [(d.record, d.line_anchors) for d in documents] == [("1", ((0, 2),)), ("2", ((0, 4),))]


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=2),
        min_size=1,
        max_size=6,
    )
)
def test_every_cell_of_any_table_is_in_its_row(rows: list[list[str]]) -> None:
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([["a", "b"], *rows])
    try:
        documents = read(stream.getvalue(), "a.csv")
    except UnreadableFile as error:
        assert error.kind == "binary"
        return
    kept = [row for row in rows if any(cell.strip() for cell in row)]
    assert len(documents) == len(kept)
    for document, row in zip(documents, kept, strict=True):
        assert covered(document) == "".join(document.text.split())
        for cell in row:
            assert cell.strip() in document.text


def test_a_million_columns_do_not_explode() -> None:
    wide = ",".join(f"c{i}" for i in range(1_000_000))
    (document,) = read(f"{wide}\n{wide}\n", "wide.csv")
    assert len(document.text) < 20_000
    assert [kind for kind, _, _ in document.problems] == ["truncated"]


def test_a_field_of_any_length() -> None:
    (document,) = read(f'a,b\n1,"{"long " * 100_000}"\n', "a.csv")
    assert len(document.text) > 400_000


def test_an_empty_table() -> None:
    assert read("a,b\n", "a.csv") == []
