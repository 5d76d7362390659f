"""One question answered, or a batch of them: what is printed, in which order, on which stream.

The table and the warnings are for people and go to stderr; the prompt or the answer is the result.
Owns that order, and why nothing was found. Generators are `answering`'s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragcli.cli.output import Output, counted, print_json, print_result, writing
from ragcli.errors import NegativeResult
from ragcli.generation.prompt import assemble
from ragcli.generation.visible import visible
from ragcli.records import Prompt, SearchRequest, SearchResult

if TYPE_CHECKING:
    from ragcli.cli.answering import Answered
    from ragcli.cli.batch import Asked
    from ragcli.cli.mixing import Mixture
    from ragcli.generation.generators import Generator
    from ragcli.store.index import Index

Search = Callable[[SearchRequest], SearchResult]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to make of each question: the request with its question left empty, and the prompt."""

    request: SearchRequest
    budget: int | None
    template: str | None
    explain: bool
    abstain: float | None
    order: str
    mixture: Mixture | None = None
    compared: bool = False
    generator: Generator | None = None

    def of(self, question: str, search: Search) -> tuple[SearchResult, Prompt]:
        """The hits of `question` and their prompt, counted in the generator's tokens if it can."""
        result = search(replace(self.request, question=question))
        prompt = assemble(
            question, result.hits, budget=self.budget, template=self.template, order=self.order,
            count=self.generator.count if self.generator and self.budget else None,
        )  # fmt: skip
        return result, prompt


def reply_all(asked: Sequence[Asked], wanted: Wanted, search: Search, opened: Index | None) -> None:
    """One JSON object a line, each written as soon as it is known; none is an error."""
    from ragcli.cli.jsonout import answer

    for identity, question in asked:
        result, prompt = wanted.of(question, search)
        chance = _chance(opened, result, wanted)
        answered = None
        if wanted.generator is not None and (result.hits or opened is None):
            from ragcli.cli.answering import generate

            root = None if opened is None else opened.root
            answered = generate(wanted.generator, prompt, result.hits, root, show=False)
        print_json(
            answer(
                result, prompt, chance, answered, explain=wanted.explain, identity={"id": identity}
            )
        )


def _chance(opened: Index | None, result: SearchResult, wanted: Wanted) -> float | None:
    """P(answerable), where the index is calibrated."""
    if opened is None:
        return None
    from ragcli.cli.calibrated import answerable

    return answerable(opened, result, wanted.request.rerank)


def reply(
    question: str,
    wanted: Wanted,
    search: Search,
    opened: Index | None,
    output: Output,
    shown: frozenset[str],
) -> None:
    """Print what is asked for. Raises NegativeResult where nothing was found, or not enough."""
    result, prompt = wanted.of(question, search)
    chance = _chance(opened, result, wanted)
    generator = wanted.generator
    if not output.as_json:
        if "table" in shown and opened is not None and result.hits:
            alone = "prompt" not in shown and generator is None
            _print_table(result, opened, wanted, output, chance, alone=alone)
        _warn(result, prompt, wanted, output)
    found = opened is None or bool(result.hits)
    refused = None
    try:
        if not found:
            raise _nothing_found(replace(wanted.request, question=question), result, search)
        if wanted.abstain is not None and opened is not None:
            from ragcli.cli.calibrated import abstain

            abstain(opened, chance, wanted.abstain, result)
    except NegativeResult as error:
        refused = error
    answered = None
    if generator is not None and refused is None and wanted.mixture is not None:
        _mix(question, wanted, wanted.mixture, result, output)
        return
    if generator is not None and refused is None:
        from ragcli.cli.answering import generate

        root = None if opened is None else opened.root
        answered = generate(generator, prompt, result.hits, root, show=not output.as_json)
    closed = _closed(question, wanted, answered, output)
    if output.as_json:
        from ragcli.cli.jsonout import answer

        print_json(
            answer(result, prompt, chance, answered, closed, explain=wanted.explain, identity={})
        )
    if refused is not None:
        raise refused
    if answered is not None:
        from ragcli.cli.answering import judge, tell

        if not output.as_json:
            tell(answered, result.hits, output)
        judge(answered)
    elif "prompt" in shown and not output.as_json:
        print_result(prompt.text)


