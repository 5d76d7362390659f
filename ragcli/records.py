"""What travels between the rooms: frozen dataclasses, nothing else.

Offsets are Python character offsets into `Document.text`, half-open; lines count from 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """One line of the ledger: something about a file that the index does not cover.

    `path` is relative to the indexed root; `page` is the page's label where one page is meant.
    """

    path: str
    kind: str
    message: str
    page: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a document that belongs together: `text[start:end]`.

    `kind` is `heading`, `paragraph`, `item` (of a list), `code`, `table` or `other`.
    `headings` is the path of headings above the block, outermost first; a heading's own
    block already has itself as the last part.
    """

    start: int
    end: int
    kind: str
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """Where a page, slide or sheet begins in the text, and the label a viewer shows for it."""

    start: int
    label: str


@dataclass(frozen=True, slots=True)
class Document:
    """One file, or one record of a .jsonl or .csv, as text.

    `blocks` are in order, do not overlap, and cover every character that is not white space.
    `pages` are in order, the first at 0; empty where the format has none.
    `line_anchors` maps offsets to lines of the file as an editor shows it: pairs
    (offset, line), ascending; None where the text is the file itself, so that its own line
    ends count; an empty tuple where lines mean nothing (PDF, office formats).
    `record` is the id of the record within the file, None for a whole file.
    """

    text: str
    kind: str
    title: str | None = None
    blocks: tuple[Block, ...] = ()
    pages: tuple[Page, ...] = ()
    line_anchors: tuple[tuple[int, int], ...] | None = None
    record: str | None = None
    problems: tuple[tuple[str, str, str | None], ...] = ()
    """(kind, message, page label) of what this document lost on the way in."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The unit that is retrieved: `document.text[start:end] == text`.

    `lines` is the first and the last line that the chunk touches, None without lines.
    """

    start: int
    end: int
    text: str
    lines: tuple[int, int] | None = None
    page: str | None = None
    heading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of the index by its number, with its place: what reports name.

    `path` is relative to the indexed root (for a record `corpus.jsonl#ID`).
    """

    chunk: int
    path: str
    start: int
    end: int
    text: str
    lines: tuple[int, int] | None = None
    page: str | None = None
    heading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TermShare:
    """What one word of the question gave to one hit's lexical score.

    `term` is the word as asked, `count` how often the chunk has it (in any indexed form),
    `frequency` how many live chunks have it, `score` its part of the sum.
    """

    term: str
    count: int
    frequency: int
    score: float


@dataclass(frozen=True, slots=True)
class Leg:
    """A hit in one retriever: rank from 1 and raw score; rank None outside its candidates."""

    rank: int | None
    score: float | None


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved chunk, with every number that put it at its rank.

    `path` is relative to the indexed root (for a record `corpus.jsonl#ID`, `record` the id).
    `score` orders the hits. Where both retrievers ran it is the sum of `parts`, what the lexical
    and the dense one gave to it, and of `neighbour`, what the passage beside gave (`rerank` is
    the reranker's, and then the score);
    `lexical` is BM25, `dense` the dot product, None where that retriever did not run; `weight` is
    p(z|x), the softmax of the scores over the hits shown.
    `stale` is true when the file has changed or gone since it was indexed, None when unknown.
    """

    rank: int
    chunk: int
    path: str
    start: int
    end: int
    text: str
    score: float
    weight: float
    lines: tuple[int, int] | None = None
    page: str | None = None
    heading: tuple[str, ...] = ()
    title: str | None = None
    record: str | None = None
    lexical: Leg | None = None
    dense: Leg | None = None
    parts: tuple[float, float] | None = None
    neighbour: float = 0.0
    rerank: float | None = None
    terms: tuple[TermShare, ...] = ()
    stale: bool | None = None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question and how to answer it; None means the index's default.

    `mode` is `hybrid`, `dense` or `lexical`; `fusion` is `mix` or `rrf`; `alpha` the dense
    share of the mix, 0 to 1; `paths` are globs, and a chunk must match one of them.
    """

    question: str
    k: int = 5
    mode: str | None = None
    fusion: str = "mix"
    alpha: float | None = None
    paths: tuple[str, ...] = ()
    max_per_file: int | None = None
    rerank: str | None = None
    """A cross-encoder that orders the best 50 anew, by name or folder."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of one question, and what the index that gave them covers.

    `terms` are the question's words after stop words were dropped, in order. `mode` and
    `alpha` are those really used. `embedded` chunks had a stored vector, `embedded_now` were
    given one for this question. `timings_ms` has one entry per step and `total`.
    """

    question: str
    hits: tuple[Hit, ...]
    mode: str
    fusion: str
    alpha: float | None
    terms: tuple[str, ...]
    chunks: int
    embedded: int
    problems: int
    timings_ms: dict[str, float] = field(default_factory=dict)
    cut: int = 0
    """Passages that the reranker could not read to their end."""
    embedded_now: int = 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """The exact text for the generator, and which hits made it in.

    `included` are the ranks of the passages in the text, in its order, `dropped` those that the
    budget left out, `neutralised` those in which something that plays the prompt's structure was
    broken by a blank; `tokens` is the number that the budget was held against, `counted_by` says
    who counted: the `generator`, or an `estimate`.
    """

    text: str
    included: tuple[int, ...]
    dropped: tuple[int, ...]
    tokens: int
    counted_by: str = "estimate"
    neutralised: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """Every file seen, counted once: the six add up to the files seen plus the removed."""

    indexed: int = 0
    unchanged: int = 0
    moved: int = 0
    removed: int = 0
    skipped: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one run of `index` did; `skipped` counts files by reason, `chunks` are live ones."""

    root: str
    index: str
    counts: Counts
    skipped: dict[str, int]
    chunks: int
    embedded: int
    documents: int
    problems: tuple[Problem, ...]
    seconds: float
    encoder: str
    chunking: str
    interrupted: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How far indexing is: `stage` is `scan`, `read`, `searchable`, `embed` or `merge`.

    `searchable` comes once, when `chunks` can be searched by their words and their vectors are
    to follow; in `embed`, `chunks` of `chunks_total` have them.
    """

    stage: str
    files_done: int = 0
    files_total: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    chunks: int = 0
    path: str | None = None
    chunks_total: int = 0


@dataclass(frozen=True, slots=True)
class Settings:
    """What an index remembers, so that plain `ragcli index` means "make it true again".

    `encoder` is `minilm`, `hash`, `none`, `st:NAME` or `onnx:DIR`; `query_model` (the question's
    own encoder) and `device` belong to `st:`; `chunk` a chunking such as `auto`, `words:100`,
    `sentences:1`, `tokens:200/20`; `max_file_size` is in bytes; `ocr` are tesseract's languages
    for pages without text, such as `deu+eng`, None for no OCR; `dim` and `normalise` shape
    the `hash` encoder only.
    """

    encoder: str = "minilm"
    query_model: str | None = None
    device: str | None = None
    chunk: str = "auto"
    glob: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hidden: bool = False
    ignore: bool = True
    follow: bool = False
    max_file_size: int = 64 * 1024 * 1024
    ocr: str | None = None
    dim: int = 1024
    normalise: bool = True
