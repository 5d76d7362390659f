"""Which reader reads which file, and the one place where a parser's failure becomes a record.

A reader is one module with `read(source) -> Iterable[Document]` that imports its parser inside
that function. Adding one is a new module and its line in `READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ragcli.corpus.readers import (
    code,
    delimited,
    docx,
    epub,
    html,
    jsonl,
    mail,
    markdown,
    notebook,
    odt,
    pdf,
    plain,
    pptx,
    rst,
    xlsx,
    xml,
)
from ragcli.corpus.source import Source, suffix_of
from ragcli.errors import UnreadableFile
from ragcli.records import Document

Reader = Callable[[Source], Iterable[Document]]


def _unsupported(source: Source) -> Iterable[Document]:
    raise UnreadableFile("unsupported", f"{source.suffix} files are not supported")


def _suffixes(names: str, reader: Reader) -> dict[str, Reader]:
    return {f".{name}": reader for name in names.split()}


READERS: dict[str, Reader] = {
    **_suffixes("txt text log org adoc asciidoc mediawiki wiki man srt vtt tex bib po", plain.read),
    **_suffixes("ini cfg conf toml editorconfig properties env", plain.read),
    **_suffixes("md markdown mdown mkd mdx qmd rmd", markdown.read),
    **_suffixes("rst rest", rst.read),
    **_suffixes("html htm xhtml shtml", html.read),
    **_suffixes("xml rss atom fb2 opml dita docbook dbk tei", xml.read),
    **_suffixes("pdf", pdf.read),
    **_suffixes("ipynb", notebook.read),
    **_suffixes("jsonl ndjson jsonlines", jsonl.read),
    **_suffixes("csv tsv tab", delimited.read),
    **_suffixes("eml", mail.read),
    **_suffixes("docx docm dotx", docx.read),
    **_suffixes("pptx pptm ppsx", pptx.read),
    **_suffixes("xlsx xlsm xltx", xlsx.read),
    **_suffixes("epub", epub.read),
    **_suffixes("odt", odt.read),
    **_suffixes("rtf doc xls ppt ods odp pages numbers key msg mobi azw3 djvu ps", _unsupported),
    **_suffixes("py pyi pyx js mjs cjs jsx ts mts cts tsx vue svelte go rs java kt kts", code.read),
    **_suffixes("scala groovy gradle c h cc cpp cxx hh hpp hxx cs fs swift m mm rb php", code.read),
    **_suffixes("pl pm lua r jl dart ex exs erl hs ml mli clj el lisp scm nim zig v d", code.read),
    **_suffixes("sh bash zsh fish ps1 bat cmd sql css scss sass less graphql proto tf", code.read),
    **_suffixes("json json5 jsonc geojson yaml yml map lock mk cmake dockerfile", code.read),
}
"""The reader of each suffix, in lower case; what is not here is told by its content."""

ISOLATED = frozenset(
    ".pdf .html .htm .xhtml .shtml .xml .rss .atom .fb2 .opml .dita .docbook .dbk .tei .eml"
    " .docx .docm .dotx .pptx .pptm .ppsx .xlsx .xlsm .xltx .epub .odt".split()
)
"""Suffixes whose parser is native or complex enough to run in a child process only."""

BINARY_SUFFIXES = frozenset(
    f".{name}"
    for name in (
        "png jpg jpeg gif bmp tif tiff webp heic heif avif ico icns svg svgz psd ai eps xcf cr2"
        " nef dng mp3 wav flac ogg oga opus m4a aac wma aiff mid midi mp4 m4v mkv webm avi mov wmv"
        " flv mpg mpeg 3gp zip gz tgz bz2 tbz xz txz zst lz4 7z rar tar jar war ear whl egg deb rpm"
        " apk ipa dmg iso img cab cpio exe dll so dylib a o obj lib pyc pyo pyd class wasm bin"
        " elf com sys msi ttf otf woff woff2 eot sqlite sqlite3 db db3 mdb accdb pickle pkl pck"
        " npy npz npt pt pth ckpt safetensors gguf ggml onnx tflite h5 hdf5 parquet feather arrow"
        " orc avro mat rds rdata sav dta joblib swp swo idx pack blend fbx glb stl"
        " dwg dxf mo gmo res nib crx xpi pcap pcapng keystore jks p12 pfx der"
    ).split()
)
"""Suffixes of what is never text: left out without a look at the content."""

_NAMES = {
    **dict.fromkeys(("dockerfile", "containerfile"), ".dockerfile"),
    **dict.fromkeys(("makefile", "gnumakefile"), ".mk"),
    **dict.fromkeys(("cmakelists.txt",), ".cmake"),
    **dict.fromkeys(("gemfile", "rakefile", "vagrantfile", "podfile"), ".rb"),
    **dict.fromkeys(("jenkinsfile",), ".groovy"),
}


def effective_suffix(path: str, head: bytes = b"") -> str:
    """Return the suffix whose reader is the right one: of the name, or `.pdf` by content.

    `head` are the first bytes of the file, which count where the name's suffix is unknown.
    """
    name = path.rpartition("/")[2].lower()
    suffix = _NAMES.get(name) or _NAMES.get(name.partition(".")[0]) or suffix_of(path)
    known = suffix in READERS or suffix in BINARY_SUFFIXES
    return ".pdf" if not known and head.startswith(b"%PDF-") else suffix


def is_plain(path: str) -> bool:
    """Whether the name promises a kind whose reader is safe in any process."""
    suffix = effective_suffix(path)
    return suffix in READERS and suffix not in ISOLATED


def iter_documents(source: Source) -> Iterator[Document]:
    """Yield the documents of a file one by one; the last has the problems of the whole file.

    Raises UnreadableFile for what cannot be read, be it after some documents. Whatever a parser
    raises becomes one of kind `corrupt` (or `memory`), with its type and first line.
    """
    suffix = effective_suffix(source.path, source.data[:8])
    if suffix in BINARY_SUFFIXES:
        raise UnreadableFile("binary", f"binary content ({suffix})", skip=True)
    reader = READERS.get(suffix, plain.read)
    source.suffix = suffix
    last: Document | None = None
    try:
        for document in reader(source):
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


def read_document(source: Source) -> list[Document]:
    """Return the documents of a file: one, or one per record. Raises UnreadableFile."""
    return list(iter_documents(source))


def _with_problems(document: Document, source: Source) -> Document:
    problems = [*document.problems, *source.problems]
    if document.record is None and not document.text.strip():
        problems.append(("empty", "no text in this file", None))
    return replace(document, problems=tuple(problems)) if problems else document
