"""If, Loop, TensorIterator: operations that hold networks, and how values go in and out of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Const, Expr, Var, prim, select
from aot.ir.conditions import axis_of
from aot.ir.graph import Graph
from aot.ir.op import RegionOp
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, differs, numpy_dtype
from aot.opset.control.infrastructure import Parameter
from aot.opset.control.port_maps import (
    BackEdge,
    InputMap,
    OutputMap,
    check_slices,
    in_order,
    part_count,
    part_of,
    whole_parts,
)
from aot.runtime.errors import InternalError, ShapeError, UnsupportedError

Regions = Mapping[str, Graph]
Arrays = Sequence[Array | None]
Sliced = Sequence[tuple["InputMap", Array]]
Run = Callable[[Graph, Sequence[Array]], list[Array]]

UNLIMITED_ITERATIONS = 1 << 62  # iterations


BRANCHES = ("then", "else")


@op("opset8")
class If(RegionOp):
    """Input 0 chooses between the regions `then` and `else`; sizes that differ are those of the one that runs.

    If ranks differ, the condition must hold: only `then` fits the consumers of the outputs, see `unify_branch_ranks`.
    `only` names the region that must run because the other one fits neither the inputs nor the consumers of outputs.
    """

    then_inputs: tuple[InputMap, ...] = ()
    then_outputs: tuple[OutputMap, ...] = ()
    else_inputs: tuple[InputMap, ...] = ()
    else_outputs: tuple[OutputMap, ...] = ()
    only: str = ""

    def infer(self, *given: Operand | Regions | None) -> tuple[TensorType, ...]:
        operands, regions = _split(given)
        truth = known_truth(operands[0])
        if self.only or truth is not None:
            name = self.only or BRANCHES[not truth]
            if truth is not None and BRANCHES[not truth] != name:
                raise ShapeError(f"If: region {name} must run, because the other one does not fit, got {truth}")
            self.chosen(operands[0])  # requests the condition's symbol: the region that runs is checked
            return self._branch_types(name, operands, regions)
        then, other = (self._branch_types(name, operands, regions) for name in BRANCHES)
        condition = self.chosen(operands[0])
        if _differ_in_type(then, other):
            return then
        return tuple(_either(condition, a, b) for a, b in zip(then, other, strict=True))

    def required(self, regions: Regions) -> str:
        """Return the only region that can be compiled and must run: `only`, `then` if ranks differ, or empty."""
        if self.only:
            return self.only
        sides = zip(("then", "else"), (self.then_outputs, self.else_outputs), strict=True)
        then, other = ([regions[n].results[m.result].out_port(0).type for m in in_order(maps)] for n, maps in sides)
        return "then" if _differ_in_type(then, other) else ""

    def chosen(self, condition: Operand) -> Dim:
        """Return the condition as a number: not 0 if `then` runs."""
        return condition.dims("If: condition")[0]

    def _branch_types(self, name: str, operands: Sequence[Operand], regions: Regions) -> tuple[TensorType, ...]:
        inputs, outputs = self.maps(name)
        enter("If", regions[name], {m.parameter: operands[m.external] for m in inputs})
        return tuple(regions[name].results[m.result].out_port(0).type for m in in_order(outputs))

    def maps(self, name: str) -> tuple[tuple[InputMap, ...], tuple[OutputMap, ...]]:
        """Return the port maps of region `then` or `else`."""
        return (self.then_inputs, self.then_outputs) if name == "then" else (self.else_inputs, self.else_outputs)

    def reference(self, arrays: Arrays, regions: Regions, run: Run) -> tuple[Array, ...]:
        name = "then" if _known(arrays[0]).reshape(-1)[0] else "else"
        if self.only not in ("", name):
            raise ShapeError(f"If: region {self.only} must run, got {name}")
        inputs, outputs = self.maps(name)
        results = run(regions[name], [_known(arrays[m.external]) for m in sorted(inputs, key=lambda m: m.parameter)])
        return tuple(results[m.result] for m in in_order(outputs))


@dataclass(frozen=True)
class Iterating(RegionOp):
    """Base of operations that run region `body` several times."""

    input_maps: tuple[InputMap, ...] = ()
    output_maps: tuple[OutputMap, ...] = ()
    back_edges: tuple[BackEdge, ...] = ()

    def infer(self, *given: Operand | Regions | None) -> tuple[TensorType, ...]:
        operands, regions = _split(given)
        body = regions["body"]
        self._enter(operands, body)
        self.limit(operands, body)  # requests its symbols
        count = self.iterations(operands, body)
        outside = outer_symbols(operands)
        return tuple(self._output_type(body, m, count, outside) for m in in_order(self.output_maps))

    def _enter(self, operands: Sequence[Operand], body: Graph) -> None:
        """Set the body's parameters; replace carried sizes that change by symbols until the types are stable."""
        carried = {e.parameter: e.result for e in self.back_edges}
        inputs = {m.parameter: _part(operands[m.external], m) for m in self.input_maps}
        inputs |= {i: Operand(inputs[i].type) for i in carried}
        inputs |= self.counted(body)
        while True:
            enter(self.type, body, inputs)
            wider = {i: self._widened(body, i, inputs[i].type, r) for i, r in carried.items()}
            if all(wider[i] == inputs[i].type for i in carried):
                return
            inputs |= {i: Operand(type) for i, type in wider.items()}

    def _widened(self, body: Graph, parameter: int, before: TensorType, result: int) -> TensorType:
        """Return a type that fits a carried value before and after an iteration: sizes that differ become symbols."""
        after = body.results[result].out_port(0).type
        if after.dtype is not before.dtype or after.rank != before.rank:
            raise ShapeError(f"{self.type}: a carried value must keep its type and rank, got {before} and then {after}")
        sizes = [carried_size(body, parameter, k) for k in range(before.rank)]
        rows = zip(before.shape, after.shape, sizes, strict=True)
        return TensorType(before.dtype, tuple(b if b in (a, size) else size for b, a, size in rows))

    def _output_type(self, body: Graph, m: OutputMap, count: Dim | None, outside: frozenset[Var]) -> TensorType:
        type = body.results[m.result].out_port(0).type
        if m.axis is None:
            edge = next((e for e in self.back_edges if e.result == m.result), None)
            if edge is not None:
                return body.parameters[edge.parameter].out_port(0).type
            sizes = (
                d if is_constant_size(d, outside) else last_size(body, m.result, k) for k, d in enumerate(type.shape)
            )
            return TensorType(type.dtype, tuple(sizes))
        axis = axis_of(m.axis, type.rank, f"{self.type}: collected output")
        if not all(is_constant_size(d, outside) for d in type.shape):
            raise UnsupportedError(f"{self.type}: parts of a collected output must have equal sizes, got {type}")
        dims = list(type.shape)
        dims[axis] = dims[axis] * (counter(body) if count is None else count)
        return TensorType(type.dtype, tuple(dims))

    def iterations(self, operands: Sequence[Operand], body: Graph) -> Dim | None:
        """Return the number of iterations if it is known at the start; None if a condition in the body decides."""
        return self.limit(operands, body)

    def limit(self, operands: Sequence[Operand], body: Graph) -> Dim:
        """Return the most iterations that the inputs allow: the least number of parts of a sliced input."""
        del body
        parts = [part_count(m, operands[m.external].shape[m.axis]) for m in self.input_maps if m.axis is not None]
        if not parts:
            raise ShapeError(f"{self.type}: one of its inputs must be sliced, got none")
        return _least(parts)

    def counted(self, body: Graph) -> dict[int, Operand]:
        """Return the operand of the parameter that counts iterations, if there is one."""
        del body
        return {}

    def going(self, body: Graph) -> Dim:
        """Return the body's condition as a number: not 0 if another iteration may follow."""
        del body
        return 1

    def reference(self, arrays: Arrays, regions: Regions, run: Run) -> tuple[Array, ...]:
        body = regions["body"]
        values = {m.parameter: _known(arrays[m.external]) for m in self.input_maps if m.axis is None}
        sliced = [(m, _known(arrays[m.external])) for m in self.input_maps if m.axis is not None]
        history: list[list[Array]] = []
        while self.goes_on(len(history), arrays, sliced, history):
            for m, whole in sliced:
                values[m.parameter] = part_of(whole, m, len(history))
            self.count(values, body, len(history))
            results = run(body, [values[i] for i in range(len(body.parameters))])
            history.append(results)
            values |= {e.parameter: results[e.result] for e in self.back_edges}
        return tuple(self._output(m, body, values, history) for m in in_order(self.output_maps))

    def goes_on(self, done: int, arrays: Arrays, sliced: Sliced, history: list[list[Array]]) -> bool:
        """True if another iteration follows `done` ones."""
        del arrays, history
        return all(done < whole_parts(m, whole) for m, whole in sliced)

    def count(self, values: dict[int, Array], body: Graph, done: int) -> None:
        """Set the parameter that counts, if there is one."""

    def _output(self, m: OutputMap, body: Graph, values: dict[int, Array], history: list[list[Array]]) -> Array:
        if m.axis is not None:
            parts = [results[m.result] for results in history]
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

    `current_iteration`: index of the parameter that counts; `execution_condition`: of the deciding result; -1: none.
    """

    current_iteration: int = -1
    execution_condition: int = -1

    def iterations(self, operands: Sequence[Operand], body: Graph) -> Dim | None:
        return self.limit(operands, body) if isinstance(self.going(body), int) else None

    def limit(self, operands: Sequence[Operand], body: Graph) -> Dim:
        first = known_truth(operands[1])
        if first is False:
            return 0
        bound = self._trips(operands[0], self.going(body))
        if any(m.axis is not None for m in self.input_maps):
            bound = _least([bound, super().limit(operands, body)])
        return bound if first else select(prim("ne", operands[1].dims("Loop: condition")[0], 0), bound, 0)

    def _trips(self, operand: Operand, going: Dim) -> Dim:
        """Return the iterations by input 0; a negative one is no limit, or 0 if nothing else can end the loop."""
        trips = operand.dims("Loop: number of iterations")[0]
        if going == 0:
            return _least([1, self._trips(operand, -1)])
        if not isinstance(trips, int):
            return prim("max", trips, 0) if going == 1 else select(prim("lt", trips, 0), UNLIMITED_ITERATIONS, trips)
        if trips < 0 and going == 1:
            raise UnsupportedError("Loop: it must end by its condition or after a number of iterations, got neither")
        return trips if trips >= 0 else UNLIMITED_ITERATIONS

    def going(self, body: Graph) -> Dim:
        if self.execution_condition < 0:
            return 1
        port = body.results[self.execution_condition].source(0)
        return port.node.operands()[port.idx].dims("Loop: condition")[0]

    def counted(self, body: Graph) -> dict[int, Operand]:
        if self.current_iteration < 0:
            return {}
        declared = body.parameters[self.current_iteration].op
        if not isinstance(declared, Parameter):
            raise InternalError(f"Loop: parameters are of type Parameter, got {declared}")
        shape = declared.shape or ()
        number = np.full([1] * len(shape), counter(body), object)
        return {self.current_iteration: Operand(TensorType(declared.element_type, (1,) * len(shape)), number)}

    def goes_on(self, done: int, arrays: Arrays, sliced: Sliced, history: list[list[Array]]) -> bool:
        trips = int(_known(arrays[0]).reshape(-1)[0])
        if 0 <= trips <= done or not super().goes_on(done, arrays, sliced, history):
            return False
        if not history or self.execution_condition < 0:
            return bool(_known(arrays[1]).reshape(-1)[0])
        return bool(history[-1][self.execution_condition].reshape(-1)[0])

    def count(self, values: dict[int, Array], body: Graph, done: int) -> None:
        if self.current_iteration >= 0:
            type = body.parameters[self.current_iteration].out_port(0).type
            values[self.current_iteration] = np.full(type.static_shape, done, numpy_dtype(type.dtype))


def _split(inputs: Sequence[Operand | Regions | None]) -> tuple[list[Operand], Regions]:
    operands = [g for g in inputs if isinstance(g, Operand)]
    regions = inputs[-1] if inputs else None
    if regions is None or isinstance(regions, Operand) or len(operands) != len(inputs) - 1:
        raise InternalError("a node with regions gives all its inputs, then its regions")
    return operands, regions


def known_truth(operand: Operand) -> bool | None:
    """Return the one element of a condition if it is known at compile time."""
    value = operand.value
    return None if value is None or value.dtype == object else bool(value.reshape(-1)[0])


def _known(array: Array | None) -> Array:
    if array is None:
        raise InternalError("inputs of an operation with regions must be connected")
    return array


def enter(what: str, body: Graph, operands: Mapping[int, Operand]) -> None:
    """Give the body's parameters their operands; nodes of the body are inferred again where these changed."""
    for i, operand in operands.items():
        node = body.parameters[i]
        if not isinstance(node.op, Parameter):
            raise InternalError(f"{what}: parameters are of type Parameter, got {node.type}")
        declared = TensorType(node.op.element_type, node.op.shape)
        if not _fits(declared, operand.type):
            raise ShapeError(f"{what}: parameter {node.name!r} is {declared}, got {operand.type}")
        node.set_given_operand(operand)


