"""What to make of a question, and what became of it: the values between `query` and what prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragcli.generation.prompt import assemble
from ragcli.records import Prompt, SearchRequest, SearchResult

if TYPE_CHECKING:
    from ragcli.cli.answering import Answered
    from ragcli.cli.mixing import Mixed, MixtureRequest
    from ragcli.errors import RagcliError
    from ragcli.generation.generators import Generator
    from ragcli.indexing.refresh import Refresh
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
    mixture: MixtureRequest | None = None
    compared: bool = False
    generator: Generator | None = None
    refresh: Refresh | None = None

    def result(self, question: str, search: Search) -> SearchResult:
        """The hits of `question`."""
        return search(replace(self.request, question=question))

    def prompt(self, result: SearchResult) -> Prompt | None:
        """The prompt over the hits, counted in the generator's tokens if it can.

        None for a mixture, which reads each passage in a prompt of its own.
        """
        if self.mixture is not None:
            return None
        budget = self.room() if result.hits else self.budget
        return assemble(
            result.question, result.hits, budget=budget, template=self.template, order=self.order,
            count=self.generator.count if self.generator and budget else None,
        )  # fmt: skip

    def chance(self, result: SearchResult, opened: Index | None) -> float | None:
        """P(answerable), where the index is calibrated."""
        if opened is None:
            return None
        from ragcli.cli.calibrated import answerable

        return answerable(opened, result, self.request.rerank)

    def room(self) -> int | None:
        """Tokens that the prompt may have: the budget, else what the generator's window leaves."""
        if self.budget is not None or self.generator is None:
            return self.budget
        from ragcli.generation.generators import ANSWER_LIMIT

        window = self.generator.window
        return None if window is None else window - min(ANSWER_LIMIT, window // 4)


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of one question.

    `prompt` is None for a mixture and where it could not be made, `chance` P(answerable) where the
    index was calibrated, `failed` why a question of a batch has no answer.
    """

    result: SearchResult
    prompt: Prompt | None = None
    chance: float | None = None
    answered: Answered | None = None
    closed: Answered | None = None
    mixed: Mixed | None = None
    failed: RagcliError | None = None
