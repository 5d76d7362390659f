"""Asks two editions of a handbook the same questions: only the library changes, and the answers.

`editions/2023` and `editions/2026` are the same pages, three years apart: other people in the same
posts, other figures in the same rules. Each is indexed into a `.rag` of its own; every question is
asked of both, by one command line that differs in `--index` alone. Lewis et al. (2020) did this
with Wikipedia: of 82 world leaders who had changed, 70 % and 68 % came out right where index and
year matched, 12 % and 4 % where they did not.

    python examples/hot_swap.py                                   the first hit has the answer
    python examples/hot_swap.py --generator gguf:MODEL.gguf       a generator's answer has it too

It prints each answer and the 2 × 2 table, checks what it claims, and exits 1 if a claim fails.
A generator is counted, not judged: how many it gets right is the model's affair.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ragcli.errors import RagcliError
from ragcli.generation.visible import visible

EDITIONS = Path(__file__).resolve().parent / "editions"
YEARS = ("2023", "2026")
HOW = ("--chunk", "sentences:1")  # a page is short; one sentence a hit shows what was found


def ragcli(*arguments: str) -> str:
    """The stdout of one ragcli command."""
    done = subprocess.run(
        [sys.executable, "-m", "ragcli", *arguments],
        cwd=EDITIONS.parent.parent,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"ragcli {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def ask(questions: list[dict], index: Path, k: int) -> list[dict]:
    """What `query --json` prints for each question, in their order; `index` is all that varies."""
    batch = index.parent / "questions.jsonl"
    lines = [{"id": number, "question": item["question"]} for number, item in enumerate(questions)]
    batch.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    arguments = ["--batch", str(batch), "-k", str(k), "-G", "none", "--json", "--quiet"]
    out = ragcli("query", *arguments, "--index", str(index))
    return [json.loads(line) for line in out.splitlines()]


def settings(index: Path) -> list[object]:
    """How the index was made."""
    card = json.loads(ragcli("inspect", "--index", str(index), "--json"))
    return [card[name] for name in ("encoder", "fingerprint", "chunking", "settings")]


def wording(prompt: str) -> tuple[str, str]:
    """The prompt without its passages."""
    return prompt.partition("Context:")[0], prompt.rpartition("Question:")[2]


def table(questions: list[dict], texts: dict[str, list[str]]) -> dict[tuple[str, str], int]:
    """How many `texts` of each index hold the answer of each year."""
    return {
        (index, year): sum(
            question["answers"][year].casefold() in " ".join(text.split()).casefold()
            for question, text in zip(questions, texts[index], strict=True)
        )
        for index in YEARS
        for year in YEARS
    }


def show(title: str, counts: dict[tuple[str, str], int], total: int) -> None:
    """The table: a row for each library, a column for the year whose answers are looked for."""
    print(f"\n{title}")
    print("               " + "".join(f"{f'answers of {year}':>18}" for year in YEARS))
    for index in YEARS:
        shares = [f"{n} of {total}, {n / total:4.0%}" for n in (counts[index, y] for y in YEARS)]
        print(f"   index of {index}" + "".join(f"{share:>18}" for share in shares))


def generated(spec: str, results: dict[str, list[dict]]) -> dict[str, list[str]]:
    """One generator's answers to all the prompts: the same model, opened once."""
    from ragcli.generation.generators import open_generator

    try:
        generator = open_generator(spec)
        answers = {
            year: ["".join(generator.stream(result["prompt"])).strip() for result in results[year]]
            for year in YEARS
        }
        generator.close()
    except RagcliError as error:
        raise SystemExit(f"{spec}: {error.message}") from error
    return answers


def main() -> int:
    """Indexes, asks, prints; 0 if everything claimed was seen."""
    parser = argparse.ArgumentParser(description="The same questions, two editions of a handbook.")
    parser.add_argument("--generator", metavar="SPEC", help="as in ragcli query -G SPEC")
    parser.add_argument("-k", type=int, default=3, help="passages in a prompt [3]")
    options = parser.parse_args()
    lines = (EDITIONS / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]

    with tempfile.TemporaryDirectory() as scratch:
        indexes = {year: Path(scratch) / f"{year}.rag" for year in YEARS}
        for year, index in indexes.items():
            ragcli("index", str(EDITIONS / year), "--index", str(index), *HOW, "--quiet")
        made = [settings(index) for index in indexes.values()]
        results = {year: ask(questions, index, options.k) for year, index in indexes.items()}

    answers = generated(options.generator, results) if options.generator else None
    for number, question in enumerate(questions):
        print(question["question"])
        for year in YEARS:
            hit = results[year][number]["hits"][0]
            print(f"   {year}  {hit['path']}:{hit['lines'][0]}  {' '.join(hit['text'].split())}")
            if answers:
                print(f"         → {visible(' '.join(answers[year][number].split()))}")

    total = len(questions)
    firsts = {year: [result["hits"][0]["text"] for result in results[year]] for year in YEARS}
    found = table(questions, firsts)
    show("The answer stands in the first hit", found, total)
    if answers:
        show(f"It stands in what {options.generator} says", table(questions, answers), total)

    alike = [
        wording(one["prompt"]) == wording(other["prompt"])
        for one, other in zip(*(results[year] for year in YEARS), strict=True)
    ]
    claims = {
        "both indexes were made with the same settings": made[0] == made[1],
        "the prompts differ in nothing but the passages": all(alike),
        "each library gives the answers of its year": all(found[y, y] == total for y in YEARS),
        "and none of the other year": found["2023", "2026"] == found["2026", "2023"] == 0,
    }
    print()
    for claim, holds in claims.items():
        print(f"{'✓' if holds else '✗ NOT SHOWN:'} {claim}")
    return 0 if all(claims.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
