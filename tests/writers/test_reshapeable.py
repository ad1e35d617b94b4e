"""Converted models may get other sizes: they compute their sizes, and loops stay loops; `static_shape` folds both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from lxml import etree

from aot.compilation.driver import stages
from aot.ir.interpret import interpret
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.tools.convert import convert_model

HEAD = '<ir_version: 8, opset_import: ["": 17]> m '
LOOP = """(float[4] x) => (float[4] y) <int64 n={3}, bool t={1}>
{ y=Loop(n,t,x)<body=b (int64 i, bool c, float[4] v) => (bool d, float[4] w) { d=Identity(c) w=Sin(v) }> }"""
SCAN = """(float[2] s, float[3,2] x) => (float[2] y, float[3,2] z)
{ y, z = Scan<num_scan_inputs=1, body=b (float[2] a, float[2] r) => (float[2] c, float[2] o) { c=Add(a,r) o=Neg(c) }>
(s,x) }"""
GROWING = """(float[1] x) => (float[8] y) <int64 n={3}, bool t={1}>
{ y=Loop(n,t,x)<body=b (int64 i, bool c, float[k] v) => (bool d, float[j] w)
{ d=Identity(c) w=Concat<axis=0>(v,v) }> }"""
KINDS: dict[str, tuple[str, Any]] = {
    "Flatten": ("(float[a,b] y) { y = Flatten<axis=2>(x) }", lambda x: x.reshape(x.shape[0] * x.shape[1], -1)),
    "Flatten by default": ("(float[a,b] y) { y = Flatten(x) }", lambda x: x.reshape(x.shape[0], -1)),
    "Shape, Gather and Reshape": (
        "(float[a,b] y) <int64 i={0}, int64[1] m={-1}, int64[1] a={0}> { s=Shape(x) g=Gather(s,i) u=Unsqueeze(g,a) "
        "c=Concat<axis=0>(u,m) y=Reshape(x,c) }",
        lambda x: x.reshape(x.shape[0], -1),
    ),
    "Size": ("(float[a,b,c,d] y) { s=Size(x) f=Cast<to=1>(s) y=Mul(x,f) }", lambda x: x * np.float32(x.size)),
    "Expand": (
        "(float[a,b,c,d] y) <float[1] o={2}> { s=Shape(x) e=Expand(o,s) y=Add(x,e) }",
        lambda x: x + np.float32(2),
    ),
}


def layers(path: Path) -> list[str]:
    return [str(e.get("type")) for e in etree.parse(path).iter("layer")]


def written(place: Path, text: str, **options: Any) -> Path:
    onnx.save(onnx.parser.parse_model(HEAD + text), place / "m.onnx")
    convert_model(place / "m.onnx", place / "ir.xml", **options)
    return place / "ir.xml"


def computed(path: Path, *x: Array, **options: Any) -> list[Array]:
    return list(interpret(stages(path, CompileOptions(level=None, **options)).optimized, list(x)))


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_are_computed(tmp_path: Path, kind: str) -> None:
    body, wanted = KINDS[kind]
    path = written(tmp_path, f"(float[1,4,6,8] x) => {body}")
    for shape in ((1, 4, 6, 8), (3, 4, 6, 8), (2, 4, 5, 7)):
        x: Array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
        found = computed(path, x, shapes=(("x", shape),))[0]
        np.testing.assert_allclose(found, wanted(x), rtol=1e-6)


def test_sizes_that_are_asked_for_are_folded(tmp_path: Path) -> None:
    text = "(float[1,4,6,8] x) => (float[4,48] y) { y = Flatten<axis=2>(x) }"
    assert "ShapeOf" in layers(written(tmp_path, text))
    assert "ShapeOf" not in layers(written(tmp_path, text, static_shape=True))


@pytest.mark.parametrize(("text", "kind", "steps"), [(LOOP, "Loop", "Sin"), (SCAN, "TensorIterator", "Negative")])
def test_loops_stay_loops(tmp_path: Path, text: str, kind: str, steps: str) -> None:
    found = layers(written(tmp_path, text))
    assert (found.count(kind), found.count(steps)) == (1, 1)
    x = [np.linspace(0, 1, n, dtype=np.float32) for n in ((4,) if text is LOOP else (2, 6))]
    given = [x[0]] if text is LOOP else [x[0], x[1].reshape(3, 2)]
    kept = computed(tmp_path / "ir.xml", *given)
    folded = written(tmp_path, text, static_shape=True)
    assert layers(folded).count(kind) == 0 and layers(folded).count(steps) == 3
    for one, other in zip(kept, computed(folded, *given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_loop_whose_shapes_change_is_written_out(tmp_path: Path) -> None:
    path = written(tmp_path, GROWING)
    assert "Loop" not in layers(path)
    np.testing.assert_array_equal(computed(path, np.ones(1, np.float32))[0], np.ones(8))