def _fits(declared: TensorType, type: TensorType) -> bool:
    if declared.dtype is not type.dtype:
        return False
    if declared.dims is None:
        return True
    pairs = zip_longest(declared.dims, type.shape)
    return all(d is not None and n is not None and not (isinstance(n, int) and differs(d, n)) for d, n in pairs)


def _differ_in_type(then: Sequence[TensorType], other: Sequence[TensorType]) -> bool:
    return any(a.rank != b.rank for a, b in zip(then, other, strict=True))


def _either(condition: Dim, one: TensorType, other: TensorType) -> TensorType:
    """Return the type of a result of one of two branches; sizes that differ are selected by the condition."""
    if one.dtype is not other.dtype:
        raise ShapeError(f"If: branches must give equal element types, got {one} and {other}")
    truth = prim("ne", condition, 0)
    dims = zip(one.shape, other.shape, strict=True)
    return TensorType(one.dtype, tuple(a if a == b else select(truth, a, b) for a, b in dims))


# ---- symbols of a body: its scope makes them unique


def _symbol(body: Graph, what: str) -> Var:
    return Var(f"{body.scope}{what}")


def counter(body: Graph) -> Var:
    """Return the symbol of the current iteration; after the loop, of the number of iterations."""
    return _symbol(body, "i")


