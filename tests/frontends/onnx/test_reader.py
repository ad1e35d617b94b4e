"""Reading ONNX: names, constants, functions, sub-graphs, and files that are wrong or hostile."""

import os
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, parser

from aot.codegen.ir.loops import Var
from aot.frontends import read_model
from aot.frontends.unsupported import UnconvertedError
from aot.ir.op import Foreign
from aot.ir.text.printer import print_graph
from aot.runtime.errors import CorruptError, UnsupportedError, UsageError
from tests.frontends.onnx.models import converted, model, run, save

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def with_external(folder: Path, location: str, offset: int = 0, length: int | None = 24) -> Path:
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"])
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    facts = {"location": location, "offset": str(offset)} | ({} if length is None else {"length": str(length)})
    for key, value in facts.items():
        tensor.external_data.add(key=key, value=value)
    made.graph.initializer.append(tensor)
    return save(folder, made)


def test_nodes_stay_foreign_and_keep_domain_opset_and_attributes(tmp_path: Path) -> None:
    nodes = [helper.make_node("Gemm", ["x", "w"], ["y"], name="fc", transB=1, alpha=0.5)]
    graph = read_model(save(tmp_path, model(nodes, {"x": X}, ["y"], {"w": X}, opset=13)))
    (node,) = [n for n in graph.nodes.values() if isinstance(n.op, Foreign)]
    assert (node.name, node.type, node.origin.layers) == ("fc", "Gemm", ("fc",))
    assert dict(node.op.attrs) == {"domain": "", "opset": 13, "transB": 1, "alpha": 0.5}
    assert "onnx.Gemm<" in print_graph(graph)


def test_names_of_inputs_and_outputs_are_kept_exactly(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["in:0"], ["out/1"], name="out/1")]
    graph = converted(save(tmp_path, model(nodes, {"in:0": X}, ["out/1"])))
    assert graph.parameters[0].name == "in:0"
    assert graph.results[0].out_port(0).names == ("out/1",)


def test_equal_dimension_names_are_one_symbol(tmp_path: Path) -> None:
    inputs = {"a": (np.float32, ("n", 3)), "b": (np.float32, ("n", None))}
    made = model([helper.make_node("Add", ["a", "b"], ["y"])], inputs, ["y"])
    first, second = (p.out_port(0).type.shape for p in read_model(save(tmp_path, made)).parameters)
    assert isinstance(first[0], Var)
    assert first[0] == second[0]
    assert first[0] != second[1]


def test_an_input_with_a_default_is_a_constant(tmp_path: Path) -> None:
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X, "w": X}, ["y"], {"w": X})
    path = save(tmp_path, made)
    assert [p.name for p in read_model(path).parameters] == ["x"]
    np.testing.assert_array_equal(run(path, X)[0], X + X)


def test_functions_are_inlined(tmp_path: Path) -> None:
    body = [helper.make_node("Mul", ["a", "a"], ["b"]), helper.make_node("Add", ["b", "a"], ["c"])]
    function = helper.make_function("mine", "Square", ["a"], ["c"], body, [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("Square", ["x"], ["y"], domain="mine")]
    made = model(nodes, {"x": X}, ["y"], domain="mine", functions=[function])
    np.testing.assert_array_equal(run(save(tmp_path, made), X)[0], X * X + X)


@pytest.mark.parametrize("length", [24, None])
def test_external_data_is_read_from_the_models_folder(tmp_path: Path, length: int | None) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"1234" + X.tobytes())
    path = with_external(tmp_path, "sub/w.bin", 4, length)
    np.testing.assert_array_equal(run(path, X)[0], X + X)


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "a/../../w.bin", "", "missing.bin", "C:\\w.bin", "."])
def test_external_data_outside_of_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "w.bin").write_bytes(X.tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(CorruptError, match="external data must be a file in the model's folder"):
        read_model(with_external(folder, location))


def test_links_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(X.tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").symlink_to(tmp_path / "w.bin")
    with pytest.raises(CorruptError, match="leads elsewhere"):
        read_model(with_external(folder, "w.bin"))
    os.mkfifo(folder / "pipe")
    with pytest.raises(CorruptError, match="leads elsewhere"):
        read_model(with_external(folder, "pipe"))


@pytest.mark.parametrize(("offset", "length"), [(4, 24), (0, 23), (0, 48), (-8, 24), (1 << 40, 24), (20, None)])
def test_external_data_must_lie_inside_of_its_file(tmp_path: Path, offset: int, length: int | None) -> None:
    (tmp_path / "w.bin").write_bytes(X.tobytes())
    with pytest.raises(CorruptError, match="tensor 'w'"):
        read_model(with_external(tmp_path, "w.bin", offset, length))


def test_a_tensor_shorter_than_its_shape_is_refused(tmp_path: Path) -> None:
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"])
    made.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[1000, 1000], raw_data=b"1234"))
    with pytest.raises(CorruptError, match="does not fit"):
        read_model(save(tmp_path, made))


