"""Text of pictures through the installed program tesseract: `--ocr LANGUAGES`.

Runs it from an argument list, one page at a time, under a limit of time; memory is limited by
the process that this runs in, which tesseract inherits.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from ragcli.errors import ModelUnavailable, UsageError

PROGRAM = "tesseract"
SECONDS = 60.0
"""For one page."""

_LANGUAGES = re.compile(r"\w+(?:\+\w+)*")
_LEAST_CONFIDENCE = 30.0
"""Per cent; below it words are mostly specks and drawings."""
_WORD_LEVEL = "5"
_NEW_LINE, _NEW_PARAGRAPH = "\n", "\n\n"


class OcrFailed(Exception):
    """A page that tesseract gave nothing for, with the reason."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """The text of a picture, "" for none, and tesseract's mean confidence in it, in per cent."""

    text: str
    confidence: float


def check_ocr(languages: str) -> None:
    """See that `languages`, such as `eng` or `deu+eng`, can be read on this machine.

    Raises UsageError (no such list), ModelUnavailable (the program or its data).
    """
    if not _LANGUAGES.fullmatch(languages):
        raise UsageError(
            f"--ocr {languages}: not languages that tesseract knows",
            "give their codes, with + between them: --ocr eng, --ocr deu+eng",
        )
    off = "or without it: ragcli index --ocr ''"
    if shutil.which(PROGRAM) is None:
        raise ModelUnavailable(
            f"--ocr: the program {PROGRAM} is not installed",
            f"apt-get install tesseract-ocr, brew install tesseract; {off}",
        )
    known = _known_languages()
    missing = [language for language in languages.split("+") if language not in known]
    if missing:
        has = ", ".join(sorted(known - {"osd"})) or "none"
        raise ModelUnavailable(
            f"--ocr: {PROGRAM} has no data for {', '.join(missing)} (it has {has})",
            f"apt-get install tesseract-ocr-{missing[0]}; {off}",
        )


def recognise(picture: bytes, dots: int, languages: str) -> Recognised:
    """Return the text of a PGM of `dots` dots an inch. Raises OcrFailed."""
    if not _LANGUAGES.fullmatch(languages):  # an index remembers what it likes
        raise OcrFailed(f"there is no language {languages:.40}")
    command = [PROGRAM, "stdin", "stdout", "-l", languages, "--dpi", str(dots)]
    try:
        done = subprocess.run(
            [*command, "-c", "tessedit_create_tsv=1"],
            input=picture,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            # One page takes one core: other files are read beside it.
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
        )
    except subprocess.TimeoutExpired:
        raise OcrFailed(f"{PROGRAM} took longer than {SECONDS:.0f} s") from None
    except OSError as error:
        raise OcrFailed(f"{PROGRAM} cannot be run: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OcrFailed(f"{PROGRAM} failed: {said[-1] if said else done.returncode}")
    return _text_of(done.stdout.decode("utf-8", "replace"))


def _known_languages() -> set[str]:
    try:
        done = subprocess.run(
            [PROGRAM, "--list-langs"], capture_output=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelUnavailable(
            f"--ocr: {PROGRAM} cannot be run: {error}", "see what `tesseract --version` says"
        ) from error
    told = done.stdout.decode("utf-8", "replace").splitlines()
    return {line.strip() for line in told[1:] if line.strip()}


def _text_of(table: str) -> Recognised:
    """Put the words of tesseract's TSV together: a line per line, a blank one per paragraph."""
    parts: list[str] = []
    confidences: list[float] = []
    before: tuple[list[str], str] | None = None
    for line in table.splitlines()[1:]:
        cells = line.split("\t")
        if len(cells) != 12 or cells[0] != _WORD_LEVEL or not cells[11].strip():
            continue
        confidence = float(cells[10])
        if confidence < _LEAST_CONFIDENCE:
            continue
        place = cells[1:4], cells[4]
        if before is not None:
            same = place[0] == before[0]
            parts.append(" " if place == before else _NEW_LINE if same else _NEW_PARAGRAPH)
        parts.append(cells[11].strip())
        confidences.append(confidence)
        before = place
    mean = sum(confidences) / len(confidences) if confidences else 0.0
    return Recognised("".join(parts), mean)
