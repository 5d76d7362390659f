"""Several prompts read once by llama.cpp, and every answer begun under them continued together.

Owns llama.cpp's context: which tokens it holds under which sequence, so that a step costs the
new tokens alone and all rows of a step run in one batch. Tokens come from `gguf`; what their
probabilities are for is `gguf`'s and `generation.marginal`'s.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragcli.errors import ModelUnavailable
from ragcli.generation.generators.llama_library import interrupted, reason, working

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BATCH = 512
"""Tokens read at once."""


@dataclass(slots=True)
class _Held:
    """What a sequence holds: a prompt but for its last token, and then the `tail`.

    The tail is the prompt's last token and an answer begun; it is empty in the sequences
    that keep the prompts.
    """

    prompt: int
    tail: tuple[int, ...] = ()


@dataclass(slots=True)
class _Chain:
    """A tail to be held, and the lengths of it after which the next token is asked for."""

    prompt: int
    tail: tuple[int, ...]
    lengths: set[int]


class LlamaSequences:
    """A context of llama.cpp that has read `prompts`, each at least one token long."""

    def __init__(
        self,
        model: int,
        prompts: Sequence[Sequence[int]],
        *,
        room: int,
        together: int,
    ) -> None:
        """`room` is for the tokens of all answers; more is taken when they outgrow it.

        `together` rows run in one batch; more take turns, and their answers are read again each
        time. Raises ModelUnavailable.
        """
        import llama_cpp

        self._library: Any = llama_cpp
        self._model = model
        self._prompts = [tuple(prompt) for prompt in prompts]
        self._vocabulary: int = llama_cpp.llama_vocab_n_tokens(
            llama_cpp.llama_model_get_vocab(model)
        )
        limit = llama_cpp.llama_max_parallel_sequences() - len(prompts)
        if limit < 1:
            raise ModelUnavailable(
                f"llama.cpp cannot hold {len(prompts)} prompts at once",
                "ask for fewer passages: -k",
            )
        self._answers = min(limit, together)
        self._context: Any = None
        self._stop = llama_cpp.ggml_abort_callback(lambda _: interrupted())
        self._open(room)

    def close(self) -> None:
        """Free the context."""
        if self._context is not None:
            self._library.llama_batch_free(self._batch)
            self._library.llama_free(self._context)
            self._context = None

    def logits(self, rows: Sequence[tuple[int, tuple[int, ...]]]) -> NDArray[np.float32]:
        """(len(rows), V): of the token after each (prompt number, answer so far).

        Raises ModelUnavailable where llama.cpp fails.
        """
        import numpy as np

        found = np.empty((len(rows), self._vocabulary), dtype=np.float32)
        for start in range(0, len(rows), self._answers):
            tails = [
                (number, (self._prompts[number][-1], *answer))
                for number, answer in rows[start : start + self._answers]
            ]
            self._read_on(tails, found[start : start + self._answers])
        return found

    def _open(self, room: int) -> None:
        """A context with room for the prompts and `room` tokens more, the prompts read."""
        self.close()
        library = self._library
        # A context shorter than its batch, or with fewer tokens than sequences, makes it abort.
        self._cells = max(_BATCH, sum(map(len, self._prompts)) + room)
        params = library.llama_context_default_params()
        params.n_ctx = self._cells
        params.n_batch = params.n_ubatch = _BATCH
        params.n_seq_max = len(self._prompts) + self._answers
        params.n_threads = params.n_threads_batch = _processors()
        params.no_perf = True
        # Flash attention sums in half precision: a row would change with its neighbours.
        params.flash_attn_type = library.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.kv_unified = True  # sequences share what they have in common
        params.swa_full = True  # a prompt stays whole for the next answer, past a sliding window
        params.abort_callback = self._stop
        with working():
            context = library.llama_init_from_model(self._model, params)
        if not context:
            raise ModelUnavailable(
                f"llama.cpp opens no context of {self._cells} tokens{reason()}",
                "ask for fewer passages, or name a smaller model",
            )
        self._context = context
        self._batch = library.llama_batch_init(_BATCH, 0, 1)
        self._memory = library.llama_get_memory(context)
        if not self._memory:
            raise ModelUnavailable(
                "this model only encodes text; it cannot write an answer",
                "name a model that generates text",
            )
        self._held = {number: _Held(number) for number in range(len(self._prompts))}
        self._decode(
            [
                (token, position, number, False)
                for number, prompt in enumerate(self._prompts)
                for position, token in enumerate(prompt[:-1])
            ],
            None,
        )

    def _read_on(
        self, tails: Sequence[tuple[int, tuple[int, ...]]], found: NDArray[np.float32]
    ) -> None:
        """Read what the context does not hold of `tails`; `found` gets the logits after each."""
        chains = _chains(tails)
        needed = sum(map(len, self._prompts)) + sum(len(chain.tail) for chain in chains)
        if needed > self._cells:
            self._open(2 * (needed - sum(map(len, self._prompts))))
        entries: list[tuple[int, int, int, bool]] = []
        outputs: dict[tuple[int, tuple[int, ...]], int] = {}
        for chain, (sequence, kept) in zip(chains, self._place(chains), strict=True):
            start = len(self._prompts[chain.prompt]) - 1
            for index in range(kept, len(chain.tail)):
                wanted = index + 1 in chain.lengths
                entries.append((chain.tail[index], start + index, sequence, wanted))
                if wanted:
                    outputs[chain.prompt, chain.tail[: index + 1]] = len(outputs)
        import numpy as np

        logits = np.empty((len(outputs), self._vocabulary), dtype=np.float32)
        self._decode(entries, logits)
        for row, tail in enumerate(tails):
            found[row] = logits[outputs[tail]]

    def _place(self, chains: Sequence[_Chain]) -> list[tuple[int, int]]:
        """A sequence for each chain, and how much of its tail is there already.

        A chain goes on in the sequence that holds most of it. Where several go on from one, all
        but one get a copy, which costs no room.
        """
        donors = [self._donor(chain) for chain in chains]
        for sequence in [s for s, held in self._held.items() if held.tail and s not in donors]:
            self._library.llama_memory_seq_rm(self._memory, sequence, -1, -1)
            del self._held[sequence]
        places: list[tuple[int, int]] = []
        taken: set[int] = set()
        for chain, donor in zip(chains, donors, strict=True):
            held = self._held[donor]
            sequence = donor
            if not held.tail or donor in taken:
                sequence = next(s for s in range(len(self._held) + 1) if s not in self._held)
                end = len(self._prompts[chain.prompt]) - 1 + len(held.tail)
                self._library.llama_memory_seq_cp(self._memory, donor, sequence, 0, end)
                self._held[sequence] = _Held(chain.prompt, held.tail)
            taken.add(sequence)
            places.append((sequence, len(held.tail)))
        for chain, (sequence, _) in zip(chains, places, strict=True):
            self._held[sequence].tail = chain.tail
        return places

    def _donor(self, chain: _Chain) -> int:
        """The sequence that holds most of the chain and nothing else.

        The token before each wanted place must still be read: only then are there logits.
        """
        least = min(chain.lengths)

        def shared(sequence: int) -> int:
            held = self._held[sequence]
            size = len(held.tail)
            fits = held.prompt == chain.prompt and size < least and chain.tail[:size] == held.tail
            return size if fits else -1

        return max(self._held, key=shared)

    def _decode(
        self, entries: Sequence[tuple[int, int, int, bool]], logits: NDArray[np.float32] | None
    ) -> None:
        """Read (token, position, sequence, wanted) in batches; the wanted fill `logits`."""
        import numpy as np

        batch = self._batch
        done = 0
        for start in range(0, len(entries), _BATCH):
            part = entries[start : start + _BATCH]
            batch.n_tokens = len(part)
            for index, (token, position, sequence, wanted) in enumerate(part):
                batch.token[index] = token
                batch.pos[index] = position
                batch.n_seq_id[index] = 1
                batch.seq_id[index][0] = sequence
                batch.logits[index] = wanted
            with working():
                code = self._library.llama_decode(self._context, batch)
            if code:
                raise ModelUnavailable(
                    f"llama.cpp stopped reading with code {code}{reason()}",
                    "ask for fewer passages, or name another model",
                )
            count = sum(wanted for *_, wanted in part)
            if count and logits is not None:
                pointer = self._library.llama_get_logits(self._context)
                rows = np.ctypeslib.as_array(pointer, shape=(count, self._vocabulary))
                logits[done : done + count] = rows
                done += count


def _chains(tails: Sequence[tuple[int, tuple[int, ...]]]) -> list[_Chain]:
    """The tails that no other one continues, each with the lengths of those that it continues."""
    chains: list[_Chain] = []
    for number, tail in sorted(dict.fromkeys(tails), key=lambda item: -len(item[1])):
        size = len(tail)
        for chain in chains:
            if chain.prompt == number and chain.tail[:size] == tail:
                chain.lengths.add(size)
                break
        else:
            chains.append(_Chain(number, tail, {size}))
    return chains


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
