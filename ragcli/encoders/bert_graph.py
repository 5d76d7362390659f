"""BERT (RoBERTa too) with its pooling as one ONNX graph: token ids in, sentence vectors out.

    x = LayerNorm(word + position + type)
    each layer:  x = LayerNorm(x + W·attention(x)),  x = LayerNorm(x + W·gelu(W·x))
    embedding = mean (or first) of x over the tokens, divided by its L2 norm where asked

Devlin et al. 2019; pooling after Reimers & Gurevych 2019. The graph takes texts of one length
without padding, so there is no mask. Needs the package onnx, at the time of building only.

In int8, weights are rounded per output column and activations at run time per text
(ONNX Runtime's DynamicQuantizeLinear), so a text is given alone: in a batch its vector would
depend on its neighbours. Weights keep within ±64, not ±127: processors without VNNI add pairs of
products in 16 bits, and 2 · 255 · 64 < 2^15 where 2 · 255 · 127 is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Weights = Mapping[str, NDArray[np.float32]]

LARGEST = 64
"""The largest int8 weight."""

_CONTRIB = "com.microsoft"
_OPSET = 18
_SMALL = 1024
"""Bytes up to which a constant stays in the graph."""
_ACTIVATIONS = {"gelu": "Gelu", "gelu_new": "FastGelu", "gelu_pytorch_tanh": "FastGelu"}


_PADDED = ("roberta", "xlm-roberta", "camembert")
"""Their first token stands at the position behind the padding's id (Liu et al. 2019)."""


def supports(config: Mapping[str, Any]) -> bool:
    """Whether a model with this `config.json` is one that `build` can build."""
    return (
        config.get("model_type") in ("bert", *_PADDED)
        and config.get("hidden_act", "gelu") in _ACTIVATIONS
        and config.get("position_embedding_type", "absolute") == "absolute"
    )


def first_position(config: Mapping[str, Any]) -> int:
    """The position of a text's first token; so many of the model's positions are never used."""
    return int(config["pad_token_id"]) + 1 if config.get("model_type") in _PADDED else 0


def build(
    path: Path,
    weights: Weights,
    config: Mapping[str, Any],
    *,
    pooling: str,
    normalise: bool,
    int8: bool,
) -> None:
    """Write the graph to `path`: `input_ids` int64 (n, tokens) → `embedding` (n, dim).

    The weights go to `path`.data beside it, which ONNX Runtime maps: it opens twice as fast.
    `weights` are those of a BertModel by name, `config` its config.json; `pooling` is `mean`
    or `cls`. Raises KeyError for a weight that is not there.
    """
    import onnx

    model = _Builder(weights, config, int8=int8).model(pooling, normalise)
    data = path.with_name(f"{path.name}.data")
    data.unlink(missing_ok=True)  # onnx would append to it
    onnx.save_model(
        model, str(path), save_as_external_data=True, location=data.name, size_threshold=_SMALL
    )
    data.chmod(path.stat().st_mode)


