"""An encoder in a folder: `model.onnx` run by ONNX Runtime, `tokenizer.json` by tokenizers.

Reads the folder as sentence-transformers and its exports lay it out: `model.onnx` (or
`onnx/model.onnx`), `tokenizer.json`, and where they are there `sentence_bert_config.json`
(window), `1_Pooling/config.json`, `modules.json` (whether vectors are normalised),
`config_sentence_transformers.json` (prompts, similarity).

Each text is run on its own, several at a time on threads: in a batch it would have to be filled
up to the longest, and an int8 model's vector would depend on its neighbours.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcli.encoders.encoded import Encoded
from ragcli.encoders.quantising import quantise
from ragcli.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_POSITIONS = 512
"""The window of a model that does not say its own."""

_EDGE = 1 << 20
_AGAIN = "the model's files are broken: install ragcli, or make the model, again"
_MOST_PARTS = 8
"""A question is read that many windows far: 2,000 words of one say what it is about."""

_WORDS_KEPT = 300_000
_UNIT = re.compile(r"[^ \t\n\r!-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")
"""Between these BertPreTokenizer always cuts: at white space and around signs of ASCII. Other signs
(`¬RQ` is one word to it) and control characters (which it takes out) stay inside."""

_LONG_WORD = re.compile(r"[^\W_]{4,}")
"""Shorter words are mostly function words, and whole in any vocabulary."""


class ModelFolder:
    """What a folder says of a model beside its weights: tokens, window, prompts, length of vectors.

    Nothing heavy is loaded before it is used.
    """

    weighted = False
    words_only = False
    inline = False
    batch = 64
    dense_weight = 0.45
    """All-MiniLM-L6-v2 beside BM25, over thirteen public sets."""

    def __init__(self, folder: Path, name: str) -> None:
        """Raises ModelUnavailable where a file of settings cannot be read."""
        self.name = name
        self._folder = folder
        settings = self._read("config_sentence_transformers.json")
        modules = self._read("modules.json", list)
        self.normalise = settings.get("similarity_fn_name") != "dot" or any(
            str(module.get("type", "")).endswith("Normalize")
            for module in modules
            if isinstance(module, dict)
        )
        prompts = settings.get("prompts") or {}
        if not isinstance(prompts, dict) or not all(isinstance(p, str) for p in prompts.values()):
            raise ModelUnavailable(f"{folder} has prompts that are no texts", _AGAIN)
        self.query_prompt, self.document_prompt = own_prompts(
            prompts, settings.get("default_prompt_name")
        )

    def _read(self, name: str, kind: type = dict) -> Any:
        """What a file of settings holds, empty where it is not there."""
        path = self._folder / name
        try:
            found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else kind()
        except (OSError, ValueError) as error:
            raise ModelUnavailable(f"{path} cannot be read: {error}", _AGAIN) from error
        if not isinstance(found, kind):
            raise ModelUnavailable(f"{path} does not hold what it should", _AGAIN)
        return found

    @cached_property
    def window(self) -> int:
        """The most tokens of a text that the model reads, special ones and prompt not counted."""
        prompts = max(self._count(self.query_prompt), self._count(self.document_prompt))
        return max(1, self._room - prompts)

    @cached_property
    def _room(self) -> int:
        """The most tokens between the special ones: of a text with its prompt."""
        most = self._read("sentence_bert_config.json").get("max_seq_length")
        most = most or self._read("config.json").get("max_position_embeddings") or _POSITIONS
        room = most - len(self._special[0]) - len(self._special[1]) if isinstance(most, int) else 0
        if room < 1:
            raise ModelUnavailable(f"{self._folder} says a window of {most} tokens", _AGAIN)
        return room

    def _count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids) if text else 0

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        path = self._folder / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise ModelUnavailable(f"{path} cannot be read: {error}", _AGAIN) from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _special(self) -> tuple[list[int], list[int]]:
        """The special tokens before and behind a text."""
        plain = self._tokenizer.encode("a", add_special_tokens=False).ids
        full: list[int] = self._tokenizer.encode("a").ids
        at = full.index(plain[0]) if plain else len(full)
        return full[:at], full[at + len(plain) :]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of each token of `text`, special ones left out."""
        offsets: list[tuple[int, int]] = self._tokenizer.encode(
            text, add_special_tokens=False
        ).offsets
        return offsets

    def count(self, text: str) -> int:
        """How many tokens `text` has, special ones left out.

        Where the tokenizer is BERT's, the sum over words, most of which are known from before.
        """
        if not self._by_words:
            return len(self.spans(text))
        return self._count_words(_UNIT.findall(text))

    def _count_words(self, words: Sequence[str]) -> int:
        known = self._known
        fresh = list({word for word in words if word not in known})
        if fresh:
            if len(known) > _WORDS_KEPT:
                known.clear()
                fresh = list(set(words))
            known.update(zip(fresh, self._tokens_of(fresh), strict=True))
        return sum(map(known.__getitem__, words))

    def _tokens_of(self, words: Sequence[str]) -> list[int]:
        """How many tokens each of `words` has: in one text, for that is ten times as fast."""
        counts = [0] * len(words)
        ends = list(accumulate(len(word) + 1 for word in words))
        place = 0
        for _, end in self.spans(" ".join(words)):  # a token may begin with the space before it
            while end > ends[place]:
                place += 1
            counts[place] += 1
        return counts

    @cached_property
    def _by_words(self) -> bool:
        """Whether the tokens of a text are those of its words, one by one."""
        return type(self._tokenizer.pre_tokenizer).__name__ == "BertPreTokenizer"

    @cached_property
    def _known(self) -> dict[str, int]:
        """Tokens of words that were counted."""
        return {}

    def pieces(self, text: str) -> tuple[int, int]:
        """(words of four letters and more, the tokens that they are cut into)."""
        words = _LONG_WORD.findall(text)
        return len(words), self._count_words(words)


