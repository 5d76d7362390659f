"""`inspect --why`: the true cause of each kind of miss, true ranks, and remedies that work."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import neural
import numpy as np
import pytest
from conftest import build, write_files
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.generation.prompt import assemble
from ragcli.inspection.targets import resolve
from ragcli.inspection.why import WhyReport, why
from ragcli.records import SearchRequest
from ragcli.retrieval.retriever import Retriever
from ragcli.store.contents import texts
from ragcli.store.index import Index

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "corpus"
PARENTS = "How many weeks of parental leave do I get?"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example corpus indexed with the shipped encoder; the folder that holds `.rag`."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLES, folder / "corpus")
    build(folder / ".rag", folder / "corpus", encoder="minilm")
    return folder


def trace(
    location: Path,
    question: str,
    target: str | None = None,
    text: str | None = None,
    budget: int | None = None,
    **options: object,
) -> WhyReport:
    request = SearchRequest(question, **options)  # type: ignore[arg-type]
    with Index.open(location) as index:
        return why(
            index,
            Retriever(index),
            request,
            None if target is None else resolve(index, target),
            text,
            packed=lambda hits, most: assemble(question, hits, budget=most),
            budget=budget,
        )


def failed(report: WhyReport) -> list[str]:
    return [step.name for step in report.steps if step.passed is False]


def test_a_paraphrased_miss(example: Path) -> None:
    question = "My corporate Visa has vanished. Whom do I inform?"
    report = trace(example / ".rag", question, "handbook/expenses.md:41")
    assert report.cause == "no_shared_word"
    assert report.standing
    assert [share.count for share in report.standing.terms] == [0, 0, 0, 0]
    assert report.standing.lexical
    assert report.standing.lexical.rank is None
    assert report.standing.rank
    assert report.standing.rank > 5
    assert failed(report) == ["words", "cut"]
    assert len(report.hits) == 5
    kinds = {remedy.kind: remedy for remedy in report.remedies}
    assert kinds["k"].rank == report.standing.rank
    assert "cards" in kinds["word"].change


def test_a_filtered_file(example: Path) -> None:
    report = trace(example / ".rag", PARENTS, "handbook/leave.md:40", paths=("engineering/*",))
    assert report.cause == "filtered"
    assert failed(report) == ["filter"]
    assert [(remedy.change, remedy.rank) for remedy in report.remedies] == [("without --path", 1)]


def test_a_page_without_text(example: Path) -> None:
    report = trace(example / ".rag", "warranty", "product/dipper-d3-datasheet.pdf#page=3")
    assert report.cause == "no_text"
    assert "page 3: the page has no text" in report.because
    assert report.passage is None


def test_a_hit_that_the_budget_cut(example: Path) -> None:
    report = trace(example / ".rag", PARENTS, "handbook/leave.md:60", budget=400)
    assert report.cause == "over_budget"
    assert failed(report) == ["prompt"]
    (remedy,) = report.remedies
    needed = int(remedy.change.removeprefix("--budget "))
    assert trace(example / ".rag", PARENTS, "handbook/leave.md:60", budget=needed).cause == (
        "in_prompt"
    )
    less = trace(example / ".rag", PARENTS, "handbook/leave.md:60", budget=needed - 1)
    assert less.cause == "over_budget"


def test_a_file_that_is_ignored(example: Path) -> None:
    report = trace(example / ".rag", PARENTS, "drafts/leave-2022.md")
    assert report.cause == "left_out"
    assert ".ragcliignore:2: drafts/" in report.because


def test_a_hit(example: Path) -> None:
    report = trace(example / ".rag", PARENTS, "handbook/leave.md:38")
    assert (report.cause, failed(report), report.remedies) == ("in_prompt", [], ())


def test_by_its_text(example: Path) -> None:
    report = trace(example / ".rag", PARENTS, text="26\n WEEKS")
    assert report.cause == "in_prompt"
    assert report.passage
    assert "26 weeks" in report.passage.text
    nowhere = trace(example / ".rag", PARENTS, text="26 xylophones")
    assert nowhere.cause == "text_not_found"
    elsewhere = trace(example / ".rag", PARENTS, "engineering/teams.md", text="26 weeks")
    assert elsewhere.cause == "text_not_found"


FILES = {
    "a.md": "# Boats\n\nThe heron is a boat.\n\n# Birds\n\nThe heron is a bird of the river.\n",
    "b.txt": "A heron waits by the weir. " * 3 + "\n",
    "c.txt": "Nothing of it is here.\n",
    "old.djvu": "not a document",
}


@pytest.fixture
def docs(tmp_path: Path) -> Iterator[Path]:
    write_files(tmp_path / "docs", FILES)
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none", chunk="words:8")
    yield tmp_path


def test_one_file_gives_only_so_many(docs: Path) -> None:
    ranked = trace(docs / ".rag", "heron", "a.md", k=9)
    assert ranked.cause == "in_prompt"
    assert ranked.passages > 1
    with Index.open(docs / ".rag") as index:
        hits = Retriever(index).search(SearchRequest("heron", k=9)).hits
    second = [hit for hit in hits if hit.path == "b.txt"][1]
    report = trace(docs / ".rag", "heron", str(second.chunk), k=9, max_per_file=1)
    assert report.cause == "max_per_file"
    assert report.remedies[0].change == "--max-per-file 2"


def test_a_file_that_cannot_be_read(docs: Path) -> None:
    report = trace(docs / ".rag", "heron", "old.djvu")
    assert report.cause == "failed"
    assert ".djvu files are not supported" in report.because


def test_a_file_that_came_later(docs: Path) -> None:
    (docs / "docs" / "new.txt").write_text("heron")
    assert trace(docs / ".rag", "heron", "new.txt").cause == "not_indexed_yet"


def test_a_line_without_a_passage(docs: Path) -> None:
    report = trace(docs / ".rag", "heron", "a.md:900")
    assert report.cause == "no_passage"
    assert "around it: " in report.because


def test_a_text_that_two_passages_share(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {
        "a.txt": "one two three four five six seven eight nine ten eleven twelve\n",
        "b.txt": "three six\n",
    })  # fmt: skip
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none", chunk="words:6")
    report = trace(tmp_path / ".rag", "three seven", text="six seven", k=1)
    assert report.cause == "split"
    assert "begins in passage" in report.because
    both = trace(tmp_path / ".rag", "three seven", text="six seven", k=3)
    assert both.cause == "in_prompt"
    assert trace(tmp_path / ".rag", "three", text="six eight").cause == "text_not_found"


def test_a_text_that_begins_inside_a_word(docs: Path) -> None:
    report = trace(docs / ".rag", "weir", text="ron waits by the w")
    assert report.cause == "in_prompt"


@pytest.mark.usefixtures("fake")
def test_no_vector_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path / "docs", FILES)
    build(tmp_path / ".rag", tmp_path / "docs", encoder="fake", chunk="words:8", lazy=True)
    report = trace(tmp_path / ".rag", "heron", "c.txt")
    assert report.cause == "no_vector"
    assert report.standing
    assert report.standing.dense
    assert (report.standing.dense.rank, report.standing.dense.score) == (None, None)


def test_a_text_over_three_passages_and_over_an_overlap(tmp_path: Path) -> None:
    words = [f"word{n}" for n in range(60)]
    write_files(tmp_path / "docs", {"a.txt": " ".join(words) + "\n", "b.txt": "other\n"})
    for chunking in ("words:10", "tokens:20/5"):
        build(tmp_path / ".rag", tmp_path / "docs", encoder="none", chunk=chunking)
        report = trace(tmp_path / ".rag", "other", text=" ".join(words[8:33]), k=1)
        assert report.cause == "split", chunking
    assert trace(tmp_path / ".rag", "other", text="word3 word5").cause == "text_not_found"


def test_a_text_over_two_passages_without_spaces(tmp_path: Path) -> None:
    text = "東京の話をしよう。富士山は高い。海は青い。山は緑だ。空は広い。川は長い。道は遠い。"
    write_files(tmp_path / "docs", {"a.txt": text + "\n", "b.txt": "other\n"})
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none", chunk="words:20")
    with Index.open(tmp_path / ".rag") as index:
        held = [index.chunks([chunk])[chunk].chunk for chunk, _ in texts(index)]
    first = next(chunk for chunk in held if chunk.start == 0)
    assert first.end < len(text)
    over = text[first.end - 4 : first.end + 4]
    alone = any(over in chunk.text for chunk in held)
    report = trace(tmp_path / ".rag", "other", text=over, k=1)
    assert not alone
    assert report.cause == "split"


def test_a_text_that_another_passage_holds(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", {"a.txt": "one two three four five six seven eight\n"})
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none", chunk="words:4")
    with Index.open(tmp_path / ".rag") as index:
        first, second = (chunk for chunk, _ in texts(index))
    report = trace(tmp_path / ".rag", "six", str(first), text="six seven")
    assert report.cause == "text_not_found"
    assert report.because.endswith(f"passage {second} does")


def test_hash_finds_nothing_without_a_shared_word(tmp_path: Path) -> None:
    write_files(tmp_path / "docs", FILES)
    build(tmp_path / ".rag", tmp_path / "docs", encoder="hash")
    for mode in ("hybrid", "dense"):
        report = trace(tmp_path / ".rag", "heron", "c.txt", mode=mode)
        assert report.standing
        assert report.standing.dense
        assert report.standing.dense.rank is None
        assert "its encoder knows nothing but words" in str(report.steps)
        assert "number" not in report.because


def test_remedies_say_all_that_has_to_change(example: Path) -> None:
    question = "Whom do I call when my computer got nicked?"
    for options, wanted in (
        ({"mode": "lexical", "k": 20}, "--mode hybrid"),
        ({"alpha": 0.9}, "--mode lexical, without --alpha"),
        ({"mode": "dense", "fusion": "rrf", "k": 1}, None),
    ):
        report = trace(example / ".rag", question, text="01632 960 117", **options)
        changes = [remedy.change for remedy in report.remedies if remedy.kind == "mode"]
        assert not any(change == "--fusion rrf" for change in changes if "mode" in options)
        if wanted and any(change.startswith(wanted.split(",")[0]) for change in changes):
            assert any(change.startswith(wanted) for change in changes)


def test_the_k_that_is_told_is_the_least(example: Path) -> None:
    """Also beyond the hundred candidates that the mix is scaled over."""
    seen = 0
    with Index.open(example / ".rag") as index:
        retriever = Retriever(index)
        for question in ("Where do we gather during a fire drill?", "company card", "sensor"):
            hits = retriever.search(SearchRequest(question, k=300)).hits
            for hit in hits[90::23]:
                report = trace(example / ".rag", question, str(hit.chunk), k=1)
                (told,) = (remedy for remedy in report.remedies if remedy.kind == "k")
                assert report.standing
                if report.standing.rank is not None:
                    assert report.standing.rank == hit.rank
                assert (told.change, told.rank) == (f"-k {hit.rank}", hit.rank)
                at = retriever.search(SearchRequest(question, k=hit.rank)).hits
                assert at[-1].chunk == hit.chunk
                seen += 1
    assert seen > 10


REQUESTS = (
    {"mode": "hybrid"},
    {"mode": "lexical"},
    {"mode": "dense"},
    {"fusion": "rrf"},
    {"paths": ("*.txt",)},
)


@pytest.mark.parametrize("encoder", ["fake", "hash"])
@pytest.mark.usefixtures("fake")
def test_the_rank_is_that_of_a_long_list_of_hits(tmp_path: Path, encoder: str) -> None:
    write_files(tmp_path / "docs", FILES)
    build(tmp_path / ".rag", tmp_path / "docs", encoder=encoder, chunk="words:5")
    with Index.open(tmp_path / ".rag") as index:
        chunks = [chunk for chunk, _ in texts(index)]
    seen = 0
    for options in REQUESTS:
        for question in ("heron bird", "the weir", "nothing"):
            request = SearchRequest(question, k=50, **options)  # type: ignore[arg-type]
            with Index.open(tmp_path / ".rag") as index:
                hits = {hit.chunk: hit for hit in Retriever(index).search(request).hits}
            for chunk in chunks:
                report = trace(tmp_path / ".rag", question, str(chunk), k=1, **options)
                if report.cause == "filtered":
                    assert chunk not in hits
                    continue
                assert report.standing
                hit = hits.get(chunk)
                assert report.standing.rank == (hit.rank if hit else None)
                assert (report.cause == "in_prompt") == (report.standing.rank == 1)
                if hit:
                    seen += 1
                    assert report.standing.score == hit.score
                    assert report.standing.parts == hit.parts
                    assert report.standing.terms == hit.terms
    assert seen > 40


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text("ab ", min_size=1, max_size=12), min_size=1, max_size=12), st.integers(0))
def test_the_exact_dense_rank_is_that_of_all_dot_products(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("dense")
    with pytest.MonkeyPatch.context() as patch:
        neural.install(patch.setattr)
        write_files(
            folder / "docs", {f"{i}.txt": f"word{i} {line}\n" for i, line in enumerate(lines)}
        )
        build(folder / ".rag", folder / "docs", encoder="fake")
        with Index.open(folder / ".rag") as index:
            ranking = Retriever(index).ranking(SearchRequest(f"word{seed} a", mode="dense"))
            assert ranking.dense
            chunks = np.array([chunk for chunk, _ in texts(index)], np.int64)
            scores = ranking.dense.scores(chunks)
            for score in scores.tolist():
                assert ranking.dense.exact_rank(score) == 1 + int((scores > score).sum())


def test_every_remedy_does_what_it_says(example: Path) -> None:
    """Each change that is told is made, and gives the rank that is told."""
    tried = 0
    for line in (EXAMPLES.parent / "questions.jsonl").read_text().splitlines():
        asked = json.loads(line)
        if asked["kind"] != "paraphrase":
            continue
        report = trace(example / ".rag", asked["question"], text=asked["answers"][0], k=2)
        for remedy in report.remedies:
            if remedy.estimate:
                continue
            request = changed(SearchRequest(asked["question"], k=2), remedy.change)
            with Index.open(example / ".rag") as index:
                hits = Retriever(index).search(request).hits
            assert report.passage
            assert [hit.rank for hit in hits if hit.chunk == report.passage.chunk] == [remedy.rank]
            tried += 1
    assert tried > 5


def changed(request: SearchRequest, change: str) -> SearchRequest:
    if change.startswith("-k "):
        return replace(request, k=int(change[3:]))
    if change.startswith("with the word"):
        word = change.partition("“")[2].partition("”")[0]
        return replace(request, question=f"{request.question} {word}")
    names = {"--mode": "mode", "--fusion": "fusion"}
    words = change.split()
    return replace(request, **{names[a]: b for a, b in zip(words[::2], words[1::2], strict=True)})


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ragcli", "inspect", *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_command_line(example: Path) -> None:
    done = run(example, "--why", PARENTS, "handbook/leave.md:60", "--budget", "400", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["schema"], answer["view"]) == (0, "ragcli.inspect/1", "why")
    assert answer["cause"] == "over_budget"
    assert answer["standing"]["lexical"]["rank"] > 1
    told = run(example, "--why", PARENTS, "handbook/leave.md:60", "--budget", "400")
    assert told.stdout.startswith("missed (over_budget): --budget 400 leaves no room for hit 2\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--why", PARENTS], "--why of which passage?"),
        (["--why", " ", "handbook/leave.md"], "the question is empty"),
        (["--why", PARENTS, "handbook/leave.md", "-k", "0"], "-k 0 retrieves nothing"),
        (["--why", PARENTS, "--hubs"], "both --hubs and --why"),
        (["--text", "x"], "--text belongs to --why"),
        (["handbook/leave.md", "--threshold", "0"], "--threshold belongs to --duplicates"),
        (["--duplicates", "--threshold", "0"], "0.0 is no threshold"),
        (["--check", "--mode", "dense"], "--mode belongs to --why or --plot"),
        (["--why", PARENTS, "--text", " "], "--text is empty"),
        (["--why", PARENTS, "engineering/teams.md", "--budget", "20"], "budget of 20 tokens"),
        (["--neighbors", "handbook/leave.md:9999"], "line has no passage"),
        (["--why", PARENTS, "handbook/leav.md"], "neither in the index nor on disk"),
    ],
)
def test_wrong_usage(example: Path, arguments: list[str], said: str) -> None:
    done = run(example, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "hint: " in done.stderr
