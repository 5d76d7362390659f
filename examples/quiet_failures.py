"""Shows on this corpus five ways in which a retriever fails quietly, and what no retriever does.

Each is reported by users as "the model was wrong":

    1  vectors are not normalised: the longest chunk wins
    2  the corpus cannot answer: top-k returns k rows all the same
    3  chunks are too big: the scores crowd together and the prompt swells
    4  the answer needs two passages: the second shares no word with the question
    5  too few buckets: unrelated words share a slot
    6  nothing is retrieved at all: the model answers from memory

It runs ragcli's own commands with the hashed encoder, which needs no model, and with indexes in
a temporary folder. It prints what it saw, checks each claim, and exits 1 if one doesn't hold.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean, median
from zlib import crc32

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_questions import CORPUS, QUESTIONS, collapsed, corpus_files, text_of

BUCKETS = 8192  # enough that collisions play no part, save in the fifth
STOP_WORDS = frozenset(
    "a an and are at by does for from how in is it its of on or that the this to was what which "
    "who with".split()
)


def ragcli(*arguments: str) -> str:
    """The stdout of one ragcli command; exit code 1 (nothing found) is an answer too."""
    done = subprocess.run(
        [sys.executable, "-m", "ragcli", *arguments],
        cwd=CORPUS.parent.parent,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"ragcli {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


class Library:
    """The corpus, indexed in one way."""

    def __init__(self, folder: Path, chunk: str, *, dim: int = BUCKETS, normalise: bool = True):
        self.index = ["--index", str(folder)]
        options = ["--encoder", "hash", "--dim", str(dim), "--chunk", chunk]
        if not normalise:
            options.append("--no-normalise")
        ragcli("index", str(CORPUS), *self.index, *options, "--json", "--quiet")

    def ask(self, question: str, k: int) -> dict:
        """One question's result, as `query --json` prints it."""
        return self.ask_all([question], k)[0]

    def ask_all(self, questions: list[str], k: int) -> list[dict]:
        """The results of many questions, from one process."""
        batch = Path(self.index[1]).with_suffix(".questions.jsonl")
        lines = [json.dumps({"id": str(n), "question": text}) for n, text in enumerate(questions)]
        batch.write_text("\n".join(lines) + "\n", encoding="utf-8")
        out = ragcli(
            "query",
            "--batch",
            str(batch),
            *self.index,
            "--mode",
            "dense",
            "-k",
            str(k),
            "--json",
            "--quiet",
        )
        results = {result["id"]: result for result in map(json.loads, out.splitlines())}
        return [results[str(n)] for n in range(len(questions))]


class Report:
    """Prints claims with their truth and remembers whether all held."""

    def __init__(self) -> None:
        self.held = True

    def title(self, text: str) -> None:
        """A failure's heading."""
        print(f"\n{text}")

    def say(self, text: str) -> None:
        """A line of what was seen."""
        print(f"   {text}")

    def claim(self, text: str, holds: bool) -> None:
        """A line that says whether a claim holds."""
        self.held = self.held and holds
        print(f"   {'✓' if holds else '✗ NOT SHOWN:'} {text}")


def words(result: dict) -> int:
    """How many words the assembled prompt has."""
    return len(result["prompt"].split())


def rank_of(answer: str, result: dict) -> int:
    """The rank of the first hit that holds the answer, 0 for none."""
    return next((hit["rank"] for hit in result["hits"] if answer in collapsed(hit["text"])), 0)


def answered(questions: list[dict], results: list[dict], k: int) -> int:
    """How many questions have a right chunk among their first k hits."""
    return sum(
        any(0 < rank_of(answer, result) <= k for answer in question["answers"])
        for question, result in zip(questions, results, strict=True)
    )


def gap(result: dict) -> float:
    """Between the scores of the first two hits."""
    first, second = result["hits"][:2]
    return first["score"] - second["score"]


def place(hit: dict) -> tuple[str, int]:
    """What tells one chunk from another."""
    return hit["path"], hit["start"]


def shown(hit: dict) -> str:
    """A hit on one line."""
    text = collapsed(hit["text"])
    return f"{hit['score']:.3f}  {hit['path']}: {text[:52]}{'…' if text[52:] else ''}"


