"""llama.cpp's library in this process: what it complains of is kept, what it works on can be ended.

While it works it calls back into Python, to log and to ask whether it shall go on. Wherever Python
code runs, Python runs its handlers of signals, and what a handler raises inside a callback is lost:
Ctrl-C would be. So `working` keeps the signals until llama.cpp has returned, and the callbacks tell
it to return at once.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ragcli.errors import ModelUnavailable

_ERROR = 4
"""llama.cpp's level of messages about what failed."""

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]

_complaints: deque[str] = deque(maxlen=1)
_kept: list[int] = []
_log: Any = None


def library() -> Any:
    """llama_cpp, which from here on complains to `reason` alone. Raises ModelUnavailable."""
    try:
        import llama_cpp
    except (ImportError, OSError, RuntimeError) as error:  # the last two: its library is broken
        missing = getattr(error, "name", None) == "llama_cpp"
        raise ModelUnavailable(
            "llama-cpp-python is not installed"
            if missing
            else f"llama-cpp-python cannot be imported: {' '.join(str(error).split())}",
            "pip install 'ragcli[llm]'",
        ) from error
    global _log  # noqa: PLW0603  llama.cpp calls it for as long as the process lives
    with working():
        _log = llama_cpp.llama_log_callback(_hear)
        llama_cpp.llama_log_set(_log, None)
        llama_cpp.llama_backend_init()
    _complaints.clear()
    return llama_cpp


def reason() -> str:
    """What llama.cpp last complained of, to be put behind a message."""
    return f": {_complaints[-1]}" if _complaints else ""


def interrupted() -> bool:
    """Whether a signal waits until llama.cpp has returned."""
    return bool(_kept)


@contextmanager
def working() -> Iterator[None]:
    """Around calls that may call back: a signal that comes meanwhile is raised at the end.

    What it raises stands for whatever llama.cpp made of being stopped.
    """
    handlers: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    handlers[number] = handler
                    signal.signal(number, _keep)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        came = _kept.copy()
        _kept.clear()
        for number in came:
            signal.raise_signal(number)


def _keep(number: int, frame: FrameType | None) -> None:
    _kept.append(number)


def _hear(level: int, text: bytes, _data: object) -> None:
    if level == _ERROR:
        _complaints.append(" ".join(text.decode("utf-8", "replace").split()))
