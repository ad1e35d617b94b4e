"""Small ONNX models for tests, and what ONNX Runtime says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from aot.frontends import front_passes, read_model
from aot.ir.graph import Graph
from aot.ir.interpret import interpret

Array = NDArray[Any]


def model(
    nodes: list[onnx.NodeProto], inputs: dict[str, Array | tuple[Any, ...]], outputs: list[str],
    constants: dict[str, Array] | None = None, opset: int = 17, domain: str = "", **more: Any,
) -> onnx.ModelProto:  # fmt: skip
    """`inputs`: arrays that have the inputs' types, or (dtype, shape)."""
    infos = []
    for name, given in inputs.items():
        dtype, shape = (given.dtype, given.shape) if isinstance(given, np.ndarray) else given
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape))
    results = [onnx.ValueInfoProto(name=o) for o in outputs]  # types are found by inference
    held = [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "test", infos, results, held)
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, **more)


def save(folder: Path, made: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def converted(path: Path) -> Graph:
    """The graph after the front passes."""
    graph = read_model(path)
    for run in front_passes():
        run(graph)
    return graph


def run(path: Path, *inputs: Array) -> list[Array]:
    """Outputs by the references of the opset."""
    return interpret(converted(path), inputs)
