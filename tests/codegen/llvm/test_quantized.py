"""Quantised numbers: levels are those of each operation rounded to f32, on every target that this machine runs."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper, parser

import aot
from aot.codegen.target import Target
from tests.codegen.emulated_tiles import runs
from tests.frontends.onnx.models import Array, save

TARGETS = [t for t in ("x86-64-v2", "x86-64-v3", "x86-64-v4") if runs(Target.parse(t))]
A, B = (g.astype(np.int8) for g in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
f32 = np.float32
STEPS = {"sa": f32(0.03), "sb": f32(0.05), "sy": f32(0.04), "za": np.int8(3), "zb": np.int8(-9), "zy": np.int8(17)}
WIDE = {"k": np.linspace(0.5, 2, 256, dtype=np.float32), "l": np.linspace(-2, 2, 256, dtype=np.float32)}
P, Q = (A.astype(f32) - f32(3)) * f32(0.03), (B.astype(f32) + f32(9)) * f32(0.05)


def level(s: Array) -> Array:
    return np.clip(np.rint(s / f32(0.04)) + 17, -128, 127).astype(np.int8)


CASES = {  # nodes between `p`, `q` and `s`, and `s`
    "add": ("s = Add(p, q)", P + Q),
    "subtract": ("s = Sub(p, q)", P - Q),
    "multiply": ("m = Mul(p, k)  s = Add(m, l)", P * WIDE["k"] + WIDE["l"]),
    "relu": ("u = Add(p, q)  s = Relu(u)", np.maximum(P + Q, 0)),
    "concat": ("u = Add(p, q)  s = Concat<axis = 0>(u, q)", np.concatenate([P + Q, Q])),
    "other consumer": ("s = Add(p, q)  z = Neg(s)", P + Q),
    "maximum": ("u = Add(p, q)  s = ReduceMax<axes = [0]>(u)", np.maximum.reduce(P + Q, 0, keepdims=True)),
}


@pytest.mark.parametrize(("target", "name"), [pair for n, pair in enumerate(product(TARGETS, CASES)) if n % 2])
def test_levels_do_not_depend_on_the_target(tmp_path: Path, name: str, target: str) -> None:
    body, s = CASES[name]
    outputs = "int8[m, n] y, float[a, b] z" if "z =" in body else "int8[m, n] y"
    made = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        m (int8[256,256] a, int8[256,256] b) => ({outputs}) {{
        p = DequantizeLinear(a, sa, za)  q = DequantizeLinear(b, sb, zb)  {body}  y = QuantizeLinear(s, sy, zy) }}""")
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), n) for n, v in (STEPS | WIDE).items())
    found = aot.compile_model(save(tmp_path, made), target=target)([A, B])
    np.testing.assert_array_equal(found[0], level(s))
