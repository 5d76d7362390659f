"""The picture of an index: its numbers against other ways to get them, and a page that is safe."""

from __future__ import annotations

import ast
import base64
import hashlib
import html
import json
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import build, write_files
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.cli import plot
from ragcli.errors import ModelUnavailable, UsageError
from ragcli.inspection import picture as pictures
from ragcli.inspection.picture import (
    MOST_GROUPS,
    MOST_RANKS,
    ScoreCurve,
    chunk_map,
    grouped,
    picture,
    principal_components,
    score_curve,
    size_bins,
)
from ragcli.records import Hit, SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.index import Index
from ragcli.store.matrix import matrix

PACKAGE = Path(__file__).resolve().parents[1] / "ragcli"
HOSTILE = "</script><script>alert(1)</script> <img src=x onerror=alert(2)> <b>&amp; $x$ %{y}"
HOSTILE_FILE = "</script><script>alert(3)</script><img src=x onerror=alert(4)>.md"


# The numbers


def hit(rank: int, score: float, chunk: int = 1) -> Hit:
    return Hit(rank, chunk, f"{rank}.md", 0, 4, "text", score, 0.1)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 1000))
def test_components_are_those_of_the_singular_values(rows: int, width: int, seed: int) -> None:
    # Columns of their own scale, so that no two singular values are alike.
    scales = 0.7 ** np.arange(width)
    some = np.random.default_rng(seed).standard_normal((rows, width)) * scales + 3
    some = some.astype(np.float32)
    coordinates, shares = principal_components(some)
    centred = some - some.mean(axis=0, dtype=np.float64)
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    for axis in range(2):
        expected, share = np.zeros(rows), 0.0
        if rows > 1 and axis < len(singular):
            expected = left[:, axis] * singular[axis]
            share = singular[axis] ** 2 / np.square(singular).sum()
        found = coordinates[:, axis]
        if found @ expected < 0:
            expected = -expected
        assert found == pytest.approx(expected, abs=2e-5)
        assert shares[axis] == pytest.approx(share, abs=1e-6)
        assert found[np.abs(found).argmax()] >= 0


def test_many_rows_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(2).standard_normal((50, 7)).astype(np.float32)
    whole, shares = principal_components(rows)
    across, _ = principal_components(rows[:5])
    monkeypatch.setattr(pictures, "_BLOCK", 3)
    assert principal_components(rows)[0] == pytest.approx(whole, abs=1e-12)
    assert principal_components(rows)[1] == pytest.approx(shares)
    assert principal_components(rows[:5])[0] == pytest.approx(across, abs=1e-12)


@pytest.mark.parametrize("shape", [(9, 4), (4, 9)])
def test_equal_rows_lie_in_one_place(shape: tuple[int, int]) -> None:
    rows = np.full(shape, 0.1, np.float32)
    coordinates, shares = principal_components(rows)
    assert not coordinates.any()
    assert shares == (0.0, 0.0)


def test_few_files_are_their_own_groups() -> None:
    assert grouped(["a.md", "b/c.md", "a.md"]) == (("a.md", "b/c.md", "a.md"), False)


def test_many_files_are_grouped_by_the_deepest_folders_that_are_few() -> None:
    files = [f"docs/part{i % 3}/deep{i}/x.md" for i in range(30)] + ["top.md"]
    groups, by_folder = grouped(files)
    assert by_folder
    assert set(groups) == {"docs/part0/", "docs/part1/", "docs/part2/", "./"}
    assert groups[4] == "docs/part1/"


@pytest.mark.parametrize("form", ["{}.md", "one/{}.md"])
def test_of_many_files_in_one_folder_the_largest_are_named(form: str) -> None:
    files = [form.format(i) for i in range(40) for _ in range(i + 1)]
    groups, by_folder = grouped(files)
    assert not by_folder
    named = {form.format(i) for i in range(40 - MOST_GROUPS + 1, 40)}
    assert [group for file, group in zip(files, groups, strict=True) if file not in named] == [
        None
    ] * sum(i + 1 for i in range(40 - MOST_GROUPS + 1))
    assert all(group == file for file, group in zip(files, groups, strict=True) if file in named)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=300))
def test_every_size_is_in_its_bin(words: list[int]) -> None:
    bins = size_bins(np.array(words))
    assert len(bins) <= 41
    widths = {bin.high - bin.low for bin in bins if bin.high is not None}
    assert len(widths) <= 1
    assert [bin.low for bin in bins[1:]] == [bin.high for bin in bins[:-1]]
    for bin in bins:
        inside = [n for n in words if bin.low <= n and (bin.high is None or n < bin.high)]
        assert bin.count == len(inside)
    assert sum(bin.count for bin in bins) == len(words)


