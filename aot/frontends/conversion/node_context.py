"""The interface of conversions: a conversion is given a node of a framework, and makes nodes of the opset.

    def conversion(node: NodeContext, x: OutPort, axes: OutPort | None = None) -> OutPort: ...

A conversion is given the node's inputs, already converted, as positional arguments (None: not connected) and returns a
port, or a tuple of ports for the first outputs. It raises UnsupportedError for a node that it cannot convert.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.operand import Operand
from aot.ir.types import Array, Dim, numpy_dtype
from aot.opset.control.demands import InRange
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, UnsupportedError

StaticSequence = tuple[OutPort, ...]  # a sequence of tensors whose length is known at compile time

SizeLookup = Callable[[Dim], OutPort | None]  # of a symbolic size: an i64 vector with it, None if no tensor has it


class CompositeTensor(ABC):
    """A value of a framework that is made of tensors, for instance a list in one tensor; `label`: its kind in texts."""

    label: ClassVar[str] = "a sequence"

    @property
    @abstractmethod
    def ports(self) -> tuple[OutPort, ...]: ...

    @abstractmethod
    def with_ports(self, ports: Sequence[OutPort]) -> CompositeTensor:
        """Return the same value, made of other tensors."""

    def tensors(self) -> Mapping[str, OutPort]:
        """Return the tensors of an output of a network, by what follows its name; none if it can be none."""
        return {}

    def like(self, other: CompositeTensor, build: Builder, size: SizeLookup) -> CompositeTensor:
        """Return the same value in the form of `other`, or in a form that holds both; itself if it has it.

        `size` gives a dimension of `other` where `build` adds nodes. UnsupportedError if there is no such form.
        """
        del other, build, size
        return self


PresentValue = (
    OutPort | StaticSequence | CompositeTensor
)  # a value that regions take: made of tensors, each of which is one parameter
Value = PresentValue | None
Conversion = Callable[..., "Value | Outputs"]
T = TypeVar("T")

SHORT_FLOATS = (DType.F16, DType.BF16)  # floats that are computed with in f32


@dataclass(frozen=True, slots=True)
class Outputs:
    """Several outputs; some may be sequences or absent."""

    values: Sequence[Value]


class Bodies(Protocol):
    """Conversion of sub-graphs, by the walk over the graph around them."""

    def inline(self, region: Graph, inputs: Sequence[Value]) -> list[Value]:
        """Return the region's results where its parameters are `inputs`, as nodes of the graph around it."""
        ...

    def region(self, region: Graph, inputs: Sequence[PresentValue], known: Sequence[bool]) -> tuple[Graph, list[Value]]:
        """Return the region as a graph of its own without results, and the values that the results would have.

        Its parameters have the types of `inputs`, one for each tensor of a packed value. Those that are `known` become
        constants, where their values are.
        """
        ...

    def branch_outputs(
        self,
        node: NodeContext,
        new_node: Node,
        regions: Sequence[tuple[Graph, Sequence[PresentValue]]],
        size: Dim | None = None,
    ) -> Sequence[Value]:
        """Return the outputs of `new_node`, an If without outputs, for both regions with their parameters' values.

        `size`: the condition is that this size is 1.
        """
        ...


