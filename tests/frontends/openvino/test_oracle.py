"""Files that OpenVINO writes give the results that OpenVINO gives."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest

import aot
from aot.frontends import read_model
from aot.ir.interpret import interpret
from aot.ir.verify import verify
from tests.each import check_each

ov = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset15")

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore"),  # OpenVINO's own
]

TYPES = "f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 boolean u1 u2 u3 u4 u6 i4 f8e4m3 f8e5m2 f4e2m1".split()


def test_constants_of_all_types_are_read_as_openvino_does(tmp_path: Path) -> None:
    check_each(lambda case: check_constant(*case, tmp_path), product(TYPES, [1, 5, 8, 16, 21]))


def check_constant(name: str, count: int, folder: Path) -> None:
    kind = getattr(ov.Type, name)
    values = np.random.default_rng(count).integers(0, 2, count)
    top = {"i4": 7, "i8": 100}.get(name, min(2 ** min(kind.bitwidth, 8) - 1, 100) if name[0] == "u" else 1)
    constant = ops.constant(values * top, dtype=kind, name="c")
    model = ov.Model([ops.result(constant)], [], "m")
    ov.serialize(model, folder / "m.xml")
    graph = read_model(folder / "m.xml")
    verify(graph)
    expected = [float(v) for v in constant.get_value_strings()]
    assert interpret(graph, [])[0].astype(np.float64).tolist() == expected


def test_dynamic_parameter_and_names(tmp_path: Path) -> None:
    x = ops.parameter(ov.PartialShape("?,3,1..224,8.."), ov.Type.f32, name="x")
    x.output(0).set_names({"a,b"})
    y = ops.matmul(x, x, False, True)
    y.output(0).set_names({"out"})
    ov.serialize(ov.Model([ops.result(y)], [x], "m"), tmp_path / "m.xml")
    graph = read_model(tmp_path / "m.xml")
    verify(graph)
    assert str(graph.parameters[0].out_port(0).type) == "f32[x.d0,3,x.d2,x.d3]"
    assert graph.parameters[0].out_port(0).names == ("a,b",)
    assert graph.results[0].out_port(0).names[0] == "out"


def test_compressed_weights(tmp_path: Path) -> None:
    weights = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    x = ops.parameter([2, 3], ov.Type.f32, name="x")
    ov.save_model(ov.Model([ops.result(ops.matmul(x, weights, False, False))], [x], "m"), tmp_path / "m.xml")
    graph = read_model(tmp_path / "m.xml")
    data = np.ones((2, 3), np.float32)
    assert np.array_equal(interpret(graph, [data])[0], data @ weights.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("name", "f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 boolean".split())
def test_interface_of_version_10(tmp_path: Path, name: str) -> None:
    x = ops.parameter([3], getattr(ov.Type, name), name="x")
    x.output(0).set_names({"tensor"})
    path = tmp_path / "m.xml"
    ov.serialize(ov.Model([ops.result(ops.convert(x, name))], [x], "m"), path)
    path.write_text(path.read_text().replace('version="11"', 'version="10"', 1))
    theirs = ov.Core().read_model(path)
    ours = read_model(path)
    for ports, nodes in ((theirs.inputs, ours.parameters), (theirs.outputs, ours.results)):
        for port, node in zip(ports, nodes, strict=True):
            assert node.out_port(0).type.dtype.value == port.element_type.get_type_name()
            assert set(node.out_port(0).names) == port.names


RANKS = """<ir_version: 8, opset_import: ["": 17]> m (float[1,4,w] x) => (float y)
<int64[1] two = {2}, int64[1] one = {1}> {
  shape = Shape(x)  d = Gather(shape, two)  c = Equal(d, one)
  z = If(c) <then_branch = a () => (float[k,l] t) { t = Squeeze(x, two) },
             else_branch = b () => (float[q,4,w] e) { e = Identity(x) }>
  s = Shape(z)  r = Shape(s)  g = Equal(r, two)
  v = If(c) <then_branch = h () => (float[k,l] n) { n = Neg(z) }, else_branch = i () => (float[k,l,j] o) {
      o = If(g) <then_branch = p () => (float[k,l] m) { m = Neg(z) },
                 else_branch = u () => (float[k,l,j] f) { f = Abs(z) }> }>
  y = ReduceSum<keepdims = 0>(v)
}"""


def test_a_rank_that_a_branch_asks_for_is_that_of_the_branch_that_ran(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(RANKS), tmp_path / "m.onnx")
    ov.save_model(ov.convert_model(tmp_path / "m.onnx"), tmp_path / "m.xml", compress_to_fp16=False)
    model = aot.compile_model(tmp_path / "m.xml")
    for width, sign in ((1, -1), (3, 1)):
        x = np.arange(1, 4 * width + 1, dtype=np.float32).reshape(1, 4, width)
        assert model(x)[0] == sign * x.sum()
