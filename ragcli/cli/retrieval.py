"""The options that say how a question is answered, for each command that asks one."""

# Without `from __future__ import annotations`: see `options`.

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragcli.cli import options
from ragcli.errors import UsageError
from ragcli.records import SearchRequest

if TYPE_CHECKING:
    from ragcli.indexing.refresh import Refresh
    from ragcli.retrieval.retriever import Retriever
    from ragcli.store.index import Index

_retrieval = partial(typer.Option, rich_help_panel="Retrieval")


@dataclass(frozen=True, kw_only=True)
class Retrieval(options.CommandLine):
    """The options of retrieval and of what fits into the prompt."""

    k: Annotated[
        int,
        _retrieval(
            "-k",
            parser=options.whole_number(0),
            metavar="N",
            show_default=False,
            help="passages; 0: the closed book, which needs no index [5]",
        ),
    ] = 5
    mode: Annotated[
        str | None,
        _retrieval(
            parser=options.one_of("hybrid", "dense", "lexical"),
            metavar="NAME",
            help="hybrid, dense or lexical [hybrid]",
        ),
    ] = None
    alpha: Annotated[
        float | None,
        _retrieval(parser=options.share, metavar="0…1", help="the dense share of the mix"),
    ] = None
    fusion: Annotated[
        str,
        _retrieval(
            parser=options.one_of("mix", "rrf"),
            metavar="NAME",
            show_default=False,
            help="mix of scaled scores, or rrf, reciprocal ranks [mix]",
        ),
    ] = "mix"
    rerank: Annotated[
        str | None,
        _retrieval(metavar="MODEL", help="order the best 50 by a cross-encoder; needs ragcli[st]"),
    ] = None
    path: Annotated[
        list[str] | None,
        _retrieval(metavar="GLOB", help="only files that match; may be given again"),
    ] = None
    max_per_file: Annotated[
        int | None,
        _retrieval(parser=options.whole_number(1), metavar="N", help="passages of one file"),
    ] = None
    budget: Annotated[
        int | None,
        _retrieval(
            parser=options.whole_number(1),
            metavar="TOKENS",
            help="leave out passages that would make the prompt longer",
        ),
    ] = None

    def request(self, question: str) -> SearchRequest:
        """What the options ask of the index. Raises UsageError for those that exclude others."""
        if self.alpha is not None and self.fusion == "rrf":
            raise UsageError("--alpha is a share of the mix, and --fusion rrf has none", "drop one")
        if self.alpha is not None and self.mode in ("dense", "lexical"):
            raise UsageError(
                f"--alpha is a share of the mix, and --mode {self.mode} has none", "drop one"
            )
        if self.rerank is not None and not self.rerank.strip():
            raise UsageError("--rerank is empty", "name a cross-encoder, or leave it out")
        return SearchRequest(
            question,
            k=self.k,
            mode=self.mode,
            fusion=self.fusion,
            alpha=self.alpha,
            paths=tuple(self.path or ()),
            max_per_file=self.max_per_file,
            rerank=self.rerank,
        )


def refreshed(location: Path | None, how: str) -> "Refresh | None":
    """Take in what has changed in the folder, by `auto` what is little; None where none looked.

    Raises IndexUnavailable in its kinds, with `always` what a run of `index` does.
    """
    if how == "never":
        return None
    _one_thread()
    from ragcli.indexing.refresh import refresh, take_in
    from ragcli.store.index import locate

    return (take_in if how == "always" else refresh)(locate(location))


def _one_thread() -> None:
    """OpenBLAS starts a thread for each core as it is loaded and lets it spin: 60 ms, for one
    small product.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@contextmanager
def searching(location: Path | None) -> Iterator[tuple["Retriever", "Index"]]:
    """The index and a retriever over it; what questions had vectors made for is kept afterwards."""
    _one_thread()
    from ragcli.retrieval.retriever import Retriever
    from ragcli.store.index import Index, locate

    with Index.open(locate(location)) as opened:
        retriever = Retriever(opened)
        yield retriever, opened
    # The answer is out: what had to be made for it is kept where that can be done at once.
    retriever.keep()
