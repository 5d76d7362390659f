"""A model of an Ollama server, over its own protocol: lines of JSON from `/api/generate`.

Owns the size of the context window that is asked for, and the proof that the whole prompt was
read. A prompt longer than the window loses its front, and the answer still comes with status 200.
Three things stand against that:

1. `truncate: false, shift: false`: servers from about 0.12.5 on then refuse with an error. The
   size first asked for rests on a guess; when it is refused, the second is the most that the
   prompt can need, since a token is a byte at least.
2. The final line carries `context`, the tokens of the prompt as it was before any cut and of the
   answer. `prompt_eval_count` is what was read: far below their difference, it was cut.
3. A window read to its end, or (where there is no `context`) to just its half, which is what a
   cut leaves, counts as cut. So does a server that does not say how much it read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from ragcli.errors import ModelUnavailable, UsageError
from ragcli.generation.generators import Usage
from ragcli.generation.generators.http import (
    Address,
    Refused,
    Server,
    address,
    one_line,
    sound,
    whole,
    without_secrets,
)
from ragcli.generation.settings import time_limit

PORT = 11_434
ANSWER = 2_048
"""Tokens that an answer may have."""
TEMPLATE = 512
"""Tokens allowed for the chat template and the model's own system prompt."""
_STEP = 2_048
"""Windows are multiples of it: each other size makes the server load the model anew."""

_TOO_LONG = re.compile("context.*exceed|exceed.*context", re.IGNORECASE)


def open_ollama(model: str, environment: Mapping[str, str]) -> Ollama:
    """The model of the server at OLLAMA_HOST, else on this machine. Raises UsageError."""
    name = f"ollama:{model}"
    server = Server(
        name,
        _address(environment.get("OLLAMA_HOST", "")),
        silence=time_limit(environment),
        unreachable="start it: ollama serve (OLLAMA_HOST names another address)",
    )
    return Ollama(name, model, server)


