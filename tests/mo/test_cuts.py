"""Inputs and outputs that extensions add where a network is cut: as Model Optimizer 2024.6 adds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from aot.frontends import read_model
from aot.mo import names
from aot.mo.bridge.from_mo import imported
from aot.mo.bridge.to_mo import exported
from aot.mo.front import cuts
from aot.mo.front.extractor import kernel_getter, update_attrs, update_ie_fields
from aot.mo.front.tf.attributes import bool_cast, tf_concat_ext, tf_data_type_cast, tf_data_type_decode
from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.library import library_class
from aot.mo.partial_infer.axes import get_canonical_axis_index
from aot.mo.utils.error import Error
from aot.mo.utils.small_functions import factor_update, find_inputs, find_outputs, looking_for_op_in_list
from tests.mo.test_bridge import mish

Edges = set[tuple[str, int, str, int]]
Places = dict[str, list[cuts.Place]] | None


@pytest.fixture
def graph() -> Graph:
    """x -> a -> s -> add -> r, and a -> add."""
    made = Graph()
    made.stage = "front"
    kinds = [("parameter.Parameter", "x"), ("activation_ops.Abs", "a"), ("activation_ops.Sigmoid", "s")]
    nodes: dict[str, Any] = {}
    for kind, name in [*kinds, ("elementwise.Add", "add"), ("result.Result", "r")]:
        attrs = {"name": name, "shape": np.array([1, 3])} if name == "x" else {"name": name}
        nodes[name] = library_class(*kind.split("."))(made, attrs).create_node()
    for source, target, idx in [("x", "a", 0), ("a", "s", 0), ("a", "add", 0), ("s", "add", 1), ("add", "r", 0)]:
        nodes[source].out_port(0).connect(nodes[target].in_port(idx))
    return made


def edges(graph: Graph) -> Edges:
    name = {id: str(attrs["name"]) for id, attrs in graph.nodes(data=True)}
    return {(name[u], d["out"], name[v], d["in"]) for u, v, d in graph.edges(data=True)}


ALL: Edges = {("x", 0, "a", 0), ("a", 0, "s", 0), ("a", 0, "add", 0), ("s", 0, "add", 1), ("add", 0, "r", 0)}
FIRST = "add/placeholder_port_0"
SECOND = "add/placeholder_port_1"
BEHIND = "a/placeholder_out_port_0"
INPUTS: dict[str, tuple[Places, Edges, Edges, list[str]]] = {  # places, edges that go, edges that come, inputs
    "an input": (
        {"add": [{"in": 1, "shape": (1, 3)}], "x": [{}]},
        {("s", 0, "add", 1)},
        {(SECOND, 0, "add", 1)},
        [SECOND, "x"],
    ),
    "both inputs": (
        {"add": [{"in": 1, "shape": (1, 3)}, {"in": 0, "shape": (-1, 3)}]},
        {("s", 0, "add", 1), ("a", 0, "add", 0)},
        {(SECOND, 0, "add", 1), (FIRST, 0, "add", 0)},
        [SECOND, FIRST],
    ),
    "an output": (
        {"a": [{"out": 0, "shape": (2, 3)}]},
        {("a", 0, "s", 0), ("a", 0, "add", 0)},
        {(BEHIND, 0, "s", 0), (BEHIND, 0, "add", 0)},
        [BEHIND],
    ),
    "a node": (
        {"s": [{"shape": (2, 3)}], "x": [{}]},
        {("a", 0, "s", 0)},
        {("s/placeholder_port_0", 0, "s", 0)},
        ["s/placeholder_port_0", "x"],
    ),
    "no shape yet": ({"s": [{"in": 0}]}, set(), set(), []),
    "an input of the file": ({"x": [{"shape": (5, 6)}]}, set(), set(), ["x"]),
    "none": (None, set(), set(), ["x"]),
}


@pytest.mark.parametrize(("places", "gone", "new", "wanted"), INPUTS.values(), ids=INPUTS)
def test_inputs_are_put_where_the_graph_is_cut(
    graph: Graph, places: Places, gone: Edges, new: Edges, wanted: list[str]
) -> None:
    found = cuts.add_input_ops(graph, places, True)
    assert [Node(graph, id).name for id in found] == wanted
    assert edges(graph) == (ALL - gone) | new
    assert {n.name for n in graph.get_op_nodes(op="Parameter", is_input=True)} == set(wanted)
    for id, given in (places or {}).items():
        for place in given:
            assert bool(place.get("added")) == ("shape" in place or id == "x")


def test_inputs_have_shapes_and_tensor_names(graph: Graph) -> None:
    cuts.add_input_ops(graph, {"add": [{"in": 0, "shape": (-1, 3)}, {"in": 1, "shape": (1, 3)}]}, True)
    first, second = (graph.get_op_nodes(name=name)[0] for name in (FIRST, SECOND))
    assert np.ma.filled(first.shape, -1).tolist()[1] == 3 and first.shape.mask.tolist() == [True, False]
    assert (first.user_shape, second.shape.tolist(), second.data_type) == ((-1, 3), [1, 3], np.float32)
    assert first.out_edge(0)["fw_tensor_debug_info"] == [("add", "0:add"), ("add", "add")]


REFUSED: dict[str, tuple[Any, str]] = {
    "another input is needed": ({"add": [{"in": 1, "shape": (1, 3)}]}, "outputs need x, too"),
    "no port": ({"add": [{"shape": (2, 3)}]}, "names a port"),
    "a port that is not there": ({"add": [{"in": 7, "shape": (2, 3)}]}, "Input port index 7"),
    "an output that is not there": ({"add": [{"out": 7, "shape": (2, 3)}]}, "Output port index 7"),
    "a port of a Parameter": ({"x": [{"in": 0, "shape": (5, 6)}]}, "doesn't have input port"),
}


@pytest.mark.parametrize(("places", "text"), REFUSED.values(), ids=REFUSED)
def test_inputs_that_are_refused(graph: Graph, places: Any, text: str) -> None:
    with pytest.raises(Error, match=text):
        cuts.add_input_ops(graph, places, True)


@pytest.mark.parametrize(
    ("places", "wanted"),
    [
        (["s", "1:add"], {("s", 0, "s/sink_port_0", 0), ("s", 0, "s/sink_port_07", 0)}),
        (["a:0"], {("a", 0, "a/sink_port_0", 0)}),
        (None, {("add", 0, "add/sink_port_0", 0)}),
    ],
)
def test_outputs_are_put_where_the_graph_is_cut(graph: Graph, places: list[str] | None, wanted: Edges) -> None:
    found = cuts.add_output_ops(graph, cuts.output_user_data_repack(graph, places))
    assert len(found) == len(wanted) == len(graph.get_op_nodes(op="Result"))
    assert edges(graph) == (ALL - {("add", 0, "r", 0)}) | wanted


@pytest.mark.parametrize("places", [{"zz": [{"port": None}]}, {"add": [{"in": 9}]}, {"add": [{"out": 1}]}])
def test_outputs_that_are_refused(graph: Graph, places: Any) -> None:
    with pytest.raises(Error, match=r"does not exist|is out of number"):
        cuts.add_output_ops(graph, places)


SHAPE = np.array([1, 3])
FREE = {"shape": None, "port": None}
ASKED: list[tuple[Any, Any, Any, Any]] = [  # shapes, values, places by ids, values by ids
    (None, None, None, None),
    (
        ["x", "1:add", "a:0"],
        None,
        {"x": [FREE], "add": [{"shape": None, "in": 1}], "a": [{"shape": None, "out": 0}]},
        None,
    ),
    ({"x": SHAPE}, {"x": 3}, {"x": [{"shape": SHAPE, "port": None}]}, {"x": 3}),
    (["s"], {"x": 3}, {"s": [FREE], "x": [FREE]}, {"x": 3}),
    (SHAPE, None, {"x": [{"shape": SHAPE, "port": None}]}, None),
    ({"a:0": SHAPE}, {"a:0": 2}, {"a": [{"shape": SHAPE, "out": 0}]}, {BEHIND: 2}),
]


@pytest.mark.parametrize(("shapes", "values", "places", "held"), ASKED)
def test_inputs_are_asked_for_by_names(graph: Graph, shapes: Any, values: Any, places: Any, held: Any) -> None:
    assert cuts.input_user_data_repack(graph, shapes, values) == (places, held)


@pytest.mark.parametrize(("shapes", "values"), [(["x"], {"a:0": 2}), (None, {"a:0": 2}), (["b"], None)])
def test_inputs_that_cannot_be_asked_for(graph: Graph, shapes: Any, values: Any) -> None:
    with pytest.raises(Error):
        cuts.input_user_data_repack(graph, shapes, values)


def test_texts_of_places(graph: Graph) -> None:
    split = [cuts.split_node_in_port(text) for text in ("1:a:b", "a:b:1", "a", "a:b", 3)]
    assert split == [("a:b", 1), ("a:b", 1), ("a", None), ("a:b", None), (3, None)]
    found = [cuts.get_node_id_with_ports(graph, text) for text in ("a", "0:a", "a:0", "1:add")]
    assert found == [("a", "port", None), ("a", "in", 0), ("a", "out", 0), ("add", "in", 1)]
    for text in ("nothing", "5:a"):
        with pytest.raises(Error, match=f"No node with name {text}"):
            cuts.get_node_id_with_ports(graph, text)


def test_a_cut_behind_inference_comes_back(tmp_path: Path) -> None:
    graph = read_model(mish(tmp_path))
    made = exported(graph, "middle")
    source: Any = Node(made, "s").in_port(0).data
    source.set_shape(np.array([2, 4]))
    cuts.add_input_ops(made, {"s": [{"in": 0}], "x": [{}]}, False)
    imported(made, graph)
    assert sorted((n.name, n.out_port(0).type.rank) for n in graph.parameters) == [
        ("s/placeholder_port_0", 2),
        ("x", 2),
    ]


def test_small_helpers(graph: Graph) -> None:
    assert (find_inputs(graph), find_outputs(graph)) == (["x"], ["add"])
    assert looking_for_op_in_list(graph.get_op_nodes(), "Sigmoid").id == "s"
    assert looking_for_op_in_list(graph.get_op_nodes(), "Exp") is None
    assert [get_canonical_axis_index([1, 2, 3], axis) for axis in (-1, 0, 2)] == [2, 0, 2]
    factors = [factor_update(given, real, [2, 2], [4, 4], "n") for given, real in ((None, [2, 2]), (3, [2, 2]))]
    assert factors == [2, 3] and factor_update(None, [2, 3], [2, 2], [4, 6], "n") is None
    attrs: dict[str, Any] = {"IE": [], "dim_attrs": ["axis"]}
    update_ie_fields(attrs)
    update_attrs(attrs, "dim_attrs", ["axis", "places"])
    assert attrs == {"dim_attrs": ["axis", "places"]}
    with pytest.raises(Error, match="Unrecognized IR version"):
        update_ie_fields(attrs, 7)
    conv = graph.add_node("c", kind="op", op="Conv2D", name="c", kernel_spatial=[3, 5]) or Node(graph, "c")
    assert kernel_getter(conv, 1) == 5 and kernel_getter(Node(graph, "a"), 0) is None


def test_element_types_of_tensorflow() -> None:
    half, decode = tf_data_type_decode[19]
    assert half is np.float16 and decode(SimpleNamespace(half_val=[15360, 16384])).tolist() == [1, 2]
    assert tf_data_type_decode[1][1](SimpleNamespace(float_val=[1.5])) == [1.5]
    assert [bool_cast(v) for v in ("True", "0", 2, "maybe")] == [True, False, True, "unknown_boolean_cast"]
    assert tf_data_type_cast[bool]("false") is False and tf_data_type_cast[np.int8](3).dtype == np.int8
    assert tf_concat_ext(SimpleNamespace(attr={"N": SimpleNamespace(i=3)}))["N"] == 3


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("front.extractor", "add_input_ops"),
        ("front.extractor", "add_output_ops"),
        ("front.extractor", "input_user_data_repack"),
        ("front.caffe.conv_ext", "conv_set_params"),
        ("front.caffe.grn_ext", "merge_attrs"),
        ("front.caffe.proposal_python_ext", "ProposalPythonFrontExtractor"),
        ("front.common.register_custom_ops", "extension_extractor"),
        ("front.tf.extractors.concat", "tf_concat_ext"),
        ("front.caffe.extractors.utils", "get_canonical_axis_index"),
        ("back.OptimizeTransposeReshapeSequence", "set_reshape_new_output_shape"),
        ("middle.TensorIteratorCondition", "looking_for_op_in_list"),
        ("ops.resize_factor_utils", "factor_update"),
        ("utils.find_inputs", "find_outputs"),
    ],
)
def test_their_names(module: str, name: str) -> None:
    found: Callable[..., Any] = getattr(names.imported(f"openvino.tools.mo.{module}", [name]), name)
    assert found.__name__ == name
