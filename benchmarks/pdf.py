"""Libraries that read PDFs, side by side: pages per second, words found, failures.

    python benchmarks/pdf.py [FILE_OR_FOLDER…] [--library NAME…] [--worst 10]

Without paths: every PDF of ../shared/zoo and ../shared/eval. `ragcli` is the reader as it is,
its cleaning included, `ragcli-pypdf` the same without pypdfium2; a library that is not installed
is said to be absent. Each file is read in a process of its own, which is ended after 300 seconds;
seconds are those of the processor, so that other work on the machine does not count.

The four independent libraries (pypdf, pypdfium2, pdfminer, pymupdf) vote, page by page: a word is
expected as often as all but one of them have it, and so is a pair of neighbouring words, which
measures order. `found` is the share of what is expected that a library has; `own` are words that
none of the other voters has, per thousand; `glued` and `split` are those among its own that are
two expected words in one, or halves of an expected word that it lacks. Words are runs of letters
and digits in lower case without their hyphens, after those at line ends are joined and ligatures
resolved for all alike. What was left so is counted before: `hyphens` at line ends, and as `marks`
ligatures and soft hyphens.
"""

from __future__ import annotations

import argparse
import io
import logging
import platform
import re
import time
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

SECONDS = 300
SHARED = Path(__file__).resolve().parents[1].parent / "shared"
VOTERS = ("pypdf", "pypdfium2", "pdfminer", "pymupdf")
_WORD = re.compile(r"[^\W_]+")
_LINE_END = re.compile(r"(?<=[^\W\d_])[-\u2010\xad][ \t]*\r?\n\s*(?=[^\W\d_])")
_HYPHEN = re.compile("(?<=\\w)[-\u2010\xad\x02\ufffe](?=\\w)|[\xad\x02\ufffe]")
_LIGATURES = re.compile("[\ufb00-\ufb06]")

Pages = list[str | None]
"""The text of each page, None where the library raised."""


def each(pages: int, text_of: Callable[[int], str]) -> Pages:
    found: Pages = []
    for number in range(pages):
        try:
            found.append(text_of(number))
        except Exception:  # noqa: BLE001  whatever a library raises is a failure of the page
            found.append(None)
    return found


def with_ragcli(data: bytes) -> Pages:
    from ragcli.corpus.readers import read_document
    from ragcli.corpus.source import Source
    from ragcli.errors import UnreadableFile

    try:
        (document,) = read_document(Source("a.pdf", data))
    except UnreadableFile as error:
        if error.kind == "no_text":
            return [""]
        raise
    starts = [*(page.start for page in document.pages), len(document.text)]
    return [document.text[a:b] for a, b in pairwise(starts)]


def with_ragcli_and_pypdf(data: bytes) -> Pages:
    from ragcli.corpus.readers import pdf

    pdf.is_installed = lambda: False
    return with_ragcli(data)


def with_pypdf(data: bytes) -> Pages:
    import pypdf

    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted:
        reader.decrypt("")
    return each(len(reader.pages), lambda number: reader.pages[number].extract_text())


def with_pypdfium2(data: bytes) -> Pages:
    import pypdfium2

    with pypdfium2.PdfDocument(data) as document:
        return each(len(document), lambda number: document[number].get_textpage().get_text_range())


def with_pdfminer(data: bytes) -> Pages:
    from pdfminer.high_level import extract_pages
    from pdfminer.layout import LTTextContainer

    def text(page: object) -> str:
        assert hasattr(page, "__iter__")
        return "\n".join(box.get_text() for box in page if isinstance(box, LTTextContainer))

    return [text(page) for page in extract_pages(io.BytesIO(data))]


def with_pdfplumber(data: bytes) -> Pages:
    import pdfplumber

    with pdfplumber.open(io.BytesIO(data)) as document:
        pages = document.pages
        return each(len(pages), lambda number: pages[number].extract_text())


def with_pymupdf(data: bytes) -> Pages:
    import pymupdf

    with pymupdf.open(stream=data, filetype="pdf") as document:
        if document.needs_pass:
            raise ValueError("password")
        return each(len(document), lambda number: document[number].get_text(sort=False))


LIBRARIES: dict[str, tuple[str, Callable[[bytes], Pages]]] = {
    "ragcli": ("ragcli", with_ragcli),
    "ragcli-pypdf": ("ragcli", with_ragcli_and_pypdf),
    "pypdf": ("pypdf", with_pypdf),
    "pypdfium2": ("pypdfium2", with_pypdfium2),
    "pdfminer": ("pdfminer.six", with_pdfminer),
    "pdfplumber": ("pdfplumber", with_pdfplumber),
    "pymupdf": ("pymupdf", with_pymupdf),
}


@dataclass
class Reading:
    """What one library made of one file; `seconds` are None where it raised or was ended."""

    pages: Pages = field(default_factory=list)
    seconds: float | None = None
    error: str = ""


def read(name: str, path: Path) -> Reading:
    """Read a file in a process of its own."""
    near, far = get_context("fork").Pipe(duplex=False)
    process = get_context("fork").Process(target=_serve, args=(name, path, far))
    process.start()
    far.close()
    try:
        answer: Reading = near.recv() if near.poll(SECONDS) else Reading(error="too slow")
    except EOFError:
        answer = Reading(error="crashed")
    process.kill()
    process.join()
    return answer


def _serve(name: str, path: Path, answer: Connection) -> None:
    data = path.read_bytes()
    began = time.process_time()
    try:
        pages = LIBRARIES[name][1](data)
        answer.send(Reading(pages, time.process_time() - began))
    except BaseException as error:  # noqa: BLE001  a failure is what is measured
        answer.send(Reading(error=f"{type(error).__name__}: {error}"[:100]))


