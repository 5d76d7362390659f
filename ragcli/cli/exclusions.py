"""Options of `ragcli query` that exclude each other, or would have no effect beside each other.

They are refused before anything is opened or loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragcli.errors import UsageError
from ragcli.generation.generators import IN_PROCESS, kind_of

if TYPE_CHECKING:
    from ragcli.cli.query import Query


def refuse(query: Query, spec: str | None) -> None:
    """Raises UsageError for the first that is amiss; `spec` is the generator's, None for none."""
    scored, fused = query.score_answer is not None, query.decode == "fid"
    mixed = scored or query.decode != "concat"
    single = query.batch is None and query.k > 0
    asked = "--score-answer" if scored else f"--decode {query.decode}"
    for wrong, told, hint in (
        (
            query.abstain is not None and not single,
            "--abstain is for one question over an index",
            "a --batch has `answerable` for each; -k 0 asks no index",
        ),
        (
            query.compare_closed_book and (spec is None or not single or mixed),
            "--compare-closed-book is for one question over passages, with a generator",
            "-G SPEC, without --batch, --decode or --score-answer",
        ),
        (
            mixed and (spec is None or not single),
            f"{asked} is for one question over passages, with a generator",
            "-G hf:NAME_OR_FOLDER or -G gguf:FILE, without --batch",
        ),
        (
            mixed and spec is not None and kind_of(spec) not in IN_PROCESS,
            f"{asked} needs a model in this process, and the generator is elsewhere",
            "use -G hf:NAME_OR_FOLDER or -G gguf:FILE",
        ),
        (
            scored and fused,
            "--score-answer is of the two mixtures, and --decode fid is none",
            "leave out --decode, or name rag-token or rag-sequence",
        ),
        (
            query.decoding is not None and (scored or query.decode != "rag-sequence"),
            "--decoding is how --decode rag-sequence weighs what its beams found",
            "leave it out",
        ),
        (
            query.beams is not None and (scored or not mixed),
            "--beams are of the search of --decode rag-token, rag-sequence and fid",
            "leave them out",
        ),
        (
            query.temperature is not None and (fused or not mixed),
            "--temperature is of p(z|x), which only the mixtures have",
            "use --decode rag-token or rag-sequence, or leave it out",
        ),
        (
            mixed and (query.order is not None or query.budget is not None),
            f"{asked} gives each passage a prompt of its own, without --order and --budget",
            "leave them out",
        ),
    ):
        if wrong:
            raise UsageError(told, hint)