def test_a_curve_falls_and_knows_where_the_hits_are() -> None:
    hits = [hit(2, 0.7), hit(1, 0.9), hit(3, 0.7)]
    curve = score_curve("q", [0.1, 0.7, 0.9, 0.7, 0.8, 0.3], hits, 3, "dense")
    assert curve.scores.tolist() == [0.9, 0.8, 0.7, 0.7, 0.3, 0.1]
    assert curve.ranks.tolist() == [1, 2, 3, 4, 5, 6]
    assert [each.rank for each in curve.hits] == [1, 2, 3]
    assert curve.positions == (1, 3, 4)  # the second best was left out, as --max-per-file does
    assert curve.left_out == 0.3


def test_a_curve_of_hits_alone_leaves_nothing_out() -> None:
    assert score_curve("q", [0.5], [hit(1, 0.5)], 5, "dense").left_out is None
    empty = score_curve("q", [], [], 5, "dense")
    assert (empty.candidates, empty.positions, empty.left_out) == (0, (), None)


def test_a_long_curve_is_thinned_far_from_the_cut() -> None:
    scores = np.random.default_rng(3).random(200_000)
    curve = score_curve("q", scores.tolist(), [], 5, "dense")
    falling = sorted(scores.tolist(), reverse=True)
    assert curve.candidates == 200_000
    assert len(curve.ranks) <= 2 * MOST_RANKS
    assert curve.ranks[:MOST_RANKS].tolist() == list(range(1, MOST_RANKS + 1))
    assert curve.ranks[-1] == 200_000
    assert (np.diff(curve.ranks) > 0).all()
    assert curve.scores.tolist() == [falling[rank - 1] for rank in curve.ranks]


# An index


def make(tmp_path: Path, files: dict[str, str], **changes: object) -> Path:
    root = tmp_path / "root"
    write_files(root, files)
    build(tmp_path / "index", root, chunk="words:40", **changes)
    return tmp_path / "index"


FILES = {
    "guide.md": "# Setup\n\nThe server listens on port 8080.\n\n# Limits\n\nTen users at once.\n",
    "notes/leave.txt": "Parental leave lasts eighteen weeks.\nAsk the people team.\n",
    "notes/pay.txt": "Salaries are paid on the last working day of each month.\n",
}


@pytest.mark.parametrize("changes", [{}, {"dim": 2}], ids=["rows fewer", "columns fewer"])
def test_a_map_has_every_passage_in_its_place(tmp_path: Path, changes: dict[str, object]) -> None:
    with Index.open(make(tmp_path, FILES, **changes)) as index:
        chunks, rows = matrix(index)
        drawn = chunk_map(index)
        stored = index.chunks(chunks.tolist())
    assert [passage.chunk for passage in drawn.passages] == chunks.tolist()
    for passage, group in zip(drawn.passages, drawn.groups, strict=True):
        chunk = stored[passage.chunk]
        assert (passage.path, passage.lines) == (chunk.path, chunk.chunk.lines)
        assert passage.text == chunk.chunk.text
        assert group == chunk.file
    assert drawn.embedded == len(chunks)
    coordinates, explained = principal_components(rows)
    assert (drawn.x.tolist(), drawn.y.tolist()) == tuple(coordinates.T.tolist())
    assert drawn.explained == explained


def test_a_map_of_some_has_those_that_must_be_there(tmp_path: Path) -> None:
    with Index.open(make(tmp_path, {f"{i}.md": f"word{i} text" for i in range(30)})) as index:
        whole = chunk_map(index)
        last = whole.passages[-1].chunk
        some = chunk_map(index, most=7, always={last})
    places = {passage.chunk: i for i, passage in enumerate(whole.passages)}
    assert len(some.passages) == 8
    assert some.passages[-1].chunk == last
    assert some.embedded == 30
    for i, passage in enumerate(some.passages):
        assert some.x[i] == whole.x[places[passage.chunk]]
        assert some.y[i] == whole.y[places[passage.chunk]]


def test_without_vectors_there_is_a_sentence_and_the_sizes(tmp_path: Path) -> None:
    with Index.open(make(tmp_path, FILES, encoder="none")) as index:
        drawn = picture(index)
        count = index.counts()[0]
    assert drawn.map is None
    assert drawn.no_map is not None
    assert "--encoder none" in drawn.no_map
    assert drawn.sizes is not None
    assert sum(bin.count for bin in drawn.sizes.bins) == count
    page = plot.inspection(drawn)
    assert [figure.title for figure in page.figures] == ["Sizes of the passages"]
    assert page.left_out == (f"No map: {drawn.no_map}.",)


def test_vectors_of_too_many_dimensions_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "MOST_DIMENSIONS", 2)
    with Index.open(make(tmp_path, FILES)) as index, pytest.raises(UsageError, match="dimensions"):
        chunk_map(index)


