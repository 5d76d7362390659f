"""What turns a prompt into an answer: the one protocol, and which spec names which generator.

    cmd:COMMAND LINE     any program: the prompt on its stdin, the answer on its stdout
    ollama:MODEL         a model of the Ollama server at OLLAMA_HOST
    openai:URL[#MODEL]   a server that speaks OpenAI's protocol (llama.cpp, LM Studio, vLLM)
    hf:NAME_OR_FOLDER    a transformers model, in this process
    gguf:FILE            a llama.cpp model, in this process

A new one is one class with the methods of `Generator`, and its kind here, in `open_generator`.
What a prompt says is `generation.prompt`'s; what an answer is worth, `generation.citations`'.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ragcli.errors import UsageError
from ragcli.generation.visible import visible

if TYPE_CHECKING:
    from ragcli.generation.marginal import TokenModel

ANSWER_LIMIT = 1024
"""The most tokens of an answer of a model in this process, whole or of a mixture; a small one that
has begun to repeat itself never ends."""

ANSWER_CUE = "\n\nAnswer:"
"""What stands behind a prompt for a causal model without a chat template, which only goes on with
a text; it was not taught to stop either, so a line end ends its answer."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a generator says of its last answer; None where it says nothing."""

    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    finished: bool = True
    """False where the answer stops at the most tokens allowed, in the middle of a sentence."""


class Generator(Protocol):
    """A prompt goes in, pieces of an answer come out."""

    @property
    def name(self) -> str:
        """The spec as given, `ollama:llama3.2`."""

    @property
    def window(self) -> int | None:
        """The most tokens of prompt and answer together; None where that is not known."""

    @property
    def token_model(self) -> TokenModel | None:
        """The model itself, where it runs in this process and tells each token's distribution."""

    def count(self, text: str) -> int | None:
        """Tokens of a prompt as the model will read it, the chat template's among them.

        None where that cannot be had without contacting what was not named.
        """

    def stream(self, prompt: str) -> Iterator[str]:
        """Pieces of the answer as they come; closing the iterator ends the child or connection.

        Raises ModelUnavailable for a generator that is not there, says nothing, fails or hangs;
        what it said before that has been yielded.
        """

    def usage(self) -> Usage:
        """What the generator said of its last answer."""

    def close(self) -> None:
        """Give up what the generator holds; a child still running is ended."""


_KINDS = ("cmd", "ollama", "openai", "hf", "gguf")
_EXAMPLES = "cmd:'llm -m x', ollama:llama3.2, openai:http://127.0.0.1:8080, hf:NAME, gguf:FILE"


IN_PROCESS = ("hf", "gguf")
"""The kinds that have a `token_model`."""


def kind_of(spec: str) -> str:
    """The kind that a spec names, `ollama` of `ollama:llama3.2`. Raises UsageError for none."""
    kind, _, rest = spec.strip().partition(":")
    if not rest.strip():
        raise UsageError(f"'{visible(spec)}' names no generator", f"for example {_EXAMPLES}")
    if kind not in _KINDS:
        raise UsageError(
            f"no kind of generator is called '{visible(kind)}'", f"for example {_EXAMPLES}"
        )
    return kind


def open_generator(spec: str, environment: Mapping[str, str] | None = None) -> Generator:
    """The generator that `spec` names; no server is contacted before something is asked of it.

    `environment` holds the settings (OLLAMA_HOST, OPENAI_API_KEY, RAGCLI_TIMEOUT), and a program
    is started with it; None is this process's own. Raises UsageError for a spec that is none,
    ModelUnavailable for a program or a model that is not there.
    """
    settings = dict(os.environ if environment is None else environment)
    kind = kind_of(spec)
    rest = spec.strip().removeprefix(f"{kind}:")
    match kind:
        case "cmd":
            from ragcli.generation.generators.command import open_command

            return open_command(rest, settings)
        case "ollama":
            from ragcli.generation.generators.ollama import open_ollama

            return open_ollama(rest, settings)
        case "openai":
            from ragcli.generation.generators.openai import open_openai

            return open_openai(rest, settings)
        case "hf":
            from ragcli.generation.generators.huggingface import open_huggingface

            return open_huggingface(rest)
    from ragcli.generation.generators.gguf import open_gguf

    return open_gguf(rest)
