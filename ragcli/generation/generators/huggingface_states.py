"""What a transformers model keeps of the prompts it has read, and how it goes on from there.

`States` is k prompts, read once, and the answers begun under them; `open_states` gives the one
for a model's kind. Tokens in, log probabilities out: texts are `huggingface`'s.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Row = tuple[int, tuple[int, ...]]
"""(prompt's number, answer so far)"""


@dataclass(frozen=True, slots=True)
class _Reached:
    """Rows of equal length that the model has read, their keys and values, what comes next."""

    place: dict[Row, int]
    cache: Any
    logits: Any  # (rows, V)


class States:
    """A causal model under k prompts, laid left-padded into one batch."""

    def __init__(self, model: Any, prompts: Sequence[Sequence[int]]) -> None:
        """Read `prompts`, each of one token or more."""
        self._model = model
        takes = inspect.signature(model.forward).parameters
        # Its name changed in transformers 5; the old one is deprecated in the newer.
        self._cache_name = "cache" if "cache" in takes else "past_key_values"
        self._optional = {"position_ids", "logits_to_keep"} & set(takes)
        self._start = self._read(prompts)
        self._reached: dict[int, _Reached] = {}

    @property
    def attends(self) -> bool:
        """Whether some layer keeps keys and values; a Mamba alone takes a prompt's mask amiss."""
        cache = getattr(self._start.cache, "self_attention_cache", self._start.cache)
        return any(hasattr(layer, "keys") for layer in getattr(cache, "layers", ()))

    def logprobs(self, rows: Sequence[Row]) -> NDArray[np.float64]:
        """(rows, V); goes on from what the last call reached, else from the prompts."""
        import numpy as np
        import torch

        reached = {}
        for length in sorted({len(answer) for _, answer in rows}):
            wanted = list(dict.fromkeys(row for row in rows if len(row[1]) == length))
            reached[length] = self._reach(wanted, length)
        self._reached = reached
        parts = [reached[len(row[1])].logits[reached[len(row[1])].place[row]] for row in rows]
        found = torch.stack(parts).double().log_softmax(-1).cpu().numpy()
        return np.asarray(found, np.float64)

    def _reach(self, rows: Sequence[Row], length: int) -> _Reached:
        import torch

        if length == 0:
            return self._start
        before = self._reached.get(length - 1)
        step = 1
        if before is None or any((z, answer[:-1]) not in before.place for z, answer in rows):
            before, step = self._start, length
        parents = [before.place[z, answer[: length - step]] for z, answer in rows]
        device = self._model.device
        cache = _branch(before.cache, torch.tensor(parents, device=device))
        out = self._run(
            torch.tensor([answer[length - step :] for _, answer in rows], device=device),
            torch.tensor([z for z, _ in rows], device=device),
            length,
            cache,
        )
        return self._after(out, rows)

    def _after(self, out: Any, rows: Sequence[Row]) -> _Reached:
        place = {row: i for i, row in enumerate(rows)}
        return _Reached(place, getattr(out, self._cache_name, None), out.logits[:, -1])

    def _read(self, prompts: Sequence[Sequence[int]]) -> _Reached:
        ids, self._mask = _padded(prompts, self._model.device, left=True)
        numbers = self._mask.cumsum(-1) - 1
        out = self._forward(
            input_ids=ids, attention_mask=self._mask, position_ids=numbers.clamp(min=0),
            logits_to_keep=1,
        )  # fmt: skip
        return self._after(out, [(z, ()) for z in range(len(prompts))])

    def _run(self, tokens: Any, prompts: Any, length: int, cache: Any) -> Any:
        """Read the last of `length` tokens, (rows, step), under `prompts` (rows,)."""
        import torch

        rows, step = tokens.shape
        mask = self._mask[prompts]
        ones = torch.ones((rows, length), dtype=mask.dtype, device=mask.device)
        first = mask.sum(-1, keepdim=True) + length - step
        return self._forward(
            input_ids=tokens, attention_mask=torch.cat([mask, ones], dim=-1),
            position_ids=first + torch.arange(step, device=mask.device),
            logits_to_keep=1, **{self._cache_name: cache},
        )  # fmt: skip

    def _forward(self, **inputs: Any) -> Any:
        import torch

        for name in ("position_ids", "logits_to_keep"):
            if name not in self._optional:
                inputs.pop(name, None)
        with torch.inference_mode():
            return self._model(**inputs, use_cache=True, return_dict=True)


class EncodedStates(States):
    """An encoder-decoder model: each prompt encoded once, the answers decoded over its states.

    With `fused`, the prompts are encoded apart and their states then stand one behind the other,
    as one prompt (Fusion-in-Decoder).
    """

    def __init__(
        self,
        model: Any,
        prompts: Sequence[Sequence[int]],
        first: Sequence[int],
        *,
        fused: bool = False,
    ) -> None:
        """`first`: the tokens that every answer of this model begins with, not a part of it."""
        self._first = first
        self._fused = fused
        super().__init__(model, prompts)

    def _read(self, prompts: Sequence[Sequence[int]]) -> _Reached:
        import torch

        ids, mask = _padded(prompts, self._model.device, left=False)
        with torch.inference_mode():
            encoder = self._model.get_encoder()
            states = encoder(input_ids=ids, attention_mask=mask, return_dict=True)[0]
        if self._fused:
            kept = mask.bool()
            states, mask = states[kept][None], mask[kept][None]
        self._states, self._mask = states, mask
        rows = len(states)
        out = self._run(
            torch.tensor([self._first] * rows, device=mask.device),
            torch.arange(rows, device=mask.device),
            0,
            None,
        )
        return self._after(out, [(z, ()) for z in range(rows)])

    def _run(self, tokens: Any, prompts: Any, length: int, cache: Any) -> Any:
        return self._forward(
            encoder_outputs=(self._states[prompts],), attention_mask=self._mask[prompts],
            decoder_input_ids=tokens, **{self._cache_name: cache},
        )  # fmt: skip


def _padded(prompts: Sequence[Sequence[int]], device: Any, *, left: bool) -> tuple[Any, Any]:
    """(ids, mask), (k, longest) each; what fills the shorter ones is masked, so 0 will do."""
    import torch

    longest = max(map(len, prompts))
    ids, mask = torch.zeros((2, len(prompts), longest), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        span = slice(longest - len(prompt), longest) if left else slice(len(prompt))
        ids[row, span] = torch.tensor(prompt)
        mask[row, span] = 1
    return ids.to(device), mask.to(device)


def _branch(cache: Any, rows: Any) -> Any:
    """A cache of `cache`'s rows at the places `rows`; `cache` itself keeps its own."""
    branch = _copied(cache)
    for name in ("self_attention_cache", "cross_attention_cache"):
        if hasattr(cache, name):
            setattr(branch, name, _branch(getattr(cache, name), rows))
    if hasattr(cache, "layers"):
        branch.layers = [_copied(layer) for layer in cache.layers]
        branch.reorder_cache(rows)
    return branch


def _copied(kept: Any) -> Any:
    """A copy that shares `kept`'s tensors, which nobody writes into, but none of its tables."""
    copied = copy.copy(kept)
    for name, value in vars(kept).items():
        if isinstance(value, dict):
            setattr(copied, name, dict(value))
    return copied
