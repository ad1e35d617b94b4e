"""Op and the library: defaults, nodes, attributes of files, inference. Expected values: Model Optimizer 2024.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aot.mo.front.cuts import create_tensor_nodes
from aot.mo.graph.graph import Graph, Node
from aot.mo.ops import library
from aot.mo.ops.const import Const
from aot.mo.ops.layer_attributes import definition, layer_texts
from aot.mo.ops.op import Op, PermuteAttrs
from aot.mo.ops.parameter import Parameter
from aot.mo.ops.permute_inputs import PermuteInputs
from aot.mo.ops.registered import classes
from aot.mo.partial_infer.elementwise import eltwise_infer
from aot.mo.partial_infer.infer import override_batch, partial_infer, type_infer
from aot.mo.utils.arrays import dynamic_dimension, int64_array, shape_array
from aot.mo.utils.error import Error
from tests.mo.graphs import build, data, edges, front, op

A = dynamic_dimension


def made(module: str, name: str) -> Any:
    found = library.library_class(module, name)
    assert found is not None, f"{module}.{name}"
    return found


def middle() -> Graph:
    graph = Graph()
    graph.stage = "middle"
    graph.graph.update(layout="NCHW", ir_version=11)
    return graph


def constant(graph: Graph, name: str, value: Any) -> Node:
    return Const(graph, {"name": name, "value": np.asarray(value)}).create_node_with_data()


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("activation_ops", "Sigmoid", ("Sigmoid", "Sigmoid", "opset1", 1, 1)),
        ("elementwise", "Mul", ("Mul", "Multiply", "opset1", 2, 1)),
        ("softmax", "Softmax", ("SoftMax", "SoftMax", "opset8", 1, 1)),
        ("reshape", "Reshape", ("Reshape", "Reshape", "opset1", 2, 1)),
        ("const", "Const", ("Const", "Const", "opset1", None, 1)),
        ("result", "Result", ("Result", "Result", "opset1", 1, None)),
        ("shape", "Shape", ("ShapeOf", "ShapeOf", "opset3", 1, 1)),
        ("Cast", "Cast", ("Cast", "Convert", "opset1", 1, 1)),
        ("ReduceOps", "ReduceSum", ("ReduceSum", "ReduceSum", "opset1", 2, 1)),
        ("MatMul", "GemmONNX", ("Gemm", None, None, 3, 1)),
        ("slice", "Slice", ("Slice", None, None, 5, 1)),
        ("topk", "TopK", ("TopK", "TopK", "opset3", 3, 2)),
        ("regionyolo", "RegionYoloOp", ("RegionYolo", "RegionYolo", "opset1", 1, 1)),
    ],
)
def test_library_classes_have_names_versions_and_ports(module: str, name: str, expected: tuple[Any, ...]) -> None:
    held = made(module, name)(front()[0], {}).attrs
    keys = ("op", "type", "version", "in_ports_count", "out_ports_count")
    assert tuple(held.get(k) for k in keys) == expected


def test_every_library_class_makes_a_node() -> None:
    given: dict[str, Any] = {"value": np.array(1), "output_type": np.int64, "operation": "sum"}
    given |= {"num_splits": 2, "out_ports_count": 2, "axis": 0, "size_splits": [1, 1]}
    for module in library.modules():
        for name in library.classes_of(module):
            node = made(module, name)(front()[0], dict(given)).create_node()
            assert node.kind == "op" and node.has("IE") and node.has("_in_ports"), f"{module}.{name}"


def test_versioned_library_classes_have_definitions() -> None:
    without = {
        row.type
        for row in library.rows().values()
        if (row.version or "").startswith("opset") and row.type and definition(row.type, row.version) is None
    }
    assert without == {"BiasAdd", "GEMM"}  # which no operation set has


def test_library_classes_with_definitions_infer() -> None:
    found = {k: made(*k) for k, row in library.rows().items() if definition(row.type, row.version) is not None}
    assert [k for k, cls in found.items() if not callable(getattr(cls, "infer", None))] == [] and len(found) > 150


@pytest.mark.parametrize(
    ("module", "name", "attrs", "texts"),
    [
        ("concat", "Concat", {}, {"axis": "1"}),
        ("MatMul", "MatMul", {"transpose_b": 1}, {"transpose_a": "false", "transpose_b": "true"}),
        ("Cast", "Cast", {"dst_type": np.float16}, {"destination_type": "f16"}),
        ("shape", "Shape", {}, {"output_type": "i64"}),
        ("ReduceOps", "ReduceSum", {"keep_dims": True}, {"keep_dims": "true"}),
        ("split", "Split", {"num_splits": 3}, {"num_splits": "3"}),
        ("clamp", "AttributedClamp", {"min": 0.0, "max": 6.0}, {"min": "0.0", "max": "6.0"}),
        ("transpose", "Transpose", {}, {}),
        (
            "convolution",
            "Convolution",
            {
                "stride": int64_array([1, 1, 2, 3]),
                "dilation": int64_array([1, 1, 1, 1]),
                "pad": int64_array([[0, 0], [0, 0], [1, 2], [3, 4]]),
                "spatial_dims": int64_array([2, 3]),
            },
            {"strides": "2,3", "dilations": "1,1", "pads_begin": "1,3", "pads_end": "2,4"},
        ),
    ],
)
def test_files_hold_the_attributes_of_the_definition(
    module: str, name: str, attrs: dict[str, Any], texts: dict[str, str]
) -> None:
    assert layer_texts(made(module, name)(front()[0], attrs).create_node()) == texts


class Own(Op):
    """An extension's operation with the three forms of attributes."""

    op = "Own"

    def __init__(self, graph: Graph, attrs: dict[str, Any]) -> None:
        defaults = {"op": self.op, "type": "Own", "infer": self.infer, "in_ports_count": 1, "out_ports_count": 1}
        super().__init__(graph, defaults, attrs)

    def backend_attrs(self) -> list[Any]:
        return ["plain", ("file-name", "held"), ("made", lambda node: node.plain * 2), ("absent", "no"), "none"]

    @staticmethod
    def infer(node: Node) -> None:
        node.out_port(0).data.set_value(int64_array([len(node.in_port(0).data.get_shape()), node.plain]))


