"""Arrays of tensors, which loops fill and read: sequences of ONNX.

ys = create_array(); while(..) {array_write(ys, y, array_length(ys))}; array_to_tensor(ys, axis=0, use_stack=True)
"""

from __future__ import annotations

from aot.frontends.conversion.node_context import Outputs, StaticSequence, Value
from aot.frontends.onnx.control.tensor_sequence import TensorSequence
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

Parts = StaticSequence | TensorSequence


@paddle("create_array")
def create_array(node: PaddleNode) -> Outputs:
    return node.onnx("SequenceEmpty")


@paddle("array_length")
def array_length(node: PaddleNode, parts: Value) -> OutPort:
    return node.build.Unsqueeze(node.onnx("SequenceLength", parts), node.list([0]))


@paddle("array_read")
def array_read(node: PaddleNode, parts: Value, position: OutPort) -> OutPort:
    return node.onnx("SequenceAt", parts, node.single(position))


@paddle("array_write")
def array_write(node: PaddleNode, parts: Parts, x: OutPort, position: OutPort) -> Outputs:
    """Append a tensor, or replace another one at a constant position."""
    at, known = node.single(node.cast(position, DType.I64)), position.value is not None
    if isinstance(parts, tuple) and known:
        place = int(node.one(position, "a position"))
        if 0 <= place < len(parts):
            return Outputs([(*parts[:place], x, *parts[place + 1 :])])
    length = node.onnx("SequenceLength", parts)
    end = node.within(at, length, length, "a tensor is written behind the last one of an array")
    return node.onnx("SequenceInsert", parts, x, end)


@paddle("array_to_tensor")
def array_to_tensor(node: PaddleNode, parts: Parts, *, axis: int, use_stack: bool = False) -> tuple[OutPort, OutPort]:
    """Return the tensors of an array as one, and the size of each along the axis."""
    joined: OutPort = node.onnx("ConcatFromSequence", parts, axis=axis, new_axis=use_stack)
    if isinstance(parts, tuple):
        one = [node.list([1]) if use_stack else node.dims(p, [axis]) for p in parts]
        sizes = one[0] if len(one) == 1 else node.build.Concat(*one, axis=0)
    elif parts.lengths is None:
        count = node.build.Unsqueeze(node.onnx("SequenceLength", parts), node.list([0]))
        total = node.dims(joined, [axis])
        sizes = node.build.Broadcast(node.single(node.build.Divide(total, count)), count)
    else:
        raise UnsupportedError(f"{node.kind}: tensors of equal sizes, got those of several")
    return joined, node.cast(sizes, DType.I32)
