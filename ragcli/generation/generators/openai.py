"""A server that speaks OpenAI's protocol: server-sent events from `/v1/chat/completions`.

llama.cpp's server, vLLM, LM Studio and hosted ones. Owns the key (which goes only over https or
to this machine), and the count of tokens where the server offers one: vLLM's and llama.cpp's
`/tokenize`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ragcli.errors import ModelUnavailable, UsageError
from ragcli.generation.generators import Usage
from ragcli.generation.generators.http import Refused, Server, address, one_line, sound, whole
from ragcli.generation.settings import time_limit
from ragcli.generation.visible import visible

_SLACK = 16
"""Tokens by which two counts of one prompt may differ without a cut."""


def open_openai(target: str, environment: Mapping[str, str]) -> OpenAI:
    """The server of `URL[#MODEL]`; without a model, the first that the server lists.

    A URL without a path gets `/v1`; one with a path is the base that the protocol's clients take.
    Raises UsageError.
    """
    name = f"openai:{target}"
    url, _, model = target.partition("#")
    at = address(url)
    api = at if at.path else replace(at, path="/v1")
    key = environment.get("OPENAI_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError("OPENAI_API_KEY holds characters that no key has", "set it again")
    # Over plain http anyone on the way could read it.
    may_know = api.secure or api.local
    headers = {"Authorization": f"Bearer {key}"} if key and may_know else {}
    unsent = "" if may_know or not key else "the key is sent only over https or to this machine"
    silence = time_limit(environment)
    root = replace(api, path=api.path.removesuffix("/v1"))
    return OpenAI(
        name,
        model or None,
        Server(name, api, silence=silence, headers=headers),
        Server(name, root, silence=silence, headers=headers),
        unsent,
    )


class OpenAI:
    """One model behind `api`; `root` is where a server keeps what the protocol does not have."""

    token_model = None

    def __init__(
        self, name: str, model: str | None, api: Server, root: Server, unsent_key: str = ""
    ) -> None:
        self.name = name
        self._named = model
        self._api = api
        self._root = root
        self._unsent_key = unsent_key
        self._usage = Usage()
        self._models: list[dict[str, object]] | None = None
        self._counts = True
        self._counted: tuple[str, int] | None = None

    @property
    def window(self) -> int | None:
        """The context length, where vLLM's list of models or llama.cpp's `/props` says it."""
        listed = next((m for m in self._listed() if m.get("id") == self._model()), {})
        length = whole(listed.get("max_model_len"))
        if length is None and listed.get("owned_by") == "llamacpp":
            match self._root_says("/props"):
                case {"default_generation_settings": {"n_ctx": said}}:
                    length = whole(said)
        return length or None

    def count(self, text: str) -> int | None:
        """Tokens of the prompt within the chat template, by the server's `/tokenize`.

        None where it has none, as hosted servers. Raises ModelUnavailable where there is no
        server.
        """
        count = self._tokenized(text) if self._counts else None
        self._counts = count is not None
        self._counted = None if count is None else (text, count)
        return count

    def usage(self) -> Usage:
        """Tokens of the last prompt and answer, as the server counts them."""
        return self._usage

    def close(self) -> None:
        """Nothing is held between two answers."""

    def stream(self, prompt: str) -> Iterator[str]:
        """The answer as it comes, without the thinking of models that think.

        Raises ModelUnavailable, also after an answer to a prompt that was cut.
        """
        self._usage = Usage()
        request = {"model": self._model(), "messages": _messages(prompt), "stream": True}
        # What not every server takes: the one that it names in its refusal is left out.
        wishes: dict[str, object] = {"temperature": 0, "stream_options": {"include_usage": True}}
        while True:
            try:
                yield from self._answer({**request, **wishes})
            except Refused as error:
                unwanted = [wish for wish in wishes if wish in error.reason]
                if error.status not in (400, 422) or not unwanted:
                    raise self._explained(error) from error
                for wish in unwanted:
                    del wishes[wish]
            else:
                break
        self._check(prompt)

    def _answer(self, request: Mapping[str, object]) -> Iterator[str]:
        silent, ended, first = True, False, b""
        for line in self._api.lines("/chat/completions", request):
            first = first or line
            field, _, data = line.partition(b":")
            if field != b"data":
                continue
            if data.strip() == b"[DONE]":
                ended = True
                break
            event = self._api.parse(data)
            if isinstance(event, dict) and event.get("error"):
                raise self._api.failed(_reason(event["error"]))
            self._note(event)
            ended = ended or _finished(event)
            if piece := _piece(event):
                silent = silent and not piece.strip()
                yield sound(piece)
        if not ended:
            raise self._api.failed(
                "the answer broke off before its end"
                if first.startswith((b"data:", b":", b"event:")) or not first
                else f"this is no stream of OpenAI's protocol: '{one_line(first)}'"
            )
        if silent:
            raise self._api.failed("answered nothing")

    def _note(self, event: object) -> None:
        """Keep what an event says of the tokens and of the answer's end."""
        match event:
            case {"usage": {"prompt_tokens": read, "completion_tokens": answered}}:
                self._usage = replace(
                    self._usage, prompt_tokens=whole(read), answer_tokens=whole(answered)
                )
        match event:
            case {"choices": [{"finish_reason": "length"}, *_]}:
                self._usage = replace(self._usage, finished=False)

    def _check(self, prompt: str) -> None:
        """Raises ModelUnavailable when the server read less than it counted before."""
        read = self._usage.prompt_tokens
        if read is None or self._counted is None or self._counted[0] != prompt:
            return
        if read < self._counted[1] - _SLACK:
            raise self._api.failed(
                f"it read {read:,} tokens of the prompt's {self._counted[1]:,}: the prompt was "
                "cut, and this answer does not rest on it",
                "give a smaller --budget, or the server a larger context",
            )

    def _model(self) -> str:
        """The model that was named, else the first that the server lists."""
        if self._named is None:
            listed = [m["id"] for m in self._listed() if isinstance(m.get("id"), str)]
            if not listed:
                raise self._api.failed(
                    "it lists no models", f"name one: {visible(self.name)}#MODEL"
                )
            self._named = str(listed[0])
        return self._named

    def _listed(self) -> list[dict[str, object]]:
        """The server's list of models; empty where it has none."""
        if self._models is None:
            try:
                answer = self._api.ask("/models")
            except Refused as error:
                if error.status in (401, 403):
                    raise self._explained(error) from error
                answer = None
            match answer:
                case {"data": list(models)}:
                    self._models = [model for model in models if isinstance(model, dict)]
                case _:
                    self._models = []
        return self._models

    def _tokenized(self, text: str) -> int | None:
        """vLLM counts messages; llama.cpp lays them out and then counts the text."""
        asked = {"model": self._model(), "messages": _messages(text), "add_generation_prompt": True}
        match self._root_says("/tokenize", asked):
            case {"count": count}:
                return whole(count)
            case {"tokens": list()}:
                pass
            case _:
                return None
        match self._root_says("/apply-template", {"messages": _messages(text)}):
            case {"prompt": str(laid_out)}:
                asked = {"content": laid_out, "add_special": True, "parse_special": True}
                match self._root_says("/tokenize", asked):
                    case {"tokens": list(tokens)}:
                        return len(tokens)
        return None

    def _root_says(self, path: str, body: object = None) -> object:
        """The answer of an address that not every server has; None where it has not."""
        try:
            return self._root.ask(path, body)
        except Refused:
            return None

    def _explained(self, error: Refused) -> ModelUnavailable:
        """The refusal with a hint: which key, which models there are, what is too long."""
        if error.status in (401, 403):
            return ModelUnavailable(
                error.message, self._unsent_key or "put the key into OPENAI_API_KEY"
            )
        if error.status == 404:
            ids = [str(model["id"]) for model in self._listed() if "id" in model][:5]
            if ids:
                return ModelUnavailable(error.message, f"it has {visible(', '.join(ids))}")
        if error.status == 400 and "context" in error.reason:
            return ModelUnavailable(error.message, "give a smaller --budget or -k")
        return ModelUnavailable(error.message, error.hint)


def _messages(prompt: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}]


def _piece(event: object) -> str:
    """The text of the first choice of an event; empty where it carries none."""
    match event:
        case {"choices": [{"delta": {"content": str(piece)}}, *_]}:
            return piece
    return ""


def _finished(event: object) -> bool:
    """Whether an event says why the answer ended."""
    match event:
        case {"choices": [{"finish_reason": str()}, *_]}:
            return True
    return False


def _reason(error: object) -> str:
    """What an error inside the stream says."""
    text = error.get("message", error) if isinstance(error, dict) else error
    return one_line(str(text).encode("utf-8", "replace"))
