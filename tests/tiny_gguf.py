"""A GGUF file of a tiny llama with random weights, written byte by byte after the format's page.

The vocabulary: unknown, begin, end, two markers of the chat template, the 256 bytes, letters.
"""

from __future__ import annotations

import string
import struct
from pathlib import Path

import numpy as np

WIDTH, HEADS, HIDDEN, LAYERS = 32, 2, 64, 2
WINDOW = 2048
TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}<|user|>{{ message['content'] | trim }}{% endfor %}"
    "{% if add_generation_prompt %}<|model|>{% endif %}"
)
SPECIAL = ["<unk>", "<s>", "</s>", "<|user|>", "<|model|>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
LETTERS = ["▁", *string.ascii_letters, *string.digits, *".,:?!|<>/"]
VOCABULARY = [*SPECIAL, *BYTES, *LETTERS]
KINDS = [2, 3, 3, 3, 3] + [6] * 256 + [1] * len(LETTERS)

_U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_ALIGNMENT = 32


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _entry(key: str, kind: int, value: bytes) -> bytes:
    return _text(key) + struct.pack("<I", kind) + value


def _array(key: str, kind: int, values: list[bytes]) -> bytes:
    return _entry(key, _ARRAY, struct.pack("<IQ", kind, len(values)) + b"".join(values))


def _number(key: str, value: int) -> bytes:
    return _entry(key, _U32, struct.pack("<I", value))


def _metadata(template: str | None) -> list[bytes]:
    entries = [
        _entry("general.architecture", _STRING, _text("llama")),
        _number("llama.context_length", WINDOW),
        _number("llama.embedding_length", WIDTH),
        _number("llama.block_count", LAYERS),
        _number("llama.feed_forward_length", HIDDEN),
        _number("llama.attention.head_count", HEADS),
        _entry("llama.attention.layer_norm_rms_epsilon", _F32, struct.pack("<f", 1e-5)),
        _entry("tokenizer.ggml.model", _STRING, _text("llama")),
        _array("tokenizer.ggml.tokens", _STRING, [_text(token) for token in VOCABULARY]),
        _array("tokenizer.ggml.scores", _F32, [struct.pack("<f", 0.0)] * len(VOCABULARY)),
        _array("tokenizer.ggml.token_type", _I32, [struct.pack("<i", kind) for kind in KINDS]),
        _number("tokenizer.ggml.bos_token_id", 1),
        _number("tokenizer.ggml.eos_token_id", 2),
        _entry("tokenizer.ggml.add_space_prefix", _BOOL, struct.pack("<?", False)),
    ]
    if template is not None:
        entries.append(_entry("tokenizer.chat_template", _STRING, _text(template)))
    return entries


def _weights(seed: int) -> dict[str, np.ndarray]:
    """Each tensor in NumPy's order, (out, in)."""
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return random.normal(0, 0.3, shape).astype(np.float32)

    ones = np.ones(WIDTH, np.float32)
    tensors = {"token_embd.weight": normal(len(VOCABULARY), WIDTH), "output_norm.weight": ones}
    tensors["output.weight"] = normal(len(VOCABULARY), WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        tensors[f"{block}.attn_norm.weight"] = tensors[f"{block}.ffn_norm.weight"] = ones
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"{block}.{name}.weight"] = normal(WIDTH, WIDTH)
        tensors[f"{block}.ffn_gate.weight"] = normal(HIDDEN, WIDTH)
        tensors[f"{block}.ffn_up.weight"] = normal(HIDDEN, WIDTH)
        tensors[f"{block}.ffn_down.weight"] = normal(WIDTH, HIDDEN)
    return tensors


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)


def write_tiny(path: Path, *, template: str | None = TEMPLATE, seed: int = 0) -> Path:
    """Write the model to `path`; the same seed gives the same file."""
    entries, tensors = _metadata(template), _weights(seed)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries)
    data = b""
    for name, tensor in tensors.items():
        sizes = tensor.shape[::-1]
        header += _text(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        header += struct.pack("<IQ", 0, len(data))
        data += _padded(tensor.tobytes())
    path.write_bytes(_padded(header) + data)
    return path