class _Builder:
    def __init__(self, weights: Weights, config: Mapping[str, Any], *, int8: bool) -> None:
        self._weights = weights
        self._config = config
        self._int8 = int8
        self._heads: int = config["num_attention_heads"]
        self._activation = _ACTIVATIONS[config.get("hidden_act", "gelu")]
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def model(self, pooling: str, normalise: bool) -> Any:
        from onnx import TensorProto, helper

        x = self._embeddings()
        for layer in range(self._config["num_hidden_layers"]):
            x = self._layer(x, f"encoder.layer.{layer}")
        if pooling == "cls":
            x = self._op("Gather", x, self._numbers("first", 0), axis=1)
        else:
            x = self._op("ReduceMean", x, self._numbers("tokens", [1]), keepdims=0)
        if normalise:
            x = self._op("LpNormalization", x, axis=1, p=2)
        self._nodes.append(helper.make_node("Identity", [x], ["embedding"]))
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", "tokens"])],
            [
                helper.make_tensor_value_info(
                    "embedding", TensorProto.FLOAT, ["n", self._config["hidden_size"]]
                )
            ],
            list(self._constants.values()),
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)],
            ir_version=9,
        )

    def _op(
        self, kind: str, *inputs: str, outputs: int = 1, contrib: bool = False, **how: Any
    ) -> Any:
        """Add an operator; the name of its output, or their names."""
        from onnx import helper

        names = [f"{kind}_{len(self._nodes)}_{i}" for i in range(outputs)]
        domain = _CONTRIB if contrib else ""
        self._nodes.append(helper.make_node(kind, inputs, names, domain=domain, **how))
        return names if outputs > 1 else names[0]

    def _constant(self, name: str, array: Array) -> str:
        import numpy as np
        from onnx import numpy_helper

        # Not ascontiguousarray, which makes a list of a single number.
        self._constants[name] = numpy_helper.from_array(np.asarray(array, order="C"), name)
        return name

    def _numbers(self, name: str, numbers: int | list[int]) -> str:
        import numpy as np

        return self._constant(name, np.array(numbers, np.int64))

    def _weight(self, name: str) -> str:
        return self._constant(name, self._weights[name])

    def _embeddings(self) -> str:
        import numpy as np
        from onnx import TensorProto

        words = self._weights["embeddings.word_embeddings.weight"]
        if self._int8:
            # A scale per word: these are read, never multiplied, so all of ±127 serves.
            codes, scales = _rounded(words.T, 127)
            rows = self._op("Gather", self._constant("words", codes.T), "input_ids")
            scale = self._op("Gather", self._constant("words.scale", scales), "input_ids")
            scale = self._op("Unsqueeze", scale, self._numbers("last", [-1]))
            x = self._op("Mul", self._op("Cast", rows, to=TensorProto.FLOAT), scale)
        else:
            x = self._op("Gather", self._constant("words", words), "input_ids")
        places = self._weights["embeddings.position_embeddings.weight"]
        places = places[first_position(self._config) :]
        kinds = self._weights["embeddings.token_type_embeddings.weight"]
        length = self._op("Shape", "input_ids", start=1, end=2)
        zero = self._numbers("zero", [0])
        place = self._op(
            "Slice", self._constant("places", np.asarray(places + kinds[0])), zero, length, zero
        )
        return self._norm(self._op("Add", x, place), "embeddings.LayerNorm")

    def _layer(self, x: str, name: str) -> str:
        attended = self._op(
            "MultiHeadAttention",
            *self._linear(x, *(f"{name}.attention.self.{part}" for part in _PARTS)),
            contrib=True,
            num_heads=self._heads,
        )
        (out,) = self._linear(attended, f"{name}.attention.output.dense")
        x = self._norm(self._op("Add", x, out), f"{name}.attention.output.LayerNorm")
        (wide,) = self._linear(x, f"{name}.intermediate.dense")
        wide = self._op(self._activation, wide, contrib=True)
        (out,) = self._linear(wide, f"{name}.output.dense")
        return self._norm(self._op("Add", x, out), f"{name}.output.LayerNorm")

    def _norm(self, x: str, name: str) -> str:
        # Not SkipLayerNormalization: ONNX Runtime 1.32 takes seven times as long over it.
        gain, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        how = {"axis": -1, "epsilon": self._config.get("layer_norm_eps", 1e-12)}
        return str(self._op("LayerNormalization", x, gain, bias, **how))

    def _linear(self, x: str, *names: str) -> list[str]:
        """W·x + b for each of `names`; in int8 x is rounded once for all of them."""
        if not self._int8:
            products = [
                self._op("MatMul", x, self._constant(name, self._weights[f"{name}.weight"].T))
                for name in names
            ]
            return [
                self._op("Add", product, self._weight(f"{name}.bias"))
                for product, name in zip(products, names, strict=True)
            ]
        x, scale, zero = self._op("DynamicQuantizeLinear", x, outputs=3)
        outs = []
        for name in names:
            codes, scales = _rounded(self._weights[f"{name}.weight"].T, LARGEST)
            weights = self._constant(name, codes), scale, self._constant(f"{name}.scale", scales)
            bias = self._weight(f"{name}.bias")
            outs.append(self._op("MatMulIntegerToFloat", x, *weights, zero, "", bias, contrib=True))
        return outs


_PARTS = ("query", "key", "value")


def _rounded(weights: Array, largest: int) -> tuple[Array, Array]:
    """`weights`, (in, out), as int8 within ±`largest`, with a scale per column, float32 (out,)."""
    import numpy as np

    scales = np.maximum(np.abs(weights).max(axis=0), np.finfo(np.float32).tiny) / largest
    return np.rint(weights / scales).astype(np.int8), scales.astype(np.float32)
