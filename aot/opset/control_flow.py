"""If, Loop, TensorIterator: operations that hold networks, and how values go in and out of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aot.ir.graph import Graph
from aot.ir.op import Operand, RegionOp, op
from aot.ir.types import Array, Dim, TensorType, numpy_dtype
from codegen.expressions import rewrite
from codegen.loops import Expr, Var, as_expr
from runtime.abi import DType
from runtime.errors import InternalError, ShapeError, UnsupportedError

Regions = Mapping[str, Graph]
Arrays = Sequence[Array | None]
Sliced = Sequence[tuple["InputMap", Array]]
Run = Callable[[Graph, Sequence[Array]], list[Array]]


@dataclass(frozen=True, slots=True)
class InputMap:
    """Input `external` of the node is parameter `parameter` of the body.

    With an axis, each iteration reads the next `part_size` of it, from `start` to `end`, both included; negative
    numbers count from the end, and a negative stride goes backwards.
    """

    external: int
    parameter: int
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1


@dataclass(frozen=True, slots=True)
class OutputMap:
    """Result `result` of the body is output `external` of the node: its last value, or all of them along an axis."""

    external: int
    result: int
    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1


@dataclass(frozen=True, slots=True)
class BackEdge:
    """Result `result` of one iteration is parameter `parameter` of the next."""

    result: int
    parameter: int


@op("opset8")
class If(RegionOp):
    """Input 0 chooses between the regions `then` and `else`."""

    then_inputs: tuple[InputMap, ...] = ()
    then_outputs: tuple[OutputMap, ...] = ()
    else_inputs: tuple[InputMap, ...] = ()
    else_outputs: tuple[OutputMap, ...] = ()

    def infer(self, *given: Operand | Regions | None) -> tuple[TensorType, ...]:
        operands, regions = _split(given)
        condition = operands[0].value
        both = [self._branch_types(name, operands, regions) for name in _BRANCHES]
        if condition is not None:
            return both[0 if condition.reshape(-1)[0] else 1]
        for one, other in zip(*both, strict=True):
            if one != other:
                raise UnsupportedError(f"If: branches must give equal types, got {one} and {other}")
        return both[0]

    def _branch_types(self, name: str, operands: Sequence[Operand], regions: Regions) -> tuple[TensorType, ...]:
        inputs, outputs = self.maps(name)
        types = _result_types("If", regions[name], {m.parameter: operands[m.external].type for m in inputs})
        return tuple(types[m.result] for m in _in_order(outputs))

    def maps(self, name: str) -> tuple[tuple[InputMap, ...], tuple[OutputMap, ...]]:
        """Of region `then` or `else`."""
        return (self.then_inputs, self.then_outputs) if name == "then" else (self.else_inputs, self.else_outputs)

    def reference(self, arrays: Arrays, regions: Regions, run: Run) -> tuple[Array, ...]:
        name = "then" if _known(arrays[0]).reshape(-1)[0] else "else"
        inputs, outputs = self.maps(name)
        found = run(regions[name], [_known(arrays[m.external]) for m in sorted(inputs, key=lambda m: m.parameter)])
        return tuple(found[m.result] for m in _in_order(outputs))


_BRANCHES = ("then", "else")


@dataclass(frozen=True)
class Iterating(RegionOp):
    """Runs region `body` several times."""

    input_maps: tuple[InputMap, ...] = ()
    output_maps: tuple[OutputMap, ...] = ()
    back_edges: tuple[BackEdge, ...] = ()

    def infer(self, *given: Operand | Regions | None) -> tuple[TensorType, ...]:
        operands, regions = _split(given)
        body = regions["body"]
        types = {m.parameter: _part(operands[m.external].type, m) for m in self.input_maps}
        results = _result_types(self.type, body, types)
        for edge in self.back_edges:
            if results[edge.result] != types[edge.parameter]:
                raise UnsupportedError(
                    f"{self.type}: a value must keep its type from one iteration to the next, "
                    f"got {types[edge.parameter]} and {results[edge.result]}"
                )
        count = self.iterations(operands, body)
        return tuple(_collected(self.type, results[m.result], m, count) for m in _in_order(self.output_maps))

    def iterations(self, operands: Sequence[Operand], body: Graph) -> Dim | None:
        """How often the body runs; None if that is known at run time only."""
        for m in self.input_maps:
            if m.axis is not None:
                shape = operands[m.external].shape
                return _steps(m, shape[m.axis])
        return None

    def reference(self, arrays: Arrays, regions: Regions, run: Run) -> tuple[Array, ...]:
        body = regions["body"]
        values = {m.parameter: _known(arrays[m.external]) for m in self.input_maps if m.axis is None}
        sliced = [(m, _known(arrays[m.external])) for m in self.input_maps if m.axis is not None]
        history: list[list[Array]] = []
        while self.goes_on(len(history), arrays, sliced, history):
            for m, whole in sliced:
                values[m.parameter] = _part_of(whole, m, len(history))
            self.count(values, body, len(history))
            found = run(body, [values[i] for i in range(len(body.parameters))])
            history.append(found)
            values |= {e.parameter: found[e.result] for e in self.back_edges}
        return tuple(self._output(m, body, values, history) for m in _in_order(self.output_maps))

    def goes_on(self, done: int, arrays: Arrays, sliced: Sliced, history: list[list[Array]]) -> bool:
        """Whether another iteration follows `done` ones."""
        return all(done < _steps(m, whole.shape[m.axis or 0]) for m, whole in sliced)  # type: ignore[operator]

    def count(self, values: dict[int, Array], body: Graph, done: int) -> None:
        """Sets the parameter that counts, if there is one."""

    def _output(self, m: OutputMap, body: Graph, values: dict[int, Array], history: list[list[Array]]) -> Array:
        if m.axis is not None:
            parts = [found[m.result] for found in history]
            if not parts:
                type = body.results[m.result].out_port(0).type
                shape = list(type.static_shape)
                shape[m.axis] = 0
                return np.zeros(shape, numpy_dtype(type.dtype))
            return np.concatenate(parts if m.stride > 0 else parts[::-1], m.axis)
        if history:
            return history[-1][m.result]
        edges = [e for e in self.back_edges if e.result == m.result]
        if not edges:
            raise UnsupportedError(f"{self.type}: an output of a loop that never ran has no value")
        return values[edges[0].parameter]


@op("opset1")
class TensorIterator(Iterating):
    """Runs region `body` for each slice of its sliced inputs."""


@op("opset5")
class Loop(Iterating):
    """Runs region `body` at most input 0 times (-1: no limit), as long as a condition, at first input 1, holds.

    `current_iteration` is the parameter that counts, `execution_condition` the result that decides; -1: there is none.
    """

    current_iteration: int = -1
    execution_condition: int = -1

    def iterations(self, operands: Sequence[Operand], body: Graph) -> Dim | None:
        trips = operands[0].value
        if trips is None or self.execution_condition < 0:
            return None
        going = body.results[self.execution_condition].source(0).value
        first = operands[1].value
        if going is None or first is None:
            return None
        count = operands[0].dims("Loop: number of iterations")[0]
        if not first.reshape(-1)[0]:
            return 0
        if not going.reshape(-1)[0]:
            return 1 if isinstance(count, int) and count else None
        return None if isinstance(count, int) and count < 0 else count

    def goes_on(self, done: int, arrays: Arrays, sliced: Sliced, history: list[list[Array]]) -> bool:
        trips = int(_known(arrays[0]).reshape(-1)[0])
        if 0 <= trips <= done:
            return False
        if not history or self.execution_condition < 0:
            return bool(_known(arrays[1]).reshape(-1)[0])
        return bool(history[-1][self.execution_condition].reshape(-1)[0])

    def count(self, values: dict[int, Array], body: Graph, done: int) -> None:
        if self.current_iteration >= 0:
            type = body.parameters[self.current_iteration].out_port(0).type
            values[self.current_iteration] = np.full(type.static_shape, done, numpy_dtype(type.dtype))


def _split(given: Sequence[Operand | Regions | None]) -> tuple[list[Operand], Regions]:
    operands = [g for g in given if isinstance(g, Operand)]
    regions = given[-1] if given else None
    if regions is None or isinstance(regions, Operand) or len(operands) != len(given) - 1:
        raise InternalError("a node with regions gives all its inputs, then its regions")
    return operands, regions


def _in_order(maps: Iterable[OutputMap]) -> list[OutputMap]:
    return sorted(maps, key=lambda m: m.external)


def _known(array: Array | None) -> Array:
    if array is None:
        raise InternalError("inputs of an operation with regions must be connected")
    return array


def _result_types(what: str, body: Graph, given: Mapping[int, TensorType]) -> list[TensorType]:
    """Types of the body's results, where its parameters have the types `given`: its symbols are replaced."""
    change: dict[Expr, Expr] = {}
    for i, type in given.items():
        declared = body.parameters[i].out_port(0).type
        if declared.dtype is not type.dtype or declared.rank != type.rank:
            raise ShapeError(f"{what}: parameter {body.parameters[i].name!r} is {declared}, got {type}")
        for d, n in zip(declared.shape, type.shape, strict=True):
            if isinstance(d, Var):
                change.setdefault(d, as_expr(n, DType.I64))
            elif d != n and isinstance(n, int):
                raise ShapeError(f"{what}: parameter {body.parameters[i].name!r} is {declared}, got {type}")
    types = [r.out_port(0).type for r in body.results]
    return [TensorType(t.dtype, tuple(d if isinstance(d, int) else rewrite(d, change) for d in t.shape)) for t in types]


