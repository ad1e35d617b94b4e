"""Inference by the functions of library classes. Expected values: Model Optimizer 2024.6."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.library import library_class
from aot.mo.partial_infer.infer import type_infer
from aot.mo.utils.arrays import int64_array, shape_array
from aot.mo.utils.error import Error
from aot.mo.utils.types import PACKED
from tests.mo.graphs import build, data, op

A = np.ma.masked
DATA = np.arange(12).reshape(3, 4)
IMAGE = {"spatial_dims": int64_array([2, 3]), "pad": np.zeros((4, 2), np.int64), "stride": int64_array([1, 1, 2, 2])}
SORTED = {"sorted": "true", "return_inverse": "true", "return_counts": "true"}
NO_MASKS: dict[str, list[int]] = {name: [] for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")}


def inferred(module: str, name: str, attrs: dict[str, Any], inputs: list[Any], outputs: int = 1) -> Node:
    """A node made of a dictionary, without type and version, after the class's `infer`. Inputs: shapes or values."""
    held: dict[str, dict[str, Any]] = {"node": {"kind": "op", "op": library_class(module, name).op, **attrs}}
    links: list[Any] = []
    for i, given in enumerate(inputs):
        value: Any = None if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
        dims: Any = shape_array(given if value is None else value.shape)
        held |= {f"x{i}": op("Const"), f"d{i}": {**data(), "shape": dims, "value": value}}
        links += [(f"x{i}", f"d{i}"), (f"d{i}", "node", {"in": i})]
    for i in range(outputs):
        held |= {f"o{i}": data()}
        links += [("node", f"o{i}", {"out": i})]
    node = Node(build(held, links, "middle"), "node")
    library_class(module, name).infer(node)
    return node


def shape(*dims: Any) -> Any:
    return shape_array([*dims])


