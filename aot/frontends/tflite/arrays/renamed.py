"""Operations of the opset or of TensorFlow under another name: a row says which one, and its inputs."""

from __future__ import annotations

import re
from inspect import Parameter, Signature
from typing import Any

from aot.frontends.conversion.node_context import Conversion
from aot.frontends.tf.math.complex_numbers import by_parts
from aot.frontends.tflite.registry import TfliteNode, tflite

NUMBERS = {
    "ATAN2": "tf.Atan2(y, x)",
    "FLOOR_DIV": "tf.FloorDiv(a, b)",
    "RIGHT_SHIFT": "tf.RightShift(x, by)",
    "SEGMENT_SUM": "tf.SegmentSum(x, ids)",
    "STABLEHLO_SHIFT_LEFT": "tf.LeftShift(x, by)",
}
STORED = {
    "BROADCAST_ARGS": "tf.BroadcastArgs(a, b)",
    "RANGE": "tf.Range(start, limit, step)",
    "SPARSE_TO_DENSE": "tf.SparseToDense(indices, shape, values, default)",
    "WHERE": "tf.Where(x)",
}
COMPLEX_NUMBERS = {
    "NEG": "build.Negative(x)",
    "SCATTER_ND": "tf.ScatterNd(indices, updates, shape)",
    "STABLEHLO_NEGATE": "build.Negative(x)",
}
COMPLEX_STORED = {
    "BATCH_TO_SPACE_ND": "tf.BatchToSpaceND(x, block, crops)",
    "BROADCAST_TO": "build.Broadcast(x, target)",
    "EXPAND_DIMS": "tf.ExpandDims(x, axis)",
    "GATHER_ND": "build.GatherND(x, indices)",
    "MATRIX_DIAG": "tf.MatrixDiag(x)",
    "MATRIX_SET_DIAG": "tf.MatrixSetDiag(x, diagonal)",
    "REVERSE_V2": "tf.ReverseV2(x, axes)",
    "SELECT": "tf.Select(condition, a, b)",
    "SELECT_V2": "build.Select(condition, a, b)",
    "SLICE": "tf.Slice(x, begin, size)",
    "SPLIT_V": "tf.SplitV(x, sizes, axis)",
    "STABLEHLO_SELECT": "build.Select(condition, a, b)",
    "TILE": "build.Tile(x, times)",
    "TRANSPOSE": "build.Transpose(x, order)",
}


def renamed(row: str) -> Conversion:
    """Return the conversion to `build.Kind(inputs)`, an operation of the opset, or `tf.Kind(inputs)`, TensorFlow's.

    The row carries how many inputs there are, all of which must be given, and their names in errors.
    """
    match = re.fullmatch(r"(build|tf)\.(\w+)\(([\w, ]+)\)", row)
    assert match is not None, row
    way, kind, names = match[1], match[2], match[3].split(", ")

    def converted(node: TfliteNode, *inputs: Any) -> Any:
        return getattr(node.build, kind)(*inputs) if way == "build" else node.tf(kind, *inputs)

    parameters = [Parameter(name, Parameter.POSITIONAL_ONLY, annotation="OutPort") for name in ("node", *names)]
    setattr(converted, "__signature__", Signature(parameters))  # noqa: B010  (the check of inputs reads it)
    return converted


for rows, stored in ((NUMBERS, False), (STORED, True)):
    for operation, row in rows.items():
        tflite(operation, stored=stored)(renamed(row))
for rows, stored in ((COMPLEX_NUMBERS, False), (COMPLEX_STORED, True)):
    for operation, row in rows.items():
        tflite(operation, stored=stored)(by_parts(renamed(row)))
