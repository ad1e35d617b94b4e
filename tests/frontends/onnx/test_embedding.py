"""A sentence embedder of MiniLM's architecture, as PyTorch's exporter writes it; random weights, any batch and length.

ids, mask, types -> embeddings -> layers of attention and Gelu (Erf written out) -> mean over the mask -> length 1
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import aot
from tests.frontends.onnx.models import Array
from tests.frontends.onnx.oracle import session

pytestmark = pytest.mark.oracle
WORDS, PLACES, WIDTH, HEADS, INNER, LAYERS = 500, 64, 48, 4, 96, 2
OF_RANGE = 1e-4


class Exported:
    """Nodes as the exporter writes them: shapes are computed, normalisations and Gelu are written out."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.held: list[onnx.TensorProto] = []
        self._rng, self._numbers = np.random.default_rng(0), count()

    def __call__(self, kind: str, *inputs: str, **attrs: Any) -> str:
        out = f"/{kind}_{next(self._numbers)}_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=out.removesuffix("_output_0"), **attrs))
        return out

    def const(self, value: Any) -> str:
        name = f"onnx::{next(self._numbers)}"
        self.held.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weights(self, *shape: int, size: float = 0.1) -> str:
        return self.const((self._rng.standard_normal(shape) * size).astype(np.float32))

    def size(self, x: str, axis: int) -> str:
        """A dimension as a vector of one."""
        one = self("Gather", self("Shape", x), self.const(np.int64(axis)))
        return self("Unsqueeze", one, self.const(np.int64([0])))

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        return self("Add", self.weights(outputs), self("MatMul", x, self.weights(inputs, outputs)))

    def norm(self, x: str) -> str:
        gap = self("Sub", x, self("ReduceMean", x, axes=[-1]))
        spread = self("ReduceMean", self("Pow", gap, self.const(np.float32(2))), axes=[-1])
        unit = self("Div", gap, self("Sqrt", self("Add", spread, self.const(np.float32(1e-12)))))
        return self("Add", self("Mul", unit, self.weights(WIDTH)), self.weights(WIDTH))

    def heads(self, x: str, order: list[int]) -> str:
        known = [self.const(np.int64([n])) for n in (HEADS, WIDTH // HEADS)]
        shape = [self.size(x, 0), self.size(x, 1), *known]
        return self("Transpose", self("Reshape", x, self("Concat", *shape, axis=0)), perm=order)

    def attention(self, x: str, bias: str) -> str:
        q, k, v = (self.linear(x, WIDTH, WIDTH) for _ in range(3))
        scores = self("MatMul", self.heads(q, [0, 2, 1, 3]), self.heads(k, [0, 2, 3, 1]))
        scores = self("Add", self("Div", scores, self.const(np.float32(np.sqrt(WIDTH // HEADS)))), bias)
        found = self("MatMul", self("Softmax", scores, axis=-1), self.heads(v, [0, 2, 1, 3]))
        flat = self("Concat", self.size(x, 0), self.size(x, 1), self.const(np.int64([WIDTH])), axis=0)
        return self.linear(self("Reshape", self("Transpose", found, perm=[0, 2, 1, 3]), flat), WIDTH, WIDTH)

    def gelu(self, x: str) -> str:
        erf = self("Erf", self("Div", x, self.const(np.float32(np.sqrt(2)))))
        return self("Mul", self("Mul", x, self("Add", erf, self.const(np.float32(1)))), self.const(np.float32(0.5)))


def embedder(folder: Path) -> Path:
    e = Exported()
    length = e("Gather", e("Shape", "input_ids"), e.const(np.int64(1)))
    ends = e("Unsqueeze", length, e.const(np.int64([0])))
    places = e("Slice", e.const(np.arange(PLACES)[None]), e.const(np.int64([0])), ends, e.const(np.int64([1])))
    words, kinds = e("Gather", e.weights(WORDS, WIDTH), "input_ids"), e("Gather", e.weights(2, WIDTH), "token_type_ids")
    total = e("Add", words, kinds)
    x = e.norm(e("Add", total, e("Gather", e.weights(PLACES, WIDTH), places)))
    seen = e("Cast", e("Unsqueeze", "attention_mask", e.const(np.int64([1, 2]))), to=TensorProto.FLOAT)
    hidden = e("Sub", e.const(np.float32(1)), seen)
    bias = e("Mul", hidden, e.const(np.float32(np.finfo(np.float32).min)))
    for _ in range(LAYERS):
        x = e.norm(e("Add", e.attention(x, bias), x))
        x = e.norm(e("Add", e.linear(e.gelu(e.linear(x, WIDTH, INNER)), INNER, WIDTH), x))
    whole = e("Expand", e("Unsqueeze", "attention_mask", e.const(np.int64([-1]))), e("Shape", x))
    share = e("Cast", whole, to=TensorProto.FLOAT)
    summed = e("ReduceSum", e("Mul", x, share), e.const(np.int64([1])), keepdims=0)
    counted = e("Clip", e("ReduceSum", share, e.const(np.int64([1])), keepdims=0), e.const(np.float32(1e-9)))
    mean = e("Div", summed, counted)
    size = e("Clip", e("ReduceL2", mean, axes=[-1], keepdims=1), e.const(np.float32(1e-12)))
    e.nodes.append(helper.make_node("Div", [mean, e("Expand", size, e("Shape", mean))], ["sentence_embedding"]))
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"]) for n in names]
    output = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", WIDTH])
    graph = helper.make_graph(e.nodes, "main_graph", inputs, [output], e.held)
    path = folder / "model.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8).SerializeToString()
    )
    return path


def tokens(batch: int, length: int) -> dict[str, Array]:
    rng = np.random.default_rng(length)
    ends = rng.integers(1, length + 1, (batch, 1))
    return {
        "input_ids": rng.integers(0, WORDS, (batch, length)),
        "attention_mask": (np.arange(length) < ends).astype(np.int64),
        "token_type_ids": np.zeros((batch, length), np.int64),
    }


def test_sentence_embeddings(tmp_path: Path) -> None:
    path = embedder(tmp_path)
    compiled = aot.compile_model(path, threads=1)
    assert [t.name for t in compiled.inputs] == ["input_ids", "attention_mask", "token_type_ids"]
    running = session(path)
    for batch, length in ((1, 7), (3, 33), (2, PLACES)):
        feed = tokens(batch, length)
        found, (wanted,) = np.asarray(compiled(feed)[0]), running.run(None, feed)
        assert np.abs(found - wanted).max() <= OF_RANGE * np.abs(wanted).max()
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
