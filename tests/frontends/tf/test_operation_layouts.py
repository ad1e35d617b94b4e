"""Channels first: TensorFlow's CPU kernels have channels last, so their cases are turned round.

x [N, ..., C] -> x' [N, C, ...]      an attribute for each axis is turned, too      y' [N, C, ...] is y turned
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot.frontends import front_passes, read_model
from aot.frontends.tf.files.messages import GraphDef, parsed
from aot.ir.interpret import interpret
from tests.frontends.tf.test_operations import FAMILIES, array, contents, differs

FORMATS = {4: "NCHW", 5: "NCDHW"}
KINDS = {
    "Conv2D",
    "Conv3D",
    "DepthwiseConv2dNative",
    "Conv2DBackpropInput",
    "Conv3DBackpropInputV2",
    "MaxPool",
    "AvgPool",
    "MaxPool3D",
    "AvgPool3D",
    "FusedBatchNorm",
    "FusedBatchNormV2",
    "FusedBatchNormV3",
    "SpaceToDepth",
    "DepthToSpace",
    "_FusedConv2D",
}


def order(rank: int) -> list[int]:
    return [0, rank - 1, *range(1, rank - 1)]


def turned(values: list[Any]) -> list[Any]:
    return [values[a] for a in order(len(values))]


def cases() -> list[Any]:
    """The cases that feed one image."""
    found: list[Any] = []
    for path in FAMILIES:
        graphs, tables, data = contents(path)
        chosen = (c for c in tables["graph"] if c["name"].rpartition("-")[0] in KINDS and len(c["inputs"]) == 1)
        found += [pytest.param(graphs["graph.pb"], case, data, id=case["name"]) for case in chosen]
    return found


def turn(node: Any, constants: dict[str, Any], rank: int) -> None:
    """Turn the attributes of an operation, and the sizes that a transposed convolution reads."""
    node.attr["data_format"].s = FORMATS[rank].encode()
    for name in ("strides", "dilations", "ksize"):
        if name in node.attr and len(node.attr[name].list.i) == rank:
            node.attr[name].list.i[:] = turned(list(node.attr[name].list.i))
    pads = list(node.attr["explicit_paddings"].list.i) if "explicit_paddings" in node.attr else []
    pairs = turned([pads[i : i + 2] for i in range(0, len(pads), 2)]) if pads else []
    node.attr["explicit_paddings"].list.i[:] = [n for pair in pairs for n in pair]
    sizes = constants.get(node.input[0])
    if sizes is not None and len(sizes.tensor_content) == 4 * rank:
        values = np.frombuffer(sizes.tensor_content, np.int32)
        sizes.tensor_content = values[order(rank)].tobytes()


@pytest.mark.parametrize(("graph", "case", "data"), cases())
def test_channels_first_are_channels_last_turned(graph: bytes, case: Any, data: bytes, tmp_path: Path) -> None:
    number, (fed,) = case["outputs"][0][0].split("_")[0], case["inputs"]
    made, x = GraphDef(), array(fed, data)
    for node in parsed(GraphDef, graph, "cases").node:
        if node.name.startswith((f"{number}/", f"{number}_")):
            made.node.add().CopyFrom(node)
    constants = {node.name: node.attr["value"].tensor for node in made.node if node.op == "Const"}
    for node in made.node:
        if node.op in KINDS:
            turn(node, constants, x.ndim)
        if node.name == fed[0]:
            for dim, n in zip(node.attr["shape"].shape.dim, turned(list(x.shape)), strict=True):
                dim.size = n
    file = tmp_path / "turned.pb"
    file.write_bytes(made.SerializeToString())
    network = read_model(file)
    for front_pass in front_passes():
        front_pass(network)
    found = interpret(network, [x.transpose(order(x.ndim))])[0]
    wanted = array(case["outputs"][0], data)
    assert not differs(found, wanted.transpose(order(wanted.ndim)), case["tolerance"])