def test_attributes_of_files_have_three_forms() -> None:
    node = Own(front()[0], {"plain": 3, "held": [1, 2], "none": None}).create_node()
    assert layer_texts(node) == {"plain": "3", "file-name": "1,2", "made": "6"}
    assert node.get_opset() == "extension"


def test_nodes_read_what_they_are_given() -> None:
    graph, x = front()
    split = made("split", "Split")(graph, {"num_splits": 2, "name": "s"}).create_node([x])
    concat = made("concat", "Concat")(graph, {"name": "c", "axis": 0}).create_node([(split, 1), x, (split, 0)])
    assert edges(graph) == ["s>c", "s>c2", "x>c1", "x>s"] and list(concat.in_ports()) == [0, 1, 2]
    assert concat.in_port(0).get_source() == split.out_port(1)
    with pytest.raises(Error, match="more than one outputs"):
        made("concat", "Concat")(graph, {}).create_node([split])


def test_update_node_stat_makes_a_node_another_operation() -> None:
    graph, _ = front()
    graph.add_node("raw", kind="op", name="raw", pb="description")
    made("squeeze", "Squeeze").update_node_stat(Node(graph, "raw"), {"squeeze_dims": int64_array([1])})
    node = Node(graph, "raw")
    assert (node.op, node.type, node.name, node.pb, node.squeeze_dims.tolist()) == (
        "Squeeze",
        "Squeeze",
        "raw",
        "description",
        [1],
    )
    assert list(node.in_ports()) == [0, 1] and list(node.out_ports()) == [0]


def test_classes_are_found_by_op_in_their_compilation_only() -> None:
    assert Op.get_op_class_by_name("SoftMax") is made("softmax", "Softmax")
    with classes({}):
        Op.registered_ops["SoftMax"] = Own
        assert Op.get_op_class_by_name("SoftMax") is Own
    assert Op.get_op_class_by_name("SoftMax") is made("softmax", "Softmax") and "Mul" in set(Op.registered_ops)
    with pytest.raises(KeyError):
        Op.get_op_class_by_name("absent")


