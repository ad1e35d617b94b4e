"""Sequences of tensors that lie in one tensor: a loop that runs carries them, or run time gives their length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.node_context import CompositeTensor, NodeContext, SizeLookup, StaticSequence
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Dim, Shape, differs, dim_text
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

ENDLESS = 2**63 - 1  # end of a slice that goes to the end


@dataclass(frozen=True, slots=True, eq=False)
class TensorSequence(CompositeTensor):
    """A sequence in one of three forms.

    Empty: neither tensor; no element has told its type yet. Stacked: `data` [count, *element]. Joined: elements that
    differ along their first axis, `data` [sum of lengths, *rest] and `lengths` [count], i64.
    """

    data: OutPort | None = None
    lengths: OutPort | None = None

    @property
    def ports(self) -> tuple[OutPort, ...]:
        return tuple(p for p in (self.data, self.lengths) if p is not None)

    def with_ports(self, ports: Sequence[OutPort]) -> TensorSequence:
        return TensorSequence(*ports)

    def tensors(self) -> Mapping[str, OutPort]:
        return dict(zip(("", ".lengths"), self.ports, strict=False))

    def like(self, other: CompositeTensor, build: Builder, size: SizeLookup) -> TensorSequence:
        if not isinstance(other, TensorSequence) or other.data is None or len(self.ports) >= len(other.ports):
            return self
        if self.data is not None:
            return joined_form(build, self)
        sizes = [d if isinstance(d, int) else size(d) for d in other.data.shape[1:]]
        stacked = other.lengths is None and None not in sizes
        rest = sizes[1:] if other.lengths is None and not stacked else sizes
        if None in rest:
            rule = "elements of a sequence have sizes of values that go into the loop, but for their first axis"
            raise UnsupportedError(f"{rule}, got {_text(other.data.shape[1:])}")
        data = _zeros(build, rest, other.data.type.dtype)
        return TensorSequence(data) if stacked else TensorSequence(data, build.const([], DType.I64))


def _text(shape: Shape) -> str:
    return f"[{', '.join(map(dim_text, shape))}]"


def _zeros(build: Builder, rest: Sequence[Dim | OutPort | None], dtype: DType) -> OutPort:
    """Return a tensor [0, *rest]."""
    parts = [p if isinstance(p, OutPort) else build.const([p], DType.I64) for p in (0, *rest)]
    shape = build.Concat(*parts, axis=0) if len(parts) > 1 else parts[0]
    return build.Broadcast(build.const(False if dtype is DType.BOOL else 0, dtype), shape)


def vector(build: Builder, values: Sequence[int]) -> OutPort:
    return build.const(list(values), DType.I64)


def sizes_of(build: Builder, x: OutPort, axes: Sequence[int]) -> OutPort:
    """Return dimensions of a tensor as an i64 vector."""
    return build.Gather(build.ShapeOf(x), vector(build, axes), build.const(0, DType.I64))


def joined_form(build: Builder, xs: TensorSequence) -> TensorSequence:
    """Return a stacked sequence in the joined form."""
    if xs.data is None or xs.lengths is not None:
        return xs
    if xs.data.type.rank < 2:
        raise UnsupportedError("elements of a sequence have equal ranks, got scalars and others")
    lengths = build.Broadcast(sizes_of(build, xs.data, [1]), sizes_of(build, xs.data, [0]))
    return TensorSequence(merged(build, xs.data, 0), lengths)


def merged(build: Builder, x: OutPort, axis: int) -> OutPort:
    """Return a tensor with the axes `axis` and `axis` + 1 merged."""
    sizes = [sizes_of(build, x, [a]) for a in range(x.type.rank)]
    both = build.Multiply(sizes[axis], sizes[axis + 1])
    shape = [*sizes[:axis], both, *sizes[axis + 2 :]]
    return build.Reshape(x, build.Concat(*shape, axis=0) if len(shape) > 1 else both)


def in_one(build: Builder, parts: StaticSequence | TensorSequence) -> TensorSequence:
    """Return a sequence in one tensor. UnsupportedError if ranks, types or sizes after the first axis differ."""
    if isinstance(parts, TensorSequence):
        return parts
    tensor_sequence = TensorSequence()
    if parts and all(p.type == parts[0].type for p in parts):  # one Concat, not one an element
        each = [build.Unsqueeze(p, vector(build, [0])) for p in parts]
        return TensorSequence(build.Concat(*each, axis=0) if len(each) > 1 else each[0])
    for p in parts:
        tensor_sequence = followed(build, tensor_sequence, as_sequence(build, p))
    return tensor_sequence


def as_sequence(build: Builder, x: OutPort) -> TensorSequence:
    """Return a sequence of one element."""
    return TensorSequence(build.Unsqueeze(x, vector(build, [0])))


def joined_elements(node: NodeContext, data: OutPort, lengths: OutPort) -> TensorSequence:
    """Return a sequence of parts of a tensor; the lengths must add up to its first axis."""
    extent, rule = node.size(data, 0), "the lengths must add up to the size"
    length_vector = node.cast(lengths, DType.I64)
    own = node.demand(node.build.GreaterEqual(length_vector, 0), "lengths must not be negative", length_vector)
    total = node.build.ReduceSum(own, node.list([0]))
    return TensorSequence(*(node.within(total, extent, extent, rule, part) for part in (data, own)))


def followed(build: Builder, a: TensorSequence, b: TensorSequence) -> TensorSequence:
    """Return the elements of `a`, followed by the elements of `b`."""
    if a.data is None or b.data is None:
        return b if a.data is None else a
    if a.lengths is None and b.lengths is None and a.data.shape[1:] == b.data.shape[1:]:
        fits = a.data.type.dtype is b.data.type.dtype
    else:
        a, b = joined_form(build, a), joined_form(build, b)
        assert a.data is not None and b.data is not None
        fits = a.data.type.dtype is b.data.type.dtype and _may_be_equal(a.data.shape[1:], b.data.shape[1:])
    if not fits:
        rule = "elements of a sequence that a loop carries have one type, and equal sizes but for the first axis"
        raise UnsupportedError(f"{rule}, got {a.data.type} and {b.data.type} of all of them joined")
    data = build.Concat(a.data, b.data, axis=0)
    if a.lengths is None or b.lengths is None:
        return TensorSequence(data)
    return TensorSequence(data, build.Concat(a.lengths, b.lengths, axis=0))


def _may_be_equal(a: Shape, b: Shape) -> bool:
    if len(a) != len(b):
        return False
    return not any(isinstance(m, int) and differs(n, m) for m, n in zip(a, b, strict=True))


def span(build: Builder, xs: TensorSequence, begin: OutPort, end: OutPort) -> TensorSequence:
    """Return the elements begin..end, i64 vectors of one number, which must be in 0..count."""
    if xs.data is None:
        return xs
    if xs.lengths is None:
        return TensorSequence(_rows(build, xs.data, begin, end))
    first, last = (offset(build, xs.lengths, at) for at in (begin, end))
    return TensorSequence(_rows(build, xs.data, first, last), _rows(build, xs.lengths, begin, end))


def offset(build: Builder, lengths: OutPort, at: OutPort) -> OutPort:
    """Return where element `at` begins in joined elements, an i64 vector of one number."""
    before = _rows(build, lengths, vector(build, [0]), at)
    return build.ReduceSum(before, vector(build, [0]), keep_dims=True)


def _rows(build: Builder, x: OutPort, begin: OutPort, end: OutPort) -> OutPort:
    return build.Slice(x, begin, end, vector(build, [1]), vector(build, [0]))


def element(build: Builder, xs: TensorSequence, at: OutPort) -> OutPort:
    """Return element `at`, an i64 vector of one number in 0..count - 1."""
    assert xs.data is not None
    if xs.lengths is None:
        return build.Gather(xs.data, build.Squeeze(at, vector(build, [0])), build.const(0, DType.I64))
    first = offset(build, xs.lengths, at)
    return _rows(build, xs.data, first, build.Add(first, build.Gather(xs.lengths, at, build.const(0, DType.I64))))


def count_of(build: Builder, xs: TensorSequence) -> OutPort:
    """Return the number of elements, an i64 vector of one number."""
    whole = xs.data if xs.lengths is None else xs.lengths
    return vector(build, [0]) if whole is None else sizes_of(build, whole, [0])
