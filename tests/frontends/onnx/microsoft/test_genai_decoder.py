"""A decoder as ONNX Runtime GenAI writes it, with weights of 4 bits, gives ONNX Runtime's logits at every step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import aot
from tests.frontends.onnx.models import Array, Numbers, model, save

pytestmark = pytest.mark.oracle
numbers = Numbers(31)
WIDTH, HEADS, KEPT, SIZE, INNER, WORDS, BLOCK, LAYERS, ROOM = 64, 4, 2, 16, 96, 80, 32, 2, 32
MS = "com.microsoft"
CLOSE = 2e-5  # of the largest logit


class Decoder:
    """Nodes and constants of the network, added layer by layer."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.held: dict[str, Array] = {}

    def add(self, kind: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs[0]

    def hold(self, name: str, array: Array) -> str:
        self.held[name] = array
        return name

    def product(self, x: str, name: str, rows: int, columns: int, *, zeros: bool) -> str:
        """A product with weights [rows, columns] of 4 bits."""
        blocks = columns // BLOCK
        inputs = [x, self.hold(f"{name}.q", numbers.u8(rows, blocks, BLOCK // 2))]
        inputs += [self.hold(f"{name}.s", np.abs(numbers.f32(rows * blocks, size=0.02)) + np.float32(0.005))]
        if zeros:
            inputs += [self.hold(f"{name}.z", numbers.u8(rows * ((blocks + 1) // 2)))]
        return self.add("MatMulNBits", inputs, [name], MS, K=columns, N=rows, bits=4, block_size=BLOCK)

    def norm(self, name: str) -> str:
        return self.hold(name, 1 + numbers.f32(WIDTH, size=0.1))

    def build(self) -> onnx.ModelProto:
        table = self.hold("table", numbers.f32(WORDS, WIDTH))
        x = skipped = self.add("Gather", [table, "input_ids"], ["embedded"])
        sums = self.add("ReduceSum", ["attention_mask", self.hold("one", np.array([1]))], ["sums"])
        last = self.add("Sub", [sums, "one"], ["last"])
        ends = self.add("Cast", [last], ["ends"], to=TensorProto.INT32)
        shape = self.add("Shape", ["attention_mask"], ["shape"])
        long = self.add("Gather", [shape, self.hold("first", np.array(1))], ["long"])
        total = self.add("Cast", [long], ["total"], to=TensorProto.INT32)
        angles = np.arange(ROOM)[:, None] * 10000.0 ** (-np.arange(SIZE // 2) / (SIZE // 2))
        cos = self.hold("cos", np.cos(angles).astype(np.float32))
        sin = self.hold("sin", np.sin(angles).astype(np.float32))
        x = self.add("SimplifiedLayerNormalization", [x, self.norm("n")], ["x"], epsilon=1e-5)
        for n in range(LAYERS):
            q = self.product(x, f"q{n}", HEADS * SIZE, WIDTH, zeros=n == 1)
            k = self.product(x, f"k{n}", KEPT * SIZE, WIDTH, zeros=n == 1)
            v = self.product(x, f"v{n}", KEPT * SIZE, WIDTH, zeros=n == 1)
            inputs = [q, k, v, f"past_key_{n}", f"past_value_{n}", ends, total, cos, sin]
            outputs = [f"a{n}", f"present_key_{n}", f"present_value_{n}"]
            facts = {"num_heads": HEADS, "kv_num_heads": KEPT, "do_rotary": 1}
            y = self.product(
                self.add("GroupQueryAttention", inputs, outputs, MS, **facts), f"o{n}", WIDTH, 64, zeros=False
            )
            x, skipped = self.skip(skipped, y, f"m{n}")
            gate = self.product(x, f"gate{n}", INNER, WIDTH, zeros=True)
            up = self.product(x, f"up{n}", INNER, WIDTH, zeros=False)
            open_ = self.add("Mul", [gate, self.add("Sigmoid", [gate], [f"s{n}"])], [f"g{n}"])
            y = self.product(self.add("Mul", [open_, up], [f"h{n}"]), f"down{n}", WIDTH, INNER, zeros=False)
            x, skipped = self.skip(skipped, y, f"f{n}")
        self.product(x, "logits", WORDS, WIDTH, zeros=True)
        names = [f"{kind}_{n}" for n in range(LAYERS) for kind in ("key", "value")]
        past = {f"past_{name}": (np.float32, (1, KEPT, "past", SIZE)) for name in names}
        ids = {"input_ids": (np.int64, (1, "n")), "attention_mask": (np.int64, (1, "total"))}
        return model(self.nodes, ids | past, ["logits", *(f"present_{name}" for name in names)], self.held, 17, MS)

    def skip(self, kept: str, y: str, name: str) -> tuple[str, str]:
        """Add to what is kept beside the layers, and norm the sum; return both."""
        outputs = [f"{name}.x", "", "", f"{name}.sum"]
        self.add("SkipSimplifiedLayerNormalization", [kept, y, self.norm(f"{name}.n")], outputs, MS, epsilon=1e-5)
        return outputs[0], outputs[3]


def test_steps_are_those_of_onnxruntime(tmp_path: Path) -> None:
    path = save(tmp_path, Decoder().build())
    theirs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ours = aot.compile_model(path, threads=1)
    names = [one.name for one in theirs.get_outputs()]
    past = {n.replace("present", "past"): np.zeros((1, KEPT, 0, SIZE), np.float32) for n in names[1:]}
    done = 0
    for length in (5, 1, 1, 4, 1):
        ids = numbers.rng.integers(0, WORDS, (1, length))
        done += length
        feed = {"input_ids": ids, "attention_mask": np.ones((1, done), np.int64), **past}
        wanted = dict(zip(names, theirs.run(names, feed), strict=True))
        found = ours(feed).to_dict()
        for name in names:
            assert found[name].shape == wanted[name].shape
            bound = CLOSE * np.abs(wanted[name]).max()
            np.testing.assert_allclose(found[name], wanted[name], rtol=0, atol=bound, err_msg=name)
        past = {n.replace("present", "past"): wanted[n] for n in names[1:]}
