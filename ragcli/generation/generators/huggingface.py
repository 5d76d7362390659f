"""`hf:NAME_OR_FOLDER`: a transformers model in this process, causal or encoder-decoder.

One class is both the Generator and the TokenModel, and both say the same: the next token's
distribution as the model gives it, the likeliest taken. The sampling that its makers ship with
it (temperature, penalties) is left out, so that the same question has the same answer, and a
mixture over one passage is the ordinary answer. Loading is `huggingface_loading`'s, the caches
`huggingface_states`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ragcli.encoders.hub import line, quiet
from ragcli.errors import ModelUnavailable, UsageError
from ragcli.generation.generators import ANSWER_CUE, ANSWER_LIMIT, Usage
from ragcli.generation.generators.huggingface_loading import Weights
from ragcli.generation.generators.huggingface_states import EncodedStates, States

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def open_huggingface(name: str) -> HuggingFace:
    """The model `name`, a folder or a name on huggingface.co; its weights are loaded when asked.

    Raises ModelUnavailable for a model that is not there or cannot write.
    """
    weights = Weights(name)
    return EncoderDecoder(weights) if weights.config.is_encoder_decoder else HuggingFace(weights)


class HuggingFace:
    """A causal model, whose answer goes on where the prompt ends."""

    def __init__(self, weights: Weights) -> None:
        """Nothing is loaded yet but settings and tokenizer."""
        self.name = f"hf:{weights.name}"
        self._weights = weights
        self._tokenizer = weights.tokenizer
        self._prompts: list[list[int]] = []
        self._states: States | None = None
        self._usage = Usage()
        special = [str(each) for each in self._tokenizer.all_special_tokens if len(str(each)) > 1]
        special.sort(key=len, reverse=True)
        self._markers = re.compile("|".join(map(re.escape, special)) or r"(?!)")

    @cached_property
    def _model(self) -> Any:
        return self._weights.model()

    @property
    def window(self) -> int | None:
        """The most tokens of prompt and answer together, None for no limit known."""
        config = self._weights.config.get_text_config()
        for name in ("max_position_embeddings", "n_positions"):
            if isinstance(found := getattr(config, name, None), int) and found > 0:
                return found
        return None

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return int(self._weights.config.get_text_config(decoder=True).vocab_size)

    @cached_property
    def ends(self) -> frozenset[int]:
        """The tokens that end an answer: those of the model's settings and of its tokenizer.

        For a causal model without a chat template, line ends too.
        """
        said = self._model.generation_config.eos_token_id
        listed = said if isinstance(said, list) else [said]
        return frozenset({*listed, self._tokenizer.eos_token_id, *self._line_ends()} - {None})

    def _line_ends(self) -> Iterator[int]:
        if not self._goes_on:
            return
        texts = self._tokenizer.batch_decode([[token] for token in range(self.vocabulary)])
        for token, text in enumerate(texts):
            if "\n" in text and text.isspace():
                yield token

    @property
    def _goes_on(self) -> bool:
        """Whether the model was taught only to go on with a text."""
        return not self._tokenizer.chat_template

    @property
    def token_model(self) -> HuggingFace:
        """Itself."""
        return self

    def count(self, text: str) -> int:
        """Tokens of a prompt as the model reads it."""
        return len(self._encode(text))

    def room(self, prompt: str) -> int | None:
        """The most tokens that an answer may have behind `prompt`, below 1 where it has no place.

        None where no limit is known.
        """
        return self._left(self.count(prompt))

    def _left(self, read: int) -> int | None:
        """How many tokens an answer may have behind so many of a prompt."""
        return None if self.window is None else self.window - read

    def tokens(self, text: str) -> list[int]:
        """The tokens of an answer's text."""
        with quiet():
            return list(self._tokenizer(self._harmless(text), add_special_tokens=False).input_ids)

    def text(self, tokens: Sequence[int]) -> str:
        """What an answer's tokens say, special ones left out; one that ends it says nothing."""
        said = tokens[:-1] if tokens and tokens[-1] in self.ends else tokens
        return str(
            self._tokenizer.decode(
                list(said), skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )

    def begin(self, prompts: Sequence[str]) -> None:
        """Read the prompts. Raises UsageError for one that does not fit, ModelUnavailable."""
        self._begin(prompts)

    def logprobs(self, rows: Sequence[tuple[int, tuple[int, ...]]]) -> NDArray[np.float64]:
        """log p(next | prompt, answer so far), (rows, V). Raises as `begin` does."""
        import numpy as np

        if self._states is None:
            raise ValueError("logprobs before begin")
        longest = max(len(answer) for _, answer in rows)
        room = self._left(max(map(len, self._prompts)))
        if room is not None and longest > room:
            raise self._too_long("an answer", longest)
        try:
            with quiet():
                found = self._states.logprobs(rows)
        except RuntimeError as error:  # torch's, out of memory among them
            raise self._failed(error) from error
        if np.isnan(found).any():
            raise ModelUnavailable(
                f"{self.name} gives no numbers but NaN", "check its weights, or use another device"
            )
        return found

    def stream(self, prompt: str) -> Iterator[str]:
        """The answer by greedy search, piece by piece. Raises as `begin` does."""
        self._usage = Usage()
        self.begin([prompt])
        read = len(self._prompts[0])
        left = self._left(read)
        room = ANSWER_LIMIT if left is None else min(ANSWER_LIMIT, left)
        answer: tuple[int, ...] = ()
        shown = ""
        while len(answer) < room:
            token = int(self.logprobs([(0, answer)])[0].argmax())
            ended = token in self.ends
            self._usage = Usage(read, len(answer) + 1, finished=ended)
            if ended:
                break
            answer = (*answer, token)
            text = self.text(answer)
            if not text.endswith("\ufffd") and len(text) > len(shown):  # else half a character
                yield text[len(shown) :]
                shown = text
        if rest := self.text(answer)[len(shown) :]:
            yield rest

    def usage(self) -> Usage:
        """Tokens of the last prompt and answer, its end among them."""
        return self._usage

    def close(self) -> None:
        """Give up what was kept of the prompts."""
        self._states = None

    def _begin(self, prompts: Sequence[str], **how: Any) -> None:
        self._states = None  # its memory is free before more is taken
        self._prompts = [self._encode(prompt) for prompt in prompts]
        for ids in self._prompts:
            room = self._left(len(ids))
            if room is not None and room < 1:
                raise self._too_long("a prompt", len(ids))
        try:
            with quiet():
                states = self._read(self._prompts, **how)
        except RuntimeError as error:
            raise self._failed(error) from error
        if not states.attends:
            raise ModelUnavailable(
                f"{self.name} keeps no keys and values of a prompt (as Mamba, which has no "
                "attention), and ragcli cannot go on from what it keeps",
                "name a model with attention, or run this one by ollama:MODEL",
            )
        self._states = states

    def _read(self, prompts: Sequence[Sequence[int]], **how: Any) -> States:
        return States(self._model, prompts)

    def _encode(self, prompt: str) -> list[int]:
        text = self._harmless(prompt)
        template = bool(self._tokenizer.chat_template)
        if self._goes_on:
            text += ANSWER_CUE
        with quiet():
            if template:
                text = self._tokenizer.apply_chat_template(
                    [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
                )
            return list(self._tokenizer(text, add_special_tokens=not template).input_ids)

    def _harmless(self, text: str) -> str:
        """`text` with what this tokenizer would read as a marker of its own taken apart.

        A passage that holds `<|im_end|>` must not end the turn that it is quoted in.
        """
        return self._markers.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)

    def _too_long(self, what: str, tokens: int) -> UsageError:
        return UsageError(
            f"{what} of {tokens} tokens does not fit in the {self.window} that {self.name} reads",
            "a smaller --budget, smaller passages, or a model that reads more",
        )

    def _failed(self, error: Exception) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self.name} failed: {line(error)}", "ask with a smaller -k or --budget"
        )


class EncoderDecoder(HuggingFace):
    """An encoder-decoder model, which reads the prompt apart from the answer it writes."""

    @property
    def _goes_on(self) -> bool:
        return False

    def _left(self, read: int) -> int | None:
        """An answer's window is its own, if only the prompt fits into the encoder's."""
        if self.window is None:
            return None
        return self.window - len(self._first) if read <= self.window else 0

    def fuse(self, prompts: Sequence[str]) -> None:
        """Read the prompts apart, and answer from all their states at once, as from prompt 0."""
        self._begin(prompts, fused=True)

    def _read(self, prompts: Sequence[Sequence[int]], **how: Any) -> States:
        return EncodedStates(self._model, prompts, self._first, **how)

    @property
    def _first(self) -> list[int]:
        """What every answer begins with: the start, and BART's forced first token."""
        settings = self._model.generation_config
        start = settings.decoder_start_token_id
        if start is None:
            start = self._weights.config.decoder_start_token_id
        if start is None:
            start = settings.bos_token_id
        first = [start, settings.forced_bos_token_id]
        return [token for token in first if token is not None]
