"""`ragcli eval`: its figures against an independent scorer, its gates, comparisons and messages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import build, write_files

EVAL = Path(__file__).resolve().parents[1].parent / "shared" / "eval"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

DOCS = {
    "boats.md": "# Boats\n\nThe heron is a boat.\n\n# Oars\n\nAn oar is made of ash.\n",
    "birds.md": "# Birds\n\nThe heron is a bird. It waits by the weir.\n",
    "tea.txt": "Tea is served at four.\n",
}
QUESTIONS = [
    {"id": "a", "kind": "plain", "question": "heron bird weir", "relevant": ["birds.md"]},
    {"id": "b", "kind": "plain", "question": "oar of ash", "relevant": ["boats.md:5-7"]},
    {
        "id": "c",
        "kind": "hard",
        "question": "bird",
        "relevant": ["tea.txt"],
        "answers": ["at four"],
    },
    {"id": "d", "question": "Who leads?", "answerable": False},
]


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    write_files(tmp_path / "docs", DOCS)
    write_questions(tmp_path / "q.jsonl", QUESTIONS)
    build(tmp_path / ".rag", tmp_path / "docs", encoder="none")
    yield tmp_path


def write_questions(file: Path, questions: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(question) + "\n" for question in questions))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ragcli", "eval", *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def answer(folder: Path, *arguments: str) -> dict[str, Any]:
    done = run(folder, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def test_figures_of_a_small_run(work: Path) -> None:
    found = answer(work, "q.jsonl", "-k", "1,3")
    assert (found["schema"], found["questions"], found["answerable"]) == ("ragcli.eval/1", 4, 3)
    assert found["level"] == "chunk"
    assert found["metrics"]["recall@1"]["mean"] == pytest.approx(2 / 3)
    assert found["metrics"]["recall@1"]["questions"] == 3
    assert found["metrics"]["mrr@3"]["mean"] == pytest.approx(2 / 3)
    assert found["kinds"]["plain"]["recall@3"]["mean"] == 1.0
    assert found["kinds"]["hard"]["recall@3"]["mean"] == 0.0
    assert [q["id"] for q in found["per_question"]] == ["a", "b", "c", "d"]
    assert found["per_question"][3]["metrics"] == {}
    (miss,) = found["misses"]
    assert (miss["question"], miss["missed"], miss["cause"]) == ("c", "tea.txt", "no_shared_word")


def test_the_table(work: Path) -> None:
    done = run(work, "q.jsonl", "-k", "1,3")
    assert done.returncode == 0
    assert done.stdout.startswith("q.jsonl: 4 questions, 1 of them without an answer here, ")
    assert "level chunk: passages that overlap the gold" in done.stdout
    assert "missed, no shared word: 1\n  c  bird\n      tea.txt: no word of" in done.stdout


@pytest.mark.parametrize("level", ["document", "chunk", "answer"])
def test_levels(work: Path, level: str) -> None:
    asked = [q for q in QUESTIONS if level != "answer" or "answers" in q]
    write_questions(work / "q.jsonl", asked)
    found = answer(work, "q.jsonl", "--level", level)
    assert found["level"] == level
    assert found["metrics"]["recall@10"]["questions"] == (1 if level == "answer" else 3)


def test_a_grid(work: Path) -> None:
    build(work / ".rag", encoder="hash")
    found = answer(work, "q.jsonl", "--mode", "lexical,dense,hybrid", "--alpha", "0.1,0.9")
    ways = [(g["settings"]["mode"], g["settings"]["alpha"]) for g in found["grid"]]
    assert ways == [("lexical", None), ("dense", None), ("hybrid", 0.1), ("hybrid", 0.9)]
    told = run(work, "q.jsonl", "--mode", "lexical,dense").stdout
    assert "\nmode=lexical  " in told
    assert "\nmode=dense " in told


def test_gates(work: Path) -> None:
    passed = run(work, "q.jsonl", "--fail-under", "recall@5=.6")
    assert (passed.returncode, passed.stderr) == (0, "")
    done = run(work, "q.jsonl", "--fail-under", "recall@5=.7", "--fail-under", "hit@1=.1")
    assert done.returncode == 1
    assert done.stderr.startswith("ragcli: recall@5 is 0.6667, below 0.7\n\nhint: ")
    assert "recall" in done.stdout
    unknown = run(work, "q.jsonl", "--fail-under", "recall@7=.7")
    assert unknown.returncode == 2
    assert "no figure recall@7" in unknown.stderr
    assert run(work, "q.jsonl", "--fail-under", "recall@5=80").returncode == 2
    assert run(work, "q.jsonl", "--fail-under", "recall").returncode == 2


def test_a_baseline(work: Path) -> None:
    for number in range(16):
        (work / "docs" / f"w{number:02}.txt").write_text(f"word{number:02} stands here\n")
    build(work / ".rag")
    asked = [
        {"id": str(n), "question": f"word{n:02}", "relevant": [f"w{n:02}.txt"]} for n in range(16)
    ]
    write_questions(work / "q.jsonl", asked)
    assert run(work, "q.jsonl", "--save", "base.json").returncode == 0
    same = run(work, "q.jsonl", "--baseline", "base.json", "--fail-regression")
    assert same.returncode == 0
    worse = run(
        work, "q.jsonl", "--baseline", "base.json", "--fail-regression", "--path", "w0[0-7]*"
    )
    assert worse.returncode == 1
    assert "recall@5 fell from 1.0000 to 0.5000" in worse.stderr
    assert "recall@10 lost: 8, 9, 10, 11, 12 and 3 more" in worse.stdout
    compared = answer(work, "q.jsonl", "--baseline", "base.json", "--path", "w0[0-7]*")
    first = next(c for c in compared["comparisons"] if c["figure"] == "recall@5")
    assert first["difference"]["mean"] == -0.5
    assert (first["lost"], first["won"]) == ([str(n) for n in range(8, 16)], [])


@pytest.mark.parametrize(
    ("name", "text"), [("none.json", None), ("bad.json", "{}"), ("list.json", "[1]"), ("x", "\0")]
)
def test_a_baseline_that_is_none(work: Path, name: str, text: str | None) -> None:
    if text is not None:
        (work / name).write_text(text)
    done = run(work, "q.jsonl", "--baseline", name)
    assert done.returncode == 2
    assert name in done.stderr


def test_gold_that_is_not_in_the_index(work: Path) -> None:
    write_questions(work / "q.jsonl", [
        {"question": "heron", "relevant": ["Birds.md"]},
        {"question": "heron", "relevant": ["birds.md:900"]},
        {"id": "ok", "question": "heron bird", "relevant": ["birds.md"]},
    ])  # fmt: skip
    done = run(work, "q.jsonl")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "2 targets not in the index: line 1: Birds.md: " in done.stderr
    found = answer(work, "q.jsonl", "--allow-missing")
    assert found["metrics"]["recall@10"]["mean"] == pytest.approx(1 / 3)
    assert len(found["missing"]) == 2


def test_to_a_trec_scorer(work: Path) -> None:
    found = answer(work, "q.jsonl", "--trec", "out")
    ranked: dict[str, list[str]] = {}
    for line in (work / "out" / "run.trec").read_text().splitlines():
        question, _, name, rank, _, _ = line.split()
        ranked.setdefault(question, []).append(name)
        assert int(rank) == len(ranked[question])
    judged = [line.split() for line in (work / "out" / "qrels.trec").read_text().splitlines()]
    assert {(q, name) for q, _, name, _ in judged} == {
        ("a", "birds.md"), ("b", "boats.md:5-7"), ("c", "tea.txt")
    }  # fmt: skip
    recall = [any(name in ranked.get(q, []) for _ in "x") for q, _, name, _ in judged]
    assert sum(recall) / 3 == pytest.approx(found["metrics"]["recall@10"]["mean"])


def test_what_has_no_effect_is_refused(work: Path) -> None:
    for arguments in (
        ["q.jsonl", "--sweep", "mode=lexical", "--fail-under", "recall@5=1"],
        ["q.jsonl", "--sweep", "mode=lexical", "--save", "s.run"],
        ["--make-questions", "2", "--fail-under", "recall@5=1"],
        ["q.jsonl", "--fusion", "mix,rrf", "--mode", "hybrid", "--calibrate"],
        ["q.jsonl", "--level", "document", "--max-per-file", "3"],
        ["q.jsonl", "--path", "nothing/*"],
        ["q.jsonl", "-k", "99999999999"],
    ):
        done = run(work, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments


def test_a_run_is_kept_in_a_file_of_its_own(work: Path) -> None:
    before = (work / "q.jsonl").read_text()
    refused = run(work, "q.jsonl", "--save", "q.jsonl")
    assert refused.returncode == 2
    assert "is no run: it stays" in refused.stderr
    assert (work / "q.jsonl").read_text() == before
    (work / "real.json").write_text("")
    (work / "link.json").symlink_to("real.json")
    assert run(work, "q.jsonl", "--save", "link.json").returncode == 0
    assert (work / "link.json").is_symlink()
    assert json.loads((work / "real.json").read_text())["schema"] == "ragcli.run/1"
    os.mkfifo(work / "pipe")
    reader = subprocess.Popen(["cat", "pipe"], cwd=work, stdout=subprocess.PIPE, text=True)
    assert run(work, "q.jsonl", "--save", "pipe").returncode == 0
    assert json.loads(reader.communicate()[0])["schema"] == "ragcli.run/1"
    assert run(work, "q.jsonl", "--save", ".").returncode == 2


def test_only_the_same_questions_are_compared(work: Path) -> None:
    asked = [{"question": "heron bird weir", "relevant": ["birds.md"]},
             {"question": "oar of ash", "relevant": ["boats.md"]}]  # fmt: skip
    write_questions(work / "q.jsonl", asked)
    assert run(work, "q.jsonl", "--save", "base.json", "-k", "1").returncode == 0
    write_questions(work / "r.jsonl", asked[::-1])
    other = run(work, "r.jsonl", "--baseline", "base.json", "-k", "1")
    assert other.returncode == 2
    assert "question 1 is another one" in other.stderr
    no_figure = run(work, "q.jsonl", "--baseline", "base.json", "-k", "5", "--fail-regression")
    assert no_figure.returncode == 2
    assert "none of these figures" in no_figure.stderr


@pytest.mark.parametrize("value", ["1e400", "NaN", "Infinity", "-1", '"x"', "null", "true"])
def test_a_baseline_of_odd_numbers(work: Path, value: str) -> None:
    (work / "odd.json").write_text(
        '{"schema": "ragcli.run/1", "level": "chunk", "label": "", "questions": '
        f'[{{"id": "a", "question": "q", "metrics": {{"recall@1": {value}}}}}]}}'
    )
    assert run(work, "q.jsonl", "--baseline", "odd.json").returncode == 2


def test_wrong_usage(work: Path) -> None:
    (work / "empty.jsonl").write_text("")
    (work / "bad.jsonl").write_text('{"question": "a", "relevant": ["birds.md"]}\n{]\n')
    for arguments, said in (
        ([], "no FILE of questions"),
        (["nowhere.jsonl"], "nowhere.jsonl"),
        (["empty.jsonl"], "empty.jsonl"),
        (["bad.jsonl"], "line 2"),
        (["q.jsonl", "q.jsonl"], "more than one FILE"),
        (["q.jsonl", "--fail-regression"], "--baseline"),
        (["q.jsonl", "--apply"], "--sweep"),
        (["q.jsonl", "-k", "0"], "-k"),
        (["q.jsonl", "--mode", "fuzzy"], "fuzzy"),
    ):
        done = run(work, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert said in done.stderr
        assert "hint: " in done.stderr


def test_calibration(work: Path) -> None:
    """Kept with the index only where it beats the score; then `query` tells it, and may abstain."""
    asked: list[dict[str, Any]] = []
    for number in range(30):
        (work / "docs" / f"w{number}.txt").write_text(f"alpha{number} beta{number} stands here\n")
        asked.append({"question": f"alpha{number} beta{number}", "relevant": [f"w{number}.txt"]})
        asked.append({"question": f"alpha{number} gamma{number}", "answerable": False})
    write_questions(work / "q.jsonl", asked)
    build(work / ".rag", encoder="hash")
    without = query(work, "alpha1 beta1", "--abstain", ".5")
    assert without.returncode == 2
    assert "needs an index that was calibrated" in without.stderr
    found = answer(work, "q.jsonl", "--calibrate")
    assert found["calibration"]["kept"]
    assert found["calibration"]["auroc"]["value"] > 0.95
    known = json.loads(query(work, "alpha1 beta1", "--json").stdout)
    unknown = json.loads(query(work, "alpha1 delta", "--json").stdout)
    assert known["answerable"] > 0.5 > unknown["answerable"]
    assert query(work, "alpha1 beta1", "--abstain", ".5").returncode == 0
    # A fit of another way that is not kept takes nothing from this one.
    answer(work, "q.jsonl", "--calibrate", "--mode", "dense")
    assert query(work, "alpha1 beta1", "--abstain", ".5").returncode == 0
    assert query(work, "alpha1 beta1", "--abstain", ".5", "-k", "0").returncode == 2
    refused = query(work, "alpha1 delta", "--abstain", ".5")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "not in here, most likely" in refused.stderr
    assert "the nearest is w1.txt:1" in refused.stderr
    # Asked in another way, or of another index, it knows nothing.
    assert json.loads(query(work, "alpha1 beta1", "--json", "--fusion", "rrf").stdout)[
        "answerable"
    ] is None  # fmt: skip
    for number in range(30):
        (work / "docs" / f"w{number}.txt").unlink()
    build(work / ".rag")
    assert json.loads(query(work, "heron", "--json").stdout)["answerable"] is None


def test_a_calibration_that_is_no_better_is_not_kept(work: Path) -> None:
    asked: list[dict[str, Any]] = []
    for number in range(24):
        (work / "docs" / f"w{number}.txt").write_text(f"alpha{number} stands here\n")
        asked.append({"question": f"alpha{number}", "relevant": [f"w{number}.txt"]})
        asked.append({"question": f"alpha{number}", "answerable": False})
    write_questions(work / "q.jsonl", asked)
    build(work / ".rag")
    assert not answer(work, "q.jsonl", "--calibrate")["calibration"]["kept"]
    assert json.loads(query(work, "alpha1", "--json").stdout)["answerable"] is None


def test_too_few_questions_to_calibrate_on(work: Path) -> None:
    done = run(work, "q.jsonl", "--calibrate")
    assert done.returncode == 2
    assert "too few to calibrate on" in done.stderr


def test_questions_from_the_texts_themselves(work: Path) -> None:
    build(work / ".rag", EXAMPLES / "corpus", glob=("*.md",))
    made = run(work, "--make-questions", "5")
    assert made.returncode == 0, made.stderr
    (work / "made.jsonl").write_text(made.stdout)
    found = answer(work, "made.jsonl")
    assert found["synthetic"] == found["questions"] == len(made.stdout.splitlines()) > 0
    assert "SYNTHETIC" in run(work, "made.jsonl").stdout


def test_a_sweep(work: Path) -> None:
    asked = [q for q in QUESTIONS if q["id"] in ("a", "b")]
    write_questions(work / "q.jsonl", asked)
    found = answer(work, "q.jsonl", "--sweep", "chunk=words:4,auto", "encoder=none,hash")
    assert [row["label"] for row in found["sweep"]] == [
        "chunk=words:4 encoder=none", "chunk=words:4 encoder=hash",
        "chunk=auto encoder=none", "chunk=auto encoder=hash",
    ]  # fmt: skip
    assert set(found["sweep"][0]) >= {"settings", "metrics", "prompt_words", "chunks"}
    told = run(work, "q.jsonl", "--sweep", "chunk=words:4,auto", "--apply")
    assert told.returncode == 0
    assert "best recall@5: chunk=" in told.stdout
    assert "the index stays as it is" in told.stderr
    other = run(work, "q.jsonl", "--sweep", "chunk=words:4", "--apply")
    assert "the index is now chunk=words:4" in other.stderr
    asking = run(work, "q.jsonl", "--sweep", "mode=lexical", "--apply")
    assert asking.returncode == 2
    assert "--apply has nothing to write" in asking.stderr


def test_pictures(work: Path) -> None:
    pytest.importorskip("plotly", reason="the extra `plot` is not installed")
    assert run(work, "q.jsonl", "--plot", "run.html").returncode == 0
    assert "Recall against k" in (work / "run.html").read_text()
    sweep = run(work, "q.jsonl", "--sweep", "chunk=words:4,auto", "--plot", "sweep.html")
    assert sweep.returncode == 0
    assert "against what the hits cost" in (work / "sweep.html").read_text()


def query(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ragcli", "query", *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_examples(tmp_path: Path) -> None:
    pytest.importorskip("docx", reason="the example corpus has office files: needs the extra")
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    build(tmp_path / ".rag", tmp_path / "examples" / "corpus", encoder="minilm")
    found = answer(tmp_path, "examples/questions.jsonl")
    assert found["missing"] == []
    assert set(found["kinds"]) == {"plain", "paraphrase", "name", "two-hop"}
    assert found["metrics"]["recall@5"]["mean"] > 0.7
    assert found["unanswerable"]["unanswerable"] == 18


def scored(*arguments: str) -> list[str]:
    """What the public scorer says."""
    done = subprocess.run(
        [sys.executable, str(EVAL / "score.py"), *arguments],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not EVAL.is_dir(), reason="the public sets are not beside the checkout")
def test_documents_as_the_public_scorer_has_them(tmp_path: Path) -> None:
    build(tmp_path / ".rag", EVAL / "claude_docs" / "corpus.jsonl", encoder="none")
    found = answer(
        tmp_path, str(EVAL / "claude_docs" / "queries.jsonl"), "-k", "1,3,5,10",
        "--qrels", str(EVAL / "claude_docs" / "qrels.tsv"),
    )  # fmt: skip
    assert found["level"] == "document"
    lines = [
        {"id": q["id"], "docs": [hit["path"].partition("#")[2] for hit in q["hits"]]}
        for q in found["per_question"]
    ]
    write_questions(tmp_path / "run.jsonl", lines)
    told = scored("docs", "claude_docs", str(tmp_path / "run.jsonl"), "--k", "1,3,5,10")
    for line in told[1:]:
        at, _, ndcg, _, recall, _, hit = line.split()
        for name, value in (("ndcg", ndcg), ("recall", recall), ("hit", hit)):
            mine = found["metrics"][f"{name}{at}"]["mean"]
            assert f"{mine:.4f}" == value, (name, at)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not EVAL.is_dir(), reason="the public sets are not beside the checkout")
def test_characters_as_the_public_scorer_has_them(tmp_path: Path) -> None:
    chroma = EVAL / "chroma_chunking"
    build(tmp_path / ".rag", chroma / "corpora", encoder="none")
    asked = [json.loads(line) for line in (chroma / "questions.jsonl").read_text().splitlines()]
    write_questions(tmp_path / "q.jsonl", [
        {"id": q["id"], "question": q["question"], "relevant": [
            {"path": Path(q["file"]).name, "start": r["start"], "end": r["end"]}
            for r in q["references"]
        ]}
        for q in asked
    ])  # fmt: skip
    found = answer(tmp_path, "q.jsonl", "-k", "5")
    lines = [
        {"id": q["id"], "hits": [{"file": h["path"], "start": h["start"], "end": h["end"]}
                                 for h in q["hits"]]}
        for q in found["per_question"]
    ]  # fmt: skip
    write_questions(tmp_path / "run.jsonl", lines)
    told = scored("chunks", str(tmp_path / "run.jsonl"), "--n", "5")
    whole = next(line for line in told if line.split()[0] == "ALL")
    figures = {name: found["metrics"][f"characters_{name}@5"]["mean"] * 100
               for name in ("recall", "precision", "iou")}  # fmt: skip
    assert f"recall {figures['recall']:5.1f}" in whole
    assert f"precision {figures['precision']:5.2f}" in whole
    assert f"IoU {figures['iou']:5.2f}" in whole
