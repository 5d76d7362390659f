"""Beam search over mixtures of next-token distributions, several searches in one batch.

Knows tokens and numbers only. With one beam it is greedy search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ragcli.errors import UsageError
from ragcli.generation.marginal import mixture

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Distributions(Protocol):
    """What is asked of a model here; see `TokenModel`."""

    def logprobs(self, rows: Sequence[tuple[int, tuple[int, ...]]]) -> NDArray[np.float64]:
        """log p(next token | prompt, answer so far), (rows, V)."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """The passages that one search mixes, and their probabilities (m,); None: there is but one."""

    passages: tuple[int, ...]
    prior: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The beginning of an answer, or a whole one.

    `terms` holds for each token its log p under each of the search's passages.
    """

    tokens: tuple[int, ...] = ()
    log_likelihood: float = 0.0
    terms: tuple[tuple[float, ...], ...] = ()

    def worth(self, penalty: float) -> float:
        """What hypotheses are compared by."""
        return float(self.log_likelihood / len(self.tokens) ** penalty)


def search(
    model: Distributions,
    mixtures: Sequence[Mixture],
    ends: frozenset[int],
    limit: int,
    beams: int,
    length_penalty: float = 0.0,
) -> list[list[Hypothesis]]:
    """The `beams` best answers found under each mixture, best first; one batch for a token.

    Every step keeps the `beams` best beginnings, and sets aside those answers that end among its
    `beams` best continuations; at `limit` tokens a beginning is taken as it is. A search is over
    when none of its beginnings can become better than what it has. Raises UsageError for a beam
    or a limit below 1.
    """
    for option, number in (("--beams", beams), ("the limit of tokens", limit)):
        if number < 1:
            raise UsageError(f"{option} {number} is below 1", "use 1 or more")
    if length_penalty < 0:
        raise UsageError(f"a length penalty of {length_penalty:g} is below 0", "use 0, or up to 1")
    searches = [_Search(each, ends, limit, beams, length_penalty) for each in mixtures]
    while running := [each for each in searches if each.live]:
        rows = [row for each in running for row in each.rows()]
        table = model.logprobs(rows)
        start = 0
        for each in running:
            count = len(each.rows())
            each.advance(table[start : start + count])
            start += count
    return [each.finished for each in searches]


@dataclass
class _Search:
    mixture: Mixture
    ends: frozenset[int]
    limit: int
    beams: int
    penalty: float
    live: list[Hypothesis] = field(default_factory=lambda: [Hypothesis()])
    finished: list[Hypothesis] = field(default_factory=list)

    def rows(self) -> list[tuple[int, tuple[int, ...]]]:
        return [(z, each.tokens) for each in self.live for z in self.mixture.passages]

    def advance(self, table: NDArray[np.float64]) -> None:
        """Go on by one token; `table` (live · m, V) is log p of each under each passage."""
        import numpy as np

        m = len(self.mixture.passages)
        terms = table.reshape(len(self.live), m, -1)  # (live, m, V)
        mixed = terms[:, 0]
        if self.mixture.prior is not None:
            mixed = mixture(self.mixture.prior, terms.swapaxes(0, 1))  # (live, V)
        totals = mixed + np.array([[each.log_likelihood] for each in self.live])

        ended = [each for each in self._best(totals, terms) if each.tokens[-1] in self.ends]
        totals[:, sorted(self.ends)] = -np.inf
        live = self._best(totals, terms)
        if live and len(live[0].tokens) == self.limit:
            ended, live = ended + live, []
        self.finished = self._ranked([*self.finished, *ended])[: self.beams]
        self.live = live if self._can_improve(live) else []

    def _best(self, totals: NDArray[np.float64], terms: NDArray[np.float64]) -> list[Hypothesis]:
        """The best continuations, at most `beams`; of equals the earlier beam and token."""
        import numpy as np

        flat = totals.ravel()
        at = np.flatnonzero(flat > -np.inf)
        if at.size > self.beams:
            bar = np.partition(flat[at], at.size - self.beams)[at.size - self.beams]
            at = at[flat[at] >= bar]
        at = at[np.argsort(-flat[at], kind="stable")][: self.beams]
        places = zip(*np.unravel_index(at, totals.shape), strict=True)
        return [
            Hypothesis(
                (*self.live[row].tokens, int(token)),
                float(totals[row, token]),
                (*self.live[row].terms, tuple(map(float, terms[row, :, token]))),
            )
            for row, token in places
        ]

    def _ranked(self, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        return sorted(found, key=lambda each: (-each.worth(self.penalty), each.tokens))

    def _can_improve(self, live: Sequence[Hypothesis]) -> bool:
        """Whether some beginning may yet be worth more than the worst answer that is kept.

        A log-likelihood only falls, and a length is at most the limit.
        """
        if len(self.finished) < self.beams:
            return True
        longest = self.limit**self.penalty
        best = max((each.log_likelihood / longest for each in live), default=float("-inf"))
        return best > self.finished[-1].worth(self.penalty)