def carried_size(body: Graph, parameter: int, axis: int) -> Var:
    """Return the symbol of a dimension of a carried value that changes."""
    return _symbol(body, f"p{parameter}.d{axis}")


def last_size(body: Graph, result: int, axis: int) -> Var:
    """Return the symbol of a dimension that changes of the last iteration's result."""
    return _symbol(body, f"r{result}.d{axis}")


def outer_symbols(operands: Sequence[Operand]) -> frozenset[Var]:
    """Return the symbols of sizes outside of the body."""
    dims = [d for o in operands for d in o.shape]
    values = [v for o in operands if o.value is not None and o.value.dtype == object for v in o.value.reshape(-1)]
    return variables(*(d for d in (*dims, *values) if isinstance(d, Expr)))


def is_constant_size(dim: Dim, outside: frozenset[Var]) -> bool:
    """True if a size is the same in every iteration."""
    return isinstance(dim, int) or variables(dim) <= outside


def _part(operand: Operand, m: InputMap) -> Operand:
    if m.axis is None:
        return operand
    type = operand.type
    dims = list(type.shape)
    axis = axis_of(m.axis, type.rank, "sliced input")
    check_slices(m, dims[axis])
    dims[axis] = m.part_size
    return Operand(TensorType(type.dtype, tuple(dims)))


def _least(sizes: Sequence[Dim]) -> Dim:
    fixed_sizes = [n for n in sizes if isinstance(n, int)]
    least: Expr | None = Const(min(fixed_sizes)) if fixed_sizes else None
    for n in sizes:
        if not isinstance(n, int):
            least = n if least is None else prim("min", least, n)
    return min(fixed_sizes) if least is None or isinstance(least, Const) else least
