"""A llama.cpp model in this process: a GGUF file, its own tokens and its own chat template.

Owns loading, the template and the tokens, and answers in two ways: whole (`Generator`), and
token by token under several prompts (`TokenModel` of `generation.marginal`). What llama.cpp holds
between two tokens is `llama_sequences`'. It needs llama-cpp-python, the extra `llm`.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcli.errors import ModelUnavailable, UsageError
from ragcli.generation.generators import ANSWER_CUE, ANSWER_LIMIT, Usage
from ragcli.generation.generators.llama_library import interrupted, library, reason, working
from ragcli.generation.generators.llama_sequences import LlamaSequences

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROOM = 256
"""Tokens of answers that a context is opened for, for each prompt of a mixture; it can grow."""

_TOGETHER = 64
"""Answers that a mixture has under way at once; beams of eight passages, eight each."""

_MARK = "\ue000"
"""Stands for the prompt while the template is filled in; a private character."""


def open_gguf(file: str) -> GgufModel:
    """The model in `file`, a GGUF of llama.cpp (of a split model the first part).

    Raises ModelUnavailable for a file or library that is not there or does not load.
    """
    path = Path(file).expanduser()
    _check_file(path)
    llama = library()
    params = llama.llama_model_default_params()
    # Weights as they lie in the file: no second copy, no rewriting at each start, and no tiles
    # (AMX), which end the process in a virtual machine that announces but does not run them.
    params.use_extra_bufts = False
    params.progress_callback = llama.llama_progress_callback(lambda *_: not interrupted())
    with working():
        model = llama.llama_model_load_from_file(
            str(path).encode("utf-8", "surrogateescape"), params
        )
    if not model:
        raise ModelUnavailable(
            f"llama.cpp cannot load {path}{reason()}",
            "the file may be cut, or newer than this llama-cpp-python",
        )
    if llama.llama_model_has_encoder(model):
        llama.llama_model_free(model)
        raise ModelUnavailable(
            f"{path} is an encoder-decoder model, which gguf: does not run",
            "name it by hf:, or a model that only decodes",
        )
    return GgufModel(f"gguf:{file}", llama, model)


class GgufModel:
    """A `Generator` and a `TokenModel`; always the likeliest token, so the same every time."""

    def __init__(self, name: str, library: Any, model: int) -> None:
        self.name = name
        self._library = library
        self._model: int | None = model
        self.vocabulary: int = library.llama_vocab_n_tokens(self._vocab)
        self.window: int = library.llama_model_n_ctx_train(model)
        self._sequences: LlamaSequences | None = None
        self._lengths: tuple[int, ...] = ()
        self._usage = Usage()
        template = library.llama_model_chat_template(model, None)
        self._template: str | None = (
            None if template is None else template.decode("utf-8", "replace")
        )
        self._before, self._after = self._frame()

    @property
    def token_model(self) -> GgufModel:
        """Itself."""
        return self

    def count(self, text: str) -> int:
        """Tokens of a prompt as the model reads it, the chat template's among them."""
        return len(self._read(text))

    def room(self, prompt: str) -> int:
        """The most tokens that an answer may have behind `prompt`; below 1 where there is none."""
        return self.window - self.count(prompt)

    def stream(self, prompt: str) -> Iterator[str]:
        """Pieces of the answer, each as soon as its characters are whole.

        Raises UsageError for a prompt that leaves no room to answer, ModelUnavailable where
        llama.cpp fails.
        """
        tokens = self._read(prompt)
        room = min(ANSWER_LIMIT, self.window - len(tokens))
        self._usage = Usage(len(tokens), 0, finished=False)
        self._open([tokens], room=room, together=1)
        characters = codecs.getincrementaldecoder("utf-8")("replace")
        answer: tuple[int, ...] = ()
        while len(answer) < room:
            token = int(self._logits([(0, answer)])[0].argmax())
            if self._ends(token):
                self._usage = Usage(len(tokens), len(answer))
                break
            answer = (*answer, token)
            self._usage = Usage(len(tokens), len(answer), finished=False)
            if piece := characters.decode(self._piece(token)):
                yield piece
        if piece := characters.decode(b"", final=True):
            yield piece

    def usage(self) -> Usage:
        """Tokens read and written for the last answer."""
        return self._usage

    def close(self) -> None:
        """Free what llama.cpp holds."""
        if self._sequences is not None:
            self._sequences.close()
            self._sequences = None
        if self._model is not None:
            self._library.llama_model_free(self._model)
            self._model = None

    @cached_property
    def ends(self) -> frozenset[int]:
        """The tokens that end an answer; for a model without a template, line ends too."""
        return frozenset(filter(self._ends, range(self.vocabulary)))

    def tokens(self, text: str) -> list[int]:
        """The tokens of an answer, without one that ends it; a marker's look-alike is text."""
        return self._tokenize(text, special=False, first=False)

    def text(self, tokens: Sequence[int]) -> str:
        """The text of an answer; a token that ends it says nothing, broken UTF-8 is replaced."""
        said = tokens[:-1] if tokens and self._ends(tokens[-1]) else tokens
        return b"".join(map(self._piece, said)).decode("utf-8", "replace")

    def begin(self, prompts: Sequence[str]) -> None:
        """Read the prompts, each in the chat template, up to where the answer begins.

        Raises UsageError for a prompt that leaves no room to answer, ModelUnavailable where
        llama.cpp fails.
        """
        read = [self._read(prompt) for prompt in prompts]
        self._open(read, room=_ROOM * len(read), together=max(_TOGETHER, 8 * len(read)))

    def logprobs(self, rows: Sequence[tuple[int, tuple[int, ...]]]) -> NDArray[np.float64]:
        """(len(rows), V): log p of the token after each (prompt number, answer so far).

        Raises UsageError for an answer past the window, ModelUnavailable where llama.cpp fails.
        """
        import numpy as np

        for number, answer in rows:
            self._check_window(self._lengths[number] + len(answer))
        scores = self._logits(rows).astype(np.float64)
        scores -= scores.max(axis=1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return scores

    @property
    def _opened(self) -> int:
        """The model; llama.cpp ends the process that asks it for one that it has freed."""
        if self._model is None:
            raise ModelUnavailable(f"{self.name} was closed")
        return self._model

    @property
    def _vocab(self) -> Any:
        return self._library.llama_model_get_vocab(self._opened)

    def _open(self, prompts: Sequence[Sequence[int]], *, room: int, together: int) -> None:
        for prompt in prompts:
            self._check_window(len(prompt) + 1)
        if self._sequences is not None:
            self._sequences.close()
            self._sequences = None
        self._lengths = tuple(map(len, prompts))
        self._sequences = LlamaSequences(self._opened, prompts, room=room, together=together)

    def _logits(self, rows: Sequence[tuple[int, tuple[int, ...]]]) -> NDArray[np.float32]:
        if self._sequences is None:
            raise ValueError("no prompt was begun")
        return self._sequences.logits(rows)

    def _check_window(self, tokens: int) -> None:
        if tokens > self.window:
            raise UsageError(
                f"{tokens} tokens of prompt and answer, and {self.name} reads {self.window}",
                "leave out passages with --budget or -k",
            )

    def _frame(self) -> tuple[list[int], list[int]]:
        """The tokens that the chat template puts before and after a prompt.

        Only they may hold markers of the template: what a passage says of them stays text. A
        model without a template goes on with the text.
        """
        text = _MARK + ANSWER_CUE if self._template is None else self._filled(self._template)
        before, mark, after = text.partition(_MARK)
        if not mark:
            raise ModelUnavailable(f"the chat template of {self.name} leaves out the prompt")
        bos = self._token_text(self._library.llama_vocab_bos(self._vocab))
        first = not (bos and before.startswith(bos))  # else the template has it already
        return (
            self._tokenize(before, special=True, first=first),
            self._tokenize(after, special=True, first=False),
        )

    def _filled(self, template: str) -> str:
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        try:
            formatter = Jinja2ChatFormatter(
                template=template,
                bos_token=self._token_text(self._library.llama_vocab_bos(self._vocab)),
                eos_token=self._token_text(self._library.llama_vocab_eos(self._vocab)),
            )
            # A model that thinks aloud would have that taken for its answer.
            filled = formatter(messages=[{"role": "user", "content": _MARK}], enable_thinking=False)
        except Exception as error:  # a template is a program, with whatever errors it makes
            raise ModelUnavailable(
                f"the chat template of {self.name} fails: {' '.join(str(error).split())}",
                "name another file of this model",
            ) from error
        return str(filled.prompt)

    def _read(self, prompt: str) -> list[int]:
        return [
            *self._before,
            *self._tokenize(prompt.strip(), special=False, first=False),
            *self._after,
        ]

    def _tokenize(self, text: str, *, special: bool, first: bool) -> list[int]:
        """`special` finds markers in the text, `first` puts the token that begins a text."""
        data = text.encode("utf-8", "replace")
        size = len(data) + 2
        found = (self._library.llama_token * size)()
        count = self._library.llama_tokenize(
            self._vocab, data, len(data), found, size, first, special
        )
        return list(found[:count])

    def _ends(self, token: int) -> bool:
        """Whether the token ends an answer.

        A model without a template was not taught to stop: it writes one line.
        """
        if self._library.llama_vocab_is_eog(self._vocab, token):
            return True
        piece = b"" if self._template is not None else self._piece(token)
        return b"\n" in piece and piece.isspace()

    def _piece(self, token: int) -> bytes:
        import ctypes

        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = self._library.llama_token_to_piece(self._vocab, token, buffer, size, 0, False)
            if count >= 0:
                return bytes(buffer.raw[:count])
            size = -count

    def _token_text(self, token: int) -> str:
        """How a template writes a special token; empty where the model has none."""
        if token < 0:
            return ""
        return str(
            self._library.llama_vocab_get_text(self._vocab, token).decode("utf-8", "replace")
        )


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelUnavailable(
            f"{path} cannot be read: {error.strerror}", "gguf:FILE names a model file"
        ) from error
    if magic != b"GGUF":
        raise ModelUnavailable(
            f"{path} is not a GGUF file", "gguf:FILE names a model file of llama.cpp"
        )