def test_damaged_files_are_corrupt(tmp_path: Path) -> None:
    path = save(tmp_path, model([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y"]))
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(CorruptError):
        read_model(path)
    path.write_bytes(b"")
    with pytest.raises(CorruptError, match="got an empty file"):
        read_model(path)


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node("Relu", ["nowhere"], ["y"])],
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])],
        [helper.make_node("Relu", ["x"], ["z"])],
    ],
)
def test_names_without_a_source_or_with_two_are_corrupt(tmp_path: Path, nodes: list) -> None:
    with pytest.raises(CorruptError):
        read_model(save(tmp_path, model(nodes, {"x": X}, ["y"])))


def test_nodes_in_any_order_are_brought_into_one(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": %d, "own": 1]> m (float[2,3] x) => (float[2,3] y) {
        y = Add(w, f)
        w = If (c) <then_branch = t () => (float[2,3] r) { r = Neg(s)  s = Mul(a, x) },
                    else_branch = e () => (float[2,3] q) { q = Identity(x) }>
        f = own.F(a)
        c = Not(n)
        n = Constant<value = bool {0}>()
        a = Add(x, x)
    }
    <domain: "own", opset_import: ["": 17]> F (p) => (v) { v = Neg(u)  u = Mul(p, p) }"""
    save(tmp_path, parser.parse_model(text % 17))
    np.testing.assert_array_equal(run(tmp_path / "model.onnx", X)[0], -2 * X * X - 4 * X * X)


IF = "y = If (c) <then_branch = t () => (float r) { %s }, else_branch = e () => (float q) { q = Neg(x) }>"


@pytest.mark.parametrize("opset", [1, 17])
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("y = Add(x, y)", "y"),
        ("a = Add(x, b)  b = Neg(a)  y = Neg(b)", "a -> b"),
        (IF % "r = Neg(y)", "y"),
        (IF % "r = Neg(s)  s = Neg(r)", "r -> s"),
    ],
)
def test_nodes_that_read_each_other_are_named(tmp_path: Path, body: str, named: str, opset: int) -> None:
    text = f'<ir_version: 8, opset_import: ["": {opset}]> m (float x, bool c) => (float y) {{ {body} }}'
    save(tmp_path, parser.parse_model(text))
    with pytest.raises(CorruptError, match=rf"^model\.onnx: .*cycle.* {named}$"):
        read_model(tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (helper.make_node("GlobalLpPool", ["x"], ["y"]), "the onnx package cannot convert GlobalLpPool of opset 1"),
        (helper.make_node("Split", ["x"], ["y"]), "the onnx package cannot convert Split of opset 1"),
        (helper.make_node("Reshape", ["x"], ["y"]), "required undefined attribute 'shape'"),
        (helper.make_node("Mystery", ["x"], ["y"]), "Mystery is no operation of ONNX"),
    ],
)
def test_an_old_model_that_cannot_be_converted_says_why(tmp_path: Path, node: NodeProto, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^model\.onnx: opset 1 cannot be brought to 6: {reason}$"):
        read_model(save(tmp_path, model([node], {"x": X}, ["y"], opset=1)))


def test_an_opset_that_is_too_new(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="got 1000"):
        read_model(save(tmp_path, model([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y"], opset=1000)))


@pytest.mark.parametrize("version", [2**31, -(2**31) - 1, 0, 1000])
def test_a_set_of_tabular_operations_that_does_not_exist(tmp_path: Path, version: int) -> None:
    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    made = model([node], {"x": X}, ["y"], domain="ai.onnx.ml")
    made.opset_import[1].version = version
    with pytest.raises(UnsupportedError, match=rf"of ai\.onnx\.ml can be read, got {version}"):
        read_model(save(tmp_path, made))


def test_a_missing_file_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_model(tmp_path / "none.onnx")


def test_all_unsupported_nodes_are_listed_at_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ImageDecoder", ["x"], ["u"], name="first"),
        helper.make_node("Relu", ["u"], ["v"], name="between"),
        helper.make_node("Mystery", ["v"], ["w"], name="second", domain="mine"),
        helper.make_node("RandomNormalLike", ["x"], ["y"], name="third"),
        helper.make_node("RandomUniformLike", ["x"], ["unread"], name="dead"),
    ]
    path = save(tmp_path, model(nodes, {"x": X}, ["w", "y"], domain="mine"))
    with pytest.raises(UnconvertedError, match=r"(?s)3 nodes.*'first'.*'second'.*'third'") as caught:
        converted(path)
    assert [(p.node, p.kind, p.domain, p.opset) for p in caught.value.problems] == [
        ("first", "ImageDecoder", "", 17),
        ("second", "Mystery", "mine", 1),
        ("third", "RandomNormalLike", "", 17),
    ]
