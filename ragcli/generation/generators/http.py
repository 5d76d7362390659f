"""A server on HTTP, asked for an answer that comes line by line.

Owns the connection: its time limits, what is tried again, and the one line that a failure is
told in. Knows nothing of the protocol spoken over it. Only the named host is contacted: no proxy
is asked, whatever the environment says, and no redirect is followed.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from ragcli.errors import ModelUnavailable, UsageError
from ragcli.generation.visible import visible

CONNECT = 5.0
"""Seconds to wait for a connection."""
PAUSES = (1.0, 2.0, 4.0)
"""Seconds before a busy server is asked again, where it does not say; as often as there are."""
_LONGEST_PAUSE = 60.0
_BLOCK = 65_536
_LONGEST = 16 * 2**20
"""Bytes of one line, or of an answer that is read whole."""
_SHOWN = 300
_MOST = 10**9
"""Tokens in a count that is believed."""
_BUSY = (429, 503)
_HINT = "see what the server logs, or name another generator by -G"


class Refused(ModelUnavailable):
    """The server answered with another status than 200."""

    def __init__(self, message: str, hint: str | None, status: int, reason: str) -> None:
        super().__init__(message, hint)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is: `path` has no slash at its end."""

    secure: bool
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.path}"

    @property
    def local(self) -> bool:
        """Whether this machine itself is meant, so that nothing crosses a network."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def address(url: str, *, port: int | None = None) -> Address:
    """The address that a URL names; `port` instead of the scheme's own where it has none.

    Raises UsageError for anything but `http[s]://HOST[:PORT][/PATH]`.
    """
    wanted = "write it as http://HOST:PORT or https://HOST"
    shown = without_secrets(url)
    if visible(url) != url or " " in url:
        raise UsageError(f"{shown} is no URL: it holds spaces or control characters", wanted)
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode("ascii")
    except ValueError as error:  # its text may hold what stands before the @
        raise UsageError(f"{shown} is no URL: its host is none", wanted) from error
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{shown} is no URL of a server", wanted)
    try:
        own_port = parts.port
    except ValueError as error:
        raise UsageError(f"{shown} is no URL: its port is none", wanted) from error
    if parts.username is not None or parts.query:
        raise UsageError("the URL of a server has no user, password or query here", wanted)
    secure = parts.scheme == "https"
    return Address(
        secure,
        host,
        own_port or port or (443 if secure else 80),
        quote(parts.path, safe="/%:@!$&'()*+,;=~").rstrip("/"),
    )


def without_secrets(url: str) -> str:
    """What may be shown of a URL: no user, no password, nor what may be one where a port belongs.

    >>> without_secrets("http://me:secret@host:1/v1")
    'http://…@host:1/v1'
    """
    scheme, separator, rest = url.rpartition("://")
    _, at, host = rest.rpartition("@")
    shown = re.sub(r"^([^:/\[]+):(?!\d+(?:/|$))[^/]*", r"\1:…", host)
    return visible(f"{scheme}{separator}{'…@' if at else ''}{shown}")


class Server:
    """One server; each request has a connection of its own.

    `name` begins each message; `silence` is the seconds without a byte after which the server is
    given up. All methods raise ModelUnavailable, and Refused for a status that is no success.
    """

    def __init__(
        self,
        name: str,
        at: Address,
        *,
        silence: float,
        headers: Mapping[str, str] | None = None,
        unreachable: str | None = None,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self.name = name
        self.at = at
        self._silence = silence
        self._headers = dict(headers or {})
        self._unreachable = unreachable
        self._pauses = pauses

    def ask(self, path: str, body: object = None) -> object:
        """The JSON that a request is answered with: POST of `body`, GET where there is none."""
        with self._answer(path, body) as response:
            text = response.read(_LONGEST)
        return self.parse(text)

    def lines(self, path: str, body: object) -> Iterator[bytes]:
        """The lines of an answer to POST, as they come, without their ends; not retried once begun.

        Closing the iterator closes the connection.
        """
        with self._answer(path, body) as response:
            held = bytearray()
            while piece := response.read1(_BLOCK):
                *whole, rest = piece.split(b"\n")
                if whole:
                    yield bytes(held + whole[0]).rstrip(b"\r")
                    yield from (line.rstrip(b"\r") for line in whole[1:])
                    held.clear()
                held += rest
                if len(held) > _LONGEST:
                    raise self.failed(f"a line of more than {_LONGEST >> 20} MB came")
            if held:
                yield bytes(held).rstrip(b"\r")

    def parse(self, text: bytes) -> object:
        """The JSON of a line or of a whole answer; bytes that are no UTF-8 become U+FFFD."""
        try:
            return json.loads(text.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise self.failed(f"what came is not JSON: '{one_line(text[:_BLOCK])}'") from error

    def failed(self, what: str, hint: str | None = None) -> ModelUnavailable:
        """What to raise: `what` in one line, with the server's name and address before it."""
        return ModelUnavailable(f"{visible(self.name)} at {self.at}: {what}", hint or _HINT)

    @contextmanager
    def _answer(self, path: str, body: object) -> Iterator[http.client.HTTPResponse]:
        """The answer to a request, its status looked at, and a busy server asked again."""
        connection = self._connection()
        try:
            with self._told():
                response = self._request(connection, path, body)
                for pause in self._pauses:
                    if response.status not in _BUSY:
                        break
                    time.sleep(self._pause(response, pause))
                    connection.close()
                    response = self._request(connection, path, body)
                if response.status != 200:
                    raise self._refused(response)
                yield response
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self.at.secure:
            return http.client.HTTPSConnection(self.at.host, self.at.port, timeout=CONNECT)
        return http.client.HTTPConnection(self.at.host, self.at.port, timeout=CONNECT)

    def _request(
        self, connection: http.client.HTTPConnection, path: str, body: object
    ) -> http.client.HTTPResponse:
        try:
            connection.connect()
        except OSError as error:
            why, hint = _why_not(error)
            raise self.failed(f"no connection: {why}", hint or self._unreachable) from error
        connection.sock.settimeout(self._silence)
        headers = {"Connection": "close", **self._headers}
        content = None
        if body is not None:
            content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            headers["Content-Type"] = "application/json"
        connection.request(
            "GET" if content is None else "POST", self.at.path + path, content, headers
        )
        return connection.getresponse()

    def _pause(self, response: http.client.HTTPResponse, otherwise: float) -> float:
        """Seconds to wait before asking again; raises what a server refuses for too long."""
        asked = response.headers.get("Retry-After", "").strip()
        seconds = float(asked) if asked.isascii() and asked.isdigit() else otherwise
        if seconds > _LONGEST_PAUSE:
            raise self._refused(response, f"it asks to come again in {seconds:.0f} s")
        return seconds

    def _refused(self, response: http.client.HTTPResponse, hint: str | None = None) -> Refused:
        location = response.headers.get("Location")
        if 300 <= response.status < 400 and location:
            reason = f"it points to {one_line(location.encode())}, and redirects are not followed"
            hint = "name that address if it is the right one"
        else:
            reason = _reason(response.read(_BLOCK)) or one_line(response.reason.encode())
        told = self.failed(f"answers {response.status}: {reason}").message
        return Refused(told, hint or _HINT, response.status, reason)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong on the line, as one line."""
        try:
            yield
        except TimeoutError as error:
            raise self.failed(
                f"silent for {self._silence:g} s", "RAGCLI_TIMEOUT=SECONDS waits longer"
            ) from error
        except http.client.BadStatusLine as error:
            said = one_line(str(error).encode("utf-8", "replace"))
            raise self.failed(
                f"this is no answer of HTTP: '{said}'", "if it speaks https, write https://"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise self.failed(f"the connection broke: {one_line(str(why).encode())}") from error


def whole(value: object) -> int | None:
    """A count from JSON; None for what is none: no whole number, below 0, beyond all sense."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MOST else None


def _why_not(error: OSError) -> tuple[str, str | None]:
    """Why there is no connection, and what to do about it where that can be told."""
    match error:
        case TimeoutError():
            return "no answer", None
        case ssl.SSLCertVerificationError():
            why = f"its certificate is not to be trusted, {error.verify_message}"
            return visible(why), "https:// needs a certificate that this machine knows"
        case ssl.SSLError():
            return "it does not speak https", "write the address with http://"
    return visible(error.strerror or str(error)), None


def one_line(text: bytes) -> str:
    """Foreign text as one line that can be shown, cut where it is long."""
    flat = visible(" ".join(text.decode("utf-8", "replace").split()))
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"


def sound(piece: str) -> str:
    """Text from JSON with its lone surrogates, which no encoding can write, as U+FFFD."""
    return piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _reason(body: bytes) -> str:
    """What an error's body says: the message of the JSON that servers send, else its text."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    match said:
        case {"error": {"message": str(text)}} | {"error": str(text)}:
            return one_line(text.encode("utf-8", "replace"))
        case {"message": str(text)} | {"detail": str(text)}:
            return one_line(text.encode("utf-8", "replace"))
    return one_line(body)
