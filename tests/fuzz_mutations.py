"""Sound files made into hostile ones: cut, doubled, spliced, grown, in structure where it is known.

All is drawn from one `random.Random`, so that a kind and a number give the same bytes again.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable

from fuzz_seeds import SEEDS
from fuzz_words import WORDS

MOST = 1 << 15
"""Bytes of a case; larger ones are what test_hostile is for."""

_COMMON = (
    "\0 \x1b[2J \ufeff \u2028 \x85 \x0c \x0b \r \r\n \n\n \u202e \u0301 \U0001f3fd \u200d "
    "é 東京 ทดสอบ مرحبا 🙂 a. 1. … ? ! \xa0 \u3000 \u00ad \ufffd \U0010ffff 99999999999999999999 "
    "-1 % ' \" < > & ; { } [ ] ( ) \\"
).split(" ")
_ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "cp932", "gb18030", "koi8-r")
_JSON = frozenset({"a.ipynb", "a.jsonl", "a.json", "questions"})
_KEYS = (
    *("id", "_id", "key", "title", "text", "contents", "body", "question", "relevant", "answers"),
    *("answer", "answerable", "synthetic", "kind", "path", "lines", "page", "start", "end"),
    *("cells", "cell_type", "source", "input", "outputs", "output_type", "data", "text/plain"),
    *("worksheets", "level", "ename", "evalue", "metadata", "", "x"),
)


def case(kind: str, number: int) -> bytes:
    """The bytes of a case: one to eight mutations of the seed of `kind`."""
    rng = random.Random(f"{kind} {number}")
    data = SEEDS[kind]()
    if data.startswith(b"PK"):
        return _archive(rng, kind, data)
    if kind in _JSON and rng.random() < 0.5:
        data = _grown_json(rng, kind)
    return _mutated(rng, kind, data)


def _mutated(rng: random.Random, kind: str, data: bytes) -> bytes:
    words = [*_COMMON, *WORDS.get(kind, "").split(" ")]
    for _ in range(rng.randint(1, 8)):
        data = rng.choice(_MUTATIONS)(rng, data, words)[:MOST]
    if rng.random() < 0.1:
        text = data.decode("utf-8", "replace")
        data = text.encode(rng.choice(_ENCODINGS), "replace")[:MOST]
    return data


def _span(rng: random.Random, data: bytes, most: int) -> tuple[int, int]:
    start = rng.randint(0, len(data))
    return start, min(len(data), start + rng.randint(0, most))


def _delete(rng: random.Random, data: bytes, words: list[str]) -> bytes:
    start, end = _span(rng, data, 40)
    return data[:start] + data[end:]


def _repeat(rng: random.Random, data: bytes, words: list[str]) -> bytes:
    start, end = _span(rng, data, 60)
    return data[:start] + data[start:end] * rng.choice((2, 3, 50, 500)) + data[end:]


def _insert(rng: random.Random, data: bytes, words: list[str]) -> bytes:
    at = rng.randint(0, len(data))
    times = rng.choice((1, 1, 1, 1, 1, 2, 40, 1000))
    glue = rng.choice(("", "", " ", "\n"))
    piece = (rng.choice(words) + glue) * times
    return data[:at] + piece.encode("utf-8", "surrogatepass") + data[at:]


def _flip(rng: random.Random, data: bytes, words: list[str]) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8) if data else 0):
        changed[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(changed)


def _move(rng: random.Random, data: bytes, words: list[str]) -> bytes:
    start, end = _span(rng, data, 200)
    piece, rest = data[start:end], data[:start] + data[end:]
    at = rng.randint(0, len(rest))
    return rest[:at] + piece + rest[at:]


def _cut(rng: random.Random, data: bytes, words: list[str]) -> bytes:
    return data[: rng.randint(0, len(data))]


def _line_ends(rng: random.Random, data: bytes, words: list[str]) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\r", b"\x0b", b" \n")))


def _wrap(rng: random.Random, data: bytes, words: list[str]) -> bytes:
    before, after = rng.choice(words).encode(), rng.choice(words).encode()
    times = rng.choice((1, 10, 300))
    return before * times + data + after * times


_MUTATIONS: tuple[Callable[[random.Random, bytes, list[str]], bytes], ...] = (
    *(_insert, _insert, _insert, _delete, _repeat, _repeat, _flip, _move, _cut, _line_ends, _wrap),
)


def _grown_json(rng: random.Random, kind: str) -> bytes:
    """Values of the keys that readers know, of any type; in lines where the kind has lines."""
    values = [_value(rng, 0) for _ in range(rng.randint(1, 6))]
    texts = [json.dumps(value) for value in values]
    for number, _ in enumerate(texts):
        if rng.random() < 0.1:
            depth = rng.choice((10, 900, 5000, 50_000))
            texts[number] = '{"text":' * depth if rng.random() < 0.3 else "[" * depth + "]" * depth
    if kind in ("a.jsonl", "questions"):
        return "\n".join(texts).encode()
    cells = f'{{"cells": [{", ".join(texts)}], "worksheets": {texts[0]}}}'
    return cells.encode()


def _value(rng: random.Random, depth: int) -> object:
    shape = rng.random()
    if depth > 4 or shape < 0.5:
        return rng.choice(
            (
                *(None, True, False, 0, -1, 1.5, float("nan"), float("inf"), 10**30, ""),
                *("markdown", "code", "heading", "stream", "error", "a.md:3-1", "x#page=", ":"),
                *("\ud800", "a\udfffb", "\0", "# h\n\ntext", rng.choice(_COMMON) * 3, "a.md:1-2"),
            )
        )
    if shape < 0.7:
        return [_value(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    return {rng.choice(_KEYS): _value(rng, depth + 1) for _ in range(rng.randint(0, 6))}


def _archive(rng: random.Random, kind: str, data: bytes) -> bytes:
    """Members mutated, lost, doubled, renamed, exchanged; or the container itself spoilt."""
    if rng.random() < 0.2:
        words: list[str] = ["PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "PK\x06\x06"]
        return rng.choice((_flip, _delete, _move, _cut, _repeat))(rng, data, words)
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        members = [(info.filename, packed.read(info)) for info in packed.infolist()]
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(members))
        name, content = members[at]
        fate = rng.random()
        if fate < 0.75:
            members[at] = name, _mutated(rng, kind, content)
        elif fate < 0.85 and len(members) > 1:
            del members[at]
        elif fate < 0.95:
            members.append((rng.choice((name, "../x", "/x", name.upper())), content))
        else:
            members[at] = name, rng.choice(members)[1]
    stream = io.BytesIO()
    method = rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(stream, "w", method) as packed:
        for name, content in members:
            packed.writestr(name, content)
    return stream.getvalue()