def no_normalisation(report: Report, base: Library, raw: Library, questions: list[dict]) -> None:
    """The dot product grows with length, so long chunks win whatever the question."""
    report.title("1  No normalisation: the longest chunk wins")
    texts = [question["question"] for question in questions]
    good, bad = (
        [result for result in library.ask_all(texts, 2) if result["hits"]]
        for library in (base, raw)
    )
    long, short = (
        median(len(result["hits"][0]["text"].split()) for result in results)
        for results in (bad, good)
    )
    report.say(f"words in the first hit, median of {len(texts)} questions: {short:g} → {long:g}")
    report.claim("the first hit is at least twice as long", long >= 2 * short)
    firsts = [result["hits"][0] for result in bad]
    winners = [place(hit) for hit in firsts]
    winner = max(winners, key=winners.count)
    times = [
        [place(result["hits"][0]) for result in results].count(winner) for results in (good, bad)
    ]
    size = len(firsts[winners.index(winner)]["text"].split())
    report.say(f"one chunk of {size} words ({winner[0]}) comes first {times[0]} → {times[1]} times")
    report.claim(
        "a chunk twenty times longer than usual wins",
        size >= 20 * short and times[1] >= 5 > times[0] * 2,
    )
    right = {
        "How many alarm rules can one account have?": "engineering/sluice.md",
        "How far can a sensor be from the gateway?": "data/faq.jsonl#faq-10",
        "What does a rule have besides a sensor and a threshold?": "engineering/sluice.md",
    }
    taken = []
    for before, after in zip(base.ask_all([*right], 1), raw.ask_all([*right], 1), strict=True):
        was, now = before["hits"][0], after["hits"][0]
        taken.append(was["path"] == right[before["question"]] and place(now) == winner)
        report.say(before["question"])
        report.say(f"   {shown(was)}")
    report.claim("it takes the first place from these three, which had the right one", all(taken))