@dataclass(frozen=True, slots=True)
class NodeContext:
    """A node being converted. `outputs`: which outputs are read."""

    kind: str
    attrs: Mapping[str, Any]
    build: Builder
    outputs: tuple[bool, ...]
    regions: Mapping[str, Graph]
    captures: Mapping[str, tuple[tuple[int, Value], ...]]  # of each region: position of the parameter, value
    bodies: Bodies
    seed: int | None  # of random numbers; None: they are refused
    node: Node
    inputs: Sequence[Value]  # values of the node's inputs, captured ones last

    def _get(self, name: str, kinds: type | tuple[type, ...], default: Any) -> Any:
        value = self.attrs.get(name, default)
        if value is None or not isinstance(value, kinds):
            raise ModelError(f"{self.kind}: attribute {name} is {'missing' if value is None else 'of a wrong type'}")
        return value

    def has(self, name: str) -> bool:
        return name in self.attrs

    def converted_as(
        self,
        view: Callable[..., NodeContext],
        function: Conversion | None,
        kind: str,
        inputs: Sequence[Value],
        attrs: Any,
    ) -> Any:
        """Convert as an operation of another framework: `view` makes the node that its conversion gets."""
        if function is None:
            raise UnsupportedError(f"{self.kind}: there is no conversion for it")
        arguments = (kind, attrs, self.build, self.outputs, self.regions, self.captures, self.bodies, self.seed)
        return function(view(*arguments, self.node, self.inputs), *inputs)

    def integer(self, name: str, default: int | None = None) -> int:
        return int(self._get(name, int, default))

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(self._get(name, int, default))

    def number(self, name: str, default: float | None = None) -> float:
        """Return a float attribute; it was written as f32."""
        return float(self._get(name, (float, int), default))

    def text(self, name: str, default: str | None = None) -> str:
        return str(self._get(name, str, default))

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        return tuple(self._get(name, (tuple, list, range), default))

    def numbers(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        return tuple(self._get(name, (tuple, list), default))

    def texts(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        return tuple(self._get(name, (tuple, list), default))

    def tensor(self, name: str) -> Array:
        return self._get(name, np.ndarray, None)

    def choice(self, name: str, table: Mapping[str, T], default: str | None = None) -> T:
        """Entry of `table` for a text; UnsupportedError if there is none."""
        text = self.text(name, default)
        if text not in table:
            raise UnsupportedError(f"{self.kind}: {name} must be one of {', '.join(table)}, got {text!r}")
        return table[text]

    def refuse(self, condition: bool, reason: str) -> None:
        """UnsupportedError with `reason` if `condition` holds."""
        if condition:
            raise UnsupportedError(f"{self.kind}: {reason}")

    def axis(self, axis: int, rank: int) -> int:
        """`axis` counted from the front."""
        if not -rank <= axis < max(rank, 1):
            raise ModelError(f"{self.kind}: axis must be within rank {rank}, got {axis}")
        return axis + rank if axis < 0 else axis

    def present(self, value: T | None, name: str) -> T:
        """Return an input that this form of the operation needs; ModelError if it is left out."""
        if value is None:
            raise ModelError(f"{self.kind}: input {name} must be given, got none")
        return value

    def known(self, port: OutPort, what: str) -> Array:
        """Return the value of an input; UnsupportedError if it is known at run time only."""
        return Operand(port.type, port.value).known(f"{self.kind}: {what}")

    def ints(self, port: OutPort, what: str) -> tuple[int, ...]:
        return Operand(port.type, port.value).ints(f"{self.kind}: {what}")

    def extent(self, x: OutPort, axis: int, what: str) -> int:
        """Return a dimension of `x` that must be a number; UnsupportedError if it is known at run time only."""
        result = x.shape[axis]
        if not isinstance(result, int):
            raise UnsupportedError(f"{self.kind}: {what} must be known at compile time")
        return result

    def within(
        self, x: OutPort, low: int | OutPort, high: int | OutPort, rule: str, data: OutPort | None = None
    ) -> OutPort:
        """`data`, or `x`: a few integers that must be in low..high, checked before anything is made of them."""
        check = InRange(operation=self.kind, rule=rule)
        return self.build(check, x, low, high) if data is None else self.build(check, x, low, high, data)

    def axes_within(self, axes: OutPort, rank: int) -> OutPort:
        """Axes of a tensor of `rank`, checked to be different ones."""
        rule = f"axes are {-rank} to {rank - 1}"
        return self.build(InRange(operation=self.kind, rule=rule, different=rank), axes, -rank, rank - 1)

    def demand(self, holds: OutPort, rule: str, data: OutPort) -> OutPort:
        """`data` where booleans of any shape all hold."""
        all_hold = self.build.ReduceLogicalAnd(self.build.Reshape(holds, self.list([-1])), self.list([0]))
        return self.within(self.cast(all_hold, DType.I64), 1, 1, rule, data)

    def list(self, values: Sequence[int]) -> OutPort:
        """Add a constant i64 vector."""
        return self.build.const(np.array(list(values), np.int64), DType.I64)

    def scalar(self, value: int) -> OutPort:
        return self.build.const(value, DType.I64)

    def size(self, x: OutPort, axis: int) -> OutPort:
        """Return a dimension of `x` as an i64 scalar."""
        return self.build.Squeeze(self.dims(x, [axis]), self.list([0]))

    def dims(self, x: OutPort, axes: Sequence[int]) -> OutPort:
        """Some dimensions of `x` as an i64 vector."""
        if any(not -x.type.rank <= a < x.type.rank for a in axes):
            raise ModelError(f"{self.kind}: axes must be within rank {x.type.rank}, got {list(axes)}")
        sizes = [x.shape[a] for a in axes]
        numbers = [d for d in sizes if isinstance(d, int)]
        if len(numbers) == len(sizes):
            return self.list(numbers)
        return self.build.Gather(self.build.ShapeOf(x), self.list(axes), self.scalar(0))

    def single(self, x: OutPort) -> OutPort:
        """Return the one element of a tensor as a scalar; that there is one is checked."""
        return self.build.Squeeze(x, self.list(range(x.type.rank))) if x.type.rank else x

    def reshape(self, x: OutPort, dims: Sequence[Dim]) -> OutPort:
        """`x` in another shape; at most one dimension may be symbolic."""
        unknown = [d for d in dims if isinstance(d, Expr)]
        self.refuse(len(unknown) > 1, "more than one dimension is known only at run time where a shape is changed")
        return self.build.Reshape(x, self.list([d if isinstance(d, int) else -1 for d in dims]))

    def to_channels_first(self, x: OutPort) -> OutPort:
        """`x` with its last axis as axis 1."""
        rank = x.type.rank
        return self.build.Transpose(x, self.list([0, rank - 1, *range(1, rank - 1)]))

    def to_channels_last(self, y: OutPort) -> OutPort:
        """`y` with its axis 1 as the last one."""
        return self.build.Transpose(y, self.list([0, *range(2, y.type.rank), 1]))

    def image(self, x: OutPort, rank: int = 4) -> OutPort:
        """`x`, checked to have `rank` axes."""
        if x.type.rank != rank:
            raise ModelError(f"{self.kind}: inputs must have {rank} axes, got {x.type}")
        return x

    def biased(self, y: OutPort, bias: OutPort | None) -> OutPort:
        """`y`, which has channels as axis 1, with a number for each channel added."""
        if bias is None:
            return y
        return self.build.Add(y, self.reshape(bias, (1, bias.shape[0], *[1] * (y.type.rank - 2))))

    def cast(self, x: OutPort, dtype: DType) -> OutPort:
        return x if x.type.dtype is dtype else self.build.Convert(x, destination_type=dtype)

    def rounded(self, x: OutPort) -> OutPort:
        """`x`, rounded to its short float type here, also where it is fused."""
        return self.build.Rounded(x) if x.type.dtype in SHORT_FLOATS else x

    def like(self, value: float, x: OutPort) -> OutPort:
        """Return a scalar of `x`'s type."""
        return self.build.const(np.asarray(value).astype(numpy_dtype(x.type.dtype)), x.type.dtype)