SHAPES: dict[str, tuple[str, str, dict[str, Any], list[Any], list[Any]]] = {
    "class gives type": ("transpose", "Transpose", {}, [shape(2, A, 3), [2, 0, 1]], [[3, 2, None]]),
    "condition is boolean": ("select", "Select", {}, [shape(2, 1), shape(1, 3), shape(2, 3)], [[2, 3]]),
    "lists are values": ("squeeze", "Squeeze", {}, [shape(1, 5, 1), [0]], [[5, 1]]),
    "slice": ("slice", "Slice", {}, [shape(4, 5, 6), [1, 2], [4, 3], [0, 1], [1, 1]], [[3, 1, 6]]),
    "slice of the set": ("slice", "OvSlice", {}, [shape(4, 5, 6), [1, 2], [4, 3], [1, 1], [0, 1]], [[3, 1, 6]]),
    "slice backwards": ("slice", "Slice", {}, [shape(10), [-1], [-(2**31)], [0], [-1]], [[10]]),
    "slice by unknown bounds": ("slice", "Slice", {}, [shape(4, 5), shape(2), [3, 2]], [[None, None]]),
    "slice like": ("slice_like", "SliceLike", {"axes": (-1,)}, [shape(3, 4), shape(2, 3)], [[3, 3]]),
    "crop by sizes": ("crop", "Crop", {"axis": [2], "dim": [6]}, [shape(1, 3, 9)], [[1, 3, 6]]),
    "crop by ends": ("crop", "Crop", {"axis": [1, 2], "crop_begin": [1, 2], "crop_end": [1, 3]},
                     [shape(1, 3, 9)], [[1, 1, 4]]),
    "crop like": ("crop", "Crop", {"axis": 1, "offset": [1]}, [shape(2, 5, 6), shape(2, 3, 4)], [[2, 3, 4]]),
    "new dimensions": ("expand_dims", "ExpandDims", {"expand_axis": int64_array([0, -1])},
                       [shape(3, A)], [[1, 3, None, 1]]),
    "tiles": ("tile", "AttributedTile", {"axis": 1, "tiles": 3}, [shape(2, A)], [[2, None]]),
    "equal parts": ("split", "AttributedSplit", {"axis": np.array(1), "num_splits": np.array(2)},
                    [shape(2, 10)], [[2, 5], [2, 5]]),
    "parts": ("split", "AttributedVariadicSplit", {"axis": int64_array(1), "split_lengths": int64_array([2, -1])},
              [shape(2, 10)], [[2, 2], [2, 8]]),
    "gather": ("gather", "AttributedGather", {"axis": -1}, [shape(2, 5), shape(3, 1)], [[2, 3, 1]]),
    "largest": ("argmax", "ArgMaxOp", {"axis": 1, "top_k": 2}, [shape(5, 7)], [[5, 2]]),
    "complex": ("Complex", "Complex", {}, [shape(2, A), shape(2, A)], [[2, None, 2]]),
    "reversed": ("Reverse", "Reverse", {"axis": None}, [shape(2, A), [1]], [[2, None]]),
    "pool": ("pooling", "Pooling", {**IMAGE, "window": int64_array([1, 1, 3, 3]), "pool_method": "max"},
             [shape(1, 3, 10, A)], [[1, 3, 4, None]]),
    "pool, rounded up": ("pooling", "Pooling", {**IMAGE, "window": int64_array([1, 1, 3, 3]), "rounding_type": "ceil"},
                         [shape(1, 3, 10, 9)], [[1, 3, 5, 4]]),
    "pool of the whole": ("pooling", "Pooling", {**IMAGE, "global_pool": True}, [shape(1, 3, 8, 8)], [[1, 3, 1, 1]]),
    "pool by inputs": ("pooling", "PoolingV2", {**IMAGE},
                       [shape(1, 3, 8, 8), [1, 1, 2, 2], [1, 1, 2, 2]], [[1, 3, 4, 4]]),
    "upsample": ("upsample", "UpsampleOp", {}, [shape(1, 3, A, 5), [1.0, 1.0, 2.0, 2.5]], [[1, 3, None, 12]]),
    "upsample by attributes": ("upsample", "UpsampleOp", {"height_scale": 2.0, "width_scale": 3.0},
                               [shape(1, 3, 4, 5)], [[1, 3, 8, 15]]),
    "resize": ("ONNXResize11", "ONNXResize11Op", {"coordinate_transformation_mode": "asymmetric"},
               [shape(1, 3, 5, 7), [], [1.0, 1.0, 1.4, 2.0]], [[1, 3, 7, 14]]),
    "space to depth": ("space_to_depth", "SpaceToDepth", {"block_size": 2}, [shape(1, 3, 4, A)], [[1, 12, 2, None]]),
    "depth to space": ("depth_to_space", "DepthToSpaceOp", {"block_size": 2}, [shape(1, 12, 4, 5)], [[1, 3, 8, 10]]),
    "patches": ("ExtractImagePatches", "ExtractImagePatches",
                {"sizes": [1, 1, 3, 3], "strides": [1, 1, 5, 5], "rates": [1, 1, 1, 1], "auto_pad": "valid",
                 "spatial_dims": int64_array([2, 3])}, [shape(1, 2, 10, 10)], [[1, 18, 2, 2]]),
    "prior boxes": ("priorbox", "PriorBoxOp", {"aspect_ratio": [2.0], "min_size": [1.0], "max_size": [2.0], "flip": 1},
                    [shape(1, 8, 3, 4)], [[1, 2, 3 * 4 * 4 * 4]]),
    "pools of boxes": ("psroipooling", "PSROIPoolingOp", {"output_dim": 4, "group_size": 3.0},
                       [shape(1, 36, 9, 9), shape(20, 5)], [[20, 4, 3, 3]]),
    "rows are filled": ("sparse_fill_empty_rows", "SparseFillEmptyRows", {}, [shape(20, 2), shape(20), [4, 5], 0],
                        [[20, 2], [20], [4]]),
    "segments": ("sparse_segment_mean", "SparseSegmentMean", {}, [shape(20, 4), shape(40), shape(40)], [[40, 4]]),
    "distinct": ("unique", "Unique", dict(SORTED), [shape(20)], [[20], [20], [20]]),
    "steps of a cell": ("BlockLSTM", "BlockLSTM", {},
                        [shape(30, 3, 70), shape(170, 400), shape(400), shape(A, 100), shape(A, 100)],
                        [[30, 3, 100], [30, 3, 100]]),
    "a branch": ("switch", "Switch", {}, [shape(2, A), [True]], [[2, None], [2, None]]),
    "mask of a slice": ("strided_slice", "StridedSlice", {"begin_mask": [1], "end_mask": [0], **NO_MASKS},
                        [shape(5, 6), [2], [0], [1]], [[3, 6]]),
}  # fmt: skip


