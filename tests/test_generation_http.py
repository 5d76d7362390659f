"""Servers as generators: a real one on this machine that speaks both protocols, well and badly."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any

import pytest

from ragcli.errors import ModelUnavailable, UsageError
from ragcli.generation.generators import Generator, Usage, open_generator
from ragcli.generation.generators.http import Address, Server, address, without_secrets
from ragcli.generation.generators.ollama import ANSWER, Ollama
from ragcli.generation.generators.openai import OpenAI

Answer = Callable[["Handler", Any], None]


class Handler(BaseHTTPRequestHandler):
    """Answers by the function that the test put under the path, and remembers what was asked."""

    protocol_version = "HTTP/1.1"
    server: Local

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        self.answer(None)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(json.loads(content))

    def answer(self, body: Any) -> None:
        self.server.asked.append((self.path, body, dict(self.headers)))
        self.close_connection = True
        known = self.server.answers.get(self.path)
        if known is None:
            self.whole(b"404 page not found", 404)
            return
        try:
            known(self, body)
        except (BrokenPipeError, ConnectionResetError):
            self.server.hung_up.set()

    def whole(self, content: object, status: int = 200, **headers: str) -> None:
        """An answer with its length; JSON unless it is bytes."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def chunks(self, pieces: Sequence[bytes | float], *, end: bool = True) -> None:
        """An answer in chunks; a number is a pause in seconds; without `end` it breaks off."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            if isinstance(piece, bytes):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            else:
                self.server.halt.wait(piece)
        if end:
            self.wfile.write(b"0\r\n\r\n")


class Local(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, Any, dict[str, str]]] = []
        self.hung_up = threading.Event()
        self.halt = threading.Event()

    def server_bind(self) -> None:
        """Without looking up a name for the address, which takes a while."""
        TCPServer.server_bind(self)
        self.server_port = self.socket.getsockname()[1]

    @property
    def where(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def bodies(self, path: str) -> list[Any]:
        return [body for asked, body, _ in self.asked if asked == path]


@pytest.fixture
def local() -> Iterator[Local]:
    server = Local()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.halt.set()
    server.shutdown()
    thread.join()
    server.server_close()


def ndjson(*lines: object) -> list[bytes]:
    return [json.dumps(line).encode() + b"\n" for line in lines]


def sse(*events: object) -> list[bytes]:
    return [
        b"data: " + (e if isinstance(e, bytes) else json.dumps(e).encode()) + b"\n\n"
        for e in events
    ]


def last(*, read: int | None = 30, answered: int = 2, context: int | None = 32, **more: Any) -> Any:
    """Ollama's last line."""
    line = {"response": "", "done": True, "done_reason": "stop", "eval_count": answered, **more}
    if read is not None:
        line["prompt_eval_count"] = read
    if context is not None:
        line["context"] = list(range(context))
    return line