def _part(type: TensorType, m: InputMap) -> TensorType:
    if m.axis is None:
        return type
    if not -type.rank <= m.axis < type.rank:
        raise ShapeError(f"sliced input: axis {m.axis} is out of range for {type}")
    dims = list(type.shape)
    dims[m.axis] = m.part_size
    return TensorType(type.dtype, tuple(dims))


def _collected(what: str, type: TensorType, m: OutputMap, count: Dim | None) -> TensorType:
    if m.axis is None:
        return type
    if count is None:
        raise UnsupportedError(f"{what}: the number of iterations must be known at compile time to collect outputs")
    dims = list(type.shape)
    dims[m.axis] = count * dims[m.axis]
    return TensorType(type.dtype, tuple(dims))


def _steps(m: InputMap, size: Dim) -> Dim:
    """Parts that a sliced input of this size has."""
    start = size + m.start if m.start < 0 else m.start
    end = size + m.end if m.end < 0 else m.end
    covered = end - start + 1 if m.stride > 0 else start - end + 1
    return covered // max(m.part_size, 1)


def _part_of(whole: Array, m: InputMap, step: int) -> Array:
    axis = m.axis or 0
    size = whole.shape[axis]
    start = m.start + size if m.start < 0 else m.start
    begin = start + step * m.part_size if m.stride > 0 else start - (step + 1) * m.part_size + 1
    return np.take(whole, range(begin, begin + m.part_size), axis)
