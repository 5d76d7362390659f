"""The paper's mathematics: one answer, many passages (Lewis et al. 2020, section 2).

    p_eta(z|x)            softmax of the passages' scores
    RAG-Sequence  p(y|x)  sum over z of  p_eta(z|x) · product over i of  p(y_i | x, z, y_<i)
    RAG-Token     p(y|x)  product over i of  sum over z of  p_eta(z|x) · p(y_i | x, z, y_<i)

Owns the two likelihoods, the posteriors that follow from them, and what a language model is asked
for. All in log space, float64. Searching for an answer is `decoding`'s. Shapes: k passages, n
tokens of an answer, V tokens of the vocabulary; a logarithm is natural, -inf where p is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ragcli.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TokenModel(Protocol):
    """A language model seen token by token, under k prompts (one per passage)."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    @property
    def vocabulary(self) -> int:
        """How many tokens there are: V."""

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end an answer."""

    def tokens(self, text: str) -> list[int]:
        """The tokens of an answer's text, without one that ends it."""

    def text(self, tokens: Sequence[int]) -> str:
        """What an answer's tokens say; one that ends it says nothing."""

    def count(self, text: str) -> int:
        """Tokens of a prompt as the model reads it."""

    def room(self, prompt: str) -> int | None:
        """The most tokens that an answer may have behind `prompt`, None for any.

        Below 1 the prompt leaves no place for an answer, or does not fit itself.
        """

    def begin(self, prompts: Sequence[str]) -> None:
        """Read the k prompts, once; the rows of `logprobs` name them by their place, from 0."""

    def logprobs(self, rows: Sequence[tuple[int, tuple[int, ...]]]) -> NDArray[np.float64]:
        """log p(next token | prompt, answer so far), (rows, V), for (prompt's number, answer)."""


def passage_probabilities(scores: Sequence[float], temperature: float = 1.0) -> NDArray[np.float64]:
    """p_eta(z|x), (k,): the softmax of the passages' scores over `temperature`.

    The paper's scores are dot products, and its temperature is 1. Raises UsageError for no
    scores, for one that is not finite, and for a temperature that is not above 0.
    """
    import numpy as np

    if not 0 < temperature < float("inf"):
        raise UsageError(f"--temperature {temperature:g} is not above 0", "use --temperature 1")
    values = np.asarray(scores, np.float64)
    if not values.size or not np.isfinite(values).all():
        raise UsageError("a mixture needs passages, each with a score", "ask with -k 1 or more")
    with np.errstate(over="ignore"):  # a tiny temperature: the best passage alone is left
        raised = np.exp((values - values.max()) / temperature)
    return np.asarray(raised / raised.sum())


def log_sum(values: NDArray[np.float64], axis: int = 0) -> NDArray[np.float64]:
    """log of the sum of exp(values) along `axis`; -inf where all of it is -inf."""
    import numpy as np

    top = np.max(values, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(values - top).sum(axis=axis, keepdims=True))
    return np.asarray(np.squeeze(total + top, axis=axis))


def mixture(prior: NDArray[np.float64], logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
    """log of the sum over z of p_eta(z) · p(·|z): `prior` (k,), `logprobs` (k, ...), gives (...).

    Over (k, V) it is RAG-Token's next token, over (k,) RAG-Sequence's likelihood of an answer
    whose log p(y|x,z) those are.
    """
    return log_sum(_weighted(prior, logprobs))


def posterior(prior: NDArray[np.float64], logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
    """p(z|x,·), (k, ...), of what was seen with log p(·|x,z) `logprobs` (k, ...): 1 over z.

    What no passage could have given says nothing of them, and leaves the prior.
    """
    import numpy as np

    joint = _weighted(prior, logprobs)
    unlearnt = _weighted(prior, np.zeros_like(logprobs))
    joint = np.where(np.isfinite(joint.max(axis=0)), joint, unlearnt)
    raised = np.exp(joint - joint.max(axis=0))
    return np.asarray(raised / raised.sum(axis=0))


def sequence_log_likelihood(prior: NDArray[np.float64], logprobs: NDArray[np.float64]) -> float:
    """RAG-Sequence's log p(y|x); `logprobs` (k, n) is log p(y_i | x, z, y_<i)."""
    return float(mixture(prior, logprobs.sum(axis=1)))


def token_log_likelihood(prior: NDArray[np.float64], logprobs: NDArray[np.float64]) -> float:
    """RAG-Token's log p(y|x); `logprobs` (k, n) is log p(y_i | x, z, y_<i)."""
    return float(mixture(prior, logprobs).sum())


def sequence_posterior(
    prior: NDArray[np.float64], logprobs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """RAG-Sequence's p(z|x,y), (k,): which passage the whole answer came from."""
    return posterior(prior, logprobs.sum(axis=1))


def token_posteriors(
    prior: NDArray[np.float64], logprobs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """RAG-Token's p(z|x,y_<=i) of each token, (n, k): each token chooses its passage anew."""
    import numpy as np

    return np.asarray(posterior(prior, logprobs).T)


def _weighted(prior: NDArray[np.float64], logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
    """log (p_eta(z) · p(·|z)), shaped like `logprobs`."""
    import numpy as np

    with np.errstate(divide="ignore"):
        weights = np.log(prior)
    return np.asarray(weights.reshape(-1, *[1] * (logprobs.ndim - 1)) + logprobs)
