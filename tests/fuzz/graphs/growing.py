"""A graph in the making, with a value for each output: what is drawn next fits what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from aot.codegen.ir.loops import Var
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.interpret import interpret
from aot.ir.op import Op, RegionOp, Stateful
from aot.ir.registry import all_operations
from aot.ir.types import Array, Dim, dtype_of, numpy_dtype
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, InternalError
from tests.properties.drawing import Draw

MAX_ELEMENTS = 4096
LARGE = 30.0  # floats beyond it are clamped, so that sums stay finite


@dataclass(frozen=True)
class Value:
    port: OutPort
    array: Array

    @property
    def dtype(self) -> DType:
        return dtype_of(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


class Refused(Exception):
    """Error for a drawn operation that does not fit; the graph has no new consumers."""


@dataclass
class Growing:
    """`varying`: some dimensions of its parameters are known when it runs only."""

    d: Draw
    graph: Graph
    varying: bool = False
    pool: list[Value] = field(default_factory=list[Value])
    fed: list[Array] = field(default_factory=list[Array])
    depth: int = 0  # of bodies around it

    @property
    def build(self) -> Builder:
        return Builder(self.graph)

    def parameter(self, array: Array, like: OutPort | None = None) -> Value:
        """An input that is fed `array`; its sizes vary as those of `like`, or some of them at random."""
        name = f"p{len(self.graph.parameters)}"
        free = [self.varying and not self.d.integer(0, 1) for _ in array.shape]
        if like is not None and like.type.rank == array.ndim:  # an output of an If of two ranks has the other one
            free = [not isinstance(n, int) for n in like.type.shape]
        sizes = enumerate(zip(array.shape, free, strict=True))
        shape: list[Dim] = [Var(f"{name}_{a}") if f else n for a, (n, f) in sizes]
        port = self.graph.add(Parameter(dtype_of(array), tuple(shape)), name=name).out_port(0)
        self.fed.append(array)
        return self._held(Value(port, array))

    def constant(self, array: Array) -> Value:
        node = self.graph.add(Constant(element_type=dtype_of(array)), data=np.ascontiguousarray(array))
        return Value(node.out_port(0), array)

    def ints(self, *values: int) -> Value:
        return self.constant(np.array(values, np.int64))

    def add(
        self, op: Op, *inputs: Value | None, outputs: int | None = None, regions: dict[str, Graph] | None = None
    ) -> list[Value]:
        """The outputs of a new node; Refused if the operation does not take the inputs, or gives too much."""
        arrays = [None if v is None else v.array for v in inputs]
        try:
            with np.errstate(all="ignore"):
                if isinstance(op, RegionOp):
                    results = tuple(op.reference(arrays, regions or {}, interpret))
                else:
                    results = (arrays[0],) if isinstance(op, Stateful) else op.evaluate(*arrays)
        except InternalError:
            raise
        except (AotError, ValueError, IndexError, ZeroDivisionError) as error:
            raise Refused(str(error)) from error
        if any(r is None or r.size > MAX_ELEMENTS for r in results):
            raise Refused("too large")
        node = self.graph.add(op, *(None if v is None else v.port for v in inputs), outputs=outputs or len(results))
        node.regions = regions or {}
        self._inferred(node)
        return [self._held(Value(p, np.asarray(r))) for p, r in zip(node.out_ports().values(), results, strict=True)]

    def _inferred(self, node: Node) -> None:
        """Refused where inference cannot do with what is known when compiling."""
        try:
            node.operands()
        except InternalError:
            raise
        except AotError as error:
            self.graph.remove(node)
            raise Refused(str(error)) from error

    def _held(self, value: Value) -> Value:
        self.pool.append(value)
        return value

    def tame(self, value: Value) -> Value:
        """Clamped if it is large."""
        if value.dtype.is_float and value.array.size:
            with np.errstate(all="ignore"):
                small = bool((np.abs(value.array.astype(np.float64)) <= LARGE).all())
            if not small:
                return self.named("Clamp", value, min=-8.0, max=8.0)
        return value

    def named(self, type: str, *inputs: Value | None, **attributes: object) -> Value:
        """The first output of an operation by its name."""
        return self.add(all_operations()[type](**attributes), *inputs)[0]

    def pick(self, ok: Callable[[Value], bool] = lambda _: True) -> Value:
        """One of the values for which `ok` is True, later ones more often; Refused if there is none."""
        found = [v for v in self.pool if ok(v)]
        if not found:
            raise Refused("no value fits")
        return found[-1 - min(self.d.integer(0, len(found) - 1), self.d.integer(0, len(found) - 1))]

    def fitted(self, value: Value, like: Array) -> Value:
        """`value` in the shape and type of `like`, and between its least and greatest element."""
        if not value.array.size or not like.size:
            raise Refused("empty")
        if not np.isfinite(value.array.astype(np.float64)).all():
            raise Refused("not a number")  # boxes and places are chosen by numbers
        flat = self.named("Reshape", value, self.ints(-1))
        if value.dtype is not dtype_of(like):
            flat = self.named("Convert", flat, destination_type=dtype_of(like))
        if dtype_of(like) is not DType.BOOL:
            low, high = (float(np.nan_to_num(f(like.astype(np.float64)))) for f in (np.min, np.max))
            flat = self.named("Clamp", flat, min=low, max=high)
        places = np.arange(like.size) % value.array.size
        spread = self.named("Gather", flat, self.constant(places.astype(np.int64)), self.constant(np.array(0)))
        return self.named("Reshape", spread, self.ints(*like.shape))

    def noise(self, shape: Sequence[int], dtype: DType = DType.F32) -> Value:
        """A constant of random numbers, scaled so that sums over all but the first dimension stay near 1."""
        depth = max(1, int(np.prod(shape[1:]))) ** 0.5
        data = self.d.generator().standard_normal(tuple(shape)) / depth
        return self.constant(data.astype(numpy_dtype(dtype)))

    def finish(self, most: int = 6) -> None:
        """Results for what nothing reads, and for a few others."""
        unread = [v for v in self.pool if not v.port.destinations]
        inner = [v for v in self.pool if v.port.destinations and v.port.node.type != "Parameter"]
        some = [v for v in inner if not self.d.integer(0, 9)]
        for k, value in enumerate((unread[-most:] + some) or self.pool[-1:]):
            self.graph.add(Result(), value.port, name=f"y{k}")


Step = Callable[[Growing], object]


def grow(made: Growing, steps: int, kinds: tuple[Step, ...]) -> None:
    """So many steps; those that do not fit are drawn again, a few times."""
    tries = 6 * steps
    while steps and tries:
        tries -= 1
        try:
            made.d.pick(kinds)(made)
            steps -= 1
        except Refused:
            continue
