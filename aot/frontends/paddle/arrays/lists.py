"""Lists of tensors, and tensors cut and joined."""

from __future__ import annotations

from aot.frontends.conversion.node_context import Outputs, StaticSequence, Value
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.runtime.errors import ModelError


@paddle("builtin.combine")
def combine(node: PaddleNode, *xs: OutPort) -> Outputs:
    """Make a list of tensors."""
    del node
    return Outputs([xs])


@paddle("builtin.split")
def take_apart(node: PaddleNode, xs: OutPort | StaticSequence) -> tuple[OutPort, ...]:
    """Take a list apart."""
    if not isinstance(xs, tuple) or len(xs) < len(node.outputs):
        raise ModelError(f"{node.kind}: a list of {len(node.outputs)} tensors, got {xs}")
    return xs


def _listed(xs: OutPort | StaticSequence) -> StaticSequence:
    return xs if isinstance(xs, tuple) else (xs,)


@paddle("concat")
def concat(node: PaddleNode, xs: OutPort | StaticSequence, axis: OutPort) -> OutPort:
    parts = _listed(xs)
    return node.build.Concat(*parts, axis=node.axis(int(node.one(axis, "axis")), parts[0].type.rank))


@paddle("stack")
def stack(node: PaddleNode, xs: OutPort | StaticSequence, *, axis: int = 0) -> OutPort:
    parts = _listed(xs)
    along = node.axis(axis, parts[0].type.rank + 1)
    rows = [node.build.Unsqueeze(p, node.list([along])) for p in parts]
    return rows[0] if len(rows) == 1 else node.build.Concat(*rows, axis=along)


@paddle("split")
def split(node: PaddleNode, x: OutPort, sections: Value, axis: OutPort, *, num: int = 0) -> Outputs:
    """Cut into parts of given lengths, one of which may be -1; in version 2 also into equal parts."""
    along = node.axis(int(node.one(axis, "axis")), x.type.rank)
    lengths = () if sections is None else node.ints(node.vector(sections), "the lengths of parts")
    if not lengths:
        return _equal(node, x, along, num)
    new_node = node.build.VariadicSplit(x, node.scalar(along), node.list(lengths), outputs=len(lengths)).node
    return Outputs([tuple(new_node.out_ports().values())])


@paddle("split_with_num")
def split_with_num(node: PaddleNode, x: OutPort, axis: OutPort, *, num: int) -> Outputs:
    return _equal(node, x, node.axis(int(node.one(axis, "axis")), x.type.rank), num)


def _equal(node: PaddleNode, x: OutPort, axis: int, count: int) -> Outputs:
    if count < 1:
        raise ModelError(f"{node.kind}: there must be parts, got {count}")
    new_node = node.build.Split(x, node.scalar(axis), num_splits=count, outputs=count).node
    return Outputs([tuple(new_node.out_ports().values())])


@paddle("unbind", "unstack")
def unbind(node: PaddleNode, x: OutPort, *, axis: int = 0) -> Outputs:
    """Cut into slices of one element of an axis, without this axis."""
    along = node.axis(axis, x.type.rank)
    count = node.extent(x, along, "the number of slices")
    parts = _equal(node, x, along, count).values[0]
    assert isinstance(parts, tuple)
    return Outputs([tuple(node.build.Squeeze(p, node.list([along])) for p in parts)])


@paddle("meshgrid")
def meshgrid(node: PaddleNode, xs: OutPort | StaticSequence) -> Outputs:
    """Repeat each vector along the axes of the others."""
    build, parts = node.build, _listed(xs)
    flat = [node.reshape(p, (-1,)) for p in parts]
    sizes = [node.dims(p, [0]) for p in flat]
    shape = sizes[0] if len(sizes) == 1 else build.Concat(*sizes, axis=0)
    rows = [build.Unsqueeze(p, node.list([a for a in range(len(flat)) if a != i])) for i, p in enumerate(flat)]
    return Outputs([tuple(build.Broadcast(row, shape) if len(flat) > 1 else row for row in rows)])
