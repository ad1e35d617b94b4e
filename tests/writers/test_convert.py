"""Models become OpenVINO IR whose meaning, names and constants are theirs; what IR has no form for is refused."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lxml import etree
from onnx import TensorProto, helper

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.frontends import read_model
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.interpret import interpret
from aot.ir.types import Array, numpy_dtype
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.control.state import Assign, ReadValue_6
from aot.opset.elementwise.binary import Add
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError, UsageError
from aot.tools.convert import convert_model
from aot.writers.openvino import write
from tests.frontends.onnx.models import model, save

ROOT = Path(__file__).parent.parent.parent
PLAIN = CompileOptions(level=None)


def f32(*shape: int) -> Array:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def flag(value: bool) -> Array:
    return np.array(value)


def branch(name: str, *nodes: Any) -> Any:
    out = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    return helper.make_graph(list(nodes), name, [], [out])


def layers() -> Any:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "g"], ["y"], name="gemm"),
    ]
    return model(nodes, {"x": (np.float32, ("n", 3, 8, 8))}, ["y"], {"w": f32(4, 3, 3, 3), "g": f32(64, 5)}), [
        f32(2, 3, 8, 8)
    ]


def attention() -> Any:
    nodes = [
        helper.make_node("LayerNormalization", ["x", "s"], ["n"]),
        helper.make_node("MatMul", ["n", "w"], ["q"]),
        helper.make_node("Transpose", ["n"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "t"], ["m"]),
        helper.make_node("Softmax", ["m"], ["a"]),
        helper.make_node("MatMul", ["a", "n"], ["y"]),
    ]
    return model(nodes, {"x": f32(2, 5, 8)}, ["y"], {"s": f32(8), "w": f32(8, 8)}), [f32(2, 5, 8)]


def rows() -> Any:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["v", "i"]),
        helper.make_node("ArgMax", ["x"], ["a"], axis=1),
        helper.make_node("NonZero", ["x"], ["z"]),
        helper.make_node("LSTM", ["t", "w", "r"], ["h"], hidden_size=4),
        helper.make_node("Unsqueeze", ["x", "zero"], ["t"]),
    ]
    held = {"k": np.int64([2]), "zero": np.int64([0]), "w": f32(1, 16, 6), "r": f32(1, 16, 4)}
    return model([nodes[4], *nodes[:4]], {"x": f32(3, 6)}, ["v", "i", "a", "z", "h"], held), [f32(3, 6)]


def either() -> Any:
    then = branch("then", helper.make_node("Mul", ["x", "x"], ["t"]))
    other = branch("other", helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Add", ["n", "w"], ["e"]))
    node = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other)
    return model([node], {"c": flag(True), "x": f32(2, 3)}, ["y"], {"w": f32(3)}), [flag(False), f32(2, 3)]


def repeated() -> Any:
    nodes = [
        helper.make_node("Add", ["state", "x"], ["next"]),
        helper.make_node("Mul", ["next", "next"], ["square"]),
        helper.make_node("ReduceSum", ["square"], ["s"], keepdims=0),
        helper.make_node("Less", ["s", "top"], ["more"]),
    ]
    infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in (("i", 7, []), ("go", 9, []), ("state", 1, [3]))]
    outs = [helper.make_tensor_value_info(n, t, None) for n, t in (("more", 9), ("next", 1), ("square", 1))]
    node = helper.make_node("Loop", ["n", "", "z"], ["y", "all"], body=helper.make_graph(nodes, "b", infos, outs))
    held = {"z": np.zeros(3, np.float32), "top": np.float32(40)}
    return model([node], {"n": np.array(4, np.int64), "x": f32(3)}, ["y", "all"], held), [np.array(9), f32(3)]


def scanned() -> Any:
    nodes = [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["o"])]
    infos, outs = ([helper.make_tensor_value_info(n, 1, [2]) for n in names] for names in ("se", "to"))
    body = helper.make_graph(nodes, "body", infos, outs)
    node = helper.make_node("Scan", ["z", "x"], ["l", "y"], body=body, num_scan_inputs=1, scan_input_directions=[1])
    made = model([node], {"x": (np.float32, ("n", 2))}, ["l", "y"], {"z": np.zeros(2, np.float32)})
    return made, [f32(4, 2)]


def short() -> Any:
    """Attention in f16: it is rounded between its steps, which no operation set can say."""
    rng = np.random.default_rng(5)
    given = {name: rng.normal(size=(1, 2, 4, 8)).astype(np.float16) for name in "qkv"}
    node = helper.make_node("Attention", list(given), ["y"])
    return model([node], dict(given), ["y"], opset=23), list(given.values())


MODELS: list[Callable[[], Any]] = [layers, attention, rows, either, repeated, scanned]


@pytest.mark.parametrize("make", [*MODELS, short])
def test_converted_models_compute_the_same_bits(make: Callable[[], Any], tmp_path: Path) -> None:
    made, inputs = make()
    path, out = save(tmp_path, made), tmp_path / "ir.xml"
    convert_model(path, out)
    ours, theirs = compile_model(path, PLAIN, threads=1), compile_model(out, PLAIN, threads=1)
    assert [t.name for t in ours.inputs] == [t.name for t in theirs.inputs]
    assert [t.name for t in ours.outputs] == [t.name for t in theirs.outputs]
    expected, found = ours(*inputs), theirs(*inputs)
    for i in range(len(ours.outputs)):
        assert np.array_equal(found[i], expected[i])


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")  # OpenVINO's own
def test_openvino_reads_marks_of_rounding(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    made, inputs = short()
    convert_model(save(tmp_path, made), tmp_path / "ir.xml")
    found = ov.Core().compile_model(tmp_path / "ir.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(inputs)[0]
    np.testing.assert_allclose(found, interpret_model(tmp_path / "ir.xml", inputs)[0], atol=4e-3)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")  # OpenVINO's own
@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("make", MODELS)
def test_openvino_computes_the_same(make: Callable[[], Any], version: int, tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    made, inputs = make()
    path, out = save(tmp_path, made), tmp_path / "ir.xml"
    convert_model(path, out, ir_version=version)
    running = ov.Core().compile_model(out, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    found = running({info.name: x for info, x in zip(made.graph.input, inputs, strict=True)})
    expected = interpret_model(path, inputs)
    for info, wanted in zip(made.graph.output, expected, strict=True):
        np.testing.assert_allclose(found[info.name], wanted, rtol=1e-4, atol=1e-5)


def interpret_model(path: Path, inputs: list[Array]) -> list[Array]:
    running = compile_model(path, PLAIN, threads=1)
    found = running(*inputs)
    return [np.asarray(found[i]) for i in range(len(running.outputs))]


@pytest.mark.parametrize("make", [*MODELS, short])
def test_a_second_conversion_changes_nothing(make: Callable[[], Any], tmp_path: Path) -> None:
    first, second = tmp_path / "first.xml", tmp_path / "second.xml"
    convert_model(save(tmp_path, make()[0]), first, compress_to_f16=True)
    convert_model(first, second)
    for suffix in (".xml", ".bin"):
        assert first.with_suffix(suffix).read_bytes() == second.with_suffix(suffix).read_bytes()


def test_layers_are_numbered_in_order_and_keep_the_names_of_the_model(tmp_path: Path) -> None:
    convert_model(save(tmp_path, layers()[0]), tmp_path / "ir.xml")
    root = etree.parse(tmp_path / "ir.xml").getroot()
    found = root.findall("layers/layer")
    assert [e.get("id") for e in found] == [str(i) for i in range(len(found))]
    assert {"x", "w", "conv", "relu", "pool", "flat", "gemm", "y"} <= {e.get("name") for e in found}
    assert all(int(e.get("from-layer", "")) < int(e.get("to-layer", "")) for e in root.iter("edge"))
    assert [e.get("value") for e in root.iter("input_model")] == ["model.onnx"]


def constants(*arrays: tuple[DType, Array]) -> Graph:
    graph = Graph("m")
    for i, (dtype, array) in enumerate(arrays):
        port = graph.add(Constant(dtype), name=f"c{i}", data=array).out_port(0)
        graph.add(Result(), port, name=f"y{i}").out_port(0).add_tensor_names((f"y{i}",))
    return graph


def test_equal_constants_are_stored_once_at_multiples_of_64(tmp_path: Path) -> None:
    one, other = np.arange(5, dtype=np.float32), np.arange(3, dtype=np.int8)
    graph = constants((DType.F32, one), (DType.I8, other), (DType.F32, one.copy()), (DType.U8, other.view(np.uint8)))
    write(graph, tmp_path / "m.xml")
    places = [int(e.get("offset", "")) for e in etree.parse(tmp_path / "m.xml").iter("data")]
    assert places == [0, 64, 0, 64]
    assert (tmp_path / "m.bin").stat().st_size == 67


def test_constants_of_every_element_type_and_count(tmp_path: Path) -> None:
    rng, held = np.random.default_rng(1), list[tuple[DType, Array]]()
    for dtype in set(DType) - {DType.STRING, DType.I2, DType.F8E4M3FNUZ, DType.F8E5M2FNUZ}:
        for count in (0, 1, 5, 8, 21):
            codes = rng.integers(0, 1 << min(dtype.bits, 8), count * max(dtype.bits // 8, 1)).astype(np.uint8)
            whole = dtype in (DType.BOOL, DType.I4)
            values = rng.integers(0, 2, count).astype(numpy_dtype(dtype)) if whole else codes.view(numpy_dtype(dtype))
            held.append((dtype, values))
    held.append((DType.STRING, np.array([["a,b", ""], ["Ü", "\udcff"]], object)))
    write(constants(*held), tmp_path / "m.xml")
    found = {n.name: n for n in read_model(tmp_path / "m.xml").nodes.values()}
    for i, (dtype, values) in enumerate(held):
        node = found[f"c{i}"]
        assert node.op == Constant(dtype)
        data = node.data
        assert data is not None and data.shape == values.shape
        assert (data == values).all() if dtype is DType.STRING else data.tobytes() == values.tobytes()


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")  # OpenVINO's own
@pytest.mark.parametrize("name", "f64 f32 f16 bf16 i64 i8 u16 boolean u1 u2 u3 u4 u6 i4 f8e4m3 f8e5m2 f4e2m1".split())
def test_openvino_reads_constants(name: str, tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    dtype, values = DType(name), np.random.default_rng(2).integers(0, 2, 21)
    write(constants((dtype, values.astype(numpy_dtype(dtype)))), tmp_path / "m.xml")
    (node,) = (n for n in ov.Core().read_model(tmp_path / "m.xml").get_ops() if n.get_type_name() == "Constant")
    assert node.get_element_type().get_type_name() == name
    assert [float(v) for v in node.get_value_strings()] == values.tolist()


def test_names_of_sizes_stay(tmp_path: Path) -> None:
    graph = Graph("m")
    batch, seq = Var("batch", None, 0), Var("seq", 65, 2)
    shapes: dict[str, tuple[Any, ...]] = {"x": (batch, seq, 4), "y": (3, batch), "z": (batch * 2,)}
    for name, shape in shapes.items():
        node = graph.add(Parameter(DType.F32, shape), name=name)
        graph.add(Result(), node.out_port(0), name=f"{name}_out")
    write(graph, tmp_path / "m.xml")
    found = [str(node.out_port(0).type) for node in read_model(tmp_path / "m.xml").parameters]
    assert found == ["f32[batch,seq,4]", "f32[3,batch]", "f32[z.d0]"]
    again = read_model(tmp_path / "m.xml").parameters[0].op
    assert isinstance(again, Parameter) and again.shape == shapes["x"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("batch,seq,", "batch,seq"), ("batch,seq,", "1,-,"), ("batch,seq,", "batch,batch,"), ('"batch,seq,"', '""')],
)
def test_names_of_sizes_that_do_not_fit_are_not_taken(old: str, new: str, tmp_path: Path) -> None:
    graph = Graph("m")
    node = graph.add(Parameter(DType.F32, (Var("batch", None, 0), Var("seq", 65, 2), 4)), name="x")
    graph.add(Result(), node.out_port(0), name="y")
    write(graph, tmp_path / "m.xml")
    (tmp_path / "m.xml").write_text((tmp_path / "m.xml").read_text().replace(old, new))
    found = str(read_model(tmp_path / "m.xml").parameters[0].out_port(0).type)
    assert found == ("f32[batch,x.d1,4]" if new.startswith("batch,batch") else "f32[x.d0,x.d1,4]")


@pytest.mark.oracle
def test_openvino_skips_names_of_sizes(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    graph = Graph("m")
    node = graph.add(Parameter(DType.F32, (Var("batch", None, 0), 4)), name="x")
    graph.add(Result(), node.out_port(0), name="y")
    write(graph, tmp_path / "m.xml")
    assert str(ov.Core().read_model(tmp_path / "m.xml").input(0).partial_shape) == "[?,4]"


def test_f16_holds_what_fits_and_the_rest_stays(tmp_path: Path) -> None:
    held = [f32(4), np.float32([1, 7e4]), np.float32(1e-12), np.float32([np.inf, 2]), np.float32([1e-9, 1, 2])]
    write(constants(*((DType.F32, a) for a in held)), tmp_path / "m.xml", half=True)
    found = {e.get("name"): e for e in etree.parse(tmp_path / "m.xml").iter("layer")}
    stored = [f"c{i}_compressed" in found for i in range(len(held))]
    assert stored == [True, False, False, True, True]
    marks = [e.get("name") for e in found["c0"].iter("attribute")]
    assert (found["c0"].get("type"), marks) == ("Convert", ["decompression"])
    for i, y in enumerate(interpret(read_model(tmp_path / "m.xml"), [])):
        assert np.array_equal(y, held[i].astype(np.float16).astype(np.float32) if stored[i] else held[i])


def test_variables_keep_their_values(tmp_path: Path) -> None:
    graph = Graph("m")
    x, start = graph.add(Parameter(DType.F32, (2,)), name="x"), graph.add(Constant(), name="c", data=np.float32([1, 2]))
    read = graph.add(ReadValue_6("v", DType.F32, (2,)), start.out_port(0), name="read")
    total = graph.add(Add(), read.out_port(0), x.out_port(0), name="add")
    graph.add(Assign("v"), total.out_port(0), name="assign")
    graph.add(Result(), total.out_port(0), name="y")
    write(graph, tmp_path / "m.xml")
    request = compile_model(tmp_path / "m.xml", PLAIN).create_infer_request()
    found = [np.array(request.infer([np.float32([1, 1])])[0]).tolist() for _ in range(2)]
    assert found == [[2, 3], [3, 4]]


def test_names_that_xml_cannot_hold_are_escaped(tmp_path: Path) -> None:
    graph = Graph('a<"\x01')
    x = graph.add(Parameter(DType.F32, (2,)), name="in,<&>\x02")
    x.out_port(0).add_tensor_names(("a,b", "c"))
    graph.add(Result(), x.out_port(0), name="y").out_port(0).add_tensor_names(("out,put",))
    graph.rt_info |= {"no name": "1 < 2", "info": {"deep": {"er": "x"}}, "empty": ""}
    write(graph, tmp_path / "m.xml")
    found = read_model(tmp_path / "m.xml")
    assert (found.name, found.parameters[0].name) == ('a<"\\x01', "in,<&>\\x02")
    assert found.parameters[0].out_port(0).names == ("a,b", "c", "out,put")
    assert found.results[0].out_port(0).names[0] == "out,put"
    assert found.rt_info == graph.rt_info


@pytest.mark.parametrize(
    ("kind", "given", "more", "part"),
    [
        ("Det", f32(3, 3), {}, "Det in 'node': no operation set has this operation with these attributes"),
        ("Cast", f32(3), {"to": TensorProto.FLOAT8E5M2FNUZ}, "Convert in 'node': element types must be OpenVINO's"),
        ("Cast", np.zeros(3, ml_dtypes.int2), {"to": 1}, "Parameter in 'x': element types must be OpenVINO's, got i2"),
    ],
)
def test_operations_without_a_form_in_ir_are_refused(
    kind: str, given: Array, more: dict[str, Any], part: str, tmp_path: Path
) -> None:
    made = model([helper.make_node(kind, ["x"], ["y"], name="node", **more)], {"x": given}, ["y"], opset=25)
    with pytest.raises(UnsupportedError) as caught:
        convert_model(save(tmp_path, made), tmp_path / "ir.xml")
    assert part in str(caught.value)
    assert "compile the model's own file" in caught.value.advice
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def test_axes_that_a_broadcast_does_not_read_are_left_out(tmp_path: Path) -> None:
    graph = Graph("m")
    x = graph.add(Parameter(DType.F32, (2,)), name="x").out_port(0)
    build = Builder(graph)
    build(Result(), build.Broadcast(x, build.const([3, 2], DType.I64), build.const(0, DType.U8)), name="y")
    convert_model(graph, tmp_path / "m.xml")
    made = next(n for n in read_model(tmp_path / "m.xml").nodes.values() if n.type == "Broadcast")
    assert len(made.sources()) == 2


def test_inputs_that_are_absent_before_others_are_refused(tmp_path: Path) -> None:
    graph = Graph("m")
    x = graph.add(Parameter(DType.F32, (2,)), name="x").out_port(0)
    graph.add(Add(), None, x, name="add")
    with pytest.raises(UnsupportedError, match="Add in 'add': input 0 must be given where a later one is, got none"):
        write(graph, tmp_path / "m.xml")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("model.txt", "convert: the output must be an .xml file"),
        ("missing/m.xml", "output: must be in a folder that exists"),
        ("folder.xml", "output: must be a file, got a folder"),
        ("weights.xml", "output: must be another file than those that are read"),
    ],
)
def test_paths_that_cannot_be_written_are_refused_before_the_work(name: str, part: str, tmp_path: Path) -> None:
    made, _ = layers()
    (tmp_path / "folder.xml").mkdir()
    path = save(tmp_path, made)
    if name == "weights.xml":  # the model names the .bin that would be written
        made.metadata_props.add(key="location", value="weights.bin")
        (tmp_path / "weights.bin").write_bytes(b"data")
        path.write_bytes(made.SerializeToString())
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match=part.split("(", maxsplit=1)[0]):
        convert_model(path, tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


def test_a_full_disk_leaves_the_old_files(tmp_path: Path) -> None:
    path, out = save(tmp_path, layers()[0]), tmp_path / "ir.xml"
    convert_model(path, out)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    command = [sys.executable, "-B", str(ROOT / "cli.py"), "convert", str(path), "-o", str(out), "--compress-to-f16"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False)
    assert done.returncode == 2
    assert f"error: {out.with_suffix('.bin')}: file too large" in done.stderr
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_model_is_not_converted_into_itself(tmp_path: Path) -> None:
    out = tmp_path / "ir.xml"
    convert_model(save(tmp_path, layers()[0]), out)
    with pytest.raises(UsageError, match="another file than those that are read"):
        convert_model(out, out)
    convert_model(tmp_path / "model.onnx", out)  # the .bin of an earlier conversion is none of the model's
