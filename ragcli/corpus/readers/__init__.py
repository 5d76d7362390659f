"""Which reader reads which file, and the one place where a parser's failure becomes a record.

A reader is one module with `read(source) -> Iterable[Document]` that imports its parser inside
that function. Adding one is a new module and its row in `_KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from ragcli.corpus.readers import (
    code,
    delimited,
    doc,
    docx,
    epub,
    html,
    jsonl,
    mail,
    mailbox,
    markdown,
    msg,
    notebook,
    opendocument,
    pdf,
    plain,
    pptx,
    rst,
    rtf,
    xls,
    xlsx,
    xml,
)
from ragcli.corpus.readers.compound import is_compound
from ragcli.corpus.readers.kinds import kind_by_content
from ragcli.corpus.source import Source
from ragcli.corpus.suffixes import BINARY_SUFFIXES, suffix_by_name
from ragcli.errors import UnreadableFile
from ragcli.records import Document

Reader = Callable[[Source], Iterable[Document]]


_SAVE_AS = {
    **{".doc": ".docx", ".ppt": ".pptx", ".xls": ".xlsx", ".xlsb": ".xlsx"},
    **{".mobi": ".epub", ".azw3": ".epub"},
    **dict.fromkeys((".pages", ".numbers", ".key", ".djvu", ".ps"), ".pdf"),
}
"""What is not read, and what to save it as so that it is."""


def _unsupported(source: Source) -> Iterable[Document]:
    message = f"{source.suffix} files are not supported: save it as {_SAVE_AS[source.suffix]}"
    raise UnreadableFile("unsupported", message)


def _old_word(source: Source) -> Iterable[Document]:
    """Read a Word document, or text under the name of one."""
    return doc.read(source) if is_compound(source.data) else _if_text(source, plain.read)


def _old_excel(source: Source) -> Iterable[Document]:
    """Read a workbook, or a table as text under the name of one."""
    workbook = is_compound(source.data) or source.data.startswith(xls.BARE)
    return xls.read(source) if workbook else _if_text(source, delimited.read)


def _if_text(source: Source, reader: Reader) -> Iterable[Document]:
    try:
        source.text()
    except UnreadableFile:
        return _unsupported(source)
    source.problems.clear()
    return reader(source)


class _Kind(NamedTuple):
    """A kind of file.

    `isolated` is whether its parser is native or complex enough to run in a child process only;
    `asked` whether its suffixes stand over other formats so often that the content is asked first.
    """

    suffixes: str
    reader: Reader
    isolated: bool = False
    asked: bool = False


_KINDS = (
    _Kind(
        "txt text log org adoc asciidoc mediawiki wiki man ics vcf srt vtt tex bib po ini cfg conf"
        " toml editorconfig properties env",
        plain.read,
    ),
    _Kind("md markdown mdown mkd mdx qmd rmd", markdown.read),
    _Kind("rst rest", rst.read),
    _Kind("html htm xhtml shtml", html.read, isolated=True),
    _Kind("xml rss atom fb2 opml dita docbook dbk tei", xml.read, isolated=True),
    _Kind("pdf", pdf.read, isolated=True),
    _Kind("ipynb", notebook.read),
    _Kind("jsonl ndjson jsonlines", jsonl.read),
    _Kind("csv tsv tab", delimited.read),
    _Kind("eml mht mhtml", mail.read, isolated=True),
    _Kind("mbox", mailbox.read, isolated=True),
    _Kind("msg", msg.read, isolated=True, asked=True),
    _Kind("docx docm dotx dotm", docx.read, isolated=True, asked=True),
    _Kind("pptx pptm ppsx ppsm potx potm", pptx.read, isolated=True, asked=True),
    _Kind("xlsx xlsm xltx xltm", xlsx.read, isolated=True, asked=True),
    _Kind("epub", epub.read, isolated=True, asked=True),
    _Kind(
        "odt ods odp odg ott ots otp fodt fods fodp",
        opendocument.read,
        isolated=True,
        asked=True,
    ),
    _Kind("rtf", rtf.read, isolated=True, asked=True),
    _Kind("doc", _old_word, isolated=True, asked=True),
    _Kind("xls", _old_excel, isolated=True, asked=True),
    _Kind("ppt xlsb pages numbers key mobi azw3", _unsupported, isolated=True, asked=True),
    _Kind("djvu ps", _unsupported),
    _Kind(
        "py pyi pyx js mjs cjs jsx ts mts cts tsx vue svelte go rs java kt kts"
        " scala groovy gradle c h cc cpp cxx hh hpp hxx cs fs swift m mm rb php"
        " pl pm lua r jl dart ex exs erl hs ml mli clj el lisp scm nim zig v d"
        " sh bash zsh fish ps1 bat cmd sql css scss sass less graphql proto tf"
        " json json5 jsonc geojson yaml yml map lock mk cmake dockerfile",
        code.read,
    ),
)

_BY_SUFFIX = {f".{suffix}": kind for kind in _KINDS for suffix in kind.suffixes.split()}

READERS = {suffix: kind.reader for suffix, kind in _BY_SUFFIX.items()}
"""The reader of each suffix, in lower case; what is not here is told by its content."""

ISOLATED = frozenset(suffix for suffix, kind in _BY_SUFFIX.items() if kind.isolated)
"""Suffixes whose parser runs in a child process only."""

_ASKED = frozenset(suffix for suffix, kind in _BY_SUFFIX.items() if kind.asked)


def effective_suffix(path: str, data: bytes = b"") -> str:
    """Return the suffix whose reader is the right one: of the name, or told by the content.

    `data` is the content, which counts where the name's suffix is unknown or often lies.
    Raises UnreadableFile (`password`) for an encrypted office file.
    """
    suffix = suffix_by_name(path)
    known = suffix in READERS or suffix in BINARY_SUFFIXES
    if data and (not known or suffix in _ASKED):
        return kind_by_content(data) or suffix
    return suffix


def is_plain(path: str) -> bool:
    """Whether the name promises a kind whose reader is safe in any process."""
    suffix = effective_suffix(path)
    return suffix in READERS and suffix not in ISOLATED


def iter_documents(source: Source) -> Iterator[Document]:
    """Yield the documents of a file one by one; the last has the problems of the whole file.

    Raises UnreadableFile for what cannot be read, be it after some documents. Whatever a parser
    raises becomes one of kind `corrupt` (or `memory`), with its type and first line.
    """
    last: Document | None = None
    try:
        for document in _reader_of(source)(source):
            if last is not None:
                yield last
            last = document
    except UnreadableFile:
        raise
    except MemoryError as error:
        raise UnreadableFile("memory", "not enough memory to read it") from error
    except Exception as error:  # parsers raise what they please
        line = next(iter(str(error).splitlines()), "")
        raise UnreadableFile("corrupt", f"{type(error).__name__}: {line}"[:300]) from error
    if last is not None:
        yield _with_problems(last, source)


def _reader_of(source: Source) -> Reader:
    suffix = effective_suffix(source.path, source.data)
    if suffix in BINARY_SUFFIXES:
        raise UnreadableFile("binary", f"binary content ({suffix})", skip=True)
    source.suffix = suffix
    return READERS.get(suffix, plain.read)


def read_document(source: Source) -> list[Document]:
    """Return the documents of a file: one, or one per record. Raises UnreadableFile."""
    return list(iter_documents(source))


def _with_problems(document: Document, source: Source) -> Document:
    problems = [*document.problems, *source.problems]
    if document.record is None and not document.text.strip():
        problems.append(("empty", "no text in this file", None))
    return replace(document, problems=tuple(problems)) if problems else document
