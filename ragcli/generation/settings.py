"""Where the generator's spec and its time limit come from, when no option names them.

The environment and the user's own `config.toml`, nothing else: a project's files come from
whoever wrote the project, and a generator is a command to run or a server to send text to.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path

from ragcli.errors import UsageError
from ragcli.generation.visible import visible

SILENCE = 300.0
"""Seconds without a sign of life after which a generator is given up."""


def generator_spec(option: str | None, environment: Mapping[str, str]) -> str | None:
    """The spec of the generator to use: `option`, else RAGCLI_GENERATOR, else the user's config.

    None where none of them names one. Raises UsageError for a config that cannot be read.
    """
    if option is not None:
        return option
    return environment.get("RAGCLI_GENERATOR") or _configured(environment)


def time_limit(environment: Mapping[str, str]) -> float:
    """Seconds of silence allowed: RAGCLI_TIMEOUT, else `SILENCE`. Raises UsageError."""
    given = environment.get("RAGCLI_TIMEOUT")
    if not given:
        return SILENCE
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    # A day is as good as never, and sockets refuse what is far above it.
    if not 0 < seconds <= 86_400:
        raise UsageError(
            f"RAGCLI_TIMEOUT is '{visible(given)}', no number of seconds from 0 to 86400",
            f"leave it out for {SILENCE:.0f}",
        )
    return seconds


def config_file(environment: Mapping[str, str]) -> Path | None:
    """Where the user's config lies: `$XDG_CONFIG_HOME/ragcli/config.toml`, or in `~/.config`.

    None for a user without a home. The file need not be there.
    """
    folder = environment.get("XDG_CONFIG_HOME", "")
    # A relative folder would be the project's; the XDG specification says to ignore it as well.
    if Path(folder).is_absolute():
        return Path(folder, "ragcli", "config.toml")
    home = environment.get("HOME", "")
    return Path(home, ".config", "ragcli", "config.toml") if Path(home).is_absolute() else None


def _configured(environment: Mapping[str, str]) -> str | None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    file = config_file(environment)
    if file is None:
        return None
    try:
        spec = tomllib.loads(file.read_text(encoding="utf-8")).get("generator")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(
            f"{visible(str(file))} cannot be read: {error.strerror}",
            "make it readable, or name the generator by -G",
        ) from error
    except (ValueError, RecursionError) as error:
        why = "too many brackets" if isinstance(error, RecursionError) else visible(str(error))
        raise UsageError(
            f"{visible(str(file))} is not TOML: {why}",
            'write it as: generator = "ollama:llama3.2"',
        ) from error
    if spec is not None and (not isinstance(spec, str) or not spec.strip()):
        raise UsageError(
            f"generator in {visible(str(file))} is no text",
            'write it as: generator = "ollama:llama3.2"',
        )
    return spec