def _closed(
    question: str, wanted: Wanted, answered: Answered | None, output: Output
) -> Answered | None:
    """The same question without the passages, shown below the answer with them."""
    if not wanted.compared or answered is None or wanted.generator is None:
        return None
    from ragcli.cli.answering import generate, same

    if not output.as_json:
        print_result("\nwithout the passages:\n")
    prompt = assemble(question, (), template=wanted.template)
    closed = generate(wanted.generator, prompt, (), None, show=not output.as_json)
    if not output.as_json:
        told = "the same" if same(answered.text, closed.text) else "another one"
        output.warn(f"without the passages the answer is {told}")
    return closed


def _mix(
    question: str, wanted: Wanted, mixture: Mixture, result: SearchResult, output: Output
) -> None:
    """The mixture's answer on stdout, where each word came from on stderr."""
    from ragcli.cli.mixing import lines, mix

    assert wanted.generator is not None
    mixed = mix(wanted.generator, mixture, question, result.hits, wanted.template)
    if output.as_json:
        from ragcli.cli.jsonout import mixture as as_json

        print_json(as_json(result, mixed, wanted.generator.name, explain=wanted.explain))
        return
    if mixture.scored is None:
        print_result(mixed.answers[0].text)
    for line in lines(mixed, result.hits):
        output.tell(line)


def _print_table(
    result: SearchResult,
    opened: Index,
    wanted: Wanted,
    output: Output,
    chance: float | None,
    *,
    alone: bool,
) -> None:
    """The table on stdout where it is all that was asked for, else on stderr."""
    stream = sys.stdout if alone else sys.stderr
    if stream is None or (output.quiet and not alone):
        return
    from ragcli.cli.render import console, score_table

    with writing():
        score_table(
            console(stream, color=output.color),
            result,
            root=opened.root,
            languages=opened.languages(),
            explain=wanted.explain,
            answerable=chance,
        )
        if not alone:
            stream.write("\n")
        stream.flush()


def _warn(result: SearchResult, prompt: Prompt, wanted: Wanted, output: Output) -> None:
    """What a reader must know of the index and the prompt, a line each; JSON has it all."""
    stale = sorted({visible(hit.path) for hit in result.hits if hit.stale})
    if stale:
        output.warn(
            f"changed or gone since they were indexed: {', '.join(stale)}; "
            "ragcli index makes the index true again"
        )
    if result.problems:
        output.warn(
            f"the index has {counted(result.problems, 'problem')} with files or pages that it "
            "does not cover; ragcli inspect --problems lists them"
        )
    if result.mode in ("hybrid", "dense") and result.embedded < result.chunks:
        missing = result.chunks - result.embedded
        now = f" ({result.embedded_now:,} made for this answer)" if result.embedded_now else ""
        output.warn(f"{missing:,} of {result.chunks:,} passages have no vector yet{now}; "
                    "ragcli index makes them")  # fmt: skip
    if result.cut:
        output.warn(f"the reranker could not read {counted(result.cut, 'passage')} to the end")
    if prompt.dropped:
        ranks = ", ".join(f"[{rank}]" for rank in prompt.dropped)
        output.warn(f"left out of the prompt for --budget {wanted.budget}: {ranks}")
    steps = ", ".join(f"{step} {spent:.1f} ms" for step, spent in result.timings_ms.items())
    if steps:
        output.remark(steps)


def _nothing_found(request: SearchRequest, result: SearchResult, search: Search) -> NegativeResult:
    """Why there is no hit, as well as can be told, and what may help."""
    if not result.chunks:
        return NegativeResult(
            "nothing found: the index holds no passage yet",
            "ragcli index   (if one is at work, wait for its first commit)",
        )
    if request.paths and search(replace(request, paths=(), k=1)).hits:
        return NegativeResult(
            f"nothing found in files that match {' or '.join(request.paths)}; others have passages",
            "leave out --path or widen it; paths are relative to the indexed folder",
        )
    if not result.terms:
        return NegativeResult(
            "nothing found: the question has no word to search for",
            "ask with a word that stands in the documents",
        )
    return NegativeResult(
        "nothing found: no passage has a word of the question",
        "try other words"
        + (", or another --mode" if result.mode == "lexical" and result.embedded else ""),
    )