class Ollama:
    """One model of a server; answers are drawn greedily, so that they can be compared."""

    token_model = None

    def __init__(self, name: str, model: str, server: Server) -> None:
        self.name = name
        self._model = model
        self._server = server
        self._usage = Usage()
        self._asked = False
        self._window: int | None = None

    @property
    def window(self) -> int | None:
        """The context length that the model was trained for, as the server says."""
        if not self._asked:
            try:
                shown = self._server.ask("/api/show", {"model": self._model})
            except Refused as error:
                if self._model in error.reason:
                    raise self._explained(error) from error
                shown = None
            self._window = _context_length(shown)
            self._asked = True
        return self._window

    def count(self, text: str) -> int | None:
        """None: Ollama has no way to count tokens but to read them with the model."""
        return None

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
        size = len(prompt.encode("utf-8", "replace"))
        likely, most = self._sized(-(-size // 3)), self._sized(size)
        try:
            yield from self._answer(prompt, likely)
        except Refused as error:
            if not _TOO_LONG.search(error.reason):
                raise self._explained(error) from error
            if most == likely:
                raise self._too_long(error.reason) from error
        else:
            return
        try:
            yield from self._answer(prompt, most)
        except Refused as error:
            raise self._too_long(error.reason) from error

    def _sized(self, tokens: int) -> int:
        """The window for a prompt of so many tokens and its answer; never above the model's."""
        needed = -(-(tokens + TEMPLATE + ANSWER) // _STEP) * _STEP
        return needed if self.window is None else min(needed, self.window)

    def _answer(self, prompt: str, window: int) -> Iterator[str]:
        request = {
            "model": self._model,
            "prompt": prompt,
            "stream": True,
            # Thoughts would use up the room for the answer, and are not shown.
            "think": False,
            "truncate": False,
            "shift": False,
            "options": {"num_ctx": window, "num_predict": ANSWER, "temperature": 0, "seed": 0},
        }
        silent = True
        for line in filter(bytes.strip, self._server.lines("/api/generate", request)):
            said = self._server.parse(line)
            if not isinstance(said, dict):
                raise self._server.failed(f"this is not Ollama's protocol: {one_line(line)!r}")
            if "error" in said:
                raise self._told(said["error"], begun=not silent)
            piece = said.get("response")
            if isinstance(piece, str) and piece:
                silent = silent and not piece.strip()
                yield sound(piece)
            if said.get("done") is True:
                self._check(said, window)
                if silent:
                    raise self._server.failed("answered nothing")
                return
        raise self._server.failed("the answer broke off before its end")

    def _told(self, error: object, *, begun: bool) -> ModelUnavailable:
        """An error that comes as a line: before the answer has begun, as good as a status."""
        reason = one_line(str(error).encode("utf-8", "replace"))
        failed = self._server.failed(reason)
        return failed if begun else Refused(failed.message, failed.hint, 200, reason)

    def _check(self, last: Mapping[str, object], window: int) -> None:
        """Keep what the server counted; raises ModelUnavailable when the prompt was cut."""
        read, answered = whole(last.get("prompt_eval_count")), whole(last.get("eval_count")) or 0
        self._usage = Usage(read, answered or None, last.get("done_reason") != "length")
        if not read:
            raise self._server.failed(
                "it does not say how many tokens of the prompt it read, so it may have cut it",
                "update Ollama",
            )
        tokens = last.get("context")
        prompt = len(tokens) - answered if isinstance(tokens, list) and tokens else None
        if _cut(read, prompt, answered, window):
            of = f" of the prompt's {prompt:,}" if prompt and prompt > read else ""
            raise self._server.failed(
                f"it read {read:,} tokens{of} in a window of {window:,}: the front of the prompt "
                "was cut, and this answer does not rest on it",
                "give a smaller --budget, or update Ollama",
            )

    def _too_long(self, reason: str) -> ModelUnavailable:
        held = "" if self.window is None else f" of {self.window:,} tokens"
        return self._server.failed(
            f"the prompt is too long for the model's window{held}: {reason}",
            "give a smaller --budget or -k",
        )

    def _explained(self, error: Refused) -> ModelUnavailable:
        """The refusal with a hint: a model that is not there can be had."""
        if error.status == 404 or "not found" in error.reason:
            return ModelUnavailable(error.message, f"ollama pull {self._model}")
        return ModelUnavailable(error.message, error.hint)


def _cut(read: int, prompt: int | None, answered: int, window: int) -> bool:
    """Whether `read` tokens are what a cut of the prompt leaves.

    A cut leaves the whole window (servers before 2026) or its half and a few; `prompt`, where
    known, is exact but for the ends of texts and for answers that split into other tokens when
    they are read again.
    """
    if read >= window - 1:
        return True
    if prompt is None:
        return abs(read - (window // 2 + 2)) <= 3
    return read < prompt - 16 - answered // 4


def _context_length(shown: object) -> int | None:
    """`llama.context_length` and its like among what `/api/show` says of a model."""
    match shown:
        case {"model_info": dict(facts)}:
            lengths = [whole(v) for k, v in facts.items() if str(k).endswith(".context_length")]
            return next((length for length in lengths if length and length > 0), None)
    return None


def _address(host: str) -> Address:
    """OLLAMA_HOST as Ollama reads it: it may lack the scheme, the host or the port.

    A server listens at 0.0.0.0, and is reached at the loopback address. Raises UsageError.
    """
    scheme, separator, rest = host.strip().strip("\"'").rpartition("://")
    if not rest or (rest.startswith((":", "/")) and not rest.startswith("::")):
        rest = f"127.0.0.1{rest}"
    if _is_ipv6(rest):
        rest = f"[{rest}]"
    url = f"{scheme or 'http'}://{rest}".replace("//0.0.0.0", "//127.0.0.1", 1)
    try:
        return address(url, port=None if separator else PORT)
    except UsageError as error:
        raise UsageError(
            f"OLLAMA_HOST is '{without_secrets(host)}': {error.message}", error.hint
        ) from error


def _is_ipv6(host: str) -> bool:
    try:
        return ip_address(host).version == 6
    except ValueError:
        return False