def test_extensions_derive_from_library_classes() -> None:
    class Twice(made("activation_ops", "Activation")):
        op = "Twice"
        operation = staticmethod(lambda x: 2 * x)

    class Axis2(made("softmax", "Softmax")):
        def __init__(self, graph: Graph, attrs: dict[str, Any]) -> None:
            super().__init__(graph, {"axis": 2, **attrs})

    graph = middle()
    found = Twice(graph, {"name": "t"}).create_node_with_data([constant(graph, "c", [1.0, 3.0])])
    assert (found.value.tolist(), found.in_node().type) == ([2, 6], "Twice")
    assert layer_texts(Axis2(graph, {}).create_node()) == {"axis": "2"}


@pytest.mark.parametrize(
    ("module", "name", "attrs", "inputs", "expected"),
    [
        ("reshape", "Reshape", {}, [np.ones((1, 2), np.float32), [2, 1]], [2, 1]),
        ("reshape", "Reshape", {}, [shape_array([2, A, 3]), [0, -1]], [2, None]),
        ("elementwise", "Add", {}, [shape_array([2, A]), shape_array([2, 5])], [2, 5]),
        ("elementwise", "Mul", {}, [shape_array([A, 1]), shape_array([4])], [None, 4]),
        ("activation_ops", "ReLU", {}, [shape_array([2, A])], [2, None]),
        ("shape", "Shape", {}, [shape_array([2, A])], [2]),
        ("concat", "Concat", {"axis": 0}, [shape_array([2, 3]), shape_array([A, 3])], [None, 3]),
        ("unsqueeze", "Unsqueeze", {}, [shape_array([A, 3]), [0]], [1, None, 3]),
        ("transpose", "Transpose", {}, [shape_array([A, 3]), [1, 0]], [3, None]),
        ("ReduceOps", "ReduceMean", {"keep_dims": False}, [shape_array([2, A, 4]), [1]], [2, 4]),
        ("gather", "Gather", {}, [shape_array([5, 6]), [1, 2, 3], 1], [5, 3]),
    ],
)
def test_definitions_infer_shapes(
    module: str, name: str, attrs: dict[str, Any], inputs: list[Any], expected: list[int | None]
) -> None:
    graph = middle()
    given = [
        Parameter(graph, {"name": f"x{i}", "shape": v}).create_node_with_data()
        if isinstance(v, np.ma.MaskedArray)
        else constant(graph, f"c{i}", v)
        for i, v in enumerate(inputs)
    ]
    found = made(module, name)(graph, {"name": "op", **attrs}).create_node_with_data(given)
    assert found.shape.tolist() == expected


def test_known_inputs_give_values_and_unknown_sizes_are_masked() -> None:
    graph = middle()
    total = made("elementwise", "Add")(graph, {"name": "a"}).create_node_with_data(
        [constant(graph, "c", [1.0, 2.0]), constant(graph, "d", [10.0])]
    )
    assert total.value.tolist() == [11, 12]
    x = Parameter(graph, {"name": "x", "shape": shape_array([2, A])}).create_node_with_data()
    shape = made("shape", "Shape")(graph, {"name": "s"}).create_node_with_data([x])
    assert (shape.value.tolist(), shape.value.dtype) == ([2, None], np.int64)
    weights = constant(graph, "w", np.zeros((512, 300), np.float32))
    turned = made("transpose", "Transpose")(graph, {}).create_node_with_data([weights, constant(graph, "o", [1, 0])])
    assert turned.value.shape == (300, 512)


def network(attrs: dict[str, Any], infer: Callable[[Node], None] | None = Own.infer) -> Node:
    graph, x = front()
    own = Own(graph, {"name": "own", "infer": infer, **attrs}).create_node([x])
    relu = made("activation_ops", "ReLU")(graph, {"name": "relu"}).create_node([x])
    made("result", "Result")(graph, {"name": "r"}).create_node([own])
    made("result", "Result")(graph, {"name": "s"}).create_node([relu])
    graph.stage = "middle"
    create_tensor_nodes(graph)
    partial_infer(graph)
    type_infer(graph)
    return own