@pytest.mark.parametrize("case", SHAPES)
def test_classes_infer_shapes(case: str) -> None:
    module, name, attrs, inputs, expected = SHAPES[case]
    node = inferred(module, name, attrs, inputs, len(expected))
    assert [node.out_node(i).shape.tolist() for i in range(len(expected))] == expected


VALUES: dict[str, tuple[str, str, dict[str, Any], list[Any], list[Any]]] = {
    "slice": ("slice", "Slice", {}, [DATA, [0], [3], [0], [2]], [[[0, 1, 2, 3], [8, 9, 10, 11]]]),
    "crop": ("slice_like", "SliceLike", {"axes": None}, [DATA, shape(2, 1)], [[[0], [4]]]),
    "new dimension": ("expand_dims", "ExpandDims", {"expand_axis": 0}, [[1, 2]], [[[1, 2]]]),
    "tiles": ("tile", "AttributedTile", {"axis": 0, "tiles": 2}, [[1, 2]], [[1, 2, 1, 2]]),
    "parts": ("split", "AttributedVariadicSplit", {"axis": int64_array(0), "split_lengths": int64_array([2, 1])},
              [[7, 8, 9]], [[7, 8], [9]]),
    "reversed": ("Reverse", "Reverse", {"axis": 0}, [[1, 2, 3]], [[3, 2, 1]]),
    "distinct, sorted": ("unique", "Unique", dict(SORTED), [[8, 1, 8]], [[1, 8], [1, 0, 1], [1, 2]]),
    "distinct, in order": ("unique", "Unique", {**SORTED, "sorted": "false"}, [[8, 1, 8]], [[8, 1], [0, 1, 0], [2, 1]]),
    "shape of sparse": ("sparse_reshape", "SparseReshape", {}, [shape(5, 2), [4, 6], [3, -1]], [None, [3, 8]]),
    "mean of segments": ("sparse_segment_mean", "SparseSegmentMean", {}, [DATA, [0, 1, 2], [0, 0, 2]],
                         [[[2, 3, 4, 5], [0, 0, 0, 0], [8, 9, 10, 11]]]),
    "sum of segments": ("sparse_segment_sum", "SparseSegmentSum", {}, [DATA, [0, 1], [0, 0]], [[[4, 6, 8, 10]]]),
    "four bits": ("Cast", "Cast", {"dst_type": PACKED["u4"]}, [[7, 8, 1]], [[7 + 8 * 16, 1]]),
    "four bits, signed": ("Cast", "Cast", {"dst_type": PACKED["i4"]}, [[-8, -1]], [[8 + 15 * 16]]),
}  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
def test_classes_infer_values(case: str) -> None:
    module, name, attrs, inputs, expected = VALUES[case]
    node = inferred(module, name, attrs, inputs, len(expected))
    found = [node.out_node(i).value for i in range(len(expected))]
    assert [None if v is None else v.tolist() for v in found] == expected


def test_packed_values_say_their_elements() -> None:
    found = inferred("Cast", "Cast", {"dst_type": PACKED["u4"]}, [[7, 8, 1]]).out_node(0)
    assert (found.force_type, found.force_shape.tolist()) == ("U4", [3])


@pytest.mark.parametrize(
    ("module", "name", "attrs", "inputs"),
    [
        ("transpose", "Transpose", {}, [shape(2, 3), [0, 0]]),
        ("MatMul", "MatMul", {}, [shape(2, 3), shape(4, 5)]),
        ("split", "AttributedSplit", {"axis": np.array(0), "num_splits": 2}, [shape(3)]),
        ("split", "AttributedVariadicSplit", {"axis": 0, "split_lengths": int64_array([1, 1])}, [shape(3)]),
        ("slice_like", "SliceLike", {"axes": None}, [shape(2), shape(2, 3)]),
        ("space_to_depth", "SpaceToDepth", {"block_size": 2}, [shape(1, 3, 5, 4)]),
        ("Complex", "Complex", {}, [shape(2), shape(3)]),
        ("sparse_reshape", "SparseReshape", {}, [shape(5, 2), [4, 6], [-1, -1]]),
        ("Cast", "Cast", {"dst_type": PACKED["u4"]}, [[16]]),
        ("crop", "Crop", {"axis": [3], "dim": [1, 2]}, [shape(1, 2, 3, 4)]),
    ],
)
def test_inputs_that_do_not_fit_are_errors_of_extensions(
    module: str, name: str, attrs: dict[str, Any], inputs: list[Any]
) -> None:
    with pytest.raises(Error):
        inferred(module, name, attrs, inputs)