def test_an_empty_index_has_a_page(tmp_path: Path) -> None:
    with Index.open(make(tmp_path, {"empty.md": ""})) as index:
        page = plot.inspection(picture(index))
    assert page.figures == ()
    assert "no passages" in page.left_out[0] or "need passages" in page.left_out[0]


# The page


class Reader(HTMLParser):
    """What a browser would make of a page: its tags, scripts and plain text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        else:
            self.text += data

    def figures(self) -> list[dict[str, Any]]:
        """What each script but the library's gives to plotly.js."""
        found = []
        for script in self.scripts[1:]:
            match = re.fullmatch(
                r"Plotly\.newPlot\('figure\d+', \{\.\.\.(\{.*\}), config: (\{.*\})\}\);", script
            )
            assert match is not None
            found.append({**json.loads(match[1]), "config": json.loads(match[2])})
        return found


def numbers(value: Any) -> list[float]:
    """A column as plotly has it: a list, or a typed array in base64."""
    if isinstance(value, dict):
        value = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"]).tolist()
    return list(value)


def shown(text: str) -> str:
    """What plotly.js shows of a text: its few tags are no part of it."""
    assert set(re.findall(r"<[^>]*>", text)) <= {"<br>"}
    return html.unescape(text.replace("<br>", "\n"))


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[pictures.Picture, ScoreCurve]:
    """The picture of an index whose texts and file names are HTML, and a question that is."""
    files = {HOSTILE_FILE: f"# Title\n\n{HOSTILE} {HOSTILE}\n", "_plain.md": "Nothing here.\n"}
    with Index.open(make(tmp_path, files)) as index:
        found = Retriever(index).search(SearchRequest("title", 2))
        scores = [0.01, *(each.score for each in found.hits)]
        curve = score_curve(HOSTILE, scores, found.hits[:1], 1, found.mode)
        return picture(index, curve), curve


def html_of(drawn: pictures.Picture, path: Path) -> Reader:
    pytest.importorskip("plotly", reason="needs ragcli[plot]")
    plot.write(path, plot.inspection(drawn))
    return Reader(path.read_text(encoding="utf-8"))


def test_a_page_holds_its_data(
    tmp_path: Path, hostile: tuple[pictures.Picture, ScoreCurve]
) -> None:
    drawn, curve = hostile
    page = html_of(drawn, tmp_path / "page.html")
    map_, scores, sizes = page.figures()
    assert drawn.map is not None
    assert drawn.sizes is not None
    seen = {}
    for trace in map_["data"][:-1]:
        points = zip(numbers(trace["x"]), numbers(trace["y"]), trace["hovertext"], strict=True)
        for x, y, text in points:
            seen[x, y] = " ".join(shown(text).split())
    expected = {
        (x, y): f"{passage.path}:{passage.lines[0]}" if passage.lines else passage.path
        for x, y, passage in zip(drawn.map.x, drawn.map.y, drawn.map.passages, strict=True)
    }
    assert seen.keys() == expected.keys()
    for place, path in expected.items():
        assert seen[place].replace(" ", "").startswith(path.replace(" ", ""))
    ringed = map_["data"][-1]
    assert shown(ringed["name"]) == "hits (1)"
    assert (*numbers(ringed["x"]), *numbers(ringed["y"])) in expected
    assert numbers(scores["data"][0]["y"]) == curve.scores.tolist()
    assert numbers(scores["data"][1]["x"]) == [1]
    (cut,) = scores["layout"]["shapes"]
    assert cut["x0"] == cut["x1"] == 1.5
    (label,) = scores["layout"]["annotations"]
    assert label["text"] == "k = 1"
    assert 10 ** label["x"] == pytest.approx(1.5)
    assert numbers(sizes["data"][0]["y"]) == [bin.count for bin in drawn.sizes.bins]


def test_text_in_a_page_is_data(
    tmp_path: Path, hostile: tuple[pictures.Picture, ScoreCurve]
) -> None:
    page = html_of(hostile[0], tmp_path / "page.html")
    tags = Counter(tag for tag, _ in page.tags)
    assert tags == {
        "html": 1, "head": 1, "meta": 3, "title": 1, "style": 1, "body": 1, "h1": 1, "h2": 3,
        "p": 5, "div": 3, "script": 4,
    }  # fmt: skip
    assert page.open == []
    assert HOSTILE in page.text
    figures = page.figures()
    texts = [text for figure in figures for trace in figure["data"] for text in trace["hovertext"]]
    names = [trace["name"] for figure in figures for trace in figure["data"]]
    assert any("alert(2)" in shown(text) for text in texts)
    assert any("<img src=x onerror=alert(4)>" in shown(name).replace("\n", " ") for name in names)
    assert not any("<" in script for script in page.scripts[1:])