class OnnxEncoder(ModelFolder):
    """Sentence vectors of a model in a folder, by ONNX Runtime."""

    def __init__(self, folder: Path, name: str) -> None:
        """Raises ModelUnavailable where the folder holds no such model."""
        places = (folder / "model.onnx", folder / "onnx" / "model.onnx")
        found = next((place for place in places if place.is_file()), None)
        if found is None or not (folder / "tokenizer.json").is_file():
            raise ModelUnavailable(
                f"{folder} holds no model.onnx with a tokenizer.json",
                "name a folder that does: --encoder onnx:DIR",
            )
        super().__init__(folder, name)
        self._model = found

    @cached_property
    def fingerprint(self) -> str:
        """What shapes the vectors: the files of the folder."""
        return f"{self.name.partition(':')[0]}/{folder_fingerprint(self._folder)}"

    @cached_property
    def dim(self) -> int:
        """How many numbers a vector has."""
        return int(self._run(self._special[0] + self._special[1]).shape[-1])

    @cached_property
    def _session(self) -> Any:
        # From 1.29 on its builds for Linux report each session to their maker, unless this is set
        # before they are loaded.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            return onnxruntime.InferenceSession(
                str(self._model), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its errors share no class but Exception
            first = str(error).strip().splitlines()[0]
            raise ModelUnavailable(f"{self._model} cannot be opened: {first}", _AGAIN) from error

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_processors())

    @cached_property
    def _pooling(self) -> str:
        """`mean` or `cls`, for a model whose output still has a row per token."""
        stated = self._read("1_Pooling/config.json")
        first = stated.get("pooling_mode_cls_token") or stated.get("pooling_mode") == "cls"
        return "cls" if first else "mean"

    @cached_property
    def _output(self) -> str:
        """The output to read: sentence vectors where there are some, else the first."""
        outputs = self._session.get_outputs()
        flat = [output.name for output in outputs if len(output.shape) == 2]
        return str(flat[0] if flat else outputs[0].name)

    def encode_documents(self, texts: Sequence[str]) -> Encoded:
        """A row per text, each from its text alone."""
        import numpy as np

        _ = self._session, self._room  # once, before threads ask for them
        rows = list(self._pool.map(self._vector, self._ids(self.document_prompt, texts)))
        vectors = np.stack(rows) if rows else np.empty((0, self.dim))
        return quantise(vectors, normalise=self.normalise)

    def encode_query(self, text: str) -> NDArray[np.float64]:
        """The question's vector, float64 (dim,), of length 1 where the model normalises."""
        return self._vector(*self._ids(self.query_prompt, [text]))

    def _ids(self, prompt: str, texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """For each text the token ids of the prompt and its own, cut as one: a tokenizer may
        join the space between them to either."""
        whole = [prompt + text for text in texts] if prompt else list(texts)
        if len(whole) == 1:
            encoded = [self._tokenizer.encode(whole[0], add_special_tokens=False)]
        else:
            encoded = self._tokenizer.encode_batch(whole, add_special_tokens=False)
        end = len(prompt.rstrip())
        heads = [sum(stop <= end for _, stop in each.offsets) if prompt else 0 for each in encoded]
        return [(each.ids[:n], each.ids[n:]) for each, n in zip(encoded, heads, strict=True)]

    def _vector(self, text: tuple[list[int], list[int]]) -> NDArray[np.float64]:
        """One text's vector; a question beyond the window is the mean of its first parts.

        Raises ModelUnavailable where the model gives no numbers.
        """
        import numpy as np

        prompt, ids = text
        before, behind = self._special
        room = max(1, self._room - len(prompt))
        parts = [ids[start : start + room] for start in range(0, max(len(ids), 1), room)]
        parts = parts[:_MOST_PARTS]
        vectors = [self._run(before + prompt + part + behind) for part in parts]
        weights = [max(len(part), 1) for part in parts]
        vector = np.average(np.asarray(vectors, np.float64), axis=0, weights=weights)
        if not np.isfinite(vector).all():
            raise ModelUnavailable(f"{self._folder} gives vectors that are no numbers", _AGAIN)
        length = float(np.sqrt(np.square(vector).sum())) if self.normalise else 1.0
        return np.asarray(vector / (length or 1.0))

    def _run(self, ids: list[int]) -> NDArray[np.float32]:
        """The model's vector for one row of token ids, pooled."""
        import numpy as np

        tokens = np.array([ids], np.int64)
        known = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        feeds = {
            each.name: known.get(each.name, np.zeros_like(tokens))
            for each in self._session.get_inputs()
        }
        (rows,) = self._session.run([self._output], feeds)
        if rows.ndim == 3:
            rows = rows[:, 0] if self._pooling == "cls" else rows.mean(axis=1)
        return np.asarray(rows[0], np.float32)


def own_prompts(prompts: Mapping[str, str], default: str | None) -> tuple[str, str]:
    """What a model puts before a question and before a document, of its prompts by name.

    The first of these names that says something; `default` where none is there at all. (Version 6
    of sentence-transformers gives every model an empty `document`, and so passes over `passage`.)
    """

    def first(*names: str) -> str:
        there = [name for name in names if name in prompts] or [default or ""]
        given = (prompts.get(name, "") for name in there)
        return next(filter(None, given), "")

    return first("query"), first("document", "passage", "corpus")


def folder_fingerprint(folder: Path) -> str:
    """A digest of every file's name and size in `folder`, and of both ends of each."""
    digest = blake2b(digest_size=12)
    for path in sorted(folder.rglob("*")):
        hidden = path.name.startswith(".")
        if hidden or not path.is_file() or path.name in ("NOTICE", "LICENSE", "README.md"):
            continue
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()} {size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(_EDGE))
            file.seek(max(0, size - _EDGE))
            digest.update(file.read(_EDGE))
    return digest.hexdigest()


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
