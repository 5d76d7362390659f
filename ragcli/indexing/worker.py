"""The child process that reads files: `python -m ragcli.indexing.worker`.

Takes pickled messages on stdin and answers on stdout; both ends are this program, so nothing
of a document is ever unpickled. Holds the memory limit, and silence: what a parser prints
goes nowhere. The parent (`pool`) holds the time limit and ends it.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import struct
from typing import IO, Any

DONE = "done"
OUT_OF_MEMORY = "memory"
"""What ends the answers to one request."""

_HEADER = struct.Struct("<Q")


def send(stream: IO[bytes], message: object) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=5)
    stream.write(_HEADER.pack(len(data)))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; raises EOFError when the other end is gone."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise EOFError
    size = _HEADER.unpack(header)[0]
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def limit_memory(limit: int) -> None:
    """Let allocations beyond `limit` bytes fail, where the system can say so."""
    try:
        import resource
    except ImportError:  # Windows has no such limit; the parent's time limit still holds
        return
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def main() -> None:
    """Serve analyses until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    gc.disable()
    settings, home, vectors, memory = receive(requests)
    limit_memory(memory)

    from ragcli.indexing.analysis import Analysis

    analysis = Analysis(settings, home, vectors=vectors)
    gc.freeze()
    while True:
        try:
            files = receive(requests)
        except EOFError:
            return
        try:
            for answer in analysis.run(files):
                send(answers, answer)
            send(answers, DONE)
        except MemoryError:
            send(answers, OUT_OF_MEMORY)
            return
        gc.collect()


if __name__ == "__main__":
    main()
