"""Sequences: a tuple of tensors if compile time knows the length, else one tensor (TensorSequence)."""

from __future__ import annotations

from aot.frontends.conversion.bodies import number
from aot.frontends.onnx.control.tensor_sequence import (
    ENDLESS,
    TensorSequence,
    as_sequence,
    count_of,
    element,
    followed,
    in_one,
    joined_elements,
    merged,
    span,
)
from aot.frontends.onnx.registry import OnnxNode, Outputs, StaticSequence, onnx
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

Parts = StaticSequence | TensorSequence


@onnx("SequenceConstruct")
def sequence_construct(node: OnnxNode, *xs: OutPort) -> Outputs:
    return Outputs([xs])


@onnx("SequenceEmpty")
def sequence_empty(node: OnnxNode) -> Outputs:
    return Outputs([()])


def _known_position(node: OnnxNode, parts: Parts, position: OutPort | None) -> int | None:
    """Return a position in a sequence of static length, counted from its begin; None if it is data-dependent."""
    if not isinstance(parts, tuple) or position is None or position.value is None or position.value.dtype == object:
        return None
    at = node.ints(position, "position")[0]
    return at + len(parts) if at < 0 else at


def _position(node: OnnxNode, xs: TensorSequence, position: OutPort, last: int) -> OutPort:
    """Return a position from the begin, an i64 vector of one number, checked to be in -count..count + `last`."""
    build, count = node.build, count_of(node.build, xs)
    index_vector = node.cast(build.Reshape(position, node.list([1])), DType.I64)
    rule = "position must be in the sequence"
    checked = node.within(index_vector, build.Multiply(count, -1), build.Add(count, last), rule)
    return build.Select(build.Less(checked, 0), build.Add(checked, count), checked)


@onnx("SequenceInsert")
def sequence_insert(node: OnnxNode, parts: Parts, x: OutPort, position: OutPort | None = None) -> Outputs:
    if isinstance(parts, tuple):
        at = len(parts) if position is None else _known_position(node, parts, position)
        if at is not None:
            node.refuse(not 0 <= at <= len(parts), f"position must be in -{len(parts)}..{len(parts)}, got {at}")
            return Outputs([(*parts[:at], x, *parts[at:])])
    build, xs = node.build, in_one(node.build, parts)
    one = as_sequence(build, x)
    if position is None:
        return Outputs([followed(build, xs, one)])
    place = _position(node, xs, position, 0)
    head, tail = span(build, xs, node.list([0]), place), span(build, xs, place, count_of(build, xs))
    return Outputs([followed(build, followed(build, head, one), tail)])


@onnx("SequenceErase")
def sequence_erase(node: OnnxNode, parts: Parts, position: OutPort | None = None) -> Outputs:
    position = node.scalar(-1) if position is None else position
    at = _known_position(node, parts, position)
    if isinstance(parts, tuple) and at is not None:
        _refuse_outside(node, at, parts)
        return Outputs([(*parts[:at], *parts[at + 1 :])])
    build, xs = node.build, in_one(node.build, parts)
    place = _position(node, xs, position, -1)
    head, tail = span(build, xs, node.list([0]), place), span(build, xs, build.Add(place, 1), count_of(build, xs))
    return Outputs([followed(build, head, tail)])


def _refuse_outside(node: OnnxNode, at: int, parts: StaticSequence) -> None:
    node.refuse(not 0 <= at < len(parts), f"position must be in 0..{len(parts) - 1}, got {at}")


@onnx("SequenceAt")
def sequence_at(node: OnnxNode, parts: Parts, position: OutPort) -> OutPort:
    at = _known_position(node, parts, position)
    if isinstance(parts, tuple) and at is not None:
        _refuse_outside(node, at, parts)
        return parts[at]
    xs = in_one(node.build, parts)
    _refuse_empty(node, xs)
    return element(node.build, xs, _position(node, xs, position, -1))


