"""An answer checked against the passages that it was given: marks, quotations, support.

Owns the verdict and what goes into it. Which marks are citations is told by `marks`, where a
quotation stands by `quotations`, how sentences are cut by `statements`, the lexical measure by
`support`. Offsets are of the answer, in characters. Nothing here says that an answer is true.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragcli.generation.marks import Mark, code_spans, fenced_blocks, inside, marks
from ragcli.generation.quotations import (
    Library,
    Quotation,
    ReadFile,
    quoted_spans,
    quotes_its_marks,
    verify,
)
from ragcli.generation.statements import Stretch, sentences, without
from ragcli.generation.support import THRESHOLD, Support, Vocabulary
from ragcli.records import Hit

MEASURE = (
    "lexical, not truth: the share of a sentence's content words that stand in the passages "
    f"it cites; below {THRESHOLD} it is unsupported"
)


@dataclass(frozen=True, slots=True)
class Citation:
    """One number of a mark, `answer[start:end]`, and the passage that it names.

    Out of range, `rank` is None and so is all that would tell the place.
    """

    start: int
    end: int
    number: int
    rank: int | None
    chunk: int | None = None
    path: str | None = None
    lines: tuple[int, int] | None = None
    page: str | None = None
    stale: bool | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """`answer[start:end]`, the ranks that it cites, and how far its words stand there.

    `support` is the share of `MEASURE`, over all passages where none is cited, None where it says
    nothing; `missing` are the words that stand in none of them, `figures` the numbers. `kind` is
    `statement`, `refusal` or `other`; `flags` are any of `uncited`, `unsupported`, `figure`,
    `out_of_range`, `misquoted` and `changed` (quoted rightly, but the file has it no more).
    """

    start: int
    end: int
    kind: str
    citations: tuple[int, ...]
    support: float | None
    missing: tuple[str, ...]
    figures: tuple[str, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """What the check of an answer found.

    `cited`, `uncited`, `unsupported` and `figures` count sentences, `out_of_range` citations,
    `misquoted` and `changed` quotations. `refused` says that the answer only says that the context
    does not tell. `well` is true where nothing is flagged and something was said.
    """

    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    quotations: tuple[Quotation, ...]
    cited: int
    uncited: int
    unsupported: int
    figures: int
    out_of_range: int
    misquoted: int
    changed: int
    refused: bool
    well: bool
    measure: str = MEASURE


def check(answer: str, hits: Sequence[Hit], read_file: ReadFile) -> AnswerCheck:
    """Check `answer` against `hits`, the passages that its prompt held; numbers are their ranks.

    `read_file` gives the text of the file of a stale hit as it is now: empty where it is gone, None
    where that cannot be told. A passage that the budget left out is not among `hits`: who cites it
    has not read it. Works on any text, in time linear in it.
    """
    blocks = fenced_blocks(answer)
    code = code_spans(answer, blocks)
    library = Library(hits, read_file)
    quoted = quoted_spans(answer, code)
    theirs = [span for span in quoted if quotes_its_marks(answer[slice(*span)], library)]
    own = [mark for mark in marks(answer, code) if not inside(theirs, mark.start)]
    cut = sentences(answer, own, blocks, quoted)
    known = {hit.rank: hit for hit in hits}
    ranks = sorted(known)
    quotations, misquoting = _quotations(answer, quoted, own, cut, ranks, library)
    vocabulary = Vocabulary(answer, hits)
    silent = not any(stretch.kind != "other" or stretch.marks for stretch in cut)
    judged = tuple(
        _judged(answer, stretch, ranks, misquoting[i], vocabulary, silent=silent)
        for i, stretch in enumerate(cut)
    )
    return _verdict(judged, tuple(_citations(own, known, ranks)), quotations)


def _citations(
    own: Sequence[Mark], known: dict[int, Hit], ranks: Sequence[int]
) -> Iterator[Citation]:
    for mark in own:
        for number in _numbers(mark, ranks):
            hit = known.get(number)
            if hit is None:
                yield Citation(mark.start, mark.end, number, None)
            else:
                yield Citation(
                    mark.start, mark.end, number, hit.rank, hit.chunk, hit.path, hit.lines,
                    hit.page, hit.stale,
                )  # fmt: skip


def _numbers(mark: Mark, ranks: Sequence[int]) -> list[int]:
    """The numbers of a mark, each once; of a range its ends and the ranks between them."""
    numbers: dict[int, None] = {}
    for first, last in mark.ranges:
        between = ranks[bisect_right(ranks, first) : bisect_left(ranks, last)]
        numbers.update(dict.fromkeys([first, *between, last]))
    return list(numbers)


def _cited(own: Sequence[Mark], ranks: Sequence[int]) -> tuple[int, ...]:
    """The ranks that the marks name, ascending."""
    named = {number for mark in own for number in _numbers(mark, ranks)}
    return tuple(sorted(named.intersection(ranks)))


def _quotations(
    answer: str,
    quoted: Sequence[tuple[int, int]],
    own: Sequence[Mark],
    cut: Sequence[Stretch],
    ranks: Sequence[int],
    library: Library,
) -> tuple[tuple[Quotation, ...], dict[int, list[str]]]:
    """The quotations, each against what its sentence cites; verdicts by the sentence's number."""
    starts = [stretch.start for stretch in cut]
    places = [mark.start for mark in own]
    found = []
    verdicts: dict[int, list[str]] = defaultdict(list)
    for start, end in quoted:
        number = bisect_right(starts, start) - 1
        within = own[bisect_left(places, start) : bisect_left(places, end)]
        cited = _cited(cut[number].marks, ranks)
        quotation = verify(answer, (start, end), within, cited, library)
        found.append(quotation)
        verdicts[number].append(quotation.verdict)
    return tuple(found), verdicts


