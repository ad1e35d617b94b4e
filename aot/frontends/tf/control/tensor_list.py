"""Lists of tensors, which lie in one tensor: element i is row i of it."""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.node_context import CompositeTensor, SizeLookup
from aot.frontends.tf.registry import TfNode
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Dim, TensorType, dim_text
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError


@dataclass(frozen=True, slots=True, eq=False)
class TensorList(CompositeTensor):
    """`data`: [count, *element], None as long as the shape of elements is not known; `count`: then, a scalar.

    `shape`: sizes of an element as far as operations have told, -1 for others; None if the rank is not known.
    """

    dtype: DType
    shape: tuple[int, ...] | None = None
    count: OutPort | None = None
    data: OutPort | None = None

    @property
    def ports(self) -> tuple[OutPort, ...]:
        return tuple(p for p in (self.data or self.count,) if p is not None)

    def with_ports(self, ports: Sequence[OutPort]) -> TensorList:
        if self.data is not None:
            return TensorList(self.dtype, self.shape, data=ports[0])
        return TensorList(self.dtype, self.shape, ports[0] if ports else None)

    def like(self, other: CompositeTensor, build: Builder, size: SizeLookup) -> TensorList:
        """Return the list; without data, with zeros of the shape that the elements of the other one have."""
        if not isinstance(other, TensorList) or self.data is not None or other.data is None:
            return self
        element = [d if isinstance(d, int) else size(d) for d in other.data.shape[1:]]
        if None in element:
            got = ", ".join(map(dim_text, other.data.shape[1:]))
            rule = f"the elements of a list have sizes of values that go into the loop, got [{got}]"
            raise UnsupportedError(f"{rule}: sizes of inputs that are equal get one name by --shape")
        sizes = [d for d in element if d is not None]
        count = build.const(0, DType.I64) if self.count is None else self.count
        return _zeros(build, self, count, sizes)

    def with_data(self, data: OutPort) -> TensorList:
        return TensorList(self.dtype, self.shape, data=data)


def element_shape(node: TfNode, shape: OutPort | None) -> tuple[int, ...] | None:
    """Return the sizes in an input that gives the shape of elements; None for an unknown rank, -1 alone."""
    if shape is None or shape.value is None or shape.value.dtype == object or not shape.type.rank:
        return None
    return node.ints(shape, "element_shape")


def length(node: TfNode, xs: TensorList) -> OutPort:
    """Return the number of elements, a scalar."""
    if xs.data is not None:
        return node.size(xs.data, 0)
    return xs.count if xs.count is not None else node.scalar(0)


def filled(node: TfNode, xs: TensorList) -> TensorList:
    """Return a list with data: 0 if they were not set. The shape of its elements must be known then."""
    if xs.data is not None:
        return xs
    if xs.shape is None or any(d < 0 for d in xs.shape):
        rule = "a list whose elements were not set needs their shape"
        raise UnsupportedError(f"{node.kind}: {rule}, got {'none' if xs.shape is None else list(xs.shape)}")
    return zeros(node, xs, xs.shape)


def zeros(node: TfNode, xs: TensorList, element: Sequence[Dim | OutPort]) -> TensorList:
    """Return a list of zeros. `element`: each size of an element, a number or an i64 vector with it."""
    return _zeros(node.build, xs, length(node, xs), element)


def _zeros(build: Builder, xs: TensorList, count: OutPort, element: Sequence[Dim | OutPort]) -> TensorList:
    parts = [d if isinstance(d, OutPort) else build.const([int(str(d))], DType.I64) for d in element]
    first = build_vector(build, count)
    shape = build.Concat(first, *parts, axis=0) if parts else first
    zero = build.const(False if xs.dtype is DType.BOOL else 0, xs.dtype)
    return xs.with_data(build.Broadcast(zero, shape))


def build_vector(build: Builder, scalar: OutPort) -> OutPort:
    """Return a scalar as an i64 vector."""
    whole = scalar if scalar.type.dtype is DType.I64 else build.Convert(scalar, destination_type=DType.I64)
    return build.Reshape(whole, build.const([1], DType.I64))


def element_type(xs: TensorList) -> TensorType | None:
    """Return the type of elements; None if it is not known."""
    return None if xs.data is None else TensorType(xs.dtype, xs.data.shape[1:])