def _refuse_empty(node: OnnxNode, xs: TensorSequence) -> None:
    node.refuse(xs.data is None, "a sequence must have an element, got none")


@onnx("SequenceLength")
def sequence_length(node: OnnxNode, parts: Parts) -> OutPort:
    if isinstance(parts, tuple):
        return node.scalar(len(parts))
    return node.build.Squeeze(count_of(node.build, parts), node.list([0]))


@onnx("SplitToSequence")
def split_to_sequence(node: OnnxNode, x: OutPort, split: OutPort | None = None) -> Outputs:
    axis, keep = node.axis(node.integer("axis", 0), x.type.rank), node.flag("keepdims", True)
    extent = x.shape[axis]
    fixed = split is None or (split.value is not None and split.value.dtype != object)
    dropped = not keep and (split is None or (not split.type.rank and number(split) == 1))  # as ONNX Runtime does
    if not isinstance(extent, int) or not fixed:
        return Outputs([_split(node, x, axis, split, dropped)])
    if split is None:
        lengths = [1] * extent
    else:
        split_values = node.ints(split, "split")
        lengths = list(split_values)
        if split.type.rank == 0:
            node.refuse(split_values[0] <= 0, f"split must be positive, got {split_values[0]}")
            lengths = [min(split_values[0], extent - i) for i in range(0, extent, split_values[0])]
    first = node.build.VariadicSplit(x, node.scalar(axis), node.list(lengths), outputs=len(lengths))
    ports = first.node.out_ports().values()
    return Outputs([tuple(node.build.Squeeze(p, node.list([axis])) if dropped else p for p in ports)])


def _split(node: OnnxNode, x: OutPort, axis: int, split: OutPort | None, dropped: bool) -> TensorSequence:
    """Return parts of data-dependent number or lengths: single rows, or parts along the first axis.

    `dropped`: rows come without the axis.
    """
    build = node.build
    if split is None or (not split.type.rank and number(split) == 1):
        rows = _moved(node, x, axis, 0)
        return TensorSequence(rows if dropped else build.Unsqueeze(rows, node.list([axis + 1])))
    node.refuse(axis != 0, f"parts whose lengths only run time knows must be along axis 0, got axis {axis}")
    extent = node.size(x, 0)
    if split.type.rank:
        return joined_elements(node, x, split)
    part = node.within(node.cast(split, DType.I64), 1, ENDLESS, "split must be positive")
    firsts = build.Range(node.scalar(0), extent, part, output_type=DType.I64)
    return TensorSequence(x, build.Minimum(build.Subtract(extent, firsts), part))


def _moved(node: OnnxNode, x: OutPort, source: int, to: int) -> OutPort:
    """Return a tensor with axis `source` moved to `to`."""
    order = [a for a in range(x.type.rank) if a != source]
    order.insert(to, source)
    return x if source == to else node.build.Transpose(x, node.list(order))


@onnx("ConcatFromSequence")
def concat_from_sequence(node: OnnxNode, parts: Parts, *, axis: int, new_axis: bool = False) -> OutPort:
    build = node.build
    if isinstance(parts, tuple) and not new_axis:
        node.refuse(not parts, "a sequence must have an element, got none")
        return parts[0] if len(parts) == 1 else build.Concat(*parts, axis=axis)
    xs = in_one(build, parts)
    _refuse_empty(node, xs)
    assert xs.data is not None
    data = xs.data
    if xs.lengths is not None:
        rule = "elements whose sizes differ along their first axis can be joined along axis 0 only"
        node.refuse(
            new_axis or node.axis(axis, data.type.rank) != 0, f"{rule}, got {'a new axis' if new_axis else axis}"
        )
        return data
    if new_axis:
        return _moved(node, data, 0, node.axis(axis, data.type.rank))
    along = node.axis(axis, data.type.rank - 1)
    return merged(build, _moved(node, data, 0, along), along)
