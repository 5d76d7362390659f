"""The metrics against trec_eval, against the scorer beside the checkout, and by hand."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from random import Random
from statistics import fmean
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.evaluation import metrics
from ragcli.records import Hit

SHARED_EVAL = Path(__file__).resolve().parents[1].parent / "shared" / "eval"
CUTS = (1, 3, 5, 10)


@st.composite
def rankings(draw: st.DrawFn) -> tuple[list[str], dict[str, int]]:
    """A run of distinct documents, and graded relevant ones of which some are not in it."""
    names = [f"d{number}" for number in range(16)]
    run = draw(st.permutations(names))[: draw(st.integers(0, 14))]
    relevant = draw(st.dictionaries(st.sampled_from(names), st.integers(1, 4), min_size=1))
    return run, relevant


def as_held(run: list[str], relevant: dict[str, int]) -> tuple[list[frozenset[int]], list[int]]:
    number = {name: at for at, name in enumerate(relevant)}
    return (
        [frozenset({number[name]} if name in number else ()) for name in run],
        list(relevant.values()),
    )


@settings(max_examples=200, deadline=None)
@given(rankings())
def test_equal_to_trec_eval_where_each_hit_is_one_document(
    ranking: tuple[list[str], dict[str, int]],
) -> None:
    run, relevant = ranking
    held, grades = as_held(run, relevant)
    cuts = ",".join(map(str, CUTS))
    names = ("recall", "success", "P", "ndcg_cut", "map_cut")
    trec = pytrec_eval.RelevanceEvaluator({"q": relevant}, {f"{name}.{cuts}" for name in names})
    scores = {name: float(-rank) for rank, name in enumerate(run)}
    # trec_eval leaves out a question without hits; here it scores 0, as `-c` makes it.
    theirs = trec.evaluate({"q": scores}).get("q", {})
    ours = dict(
        zip(
            names,
            (
                metrics.recall,
                metrics.hit,
                metrics.precision,
                metrics.ndcg,
                metrics.average_precision,
            ),
            strict=True,
        )
    )
    for k in CUTS:
        for name, figure in ours.items():
            assert figure(held, grades, k) == pytest.approx(
                theirs.get(f"{name}_{k}", 0.0), abs=1e-9
            ), (name, k)
        cut = pytrec_eval.RelevanceEvaluator({"q": relevant}, {"recip_rank"})
        first = cut.evaluate({"q": dict(list(scores.items())[:k])}).get("q", {})
        assert metrics.reciprocal_rank(held, grades, k) == pytest.approx(
            first.get("recip_rank", 0.0), abs=1e-9
        )


held_lists = st.lists(st.frozensets(st.integers(0, 4), max_size=5), max_size=12)


@given(held_lists, st.lists(st.integers(1, 3), min_size=5, max_size=5), st.integers(1, 12))
def test_figures_stay_between_0_and_1_and_agree_on_nothing_found(
    held: list[frozenset[int]], grades: list[int], k: int
) -> None:
    figures = [
        figure(held, grades, k)
        for figure in (
            metrics.recall,
            metrics.hit,
            metrics.precision,
            metrics.reciprocal_rank,
            metrics.ndcg,
            metrics.average_precision,
        )
    ]
    assert all(0 <= figure <= 1 for figure in figures)
    assert len({figure > 0 for figure in figures}) == 1


@given(held_lists, st.integers(1, 11))
def test_looking_further_never_finds_less(held: list[frozenset[int]], k: int) -> None:
    grades = [1] * 5
    for figure in (
        metrics.recall,
        metrics.hit,
        metrics.reciprocal_rank,
        metrics.average_precision,
    ):
        assert figure(held, grades, k) <= figure(held, grades, k + 1)


def test_an_item_counts_once_and_at_its_first_hit() -> None:
    held = [frozenset({1}), frozenset({1}), frozenset({0, 1}), frozenset()]
    grades = [3, 1]
    assert metrics.recall(held, grades, 2) == 0.5
    assert metrics.recall(held, grades, 3) == 1.0
    assert metrics.precision(held, grades, 4) == 0.75
    ideal = 3 + 1 / math.log2(3)
    assert metrics.ndcg(held, grades, 4) == pytest.approx((1 + 3 / 2) / ideal)
    assert metrics.average_precision(held, grades, 4) == 1.0


def test_a_hit_that_holds_all_is_the_best_there_is_and_no_better() -> None:
    assert metrics.ndcg([frozenset({0, 1})], [1, 1], 5) == 1.0


def item(path: str, start: int, end: int) -> SimpleNamespace:
    return SimpleNamespace(path=path, span=(start, end))


def hit(path: str, start: int, end: int) -> Hit:
    return Hit(1, 0, path, start, end, "", 0.0, 0.0)


def test_characters_by_hand() -> None:
    hits = [hit("a", 0, 10), hit("a", 5, 15), hit("b", 0, 20), hit("a", 15, 40)]
    items = [item("a", 8, 12), item("a", 10, 18), SimpleNamespace(path="b", span=None)]
    # Wanted a[8:18]; shown a[0:15] with 5 shown twice, and 20 of b: 40 characters.
    assert metrics.characters(hits, items, 3) == (7 / 10, 7 / 40, 7 / 43)
    assert metrics.characters([], items, 3) == (0.0, 0.0, 0.0)


spans = st.tuples(st.integers(0, 60), st.integers(1, 30)).map(lambda at: (at[0], at[0] + at[1]))


@given(
    st.lists(st.tuples(st.sampled_from("ab"), spans), max_size=6),
    st.lists(st.tuples(st.sampled_from("ab"), spans), min_size=1, max_size=4),
    st.integers(1, 6),
)
def test_characters_equal_counting_them_one_by_one(
    shown: list[tuple[str, tuple[int, int]]],
    wanted: list[tuple[str, tuple[int, int]]],
    k: int,
) -> None:
    def all_of(parts: list[tuple[str, tuple[int, int]]]) -> set[tuple[str, int]]:
        return {(path, at) for path, (start, end) in parts for at in range(start, end)}

    found = len(all_of(shown[:k]) & all_of(wanted))
    total = sum(end - start for _, (start, end) in shown[:k])
    reference = len(all_of(wanted))
    assert metrics.characters(
        [hit(path, *span) for path, span in shown],
        [item(path, *span) for path, span in wanted],
        k,
    ) == pytest.approx(
        (found / reference, found / total if total else 0, found / (total + reference - found)),
        abs=1e-12,
    )


@pytest.fixture(scope="module")
def score() -> ModuleType:
    """The scorer, made to print every digit, and without its last line, which runs it."""
    path = SHARED_EVAL / "score.py"
    if not path.is_file():
        pytest.skip("no evaluation folder beside the checkout")
    module = ModuleType("score")
    module.__file__ = str(path)
    source = re.sub(r":\d*\.\d+f\}", ":.17g}", path.read_text(encoding="utf-8"))
    source = source.rstrip().removesuffix("\nmain()")
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def printed(command: Callable[[SimpleNamespace], None], **options: object) -> str:
    with redirect_stdout(StringIO()) as out:
        command(SimpleNamespace(**options))
    return out.getvalue()


def figures(text: str, name: str) -> list[float]:
    return [float(found) for found in re.findall(rf"{name}\s+([\d.e-]+)", text)]


def write_lines(path: Path, records: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


@pytest.mark.shared
@pytest.mark.parametrize("seed", range(3))
def test_equal_to_the_scorer_of_documents(score: ModuleType, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    names = [f"d{number}" for number in range(16)]
    questions = {
        f"q{number}": (
            random.sample(names, random.randint(0, 14)),
            {name: random.randint(1, 3) for name in random.sample(names, random.randint(1, 6))},
        )
        for number in range(40)
    }
    rows = ["query-id\tcorpus-id\tscore"]
    rows += [f"{q}\t{d}\t{g}" for q, (_, gold) in questions.items() for d, g in gold.items()]
    (tmp_path / "qrels.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    run = write_lines(
        tmp_path / "run.jsonl", [{"id": q, "docs": docs} for q, (docs, _) in questions.items()]
    )
    score.DATA = str(tmp_path)
    text = printed(score.docs, set=".", qrels="qrels.tsv", run=run, k="1,3,5,10")
    held = [as_held(*each) for each in questions.values()]
    assert figures(text, "MRR@10") == pytest.approx(
        [fmean(metrics.reciprocal_rank(*each, 10) for each in held)], abs=1e-9
    )
    for name, figure in {
        "nDCG": metrics.ndcg,
        "recall": metrics.recall,
        "hit": metrics.hit,
    }.items():
        assert figures(text, name) == pytest.approx(
            [fmean(figure(*each, k) for each in held) for k in CUTS], abs=1e-9
        )


@pytest.mark.shared
@pytest.mark.parametrize("seed", range(3))
def test_equal_to_the_scorer_of_chunks(score: ModuleType, tmp_path: Path, seed: int) -> None:
    random = Random(seed)

    def some(number: int) -> list[dict[str, object]]:
        starts = [random.randint(0, 500) for _ in range(number)]
        return [{"start": at, "end": at + random.randint(1, 120)} for at in starts]

    questions: list[dict[str, Any]] = [
        {"id": f"q{n}", "corpus": "c", "file": "a", "references": some(random.randint(1, 4))}
        for n in range(40)
    ]
    runs: list[dict[str, Any]] = [
        {
            "id": each["id"],
            "hits": [{"file": random.choice("aab"), **at} for at in some(random.randint(0, 8))],
        }
        for each in questions
    ]
    (tmp_path / "chroma_chunking").mkdir()
    write_lines(tmp_path / "chroma_chunking" / "questions.jsonl", questions)
    score.DATA = str(tmp_path)
    text = printed(score.chunks, run=write_lines(tmp_path / "run.jsonl", runs), n=5)
    ours = [
        metrics.characters(
            [hit(each["file"], each["start"], each["end"]) for each in run["hits"]],
            [item("a", each["start"], each["end"]) for each in question["references"]],
            5,
        )
        for question, run in zip(questions, runs, strict=True)
    ]
    for at, name in enumerate(("recall", "precision", "IoU")):
        # Its questions of one corpus, then ALL of them.
        assert figures(text, name) == pytest.approx(
            [100 * fmean(each[at] for each in ours)] * 2, abs=1e-9
        )