def test_partial_inference_calls_the_users_functions() -> None:
    own = network({"plain": 7})
    relu = Node(own.graph, "relu")
    assert own.out_port(0).data.get_value().tolist() == [2, 7]
    assert relu.out_port(0).data.get_shape().tolist() == [2, 3] and relu.out_port(0).get_data_type() == np.float32


@pytest.mark.parametrize(
    ("attrs", "wanted"),
    [
        ({}, np.float32),
        ({"data_type": np.float16}, np.float16),
        ({"type_infer": lambda node: node.out_port(0).set_data_type(np.int32)}, np.int32),
    ],
)
def test_results_are_of_the_type_of_the_first_input_or_of_what_a_node_says(attrs: dict[str, Any], wanted: Any) -> None:
    own = network(attrs, lambda node: node.out_port(0).data.set_shape(node.in_port(0).data.get_shape()))
    assert own.out_port(0).get_data_type() == wanted


@pytest.mark.parametrize(
    ("attrs", "infer", "message"),
    [
        ({}, Own.infer, 'propagation at "own"'),
        ({"plain": 1}, None, 'no registered "infer" function'),
        ({"plain": 1}, lambda node: None, "shape of output 0"),
    ],
)
def test_partial_inference_says_which_node_failed(attrs: dict[str, Any], infer: Any, message: str) -> None:
    with pytest.raises(Error, match=message):
        network(attrs, infer)


def test_existing_data_nodes_keep_their_shapes() -> None:
    graph = middle()
    x = Parameter(graph, {"name": "x", "shape": int64_array([2])}).create_node_with_data()
    graph.add_node("old", **data([3]))
    old = Node(graph, "old")
    with pytest.raises(AssertionError, match="shape"):
        made("activation_ops", "ReLU")(graph, {"name": "r"}).create_node_with_data([x], data_nodes=old)


@pytest.mark.parametrize(
    ("shapes", "attrs", "expected"),
    [
        ([[1, 3, 4], [3, 1]], {}, [1, 3, 4]),
        ([[2, A], [2, 5]], {}, [2, 5]),
        ([[2, A], [1, A]], {}, [2, None]),
        ([[2, 3, 4], [3]], {"axis": 1}, [2, 3, 4]),
        ([[2], [3]], {}, None),
        ([[2], None], {}, None),
    ],
)
def test_elementwise_shapes_are_broadcast(
    shapes: list[Any], attrs: dict[str, Any], expected: list[int | None] | None
) -> None:
    held = {f"d{i}": {**data(), "shape": None if s is None else shape_array(s)} for i, s in enumerate(shapes)}
    links = [*((id, "e", {"in": i}) for i, id in enumerate(held)), ("e", "e_d")]
    node = Node(build({**held, "e": op("E", **attrs), "e_d": data()}, links, "middle"), "e")
    if expected is None:
        with pytest.raises(Error):
            eltwise_infer(node)
    else:
        eltwise_infer(node)
        assert node.out_port(0).data.get_shape().tolist() == expected


