"""all-MiniLM-L6-v2 as it is shipped: the default encoder, offline, without torch.

The files in the folder are made by `build_minilm` from the official weights; NOTICE beside them
says whose they are. Running them is `onnx_model`'s.
"""

from __future__ import annotations

from pathlib import Path

from ragcli.encoders.onnx_model import OnnxEncoder

FOLDER = Path(__file__).parent / "all-MiniLM-L6-v2"


def open_minilm() -> OnnxEncoder:
    """The shipped encoder. Raises ModelUnavailable where its files are gone."""
    return OnnxEncoder(FOLDER, "minilm")