def test_errors_of_inference_are_assertions_too() -> None:
    with pytest.raises(AssertionError, match="in layer 'node'"):
        inferred("MatMul", "MatMul", {}, [shape(2, 3), shape(4, 5)])


def reverse(module: str, name: str, attrs: dict[str, Any], inputs: list[Any], outputs: list[Any]) -> list[Any]:
    """Shapes of the inputs after `reverse_infer`; None: not known."""
    held: dict[str, dict[str, Any]] = {"node": {"kind": "op", "op": library_class(module, name).op, **attrs}}
    links: list[Any] = []
    for i, given in enumerate(inputs):
        value: Any = np.asarray(given, np.int64) if isinstance(given, list) else None
        held |= {f"d{i}": {**data(), "shape": given if value is None else value.shape, "value": value}}
        links.append((f"d{i}", "node", {"in": i}))
    for i, given in enumerate(outputs):
        held |= {f"o{i}": {**data(), "shape": given}}
        links += [("node", f"o{i}", {"out": i}), (f"o{i}", "end", {"in": i})]
    node = Node(build({**held, "end": op("Result")}, links, "middle"), "node")
    library_class(module, name).reverse_infer(node)
    return [shape_array(node.in_node(i).shape).tolist() for i in range(len(inputs))]


@pytest.mark.parametrize(
    ("module", "name", "attrs", "inputs", "outputs", "expected"),
    [
        ("transpose", "Transpose", {}, [None, [2, 0, 1]], [shape(3, A, 5)], [None, 5, 3]),
        ("squeeze", "Squeeze", {}, [None, [0, 3]], [shape(3, 4)], [None] * 4),
        ("unsqueeze", "Unsqueeze", {}, [None, [0, -1]], [shape(1, A, 7, 1)], [None, 7]),
        ("gather", "Gather", {"batch_dims": 0}, [None, shape(6, 7), [1]], [shape(2, 6, 7, 5)], [2, None, 5]),
        ("split", "AttributedSplit", {"axis": 1, "num_splits": 2}, [None], [shape(2, 3), shape(A, 3)], [2, 6]),
        ("split", "AttributedSplit", {"axis": 1, "num_splits": 2}, [None], [shape(2, 3), shape(A, A)], [2, None]),
        ("pooling", "Pooling", {"window": int64_array([1, 1, 2, 2])}, [None], [shape(1, 2, 3, 4)], [None] * 4),
    ],
)
def test_inputs_are_inferred_from_outputs(
    module: str, name: str, attrs: dict[str, Any], inputs: list[Any], outputs: list[Any], expected: list[Any]
) -> None:
    assert reverse(module, name, attrs, inputs, outputs)[0] == expected


@pytest.mark.parametrize("choice", [True, False, None])
def test_switch_marks_the_branches_that_are_executed(choice: bool | None) -> None:
    given = shape() if choice is None else np.array(choice)
    node = inferred("switch", "Switch", {}, [shape(2), given], 2)
    marked: dict[str, bool] = {}
    library_class("switch", "Switch").control_flow_infer(node, True, marked.__setitem__)
    assert marked == {"o0": choice is not True, "o1": choice is not False}


def test_constants_take_the_type_of_the_other_operand() -> None:
    Add, Parameter, Const = (
        library_class(*k) for k in (("elementwise", "Add"), ("parameter", "Parameter"), ("const", "Const"))
    )
    graph = Graph()
    graph.stage = "middle"
    graph.graph["layout"] = "NCHW"
    x = Parameter(graph, {"name": "x", "shape": int64_array([2]), "data_type": np.float16}).create_node_with_data()
    one: Any = np.ones(2, np.float32)
    c = Const(graph, {"name": "c", "value": one}).create_node_with_data()
    found = Add(graph, {"name": "a"}).create_node_with_data([x, c])
    type_infer(graph)
    assert found.in_node().out_port(0).get_data_type() == np.float16 == c.value.dtype
