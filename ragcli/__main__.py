"""The process: start fast, run one command, end fast."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run the command that the arguments name and end the process with its exit code."""
    # Nothing made while modules load becomes garbage: collecting then costs 10 ms of the start.
    gc.disable()
    from ragcli.cli.app import run

    gc.freeze()
    gc.enable()
    code = run(sys.argv[1:])
    if sys.gettrace() is None and sys.getprofile() is None:
        # Each write was flushed. Taking the interpreter apart costs 20 ms after numpy,
        # and gives nobody anything but a tracer or a profiler.
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