def _judged(
    answer: str,
    stretch: Stretch,
    ranks: Sequence[int],
    verdicts: Sequence[str],
    vocabulary: Vocabulary,
    *,
    silent: bool,
) -> Sentence:
    """One sentence; `silent` says that no sentence of the answer states or cites anything."""
    cited = _cited(stretch.marks, ranks)
    said = without(answer, stretch.start, stretch.end, stretch.marks)
    support = Support(None)
    if stretch.kind != "refusal":
        support = vocabulary.support(said, vocabulary.content(said), cited or ranks)
    flags = []
    if not stretch.marks and (stretch.kind == "statement" or silent):
        flags.append("uncited")
    if stretch.kind == "statement" or cited:
        if support.share is not None and support.share < THRESHOLD:
            flags.append("unsupported")
        if support.figures:
            flags.append("figure")
    if any(number not in ranks for mark in stretch.marks for number in _numbers(mark, ranks)):
        flags.append("out_of_range")
    flags += [flag for flag in ("misquoted", "changed") if flag in verdicts]
    return Sentence(
        stretch.start, stretch.end, stretch.kind, cited, support.share, support.missing,
        support.figures, tuple(flags),
    )  # fmt: skip


def _verdict(
    judged: tuple[Sentence, ...],
    citations: tuple[Citation, ...],
    quotations: tuple[Quotation, ...],
) -> AnswerCheck:
    def flagged(flag: str) -> int:
        return sum(flag in sentence.flags for sentence in judged)

    uncited, unsupported, figures = map(flagged, ("uncited", "unsupported", "figure"))
    out_of_range = sum(citation.rank is None for citation in citations)
    verdicts = [quotation.verdict for quotation in quotations]
    kinds = {sentence.kind for sentence in judged}
    return AnswerCheck(
        judged,
        citations,
        quotations,
        cited=sum(bool(sentence.citations) for sentence in judged),
        uncited=uncited,
        unsupported=unsupported,
        figures=figures,
        out_of_range=out_of_range,
        misquoted=verdicts.count("misquoted"),
        changed=verdicts.count("changed"),
        refused="refusal" in kinds and "statement" not in kinds,
        well=bool(judged) and not any(sentence.flags for sentence in judged),
    )