def delta(text: str, **more: Any) -> Any:
    """An event of OpenAI's with a piece of text."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None, **more}]}


STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def ollama(local: Local, *pieces: bytes | float, end: bool = True, **show: Any) -> Ollama:
    """The generator for a server whose answer is these chunks."""
    shown = show or {"model_info": {"llama.context_length": 8192}}
    local.answers["/api/show"] = lambda handler, _: handler.whole(shown)
    if pieces:
        local.answers["/api/generate"] = lambda handler, _: handler.chunks(pieces, end=end)
    opened = open_generator("ollama:tiny", {"OLLAMA_HOST": local.where, "RAGCLI_TIMEOUT": "0.5"})
    assert isinstance(opened, Ollama)
    return opened


def openai(local: Local, *pieces: bytes | float, end: bool = True, **environment: str) -> OpenAI:
    """The generator for a server whose answer is these chunks."""
    if pieces:
        local.answers["/v1/chat/completions"] = lambda handler, _: handler.chunks(pieces, end=end)
    opened = open_generator(
        f"openai:http://{local.where}#tiny", {"RAGCLI_TIMEOUT": "0.5", **environment}
    )
    assert isinstance(opened, OpenAI)
    return opened


def failure(generator: Generator, prompt: str = "hello") -> tuple[str, ModelUnavailable]:
    """What the generator said before it failed, and how it failed."""
    pieces = []
    with pytest.raises(ModelUnavailable) as caught:
        for piece in generator.stream(prompt):
            pieces.append(piece)
    error = caught.value
    assert error.hint
    assert error.message.isprintable()
    assert len(error.message) < 500
    return "".join(pieces), error


def test_ollama_streams(local: Local) -> None:
    generator = ollama(local, *ndjson({"response": "Grö"}, {"response": "ße ∑"}, last()))
    assert list(generator.stream("wie?")) == ["Grö", "ße ∑"]
    assert generator.usage() == Usage(30, 2)
    assert (generator.name, generator.window, generator.count("x")) == ("ollama:tiny", 8192, None)
    (request,) = local.bodies("/api/generate")
    assert request["model"] == "tiny"
    assert request["prompt"] == "wie?"
    assert (request["truncate"], request["shift"], request["think"]) == (False, False, False)
    assert request["options"]["temperature"] == 0


def test_openai_streams(local: Local) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    thought = {"choices": [{"delta": {"content": None, "reasoning_content": "hm"}}]}
    pieces = [b": a remark\n\n", *sse(thought, delta("Grö"), delta("ße"), STOP, usage, b"[DONE]")]
    generator = openai(local, *pieces)
    assert list(generator.stream("wie?")) == ["Grö", "ße"]
    assert generator.usage() == Usage(9, 2)
    (request,) = local.bodies("/v1/chat/completions")
    assert request["messages"] == [{"role": "user", "content": "wie?"}]
    assert (request["model"], request["stream"], request["temperature"]) == ("tiny", True, 0)
    assert request["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
def test_how_the_bytes_are_cut_makes_no_difference(local: Local, size: int) -> None:
    text = ["é", "∑😀", "x" * 30]
    for make, lines in (
        (ollama, b"".join(ndjson(*({"response": t} for t in text), last()))),
        (openai, b"".join(sse(*map(delta, text), STOP, b"[DONE]")).replace(b"\n", b"\r\n")),
    ):
        pieces = [lines[i : i + size] for i in range(0, len(lines), size)]
        assert "".join(make(local, *pieces).stream("")) == "".join(text)


def test_pieces_come_at_once_and_a_closed_answer_hangs_up(local: Local) -> None:
    first = ndjson({"response": "a"})
    generator = ollama(local, *first, *[b"\n", 0.02] * 200, *ndjson(last()))
    answer = generator.stream("")
    assert next(answer) == "a"
    answer.close()  # type: ignore[attr-defined]
    assert local.hung_up.wait(3)


def test_an_answer_that_stops_at_its_limit_is_marked(local: Local) -> None:
    generator = ollama(local, *ndjson({"response": "a"}, last(done_reason="length")))
    assert "".join(generator.stream("")) == "a"
    assert not generator.usage().finished
    other = openai(local, *sse(delta("a", finish_reason="length"), b"[DONE]"))
    assert "".join(other.stream("")) == "a"
    assert not other.usage().finished


# The window of Ollama, and the proof that nothing was cut


def test_the_window_holds_the_prompt_and_the_answer(local: Local) -> None:
    generator = ollama(
        local, *ndjson({"response": "a"}, last()), model_info={"x.context_length": 50_000}
    )
    for size in (0, 1_000, 10_000, 60_000, 10**6):
        list(generator.stream("x" * size))
    windows = [body["options"]["num_ctx"] for body in local.bodies("/api/generate")]
    assert windows == sorted(windows)
    assert windows[-1] == 50_000
    for size, window in zip((0, 1_000, 10_000, 60_000), windows, strict=False):
        assert size / 3 + ANSWER < window <= size / 3 + 5_000
        assert window % 2048 == 0
    assert local.bodies("/api/show") == [{"model": "tiny"}]


@pytest.mark.parametrize(
    "error",
    [
        "the input length exceeds the context length",
        "request (12008 tokens) exceeds the available context size (2048 tokens), try more",
    ],
)
@pytest.mark.parametrize("as_line", [False, True])
def test_a_window_refused_is_asked_for_once_more_at_its_largest(
    local: Local, error: str, as_line: bool
) -> None:
    prompt = "1" * 9_000

    def tight(handler: Handler, body: Any) -> None:
        if body["options"]["num_ctx"] >= 9_000 + ANSWER:
            handler.chunks(ndjson({"response": "a"}, last(read=9_000, context=9_002)))
        elif as_line:
            handler.chunks(ndjson({"error": error}))
        else:
            handler.whole({"error": error}, 400)

    generator = ollama(local, model_info={"x.context_length": 32_768})
    local.answers["/api/generate"] = tight
    assert "".join(generator.stream(prompt)) == "a"
    assert len(local.bodies("/api/generate")) == 2
    short = ollama(local, model_info={"x.context_length": 8_192})
    said, failed = failure(short, prompt)
    assert said == ""
    assert "too long for the model's window of 8,192 tokens" in failed.message
    assert "--budget" in str(failed.hint)


@pytest.mark.parametrize(
    ("read", "prompt"),
    [
        (2050, 4_000),  # the half and keep/2, as servers do since 2026
        (4096, 9_000),  # all of the window, as they did before
        (4096, None),
        (2050, None),
        (4095, 4_095),  # no room for the answer
        (900, 1_100),  # of another making
        (None, 1_000),  # not said: it may be
        (0, 1_000),
    ],
)
def test_a_prompt_that_was_cut_is_an_error_after_the_answer(
    local: Local, read: int | None, prompt: int | None
) -> None:
    context = None if prompt is None else prompt + 2
    generator = ollama(local, *ndjson({"response": "a"}, last(read=read, context=context)))
    said, error = failure(generator, "x" * 3_000)
    assert local.bodies("/api/generate")[0]["options"]["num_ctx"] == 4096
    assert said == "a"
    assert "cut" in error.message


@pytest.mark.parametrize(
    ("read", "answered", "context"),
    [(1_000, 200, 1_200), (1_000, 200, 1_199), (1_000, 200, 1_240), (1_001, 2, 1_003),
     (2_050, 100, 2_150), (3_000, 50, 2_000), (1_000, 2, None), (2_100, 2, None)],
)  # fmt: skip
def test_a_prompt_that_was_read_whole_is_none(
    local: Local, read: int, answered: int, context: int | None
) -> None:
    line = last(read=read, answered=answered, context=context)
    generator = ollama(local, *ndjson({"response": "a"}, line))
    assert "".join(generator.stream("x" * 3_000)) == "a"
    assert generator.usage() == Usage(read, answered)


def test_an_openai_server_that_reads_less_than_it_counted(local: Local) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 500, "completion_tokens": 2}}
    generator = openai(local, *sse(delta("a"), STOP, usage, b"[DONE]"))
    local.answers["/tokenize"] = lambda handler, _: handler.whole({"count": 1000})
    assert "".join(generator.stream("p")) == "a"  # not counted before: nothing to compare
    assert generator.count("p") == 1000
    said, error = failure(generator, "p")
    assert said == "a"
    assert "it read 500 tokens of the prompt's 1,000" in error.message


# Servers that fail


BROKEN = [
    pytest.param(500, {"error": "out of memory"}, "answers 500: out of memory", id="500"),
    pytest.param(500, {"error": {"message": "o\x1b[2Jm"}}, r"500: o\x1b[2Jm", id="escapes"),
    pytest.param(502, b"<html>\n<b>bad\n gateway</b>", "502: <html> <b>bad gateway", id="html"),
    pytest.param(400, b"", "answers 400: Bad Request", id="empty"),
    pytest.param(400, b"[" * 60_000, "answers 400: [[[", id="deep"),
    pytest.param(418, b"x" * 10**6, "answers 418: xxx", id="long"),
    pytest.param(500, b"\xff\xfe", "answers 500: \ufffd\ufffd", id="bytes"),
]


@pytest.mark.parametrize(("status", "content", "told"), BROKEN)
@pytest.mark.parametrize("make", [ollama, openai])
def test_an_error_status_is_told_in_one_line(
    local: Local, make: Callable[[Local], Generator], status: int, content: object, told: str
) -> None:
    generator = make(local)
    for path in ("/api/generate", "/v1/chat/completions"):
        local.answers[path] = lambda handler, _: handler.whole(content, status)
    said, error = failure(generator)
    assert said == ""
    assert told in error.message
    assert type(error) is ModelUnavailable
    assert len(local.bodies("/api/generate") + local.bodies("/v1/chat/completions")) == 1


@pytest.mark.parametrize("make", [ollama, openai])
def test_half_a_stream_keeps_what_came(local: Local, make: Callable[..., Generator]) -> None:
    piece = ndjson({"response": "half"}) if make is ollama else sse(delta("half"))
    for end in (True, False):  # the end of the stream in order, and in the middle of it
        said, error = failure(make(local, *piece, end=end))
        assert said == "half"
        assert "broke" in error.message
    cut = piece[0] + (b'{"respon' if make is ollama else b'data: {"choi')
    said, error = failure(make(local, cut))
    assert said == "half"


@pytest.mark.parametrize("make", [ollama, openai])
def test_a_stream_of_no_length_that_is_closed(local: Local, make: Callable[..., Generator]) -> None:
    pieces = ndjson({"response": "half"}) if make is ollama else sse(delta("half"))

    def old(handler: Handler, _: Any) -> None:
        handler.protocol_version = "HTTP/1.0"
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"".join(pieces))

    generator = make(local)
    local.answers["/api/generate"] = local.answers["/v1/chat/completions"] = old
    said, error = failure(generator)
    assert said == "half"
    assert "broke off before its end" in error.message


@pytest.mark.parametrize("make", [ollama, openai])
def test_a_server_that_falls_silent(local: Local, make: Callable[..., Generator]) -> None:
    piece = ndjson({"response": "a"}) if make is ollama else sse(delta("a"))
    began = time.monotonic()
    said, error = failure(make(local, *piece, 5.0))
    assert time.monotonic() - began < 3
    assert said == "a"
    assert "silent for 0.5 s" in error.message
    assert "RAGCLI_TIMEOUT" in str(error.hint)


@pytest.mark.parametrize("make", [ollama, openai])
def test_a_server_that_never_answers(local: Local, make: Callable[..., Generator]) -> None:
    generator = make(local)
    for path in ("/api/generate", "/v1/chat/completions"):
        local.answers[path] = lambda handler, _: handler.server.halt.wait(5) and None
    _, error = failure(generator)
    assert "silent for 0.5 s" in error.message


@pytest.mark.parametrize("make", [ollama, openai])
def test_slow_is_not_silent(local: Local, make: Callable[..., Generator]) -> None:
    if make is ollama:
        pieces = [*ndjson({"response": "a"}), 0.3, *ndjson({"response": "b"}), 0.3, *ndjson(last())]
    else:
        pieces = [*sse(delta("a")), 0.3, b": still here\n\n", 0.3, *sse(delta("b"), STOP)]
    assert "".join(make(local, *pieces).stream("")) == "ab"


GARBAGE = [
    b"<!DOCTYPE html>\n<p>hello\n",
    b"\x00\xff\xfe\n",
    b"data: nonsense\n\n",
    b"[1, 2]\n",
    b'"text"\n',
    b"[" * 100_000 + b"\n",
    b"1" * 5_000 + b"\n",
    b'data: {"error": {"message": "no\x1b slots"}}\n\n',
    b'{"error": {"code": 3}}\n',
    b'data: {"choices": "all"}\n\ndata: {"choices": [3]}\n\ndata: 7\n\n',
    b'{"response": 3}\n{"response": null}\n{}\n',
    b"\n\n\n",
    b"data: [DONE]\n\n",
    b"{\n",
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("make", [ollama, openai])
def test_garbage_is_one_line(local: Local, make: Callable[..., Generator], garbage: bytes) -> None:
    said, _ = failure(make(local, garbage))
    assert said == ""


@pytest.mark.parametrize("make", [ollama, openai])
def test_a_line_without_end_is_given_up(
    local: Local, make: Callable[..., Generator], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragcli.generation.generators.http._LONGEST", 2**20)
    _, error = failure(make(local, *[b"x" * 2**16] * 40))
    assert "a line of more than 1 MB" in error.message


def test_a_long_line_is_none_of_those(local: Local) -> None:
    text = "y" * 3_000_000
    assert "".join(ollama(local, *ndjson({"response": text}, last())).stream("")) == text


def test_broken_text_is_replaced(local: Local) -> None:
    lines = [b'{"response": "a\xff\xfeb"}\n{"response": "c\\ud83dd"}\n', *ndjson(last())]
    answer = "".join(ollama(local, *lines).stream(""))
    assert answer == "a\ufffd\ufffdbc\ufffdd"
    events = [b'data: {"choices": [{"delta": {"content": "a\xff\\udc80"}}]}\n\n', *sse(STOP)]
    assert "".join(openai(local, *events).stream("")) == "a\ufffd\ufffd"


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_answer_is_none(local: Local, text: str) -> None:
    for generator in (
        ollama(local, *ndjson({"response": text}, last())),
        openai(local, *sse(delta(text), STOP, b"[DONE]")),
    ):
        _, error = failure(generator)
        assert error.message.endswith("answered nothing")


def test_an_error_in_the_middle_is_not_asked_again(local: Local) -> None:
    error = {"error": "context window exceeded"}
    prompt = "x" * 9_000  # one that a larger window would be asked for
    said, told = failure(ollama(local, *ndjson({"response": "a"}, error)), prompt)
    assert said == "a"
    assert "context window exceeded" in told.message
    assert len(local.bodies("/api/generate")) == 1


def test_a_lone_surrogate_in_the_prompt_is_no_error(local: Local) -> None:
    assert "".join(ollama(local, *ndjson({"response": "a"}, last())).stream("x\udc80y")) == "a"
    assert local.bodies("/api/generate")[0]["prompt"] == "x?y"


# What is not there


def test_no_server(local: Local) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{unused.getsockname()[1]}"
        _, error = failure(open_generator("ollama:tiny", {"OLLAMA_HOST": where}))
        assert "Connection refused" in error.message
        assert "ollama serve" in str(error.hint)
        for spec in (f"openai:http://{where}", f"openai:http://{where}#m"):
            _, error = failure(open_generator(spec, {}))
            assert "Connection refused" in error.message


def test_a_host_that_does_not_exist() -> None:
    _, error = failure(open_generator("openai:http://nowhere.invalid#m", {}))
    assert "no connection" in error.message


def test_a_model_that_ollama_does_not_have(local: Local) -> None:
    missing = {"error": "model 'tiny' not found"}
    generator = ollama(local)
    for path in ("/api/show", "/api/generate"):
        local.answers[path] = lambda handler, _: handler.whole(missing, 404)
    _, error = failure(generator)
    assert "model 'tiny' not found" in error.message
    assert error.hint == "ollama pull tiny"
    assert local.bodies("/api/generate") == []
    del local.answers["/api/show"]  # a server without it still says so
    _, error = failure(generator)
    assert error.hint == "ollama pull tiny"


def test_a_model_that_the_server_does_not_have(local: Local) -> None:
    generator = openai(local)
    local.answers["/v1/chat/completions"] = lambda h, _: h.whole({"error": "no model tiny"}, 404)
    local.answers["/v1/models"] = lambda h, _: h.whole({"data": [{"id": "big"}, {"id": "b\x1b"}]})
    _, error = failure(generator)
    assert error.hint == r"it has big, b\x1b"


def test_the_first_model_that_the_server_lists(local: Local) -> None:
    openai(local, *sse(delta("a"), STOP))
    generator = open_generator(f"openai:http://{local.where}", {})
    _, error = failure(generator)
    assert "lists no models" in error.message
    local.answers["/v1/models"] = lambda h, _: h.whole({"data": [{"id": "one"}, {"id": "two"}]})
    generator = open_generator(f"openai:http://{local.where}/", {})
    assert "".join(generator.stream("")) == "a"
    assert local.bodies("/v1/chat/completions")[0]["model"] == "one"


# A busy server


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("make", [ollama, openai])
def test_a_busy_server_is_asked_again(
    local: Local, make: Callable[..., Generator], status: int
) -> None:
    ready = (
        ndjson({"response": "a"}, last()) if make is ollama else sse(delta("a"), STOP, b"[DONE]")
    )
    path = "/api/generate" if make is ollama else "/v1/chat/completions"

    def busy(handler: Handler, _: Any) -> None:
        if len(local.bodies(path)) <= 3:
            handler.whole({"error": "busy"}, status, Retry_After="0")
        else:
            handler.chunks(ready)

    generator = make(local)
    local.answers[path] = busy
    assert "".join(generator.stream("")) == "a"
    assert len(local.bodies(path)) == 4


def test_a_server_that_stays_busy_is_given_up(local: Local) -> None:
    generator = ollama(local)
    local.answers["/api/generate"] = lambda h, _: h.whole({"error": "full"}, 503, Retry_After="0")
    _, error = failure(generator)
    assert "answers 503: full" in error.message
    assert len(local.bodies("/api/generate")) == 4


def test_the_pauses(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    asked = iter(["", "7", "Fri, 31 Dec 1999 23:59:59 GMT"])
    local.answers["/x"] = lambda h, _: h.whole({}, 503, Retry_After=next(asked, "1"))
    server = Server("n", address(f"http://{local.where}"), silence=1, pauses=(0.5, 1, 2))
    with pytest.raises(ModelUnavailable):
        server.ask("/x")
    assert slept == [0.5, 7, 2]
    local.answers["/x"] = lambda h, _: h.whole({}, 429, Retry_After="3600")
    with pytest.raises(ModelUnavailable) as caught:
        server.ask("/x")
    assert caught.value.hint == "it asks to come again in 3600 s"
    assert len(slept) == 3


# Who is contacted, and who is told the key


def test_no_proxy_is_asked(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert "".join(ollama(local, *ndjson({"response": "a"}, last())).stream("")) == "a"


def test_a_redirect_is_not_followed(local: Local) -> None:
    other = Local()
    generator = openai(local, OPENAI_API_KEY="secret")
    target = f"http://{other.where}/v1/chat/completions"
    local.answers["/v1/chat/completions"] = lambda h, _: h.whole(b"", 307, Location=target)
    other.timeout = 0.1
    _, error = failure(generator)
    assert f"it points to {target}" in error.message
    other.handle_request()
    other.server_close()
    assert other.asked == []


def test_the_key_goes_to_this_machine_over_http(local: Local) -> None:
    generator = openai(local, *sse(delta("a"), STOP), OPENAI_API_KEY=" secret\n")
    assert "".join(generator.stream("")) == "a"
    assert local.asked[-1][2]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://api.example.com/v1", True),
        ("http://localhost:8080", True),
        ("http://127.8.0.1", True),
        ("http://[::1]:8080/v1", True),
        ("http://api.example.com/v1", False),
        ("http://192.168.0.7:8080", False),
        ("http://0.0.0.0:8080", False),
        ("http://localhost.example.com", False),
        ("http://127.0.0.1.example.com", False),
    ],
)
def test_the_key_goes_over_https_or_stays_here(url: str, sent: bool) -> None:
    generator = open_generator(f"openai:{url}#m", {"OPENAI_API_KEY": "secret"})
    assert isinstance(generator, OpenAI)
    for server in (generator._api, generator._root):
        assert server._headers == ({"Authorization": "Bearer secret"} if sent else {})
    assert "secret" not in generator.name


def test_a_refused_key_has_a_hint(local: Local) -> None:
    generator = openai(local)
    local.answers["/v1/chat/completions"] = lambda h, _: h.whole({"error": "no key"}, 401)
    _, error = failure(generator)
    assert "OPENAI_API_KEY" in str(error.hint)
    key = {"OPENAI_API_KEY": "a\nb"}
    with pytest.raises(UsageError):
        open_generator(f"openai:http://{local.where}", key)


def test_a_prompt_that_the_server_finds_too_long(local: Local) -> None:
    reason = "This model's maximum context length is 512 tokens, however you requested 700"
    generator = openai(local)
    local.answers["/v1/chat/completions"] = lambda h, _: h.whole({"error": reason}, 400)
    _, error = failure(generator)
    assert "--budget" in str(error.hint)


def test_what_a_server_does_not_take_is_left_out(local: Local) -> None:
    def strict(handler: Handler, body: Any) -> None:
        if wrong := next((name for name in ("temperature", "stream_options") if name in body), ""):
            handler.whole({"error": {"message": f"Unsupported value: '{wrong}'"}}, 400)
        else:
            handler.chunks(sse(delta("a"), STOP))

    generator = openai(local)
    local.answers["/v1/chat/completions"] = strict
    assert "".join(generator.stream("")) == "a"
    assert len(local.bodies("/v1/chat/completions")) == 3


# Counting


def test_vllm_counts_messages(local: Local) -> None:
    generator = openai(local)
    local.answers["/tokenize"] = lambda h, body: h.whole(
        {"count": len(body["messages"][0]["content"]) + 5, "tokens": []}
    )
    local.answers["/v1/models"] = lambda h, _: h.whole(
        {"data": [{"id": "other"}, {"id": "tiny", "max_model_len": 4096}]}
    )
    assert generator.count("abc") == 8
    assert generator.window == 4096


def test_llama_cpp_counts_what_its_template_makes(local: Local) -> None:
    generator = openai(local)
    local.answers["/tokenize"] = lambda h, body: h.whole(
        {"tokens": list(range(len(body.get("content", ""))))}
    )
    local.answers["/apply-template"] = lambda h, body: h.whole(
        {"prompt": f"<user>{body['messages'][0]['content']}<end>"}
    )
    local.answers["/v1/models"] = lambda h, _: h.whole(
        {"data": [{"id": "tiny", "owned_by": "llamacpp"}]}
    )
    local.answers["/props"] = lambda h, _: h.whole({"default_generation_settings": {"n_ctx": 512}})
    assert generator.count("abc") == 14
    assert local.bodies("/tokenize")[-1]["parse_special"] is True
    assert generator.window == 512


def test_a_server_that_does_not_count_is_asked_once(local: Local) -> None:
    generator = openai(local)
    assert [generator.count("a"), generator.count("b")] == [None, None]
    assert len(local.bodies("/tokenize")) == 1
    assert generator.window is None


# Addresses


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h", Address(False, "h", 80, "")),
        ("https://h/", Address(True, "h", 443, "")),
        ("HTTP://H:8080/V1/", Address(False, "h", 8080, "/V1")),
        ("http://[::1]:1/é", Address(False, "::1", 1, "/%C3%A9")),
        ("https://müller.example/v1", Address(True, "xn--mller-kva.example", 443, "/v1")),
    ],
)
def test_an_address(url: str, expected: Address) -> None:
    assert address(url) == expected
    assert address(str(expected)) == expected


@pytest.mark.parametrize(
    "url",
    ["", "h", "h:80", "ftp://h", "http://", "http:///v1", "http://h:x", "http://h:99999",
     "http://[::1", "http://u:p@h", "http://u@h", "http://h?q=1", "http://a b", "http://a..b",
     "http://h/\r\nX: y", "file:///etc/passwd"],
)  # fmt: skip
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_generator(f"openai:{url or '#m'}", {})
    assert caught.value.message.isprintable()
    assert "u:p" not in caught.value.message


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:80", "http://127.0.0.1:80"),
        (":8000", "http://127.0.0.1:8000"),
        ("box", "http://box:11434"),
        ("box:1", "http://box:1"),
        ("http://box", "http://box:80"),
        ("https://box/ollama/", "https://box:443/ollama"),
        ("http://", "http://127.0.0.1:80"),
        ("[::1]:7", "http://[::1]:7"),
        ("::1", "http://[::1]:11434"),
        ("http://::1", "http://[::1]:80"),
        (' "box:1" ', "http://box:1"),
    ],
)
def test_ollama_host(host: str, expected: str) -> None:
    generator = open_generator("ollama:m", {"OLLAMA_HOST": host})
    assert isinstance(generator, Ollama)
    assert str(generator._server.at) == expected


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("box:bad", "OLLAMA_HOST is 'box:…': http://box:… is no URL: its port is none"),
        ("ftp://me:hunter2@box", "OLLAMA_HOST is 'ftp://…@box': ftp://…@box is no URL of a server"),
    ],
)
def test_an_ollama_host_that_is_none(host: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_generator("ollama:m", {"OLLAMA_HOST": host})
    assert caught.value.message == told


@pytest.mark.parametrize(
    "url",
    ["http://user:hunter2@host:bad", "ftp://user:hunter2@host", "http://user:hunter2@[::1",
     "http://user:hunter2@host", "http://user:hunter2 @host", "http://user:hunt/er2@host:1",
     "http://user:hunter2", "http://user:hunter2#x@host", "user:hunter2@host",
     "http://user:a@hunter2@host:bad", "http://user:hunter2@ho\u2100st"],
)  # fmt: skip
def test_no_password_is_shown(url: str) -> None:
    for spec, environment in ((f"openai:{url}", {}), ("ollama:m", {"OLLAMA_HOST": url})):
        with pytest.raises(UsageError) as caught:
            open_generator(spec, environment)
        told = f"{caught.value.message} {caught.value.hint}"
        assert not any(secret in told for secret in ("hunt", "er2"))


def test_what_is_shown_of_an_address() -> None:
    for url in ("http://host:80/v1", "https://[::1]:7", "host", "http://host"):
        assert without_secrets(url) == url


def self_signed(folder: Path) -> Path:
    """A certificate and its key, by openssl."""
    file = folder / "server.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj"]
    subprocess.run(
        [*made, "/CN=localhost", "-keyout", str(file), "-out", str(folder / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    file.write_text(file.read_text() + (folder / "cert.pem").read_text())
    return file


def test_https_to_a_server_that_speaks_plain_http(local: Local) -> None:
    _, error = failure(open_generator(f"openai:https://{local.where}#m", {}))
    assert error.message.endswith("no connection: it does not speak https")
    assert error.hint == "write the address with http://"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_certificate_that_nobody_vouches_for(local: Local, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))
    local.socket = context.wrap_socket(local.socket, server_side=True)
    _, error = failure(open_generator(f"openai:https://{local.where}#m", {}))
    assert "no connection: its certificate is not to be trusted, self" in error.message
    _, error = failure(open_generator(f"openai:http://{local.where}#m", {}))
    assert "the connection broke" in error.message or "no answer of HTTP" in error.message


@pytest.mark.parametrize("count", [-5, 10**30, True, 1.5, "12", None])
def test_a_count_that_is_none_is_not_told(local: Local, count: object) -> None:
    used = {"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": count}}
    local.answers["/v1/chat/completions"] = lambda h, _: h.chunks(sse(delta("a"), STOP, used))
    local.answers["/tokenize"] = lambda h, _: h.whole({"count": count})
    generator = openai(local)
    assert "".join(generator.stream("")) == "a"
    assert (generator.usage(), generator.count("x")) == (Usage(), None)


def test_foreign_bytes_are_escaped_once(local: Local) -> None:
    local.answers["/v1/chat/completions"] = lambda h, _: h.chunks([b"\x1b[31mno\\stream\n"])
    _, error = failure(openai(local))
    assert error.message.endswith(r"no stream of OpenAI's protocol: '\x1b[31mno\stream'")


@pytest.mark.parametrize("spec", ["v1", "v1/"])
def test_a_base_with_a_path_is_taken_as_it_is(local: Local, spec: str) -> None:
    local.answers["/deep/v1/chat/completions"] = lambda h, _: h.chunks(sse(delta("a"), STOP))
    local.answers["/deep/tokenize"] = lambda h, _: h.whole({"count": 3})
    generator = open_generator(f"openai:http://{local.where}/deep/{spec}#m", {})
    assert "".join(generator.stream("")) == "a"
    assert generator.count("x") == 3
