"""The child process that reads files: `python -m ragcli.indexing.worker`.

Takes pickled messages on stdin and answers on stdout; both ends are this program, so nothing
of a document is ever unpickled. Holds the limits of memory and of its own work, and silence: what
a parser prints goes nowhere. The parent (`pool`) says what the limits are, looks at the clock and
ends it.
"""

from __future__ import annotations

import gc
import math
import os
import pickle
import signal
import struct
from typing import IO, Any

DONE = "done"
SPENT = "spent"
OUT_OF_MEMORY = "memory"
"""What ends the answers to one request; after the last two this process ends too."""

NICE = 5

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


def limit_memory(limit: int) -> int:
    """Let allocations beyond `limit` bytes fail, where the system can say so; what holds then.

    That is less under a harder limit of the user's (`ulimit -d`).
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit; the parent's time limit still holds
        return limit
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    return limit


def limit_time(seconds: float) -> float:
    """End this process after so many more seconds of its own work, where the system can.

    Of its work, not of the clock: on a busy machine a sound file takes long. Returns what holds
    then, which is less under a harder limit of the user's (`ulimit -t`).
    """
    try:
        import resource
    except ImportError:
        return seconds
    used = _used()
    until = math.ceil(used + seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard != resource.RLIM_INFINITY and until >= hard:
        # At the hard one the system kills, and that would look like a crash.
        until = max(1, hard - 1)
        seconds = max(0.0, until - used)
    resource.setrlimit(resource.RLIMIT_CPU, (until, hard))
    return seconds


def is_spent() -> bool:
    """Whether half of the work is done that the user's limit (`ulimit -t`) leaves this process.

    Each file then has the other half at least, the next one in another process.
    """
    try:
        import resource
    except ImportError:
        return False
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    return hard != resource.RLIM_INFINITY and _used() > (hard - 1) / 2


def _used() -> float:
    """Seconds that this process has worked."""
    times = os.times()
    return times.user + times.system


def give_way() -> None:
    """Leave the processor to whoever works at the machine, and no core file behind."""
    try:
        import resource
    except ImportError:
        return
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Serve analyses until stdin ends."""
    give_way()
    # A whole process group is told to end, and the parent ends this one when it has the answer.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(quiet, stream)
    gc.disable()
    settings, home, vectors, memory = receive(requests)
    memory = limit_memory(memory)

    import numpy  # noqa: F401  what each file needs is there before one is blamed

    from ragcli.indexing.analysis import Analysis

    def more_time(seconds: float) -> None:
        send(answers, limit_time(seconds))

    analysis = Analysis(settings, home, vectors=vectors, more_time=more_time)
    gc.freeze()
    os.dup2(quiet, 2)  # until here it is the parent's, who tells why this process did not start
    send(answers, memory)  # it is ready: what fails from here on is a file's fault
    while True:
        try:
            files, seconds = receive(requests)
        except EOFError:
            return
        more_time(seconds)
        try:
            for answer in analysis.run(files):
                send(answers, answer)
        except MemoryError:
            send(answers, OUT_OF_MEMORY)
            return
        if is_spent():
            send(answers, SPENT)
            return
        send(answers, DONE)
        gc.collect()


if __name__ == "__main__":
    main()
