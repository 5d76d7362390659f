"""Models in the formats of huggingface.co: here or to be had, quietly, each failure one line.

What is loaded, and by which library, is `torch_model`'s and the generators'.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ragcli.errors import ModelUnavailable

_LOGGERS = ("sentence_transformers", "transformers", "huggingface_hub")
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_PATIENCE = 10.0
"""Seconds for the first answer of huggingface.co; its client alone would try for a minute."""


def absence(names: Sequence[str], is_here: Callable[[], bool], *, fetch: bool = True) -> str | None:
    """Why a model that has one of `names` cannot be fetched; "" where it can, None if it is here.

    `is_here` looks into the local cache. HF_HUB_OFFLINE forbids what `fetch` allows.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import HFValidationError

    try:
        if is_here():
            return None
    except HFValidationError:
        return "no model can have that name"
    if not fetch:
        return "only `ragcli index --encoder st:NAME` fetches one"
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    return _refusal(names)


def _refusal(names: Sequence[str]) -> str:
    """What huggingface.co has against giving a model that has one of `names`; "" for nothing."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    for name in names:
        try:
            HfApi().model_info(name, timeout=_PATIENCE)
        except RepositoryNotFoundError:
            continue
        except Exception as error:  # noqa: BLE001 - by version httpx's or requests' errors
            return f"huggingface.co cannot be reached ({line(error)})"
        return ""
    return "huggingface.co has none of that name, or keeps it private"


def unavailable(
    name: str, absence: str | None, device: str | None, error: Exception, *, whole: str
) -> ModelUnavailable:
    """What to raise for an error of the library that loads; `whole` is what to check of a model."""
    if "trust_remote_code" in str(error):
        return ModelUnavailable(
            f"{name} would run code of its own, which ragcli does not allow",
            "name a model whose architecture transformers knows",
        )
    if absence and isinstance(error, OSError):
        return ModelUnavailable(
            f"{name} is not a folder, and not in the local cache of models: {absence}",
            "name a folder with a model, or let it be fetched once with the network on",
        )
    return ModelUnavailable(
        f"{name} cannot be loaded: {line(error)}",
        whole if device in (None, "cpu") else f"{whole}, and that torch can use {device} here",
    )


def line(error: Exception) -> str:
    """An error's first line."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return textwrap.shorten(first, 200)


class _Collector(logging.Handler):
    def __init__(self, messages: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(_COLOURS.sub("", record.getMessage()))


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Keep the libraries' bars, warnings and log from the terminal; the log goes to the list."""
    messages: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
        for name in ("huggingface_hub.utils", "transformers.utils.logging"):
            try:
                module = importlib.import_module(name)
            except ImportError:
                continue  # who loads a model says what is not installed
            for switch in ("disable_progress_bars", "disable_progress_bar"):
                getattr(module, switch, lambda: None)()
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            stack.callback(_restore, logger, logger.handlers, logger.propagate)
            logger.handlers, logger.propagate = [_Collector(messages)], False
        yield messages


def _restore(logger: logging.Logger, handlers: list[logging.Handler], propagate: bool) -> None:
    logger.handlers, logger.propagate = handlers, propagate
