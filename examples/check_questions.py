"""Checks questions.jsonl against the corpus: every target exists, every answer stands there.

For each question: the paths exist, the line ranges, pages and records too; each text of
`answers` stands in one of the places named by `relevant` (white space collapsed) and in no other
file; a paraphrase shares no content word with its passage. Prints the counts, exits 1 on any
failure. Needs only the standard library, and pypdf for the PDFs.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import zipfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
QUESTIONS = HERE / "questions.jsonl"
KINDS = {"plain", "paraphrase", "name", "two-hop", "unanswerable"}
FIELDS = {"id", "kind", "question", "relevant", "answers", "answerable"}

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
a about after again all also am an and another any anyone are as at be been before but by can could
did do does doing during each else ever every few for from get gets go goes going had has have he
her here him his how i if in into is it its just many may me might more most much must my no nobody
not now of off on one only or other our out over own s she should so some somebody someone
something still such t than that the their them then there these they this those through to too
under until up us was we were what when where which while who whom whose why will with within
without would you your
""",
    )
)


class _Text(HTMLParser):
    """Collects what a reader of the page sees."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)


def collapsed(text: str) -> str:
    """The text with each run of white space as one blank."""
    return " ".join(text.split())


def decoded(path: Path) -> str:
    """The file's text: UTF-16 with a byte order mark, UTF-8, or else windows-1252."""
    data = path.read_bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252")


def pages_of(path: Path) -> list[str]:
    """The text of each page of a PDF."""
    import pypdf

    return [page.extract_text() for page in pypdf.PdfReader(path).pages]


def records_of(path: Path) -> dict[str, str]:
    """The records of a .jsonl or .csv by their id."""
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in decoded(path).splitlines() if line.strip()]
    else:
        rows = list(csv.DictReader(decoded(path).splitlines()))
    return {row["id"]: "\n".join(str(value) for value in row.values()) for row in rows}


def office_text(path: Path) -> str:
    """The words in an office file or e-book: all text between the tags of its XML parts."""
    with zipfile.ZipFile(path) as archive:
        parts = [
            archive.read(name).decode("utf-8")
            for name in sorted(archive.namelist())
            if name.endswith((".xml", ".xhtml"))
        ]
    # a paragraph or a cell ends with its element; runs inside of it are joined
    broken = (re.sub(r"</(?:w:p|a:p|si|p|h\d|li)>", "\n", part) for part in parts)
    return "\n".join(_strip(re.sub(r"<\?.*?\?>", "", part)) for part in broken)


def _strip(markup: str) -> str:
    parser = _Text()
    parser.feed(markup)
    return "".join(parser.pieces)


def text_of(path: Path) -> str:
    """All of a file's text."""
    if path.suffix == ".pdf":
        return "\n".join(pages_of(path))
    if path.suffix in (".docx", ".pptx", ".xlsx", ".epub"):
        return office_text(path)
    if path.suffix in (".jsonl", ".csv"):
        return "\n".join(records_of(path).values())
    if path.suffix == ".html":
        return _strip(decoded(path))
    if path.suffix == ".ipynb":
        cells = json.loads(decoded(path))["cells"]
        outputs = ["".join(out.get("text", ())) for c in cells for out in c.get("outputs", ())]
        return "\n".join(["".join(cell["source"]) for cell in cells] + outputs)
    return decoded(path)


def corpus_files() -> list[str]:
    """Paths of the files that are indexed: neither hidden nor in an ignored folder."""
    ignored = [
        line.strip()
        for line in (CORPUS / ".ragcliignore").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    found = (path.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*") if path.is_file())
    return sorted(
        name for name in found if not name.startswith(".") and not name.startswith(tuple(ignored))
    )


def passage(target: str) -> str:
    """The text that a `relevant` target names. Raises ValueError if there is no such place."""
    name, _, fragment = target.partition("#")
    match = re.fullmatch(r"(.+?):(\d+)(?:-(\d+))?", name)
    path = CORPUS / (match[1] if match else name)
    if not path.is_file():
        raise ValueError(f"no such file: {target}")
    if match:
        lines = decoded(path).splitlines()
        start, end = int(match[2]), int(match[3] or match[2])
        if not 1 <= start <= end <= len(lines):
            raise ValueError(f"no such lines: {target} (the file has {len(lines)})")
        return "\n".join(lines[start - 1 : end])
    if fragment.startswith("page="):
        pages, number = pages_of(path), int(fragment[5:])
        if not 1 <= number <= len(pages):
            raise ValueError(f"no such page: {target} (the file has {len(pages)})")
        return pages[number - 1]
    if fragment:
        records = records_of(path)
        if fragment not in records:
            raise ValueError(f"no such record: {target}")
        return records[fragment]
    return text_of(path)


def stem(word: str) -> str:
    """A blunt stemmer; it would rather join too much than too little."""
    for ending in ("ings", "ing", "edly", "ed", "ers", "er", "ies", "es", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def content_words(text: str) -> set[str]:
    """Stems of the words that carry meaning."""
    words = re.findall(r"[^\W_]+", text.lower().replace("’", "'"))
    return {stem(word) for word in words if len(word) > 1 and word not in STOP_WORDS}


def problems_of(question: dict, texts: dict[str, str]) -> list[str]:
    """Everything that is wrong with one question."""
    found = [f"unknown field {field!r}" for field in question.keys() - FIELDS]
    kind, targets = question.get("kind"), question.get("relevant", [])
    answers = question.get("answers", [])
    if kind not in KINDS:
        found.append(f"unknown kind {kind!r}")
    if (kind == "unanswerable") != (question.get("answerable") is False):
        found.append("`answerable: false` belongs to the unanswerable, and to nothing else")
    if kind == "unanswerable":
        return found + (["names a target or an answer"] if targets or answers else [])
    if not targets or not answers:
        return [*found, "has no target or no answer"]
    if kind == "two-hop" and len(targets) != 2:
        found.append("needs two passages")
    try:
        passages = [passage(target) for target in targets]
    except ValueError as problem:
        return [*found, str(problem)]
    home = [re.sub(r"(:\d+(-\d+)?)?(#.*)?$", "", target) for target in targets]
    for answer in map(collapsed, answers):
        if not any(answer in collapsed(text) for text in passages):
            found.append(f"answer is not in its passage: {answer!r}")
        for name, text in texts.items():
            times = text.count(answer)
            if times and name not in home:
                found.append(f"answer stands in {name} too: {answer!r}")
            elif times > 1:
                found.append(f"answer stands {times} times in {name}: {answer!r}")
    for target, text in zip(targets, passages, strict=True):
        if not any(collapsed(answer) in collapsed(text) for answer in answers):
            found.append(f"no answer stands in {target}")
        if kind == "paraphrase":
            shared = content_words(question["question"]) & content_words(text)
            found.extend([f"shares {sorted(shared)} with {target}"] if shared else [])
    return found


def main() -> int:
    """Checks all questions, prints what is wrong and the counts."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines if line.strip()]
    texts = {name: collapsed(text_of(CORPUS / name)) for name in corpus_files()}
    failures = [
        (question.get("id"), problem)
        for question in questions
        for problem in problems_of(question, texts)
    ]
    for field in ("id", "question"):
        times = Counter(question.get(field) for question in questions)
        failures += [(value, f"{field} is used {n} times") for value, n in times.items() if n > 1]
    for identifier, problem in failures:
        print(f"{identifier}: {problem}")
    kinds = Counter(question.get("kind") for question in questions)
    print(
        f"{len(texts)} files, {len(questions)} questions: "
        + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items(), key=str))
    )
    print(f"{len(failures)} problems" if failures else "all good")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