def joined(page: str | None) -> str:
    text = _LINE_END.sub("", page or "")
    text = _LIGATURES.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    return _HYPHEN.sub("", text).lower()


@dataclass
class Score:
    """Sums over the pages that were judged."""

    expected: int = 0
    found: int = 0
    pairs_expected: int = 0
    pairs_found: int = 0
    words: int = 0
    own: int = 0
    glued: int = 0
    split: int = 0
    hyphens: int = 0
    marks: int = 0
    pages: int = 0
    seconds: float = 0.0
    empty: int = 0
    raised: int = 0
    refused: int = 0

    def add(self, page: str | None, words: list[str], others: list[list[str]]) -> tuple[int, int]:
        """Judge a page by what all voters have of it; returns expected and found."""
        mine = Counter(words)
        expected = agreed([Counter(other) for other in others])
        pairs = agreed([Counter(pairwise(other)) for other in others])
        some: Counter[str] = Counter()
        for other in others:
            if other is not words:
                some |= Counter(other)
        own, missing = mine - some, expected - mine
        number, has = expected.total(), (expected & mine).total()
        self.expected += number
        self.found += has
        self.pairs_expected += pairs.total()
        self.pairs_found += (pairs & Counter(pairwise(words))).total()
        self.words += len(words)
        self.own += own.total()
        self.glued += sum(
            n for word, n in own.items()
            if any(word[:i] in missing and word[i:] in missing for i in range(1, len(word)))
        )  # fmt: skip
        self.split += sum(
            n for word, n in missing.items()
            if any(word[:i] in mine and word[i:] in mine and (word[:i] in own or word[i:] in own)
                   for i in range(1, len(word)))
        )  # fmt: skip
        self.hyphens += len(_LINE_END.findall(page or ""))
        self.marks += len(_LIGATURES.findall(page or "")) + (page or "").count("\xad")
        self.empty += number > 0 and not words
        return number, has


def agreed(votes: list[Counter]) -> Counter:  # type: ignore[type-arg]
    """How often all voters but one have each thing; all of them where there are two or fewer."""
    place = 1 if len(votes) > 2 else 0
    every = set().union(*votes) if votes else set()
    return Counter(
        {thing: n for thing in every if (n := sorted(vote[thing] for vote in votes)[place])}
    )


def judge(path: Path, readings: dict[str, Reading], scores: dict[str, Score]) -> Iterator[str]:
    """Add a file to the scores; yields a line for each library that lacks much of it."""
    count = max((len(reading.pages) for reading in readings.values()), default=0)
    words = {
        name: [_WORD.findall(joined(page)) for page in reading.pages]
        + [[]] * (count - len(reading.pages))
        for name, reading in readings.items()
    }
    voters = [name for name in VOTERS if name in readings and readings[name].seconds is not None]
    for name, reading in readings.items():
        score, expected, found = scores[name], 0, 0
        others_read = any(readings[other].seconds is not None for other in voters)
        score.refused += reading.seconds is None and others_read
        score.raised += sum(page is None for page in reading.pages)
        score.pages += len(reading.pages)
        score.seconds += reading.seconds or 0.0
        for number in range(count):
            others = [words[other][number] for other in voters]
            page = reading.pages[number] if number < len(reading.pages) else None
            more, has = score.add(page, words[name][number], others)
            expected, found = expected + more, found + has
        if found < 0.97 * expected:
            yield f"{path.name} {name}: {found} of {expected} words {reading.error}"


def row(name: str, score: Score) -> str:
    thousand = max(score.words, 1) / 1000
    return (
        f"| {name} | {score.pages / max(score.seconds, 1e-9):.0f} | {score.pages} "
        f"| {100 * score.found / max(score.expected, 1):.2f} "
        f"| {100 * score.pairs_found / max(score.pairs_expected, 1):.2f} "
        f"| {score.own / thousand:.1f} | {score.glued} | {score.split} "
        f"| {score.hyphens} | {score.marks} | {score.refused} | {score.raised} | {score.empty} |"
    )


def installed(names: list[str]) -> Iterator[str]:
    for name in names:
        try:
            told = version(LIBRARIES[name][0])
        except PackageNotFoundError:
            if not name.startswith("ragcli"):
                print(f"{name}: absent")
                continue
            told = "this checkout"
        print(f"{name} {told}", end=", ")
        yield name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="*", default=[SHARED / "zoo", SHARED / "eval"])
    parser.add_argument("--library", action="append", choices=LIBRARIES)
    parser.add_argument("--worst", type=int, default=10)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    files = [file for path in given.paths
             for file in ([path] if path.is_file() else sorted(path.rglob("*.pdf")))]  # fmt: skip
    names = list(installed(given.library or list(LIBRARIES)))
    for name in names:  # the imports are not what is measured; a fork of this process has them
        if name != "ragcli-pypdf":
            read_here(name)
    print(f"Python {platform.python_version()}; {len(files)} files")
    scores = {name: Score() for name in names}
    worst: list[str] = []
    for path in files:
        worst += judge(path, {name: read(name, path) for name in names}, scores)
    print("\n| | pages a second | pages | words found % | pairs found % | own per 1,000 | glued "
          "| split | hyphens | marks | files refused | pages raised | pages empty |")  # fmt: skip
    print("|---|" + "---|" * 12)
    print(*(row(name, score) for name, score in scores.items()), sep="\n")
    print(*worst[: given.worst * len(names)], sep="\n")


def read_here(name: str) -> None:
    """Import what a library imports late, over a PDF that it will not like."""
    try:
        LIBRARIES[name][1](b"%PDF-1.4\n%%EOF")
    except Exception as error:  # noqa: BLE001  the file is no good, whichever the library
        logging.debug("%s: %s", name, error)


if __name__ == "__main__":
    main()
