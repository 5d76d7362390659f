"""The one exception tree, with the exit code that each branch ends a command with.

    RagcliError                 70  never raised itself
    ├── NegativeResult           1  nothing found, a gate failed, a check found problems
    ├── UsageError               2  wrong usage, or input that cannot be used
    ├── IndexUnavailable         3  no index here, or one that cannot be read
    │   ├── IndexNotFound
    │   ├── IndexForeign            not ours, or of another format
    │   └── IndexDamaged            a part is missing or does not match its checksum
    ├── IndexBusy                4  another process is writing
    ├── FilesFailed              5  done, but files failed under --strict
    └── ModelUnavailable         6  an encoder, reranker or generator that cannot be had

    UnreadableFile                  one file could not be read: a problem, never the end of a run

A message says in one line what happened and to which file; a hint says what to do next.
This module does not print; `cli.app` turns these into stderr and an exit code.
"""

from __future__ import annotations


class RagcliError(Exception):
    """What a user can be told: one line, and a hint for the next step."""

    exit_code = 70

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NegativeResult(RagcliError):
    """The command did its work and the answer is no."""

    exit_code = 1


class UsageError(RagcliError):
    """An option, argument or input file that cannot be used."""

    exit_code = 2


class IndexUnavailable(RagcliError):
    """There is no index that could be read."""

    exit_code = 3


class IndexNotFound(IndexUnavailable):
    """No `.rag` here or in any folder above."""


class IndexForeign(IndexUnavailable):
    """A `.rag` that ragcli did not write, or of a format it does not know."""


class IndexDamaged(IndexUnavailable):
    """A part of the index is missing or does not match what the catalogue says of it."""


class IndexBusy(RagcliError):
    """Another process holds the writer's lock."""

    exit_code = 4


class FilesFailed(RagcliError):
    """Indexing finished, and `--strict` asked that no file fail."""

    exit_code = 5


class ModelUnavailable(RagcliError):
    """A model or the library that runs it is not installed or not found."""

    exit_code = 6


class UnreadableFile(Exception):
    """A reader could not turn one file into text.

    `kind` is one of `password`, `no_text`, `corrupt`, `unsupported`, `binary`, `decode`,
    `minified`, `generated`, `too_large`, `timeout`, `memory`, `crashed`, `permission`,
    `vanished`, `unreadable`, `changing`, `special`, `missing_extra`;
    `skip` is true where the file is rightly left out (a binary) rather than failed.
    """

    def __init__(self, kind: str, message: str, *, skip: bool = False) -> None:
        super().__init__(kind, message, skip)
        self.kind = kind
        self.message = message
        self.skip = skip

    def __str__(self) -> str:
        return self.message
