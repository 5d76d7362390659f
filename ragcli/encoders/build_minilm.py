"""Make the shipped encoder from the official weights of all-MiniLM-L6-v2.

    python -m ragcli.encoders.build_minilm FOLDER [TARGET]

FOLDER holds the model as sentence-transformers publishes it; its weights are checked against
their sha256. Needs the packages onnx and safetensors, no torch. Run by hand when the graph
changes, and by a test; nothing else imports it.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path

from ragcli.encoders.bert_graph import build
from ragcli.encoders.minilm import FOLDER

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def build_minilm(source: Path, target: Path) -> None:
    """Write `model.onnx`, `tokenizer.json` and their settings to the folder `target`.

    Raises ValueError where the weights of `source` are not the official ones.
    """
    weights = (source / "model.safetensors").read_bytes()
    found = sha256(weights).hexdigest()
    if found != WEIGHTS_SHA256:
        raise ValueError(f"{source}/model.safetensors has sha256 {found}, not {WEIGHTS_SHA256}")
    from safetensors.numpy import load

    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer.update(truncation=None, padding=None)  # ours: no text is ever cut or filled up
    target.mkdir(parents=True, exist_ok=True)
    path = target / "model.onnx"
    build(path, load(weights), config, pooling="mean", normalise=True, int8=True)
    (target / "tokenizer.json").write_text(
        json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
    )
    (target / "sentence_bert_config.json").write_text('{"max_seq_length": 256}\n')


if __name__ == "__main__":
    build_minilm(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else FOLDER)
