"""Graphs of TensorFlow as they are read: names, shapes, functions, variables, formats, and what the user is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import aot
from aot.frontends.tf.files.tensors import array
from aot.ir.graph import Graph, Origin
from aot.runtime.errors import CorruptError, UnsupportedError, UsageError
from aot.tools.check import check
from tests.frontends.tf.graphs import BOOL, FLOAT, INT32, function, graph, node, saved_model, tensor, written

X = np.array([-1, 2], np.float32)


def names(found: Graph) -> tuple[list[str], list[str]]:
    return [p.name for p in found.parameters], [r.out_port(0).names[0] for r in found.results]


def run(path: Path, *inputs: Any, **keywords: Any) -> list[list[float]]:
    made = aot.compile_model(path, **keywords)(*(inputs or (X,)))
    return [made[k].tolist() for k in range(len(made))]


def test_outputs_are_nodes_that_nothing_reads_or_waits_for(tmp_path: Path) -> None:
    made = graph(
        ("Relu", "a", "x", {"T": FLOAT}),
        ("Neg", "b", "a", {"T": FLOAT}),
        ("Abs", "waited", "x", {"T": FLOAT}),
        ("Identity", "c", "a", "^waited", {"T": FLOAT}),
        ("NoOp", "init", "^waited"),
        ("Assert", "check", "a", "a"),
        ("Const", "unused", {"value": tensor(FLOAT, []), "dtype": FLOAT}),
    )
    path = written(tmp_path, made)
    found = aot.read_model(path)
    assert names(found) == (["x"], ["b", "c"])
    assert [p.origin for p in found.parameters] == [Origin(("x",), path.name)]
    assert run(path) == [[0, -2], [0, 2]]


@pytest.mark.parametrize("reader", [(), (("Neg", "y", "out", {"T": FLOAT}),)])
def test_states_of_a_loop_are_outputs_unless_another_one_is_read(reader: tuple[Any, ...], tmp_path: Path) -> None:
    """TensorFlow 1 makes an Exit for each state of a loop, and all but one or two are never read."""
    made = graph(
        ("Const", "zero", {"value": tensor(INT32, [], int_val=[0]), "dtype": INT32}),
        ("Enter", "i.start", "zero", {"T": INT32, "frame_name": b"f"}),
        ("Enter", "x.start", "x", {"T": FLOAT, "frame_name": b"f"}),
        ("Merge", "i", "i.start", "i.next", {"T": INT32, "N": 2}),
        ("Merge", "v", "x.start", "x.next", {"T": FLOAT, "N": 2}),
        ("Const", "three", "^i", {"value": tensor(INT32, [], int_val=[3]), "dtype": INT32}),
        ("Less", "less", "i", "three", {"T": INT32}),
        ("LoopCond", "going", "less"),
        ("Switch", "i.switch", "i", "going", {"T": INT32}),
        ("Switch", "x.switch", "v", "going", {"T": FLOAT}),
        ("Const", "one", "^i.switch", {"value": tensor(INT32, [], int_val=[1]), "dtype": INT32}),
        ("Add", "more", "i.switch:1", "one", {"T": INT32}),
        ("Add", "twice", "x.switch:1", "x.switch:1", {"T": FLOAT}),
        ("NextIteration", "i.next", "more", {"T": INT32}),
        ("NextIteration", "x.next", "twice", {"T": FLOAT}),
        ("Exit", "count", "i.switch", {"T": INT32}),
        ("Exit", "out", "x.switch", {"T": FLOAT}),
        *reader,
    )
    path = written(tmp_path, made)
    assert names(aot.read_model(path))[1] == (["y"] if reader else ["count", "out"])
    assert run(path)[-1] == ([8, -16] if reader else [-8, 16])


def test_parts_between_tensors_can_be_cut_out(tmp_path: Path) -> None:
    made = graph(("Relu", "a", "x", {"T": FLOAT}), ("Neg", "b", "a", {"T": FLOAT}), ("Strange", "c", "b"))
    path = written(tmp_path, made)
    for inside, outside in (("a", "b"), ("a:0", "b:0")):
        options = aot.CompileOptions(cut=((inside,), (outside,)))
        assert aot.compile_model(path, options)(X)[0].tolist() == [1, -2]
    with pytest.raises(UnsupportedError, match="Strange in 'c': there is no conversion for it"):
        aot.compile_model(path)


def test_all_that_is_unsupported_is_listed_at_once(tmp_path: Path) -> None:
    made = graph(("Strange", "a", "x"), ("Odd", "b", "x"), ("Relu", "c", "x", {"T": FLOAT}))
    found = check(written(tmp_path, made))
    assert [(f.layer, f.operation) for f in found] == [("a", "Strange"), ("b", "Odd")]


@pytest.mark.parametrize(
    ("shape", "given", "expected"),
    [([-1, 3], None, "f32[x.d0,3]"), ([0, 3], None, "f32[0,3]"), ([], None, "f32[]"), (None, (2, 2), "f32[2,2]")],
)
def test_shapes_of_placeholders(shape: Any, given: Any, expected: str, tmp_path: Path) -> None:
    made = graph(("Relu", "y", "x", {"T": FLOAT}))
    del made.node[0].attr["shape"]
    if shape is not None:
        node(made.node, "Relu", "unused", "x", shape=shape)
        made.node[0].attr["shape"].CopyFrom(made.node.pop().attr["shape"])
    options = aot.CompileOptions(shapes=(("x", given),) if given else ())
    (x,) = aot.stages(written(tmp_path, made), options).optimized.parameters
    assert str(x.out_port(0).type) == expected


def test_inputs_of_unknown_rank_are_refused_with_the_remedy(tmp_path: Path) -> None:
    made = graph(("Relu", "y", "x", {"T": FLOAT}))
    made.node[0].attr["shape"].shape.unknown_rank = True
    made.node[0].attr["shape"].shape.ClearField("dim")
    with pytest.raises(UnsupportedError, match=r"in 'x': its rank is not known: .* --shape x="):
        aot.compile_model(written(tmp_path, made))


def test_text_is_read_as_bytes_are(tmp_path: Path) -> None:
    made = graph(("Relu", "y", "x", {"T": FLOAT}))
    path = tmp_path / "graph.pbtxt"
    path.write_text("# made by hand\n" + text_format.MessageToString(made))
    assert run(path) == [[0, 2]]


def test_a_saved_model_is_its_folder_or_its_graph(tmp_path: Path) -> None:
    folder = saved_model(tmp_path / "m", graph(("Relu", "y", "x", {"T": FLOAT})))
    assert names(aot.read_model(folder)) == (["x"], ["y"])
    assert run(folder) == run(folder / "saved_model.pb") == [[0, 2]]


def test_a_graph_has_no_signatures(tmp_path: Path) -> None:
    path = written(tmp_path, graph(("Relu", "y", "x", {"T": FLOAT})))
    with pytest.raises(UsageError, match="is a graph without signatures, got 'serving'"):
        aot.read_model(path, signature="serving")


@pytest.mark.parametrize("file", ["m.keras", "m.h5"])
def test_files_of_keras_are_refused_with_the_lines_that_export_them(file: str, tmp_path: Path) -> None:
    path = tmp_path / file
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 64)
    with pytest.raises(UnsupportedError) as caught:
        aot.read_model(path)
    assert "keras.saving.load_model(" in caught.value.advice
    assert ".export('m')" in caught.value.advice


def test_functions_are_inlined_with_the_attributes_of_their_calls(tmp_path: Path) -> None:
    made = graph(("f", "c", "x", {"T": FLOAT}), ("Neg", "y", "c", {"T": FLOAT}))
    one = function(made, "f", ("Relu", "y", "a"), returns="y:activations:0")
    one.node_def[0].attr["T"].placeholder = "T"
    assert run(written(tmp_path, made)) == [[0, -2]]
    del made.node[1].attr["T"]
    with pytest.raises(CorruptError, match="attribute 'T' is attribute 'T' of a function's call, which has none"):
        aot.read_model(written(tmp_path, made))


def test_outputs_of_a_functions_nodes_have_names(tmp_path: Path) -> None:
    """`split:output:1` is the second one, `top:indices:0` the second of TopKV2."""
    made = graph(("f", "c", "x"), ("Identity", "y", "c", {"T": FLOAT}))
    k = ("Const", "k", {"value": tensor(INT32, [], int_val=[1]), "dtype": INT32})
    top = ("TopKV2", "top", "a", "k:output:0", {"T": FLOAT})
    cast = ("Cast", "y", "top:indices:0", {"SrcT_type": INT32, "DstT_type": FLOAT})
    function(made, "f", k, top, cast, returns="y:y:0")
    assert run(written(tmp_path, made)) == [[1]]


def test_variables_are_read_at_their_place(tmp_path: Path) -> None:
    """A value that was read stays, whatever is written later; control inputs give the order."""
    made = graph(
        ("VarHandleOp", "v", {"dtype": FLOAT, "shape": [2]}),
        ("AssignVariableOp", "set", "v", "x"),
        ("ReadVariableOp", "first", "v", "^set", {"dtype": FLOAT}),
        ("AssignAddVariableOp", "more", "v", "x", "^first"),
        ("ReadVariableOp", "second", "v", "^more", {"dtype": FLOAT}),
        ("Identity", "a", "first", {"T": FLOAT}),
        ("Identity", "b", "second", {"T": FLOAT}),
    )
    path = written(tmp_path, made)
    assert run(path) == [[-1, 2], [-2, 4]]
    assert {"first", "second"} <= {node.name for node in aot.read_model(path).nodes.values()}
    del made.node[3].input[1]  # read before it is set
    with pytest.raises(UnsupportedError, match="it has no value"):
        run(written(tmp_path, made))


def test_conditions_that_are_numbers(tmp_path: Path) -> None:
    made = graph(
        ("Const", "n", {"value": tensor(INT32, [], int_val=[3]), "dtype": INT32}),
        ("If", "y", "n", "x", {"then_branch": "f", "else_branch": "g", "Tcond_type": INT32}),
        ("Identity", "out", "y", {"T": FLOAT}),
    )
    made.node[2].attr["Tout"].list.type.append(FLOAT)
    function(made, "f", ("Relu", "y", "a", {"T": FLOAT}), returns="y:activations:0")
    function(made, "g", ("Neg", "y", "a", {"T": FLOAT}))
    assert run(written(tmp_path, made)) == [[0, 2]]


@pytest.mark.parametrize(
    ("proto", "expected"),
    [
        (tensor(FLOAT, [3], float_val=[1, 2]), [1, 2, 2]),
        (tensor(FLOAT, [3]), [0, 0, 0]),
        (tensor(FLOAT, [0]), []),
        (tensor(BOOL, [2], bool_val=[True]), [True, True]),
        (tensor(9, [2], int64_val=[1 << 40, -1]), [1 << 40, -1]),
        (tensor(19, [2], half_val=[0x3C00, 0xC000]), [1, -2]),
        (tensor(14, [2], half_val=[0x3F80, 0xC000]), [1, -2]),
        (tensor(6, [2], int_val=[-1, 127]), [-1, 127]),
        (tensor(7, [2], string_val=[b"a", b"b"]), ["a", "b"]),
        (tensor(INT32, [2], tensor_content=np.array([5, 6], np.int32).tobytes()), [5, 6]),
    ],
)
def test_tensors_are_read_in_all_encodings(proto: Any, expected: list[Any]) -> None:
    assert array(proto, "x").tolist() == expected