def test_a_page_asks_for_nothing_and_runs_its_own_scripts_alone(
    tmp_path: Path, hostile: tuple[pictures.Picture, ScoreCurve]
) -> None:
    page = html_of(hostile[0], tmp_path / "page.html")
    for _, attributes in page.tags:
        assert attributes.keys().isdisjoint({"src", "href", "action", "onerror", "onload"})
    (policy,) = [
        attributes["content"] or ""
        for tag, attributes in page.tags
        if tag == "meta" and "http-equiv" in attributes
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["form-action"] == "'none'"
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()) for s in page.scripts]
    assert rules["script-src"].split()[1:] == [f"'sha256-{d.decode()}'" for d in digests]
    for figure in page.figures():
        assert figure["config"]["showSendToCloud"] is False
        assert figure["config"]["displaylogo"] is False


def test_the_same_picture_is_the_same_page(
    tmp_path: Path, hostile: tuple[pictures.Picture, ScoreCurve]
) -> None:
    html_of(hostile[0], tmp_path / "one.html")
    html_of(hostile[0], tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_an_svg_is_data_too(tmp_path: Path, hostile: tuple[pictures.Picture, ScoreCurve]) -> None:
    pytest.importorskip("matplotlib", reason="needs ragcli[plot]")
    plot.write(tmp_path / "page.svg", plot.inspection(hostile[0]))
    tree = ElementTree.parse(tmp_path / "page.svg")
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert tags.isdisjoint({"script", "img", "image", "foreignObject", "a"})
    text = " ".join("".join(element.itertext()) for element in tree.iter() if "text" in element.tag)
    assert "<img src=x onerror=alert(4)>.md" in text
    assert "$x$" in text  # no formula
    assert "_plain.md" in text  # not left out, though it begins with a `_`
    assert not any(name.startswith("on") for element in tree.iter() for name in element.attrib)


def test_a_png_is_a_picture(tmp_path: Path, hostile: tuple[pictures.Picture, ScoreCurve]) -> None:
    pytest.importorskip("matplotlib", reason="needs ragcli[plot]")
    plot.write(tmp_path / "page.PNG", plot.inspection(hostile[0]))
    assert (tmp_path / "page.PNG").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_many_points_are_drawn_by_the_graphics_card() -> None:
    pytest.importorskip("plotly", reason="needs ragcli[plot]")
    from ragcli.cli.plot.page import draw

    for count, kind in ((10, "scatter"), (20_000, "scattergl")):
        x = np.arange(count)
        points = plot.Series("points", "points", x, x, "#000", [str(i) for i in range(count)])
        rings = plot.Series("rings", "rings", x[:3], x[:3], "#000", ["a", "b", "c"])
        figure = draw(plot.Figure("t", "n", "x", "y", (points, rings)))
        assert [trace.type for trace in figure.data] == [kind, kind]


EMPTY = plot.Page("title", "line", ())


@pytest.mark.parametrize("name", ["page.pdf", "page", "page.html.gz"])
def test_another_suffix_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=re.escape(name)) as refused:
        plot.write(tmp_path / name, EMPTY)
    assert refused.value.hint == "name one that ends in .html, .svg, .png"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "library"), [("a.html", "plotly"), ("a.svg", "matplotlib"), ("a.png", "matplotlib")]
)
def test_a_missing_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModelUnavailable, match=f"^{library} is not installed$") as missing:
        plot.require(tmp_path / name)
    assert missing.value.hint == "pip install 'ragcli[plot]'"


def test_what_cannot_be_written_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("plotly", reason="needs ragcli[plot]")
    with pytest.raises(UsageError, match="cannot be written"):
        plot.write(tmp_path / "missing" / "page.html", EMPTY)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        plot.write(tmp_path / "folder.html", EMPTY)
    page = tmp_path / "page.html"
    page.write_text("old")

    def full(path: Path, content: bytes) -> int:
        path.open("wb").write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UsageError, match=r"page\.html cannot be written: No space left"):
        plot.write(page, EMPTY)
    assert page.read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder.html", "page.html"]


def test_libraries_are_imported_in_one_place_and_when_they_draw() -> None:
    users = {
        (module.split(".")[0], file.relative_to(PACKAGE).as_posix())
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for module in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        )
        if module.split(".")[0] in ("plotly", "matplotlib")
    }  # fmt: skip
    assert users == {("plotly", "cli/plot/page.py"), ("matplotlib", "cli/plot/image.py")}
    program = "import sys, ragcli.cli.plot.page, ragcli.cli.plot.image; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert {"plotly", "matplotlib"}.isdisjoint(done.stdout.split())
