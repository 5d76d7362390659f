"""One question answered: what is printed, in which order, on which stream.

The table and the warnings are for people and go to stderr; the prompt or the answer is the result.
Owns that order, and why nothing was found. Generators are `answering`'s, batches `batch`'s.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ragcli.cli.output import Output, counted, print_json, print_result, writing
from ragcli.cli.wanted import Reply, Search, Wanted
from ragcli.errors import NegativeResult
from ragcli.generation.prompt import assemble
from ragcli.generation.visible import visible
from ragcli.records import Prompt, SearchRequest, SearchResult

if TYPE_CHECKING:
    from ragcli.cli.answering import Answered
    from ragcli.cli.mixing import Mixed
    from ragcli.generation.generators import Generator
    from ragcli.indexing.refresh import Refresh
    from ragcli.store.index import Index


def reply(
    question: str,
    wanted: Wanted,
    search: Search,
    opened: Index | None,
    output: Output,
    shown: frozenset[str],
) -> None:
    """Print what is asked for. Raises NegativeResult where nothing was found, or not enough."""
    result = wanted.result(question, search)
    chance = wanted.chance(result, opened)
    prompt = wanted.prompt(result)
    generator = wanted.generator
    if not output.as_json:
        if "table" in shown and opened is not None and result.hits:
            alone = "prompt" not in shown and generator is None
            _print_table(result, opened, wanted, output, chance, alone=alone)
        _warn(result, prompt, wanted, output)
    refused = _refusal(question, wanted, search, result, prompt, opened, chance)
    answered = mixed = None
    if generator is not None and refused is None:
        if prompt is None:
            mixed = _mixed(generator, wanted, result, output, shown)
        else:
            from ragcli.cli.answering import generate

            _show_prompts([prompt.text], output, shown)
            answered = generate(generator, prompt, result.hits, opened, show=not output.as_json)
    closed = _closed(question, wanted, answered, output)
    if output.as_json:
        from ragcli.cli.jsonout import answer

        whole = Reply(result, prompt, chance, answered, closed, mixed)
        print_json(answer(whole, explain=wanted.explain, refresh=wanted.refresh, identity={}))
    if refused is not None:
        raise refused
    if answered is not None:
        from ragcli.cli.answering import judge, tell

        if not output.as_json:
            tell(answered, result.hits, output)
        judge(answered, result.hits)
    elif mixed is not None and not output.as_json:
        _tell_mixed(mixed, result, output)
    elif prompt is not None and "prompt" in shown and not output.as_json:
        print_result(prompt.text)


def _refusal(
    question: str,
    wanted: Wanted,
    search: Search,
    result: SearchResult,
    prompt: Prompt | None,
    opened: Index | None,
    chance: float | None,
) -> NegativeResult | None:
    """Why there is nothing to hand on, None where there is."""
    if opened is None:
        return None
    if not result.hits:
        told = _nothing_found(replace(wanted.request, question=question), result, search)
        if opened.made_here and wanted.refresh is None and result.chunks:
            # Too many files, or a folder that may not be written: what is new is not known.
            told.hint = f"{told.hint}; the folder was not looked at for changes: ragcli index"
        return told
    if prompt is not None and not prompt.included:
        return NegativeResult(
            f"no passage fits into a prompt of {wanted.room()} tokens",
            "a larger --budget, or an index of smaller passages (ragcli index --chunk)",
        )
    if wanted.abstain is not None:
        from ragcli.cli.calibrated import abstain

        try:
            abstain(opened, chance, wanted.abstain, result)
        except NegativeResult as error:
            return error
    return None


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


def _mixed(
    generator: Generator,
    wanted: Wanted,
    result: SearchResult,
    output: Output,
    shown: frozenset[str],
) -> Mixed:
    """What the mixture says."""
    from ragcli.cli.mixing import mix, prompts_of

    assert wanted.mixture is not None
    assert generator.token_model is not None
    prompts = prompts_of(result, wanted.template)
    _show_prompts(prompts, output, shown)
    return mix(generator.token_model, wanted.mixture, result, prompts)


def _tell_mixed(mixed: Mixed, result: SearchResult, output: Output) -> None:
    """The answer on stdout, where each word came from on stderr; of a score, that is the result."""
    from ragcli.cli.mixing import lines

    told = lines(mixed, result.hits)
    if mixed.scored is not None:
        print_result("\n".join(told))
        return
    print_result(mixed.answers[0].text)
    for line in told:
        output.tell(line)


def _show_prompts(prompts: Sequence[str], output: Output, shown: frozenset[str]) -> None:
    """What the generator is about to read, on stderr where that is asked for."""
    if "prompt" in shown and not output.as_json:
        for prompt in prompts:
            output.tell(visible(prompt, keep="\n\t") + "\n")


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


def tell_refresh(refresh: Refresh, output: Output) -> None:
    """What has changed in the folder and what became of it, one line; nothing where it has not."""
    parts = [
        f"{number:,} {what}"
        for what, number in (
            ("changed", refresh.changed),
            ("new", refresh.came),
            ("gone", refresh.went),
        )
        if number
    ]
    if not parts:
        return
    if refresh.away:
        new = f", and {refresh.came:,} are new" if refresh.came else ""
        output.warn(
            f"none of the {counted(refresh.went, 'file')} of the index is there now{new}; "
            "if that is right: ragcli index"
        )
        return
    total = refresh.changed + refresh.came + refresh.went
    if refresh.busy:
        became = "not taken in, another ragcli is writing the index"
    elif not refresh.left:
        became = "taken in"
    elif refresh.left < total:
        became = f"taken in but {refresh.left:,}, which ragcli index takes in"
    else:
        became = "ragcli index takes them in"
    if refresh.failed:
        became += f"; {refresh.failed:,} without text now: ragcli inspect --problems"
    output.warn(f"files since they were indexed: {', '.join(parts)}; {became}")


def _warn(result: SearchResult, prompt: Prompt | None, wanted: Wanted, output: Output) -> None:
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
    if prompt is not None and prompt.dropped:
        ranks = ", ".join(f"[{rank}]" for rank in prompt.dropped)
        generator = wanted.generator
        bound = (
            f"--budget {wanted.budget}"
            if wanted.budget is not None or generator is None
            else f"the window of {generator.window:,} tokens that {generator.name} reads"
        )
        output.warn(f"left out of the prompt for {bound}: {ranks}")
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