def cannot_answer(
    report: Report, base: Library, questions: list[dict], hopeless: list[dict]
) -> None:
    """An unanswerable question gets k rows, with scores like those of any other."""
    report.title("2  The corpus cannot answer: there are k rows all the same")
    without, genuine = base.ask_all(
        [
            "How long is the cable of the Dipper D2?",
            "After how many minutes does a laptop screen lock itself?",
        ],
        1,
    )
    for result in (without, genuine):
        report.say(result["question"])
        report.say(f"   {shown(result['hits'][0])}")
    right = rank_of("locks after four minutes", genuine) == 1
    report.claim(
        "the question without an answer scores above the one that was answered",
        right and without["hits"][0]["score"] > genuine["hits"][0]["score"],
    )
    found = base.ask_all([question["question"] for question in questions], 1)
    good = [
        result["hits"][0]["score"]
        for question, result in zip(questions, found, strict=True)
        if answered([question], [result], 1)
    ]
    results = base.ask_all([question["question"] for question in hopeless], 3)
    bad = [result["hits"][0]["score"] for result in results]
    report.claim(
        f"all {len(bad)} unanswerable questions got three rows",
        all(len(result["hits"]) == 3 for result in results),
    )
    errors = min(
        sum(score < limit for score in good) + sum(score >= limit for score in bad)
        for limit in [*good, *bad]
    )
    report.say(f"best threshold on the score: {errors} of {len(good) + len(bad)} on the wrong side")
    report.claim("no threshold separates the two kinds", errors >= len(bad) // 4)


def too_big(
    report: Report, base: Library, small: Library, wide: Library, questions: list[dict]
) -> None:
    """A big chunk mentions everything a little, and fills the prompt."""
    report.title("3  Chunks too big: scores crowd together, the prompt swells")
    answers = {
        "How many working days does a repair take on average?": "nine working days on average",
        "How late did the red alarm reach the keeper at Brackenhurst?": "49 minutes late",
    }
    lost = []
    for one, big in zip(base.ask_all([*answers], 3), wide.ask_all([*answers], 3), strict=True):
        ranks = [rank_of(answers[one["question"]], result) for result in (one, big)]
        lost.append(ranks[0] == 1 != ranks[1])
        report.say(one["question"])
        report.say(
            f"   gap {gap(one):.3f} → {gap(big):.3f}, rank of the answer {ranks[0]} → "
            f"{ranks[1] or 'below 3'}, prompt {words(one)} → {words(big)} words"
        )
    report.claim("both lose the first place", all(lost))
    texts = [question["question"] for question in questions]
    ones, bigs = base.ask_all(texts, 3), wide.ask_all(texts, 3)
    gaps = mean(map(gap, ones)), mean(map(gap, bigs))
    sizes = mean(map(words, ones)), mean(map(words, bigs))
    report.say(
        f"over {len(texts)} questions: gap {gaps[0]:.3f} → {gaps[1]:.3f}, "
        f"prompt {sizes[0]:.0f} → {sizes[1]:.0f} words"
    )
    report.claim("the gap between the first two shrinks", gaps[1] < 0.9 * gaps[0])
    report.claim("the prompt is at least three times longer", sizes[1] > 3 * sizes[0])
    threes, alone = small.ask_all(texts, 5), wide.ask_all(texts, 1)
    found = answered(questions, threes, 5), answered(questions, alone, 1)
    held = [
        mean(sum(len(hit["text"].split()) for hit in result["hits"]) for result in results)
        for results in (threes, alone)
    ]
    report.say(
        f"five chunks of three sentences: {found[0]} answers in {held[0]:.0f} words; "
        f"one of 400 words: {found[1]} in {held[1]:.0f}"
    )
    report.claim(
        "for the same room in the prompt, big chunks lose answers",
        found[1] < found[0] and held[1] > held[0],
    )


def two_hops(report: Report, base: Library) -> None:
    """The second passage is near the first one's text, not near the question."""
    report.title("4  Two hops: the second passage is found only after reading the first")
    text, answer = "Which port serves the public status page?", "answers on port 8461"
    ranked = base.ask(text, 10)
    hits = ranked["hits"]
    report.say(text)
    report.say(
        "   "
        + ", ".join(
            f"k={k}: {'the port' if 0 < rank_of(answer, ranked) <= k else 'no port'}"
            for k in (1, 3)
        )
    )
    report.say(f"   first: {shown(hits[0])}")
    again = base.ask(f"{text} {hits[0]['text']}", 10)
    before, after = rank_of(answer, ranked), rank_of(answer, again)
    report.say(
        f"   rank of the second passage: {before or 'below 10'} at first, {after} when "
        "asked again with the first hit's text"
    )
    report.claim(
        "at k=1 the prompt holds half of the answer",
        rank_of("draws the public status page", ranked) == 1 and before != 1,
    )
    report.claim(
        "asking again brings the other half into the first three",
        0 < after <= 3 and (after < before or before == 0),
    )


def too_few_buckets(
    report: Report, base: Library, usual: Library, few: Library, questions: list[dict]
) -> None:
    """With few buckets most words of the corpus share one with a stranger."""
    report.title("5  Too few buckets: unrelated words share a slot")
    vocabulary = {
        token
        for name in corpus_files()
        for token in re.findall("[a-z0-9]+", text_of(CORPUS / name).lower())
        if len(token) > 1 and token not in STOP_WORDS
    }
    texts = [question["question"] for question in questions]
    right, collisions = [], []
    for dim, library in ((BUCKETS, base), (1024, usual), (32, few)):
        used = {crc32(token.encode()) % dim for token in vocabulary}
        collisions.append(len(vocabulary) - len(used))
        right.append(answered(questions, library.ask_all(texts, 3), 3))
        report.say(
            f"{dim:>5} buckets: {collisions[-1]:>4} collisions of {len(vocabulary)} words, "
            f"answer in the first three {right[-1]:>2} of {len(texts)}"
        )
    text = "How many working days does a repair take on average?"
    clear, muddled = usual.ask(text, 1), few.ask(text, 1)
    report.say(text)
    report.say(f"   1024: {shown(clear['hits'][0])}")
    report.say(f"     32: {shown(muddled['hits'][0])}")
    answer = "nine working days on average"
    report.claim(
        "32 buckets bring an unrelated sentence first",
        rank_of(answer, clear) == 1 and rank_of(answer, muddled) == 0,
    )
    report.claim(
        "fewer buckets, more collisions, fewer answers",
        collisions[0] < collisions[1] < collisions[2] and right[2] < right[1] <= right[0],
    )


def closed_book(report: Report, base: Library) -> None:
    """With k = 0 the prompt says that there is no context."""
    report.title("6  Nothing retrieved: the closed book")
    prompt = ragcli("query", "Who leads the Headwater team?", *base.index, "-k", "0", "--quiet")
    report.claim("-k 0 prints `Context: (none)`", "Context: (none)" in prompt)


def main() -> int:
    """Builds the indexes, shows each failure; 0 if all of them were shown."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    every = [json.loads(line) for line in lines]
    questions = [question for question in every if question["kind"] in ("plain", "name")]
    hopeless = [question for question in every if question["kind"] == "unanswerable"]
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        base = Library(room / "base", "sentences:1")
        raw = Library(room / "raw", "sentences:1", normalise=False)
        small = Library(room / "small", "sentences:3")
        wide = Library(room / "wide", "words:400")
        usual = Library(room / "usual", "sentences:1", dim=1024)
        few = Library(room / "few", "sentences:1", dim=32)
        no_normalisation(report, base, raw, every)
        cannot_answer(report, base, questions, hopeless)
        too_big(report, base, small, wide, questions)
        two_hops(report, base)
        too_few_buckets(report, base, usual, few, questions)
        closed_book(report, base)
    print("\nAll six were shown." if report.held else "\nNot everything was shown.")
    return 0 if report.held else 1


if __name__ == "__main__":
    sys.exit(main())