def test_permutations_follow_layouts() -> None:
    assert PermuteAttrs.get_nhwc_to_nchw_permutation(4).perm.tolist() == [0, 3, 1, 2]
    assert PermuteAttrs.get_nchw_to_nhwc_permutation(5).perm.tolist() == [0, 2, 3, 4, 1]
    assert PermuteAttrs.get_nhwc_to_nchw_permutation(3).perm.tolist() == [0, 1, 2]
    permuted = data(permutation=PermuteAttrs.get_nhwc_to_nchw_permutation(4))
    held = {"axis": int64_array(3), "pads": int64_array([1, 2, 3, 4]), "order": int64_array([0, 3, 1, 2])}
    node = Node(build({"a": op("A", **held), "a_d": permuted}, [("a", "a_d")], "middle"), "a")
    PermuteAttrs.create_permute_attrs(node, [(name, "output:0") for name in held])
    node.permute_attrs.permute_attrs(node)
    assert (node.axis, node.pads.tolist(), node.order.tolist()) == (1, [1, 4, 2, 3], [0, 3, 1, 2])
    with pytest.raises(Error, match="absent"):
        PermuteAttrs.create_permute_attrs(node, [("absent", "output:0")])


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        ("axis", [3, 1], [1, 2]),
        ("shape", [1, 2, 3, 4], [1, 4, 2, 3]),
        ("order", [0, 3, 1, 2], [0, 3, 1, 2]),
        ("slice", [9, 8, 7, 6], [9, 6, 8, 7]),
    ],
)
def test_inputs_follow_the_layout_of_another_tensor(rule: str, value: list[int], expected: list[int]) -> None:
    graph = middle()
    x = Parameter(graph, {"name": "x", "shape": int64_array([1, 2, 3, 4])}).create_node_with_data()
    given = constant(graph, "c", int64_array(value))
    graph.add_node("op", **op("Any"), name="op")
    node = Node(graph, "op")
    for at, source in enumerate((x, given)):
        node.add_input_port(at)
        graph.add_edge(source.id, "op", **{"in": at})
    x["permutation"] = PermuteAttrs.get_nhwc_to_nchw_permutation(4)
    PermuteInputs().set_input_permutation(given, node, "input:0", rule)
    permute, port_info, check = node.in_edge(1)["input_permutation"]
    assert check(node.in_port(0)) is True
    permute(node, port_info, 1)
    assert node.in_port(1).data.get_value().tolist() == expected and node.need_shape_inference


def test_batches_replace_the_first_dimension() -> None:
    graph, x = front()
    x.shape = shape_array([A, 3])
    override_batch(graph, 5)
    assert x.shape.tolist() == [5, 3]
    with pytest.raises(Error, match="first dimension"):
        override_batch(graph, 6)
    x["fixed_batch"] = True
    override_batch(graph, 7)
    assert x.shape.tolist() == [5, 3]


def test_masks_of_slices_say_which_bounds_count() -> None:
    graph = middle()
    x = Parameter(graph, {"name": "x", "shape": int64_array([1, 3, 4, 4])}).create_node_with_data()
    bounds = [constant(graph, name, int64_array(v)) for name, v in (("b", [0, 1]), ("e", [0, 3]), ("s", [1, 1]))]
    attrs = {"begin_mask": np.array([0.0, 1.0]), "end_mask": int64_array([0, 1])}
    attrs |= dict.fromkeys(("new_axis_mask", "shrink_axis_mask", "ellipsis_mask"), int64_array([0, 0]))
    found = made("strided_slice", "StridedSlice")(graph, {"name": "s", **attrs}).create_node_with_data([x, *bounds])
    assert found.shape.tolist() == [1, 2, 4, 4]
    texts = layer_texts(found.in_node())
    assert (texts["begin_mask"], texts["end_mask"], texts["new_axis_mask"]) == ("1,0", "1,0", "0,0")


@pytest.mark.parametrize(("method", "type_", "outputs"), [("max", "MaxPool", 2), ("avg", "AvgPool", 1)])
def test_pools_are_of_the_type_of_their_method(method: str, type_: str, outputs: int) -> None:
    graph = middle()
    x = Parameter(graph, {"name": "x", "shape": shape_array([1, 3, 9, A])}).create_node_with_data()
    attrs = {
        "pool_method": method,
        "window": int64_array([1, 1, 3, 3]),
        "stride": int64_array([1, 1, 2, 2]),
        "pad": np.zeros((4, 2), np.int64),
        "spatial_dims": int64_array([2, 3]),
        "exclude_pad": True,
        "rounding_type": "floor",
        "dilation": int64_array([1, 1, 1, 1]),
        "index_element_type": np.int64,
        "axis": 0,
    }
    found = made("pooling", "Pooling")(graph, {"name": "p", **attrs}).create_node_with_data([x])
    assert found.shape.tolist() == [1, 3, 4, None]
    assert (found.in_node().type, len(found.in_node().out_ports())) == (type_, outputs)
