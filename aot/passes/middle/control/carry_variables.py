"""Variables used in bodies, or of dynamic size, become values threaded through the graph.

    loop {                              v = kept value of "v", s = is set
      old = ReadValue("v", first)       v, s = loop(v, s) {
      Assign("v", f(old))         ->      old = s ? v : first        Select, or If where sizes differ
    }                                     v = f(old), s = true
                                        }
                                        Assign("v", v) if s

A read in a body sees assignments by earlier operations and iterations; assignments of the network itself take effect in
the next inference. A branch that does not run assigns nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeGuard

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import Op, Stateful
from aot.ir.types import TensorType
from aot.opset.control.control_flow import If, Iterating
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.opset.control.state import DYNAMIC, Assign, AssignCarried, IsSet, KeptSizes, KeptValue, Read, ReadValue_6
from aot.passes.front.scope_region_symbols import scope_region_symbols
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, InternalError


def carry_variables(graph: Graph) -> bool:
    """Replace the operations on these variables by threaded values."""
    for node in graph.nodes.values():
        if node.regions:
            _infer(node)
    inner = {_id(n) for node in graph.nodes.values() for body in node.regions.values() for n in _users(body)}
    users: dict[str, list[Node]] = {}
    for node in _users(graph):
        users.setdefault(_id(node), []).append(node)
    types = {id: _type(nodes) for id, nodes in users.items()}
    selected = {id: t for id, t in types.items() if id in inner or DYNAMIC in t.dims}
    if not selected:
        return False
    walk = _Walk(graph, selected)
    walk.run()
    walk.keep()
    scope_region_symbols(graph)
    return True


@dataclass(frozen=True, slots=True)
class _Type:
    element_type: DType
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Now:
    """State of a variable at one point of the graph: whether it is set, and its value."""

    known: OutPort
    value: OutPort


def _users(graph: Graph) -> Iterator[Node]:
    """Yield all operations on variables as found in files, also in bodies."""
    for node in graph.order():
        if isinstance(node.op, Read | Assign):
            yield node
        for body in node.regions.values():
            yield from _users(body)


def _infer(node: Node) -> None:
    """Infer the types of bodies from the node around them; errors are raised later, where the types are needed."""
    with suppress(AotError):
        node.operands()


def _id(node: Node) -> str:
    assert isinstance(node.op, Stateful)
    return node.op.variable_id


def _type(users: list[Node]) -> _Type:
    """Return the type of the variable that these operations use.

    A dimension varies unless it is declared or one number at all reads and assignments. Inference assumes that the
    kept value has the initial size: this is right if all assignments have that size.
    """
    declared = [TensorType(op.variable_type, op.variable_shape) for n in users if _declares(op := n.op)]
    types: list[TensorType] = []
    failed: AotError | None = None
    for node in users:
        try:
            types.append(node.out_port(0).type)
        except AotError as error:  # sizes differ from the initial ones
            failed = error
    if failed is not None and not declared:
        raise failed
    first = (declared or types)[0]
    dims = list(first.shape)
    for k, n in enumerate(dims):
        others = {t.shape[k] for t in types if t.rank == len(dims)}
        if not declared or not isinstance(n, int):
            dims[k] = others.pop() if len(others) == 1 and failed is None else DYNAMIC
    return _Type(first.dtype, tuple(n if isinstance(n, int) else DYNAMIC for n in dims))


def _declares(op: Op) -> TypeGuard[ReadValue_6]:
    return isinstance(op, ReadValue_6) and op.variable_shape is not None


class _Walk:
    """Walk of one graph, operation by operation. `now`: the variables it was given; None for the network."""

    def __init__(self, graph: Graph, types: Mapping[str, _Type], now: dict[str, _Now] | None = None) -> None:
        self.graph, self.types, self.top = graph, types, now is None
        self.now = {} if now is None else now
        self.later: dict[str, _Now] = {}

    def run(self) -> None:
        for node in self.graph.order():
            build = Builder(self.graph, node.origin)
            if isinstance(node.op, Read | Assign):
                if node.op.variable_id in self.types:
                    (self._assign if node.type == "Assign" else self._read)(build, node, node.op.variable_id)
            elif node.regions:
                used = [id for id in self.types if any(_id(n) == id for b in node.regions.values() for n in _users(b))]
                if used:
                    self._through(build, node, {id: self._current(build, id) for id in used})

    def keep(self) -> None:
        """Assign the final values; a variable of dynamic size is always written, because it moves when others do."""
        for id, last in (self.now | self.later).items():
            op = AssignCarried(id, self.types[id].element_type, self.types[id].dims)
            if op.varying or not isinstance(last.known.node.op, IsSet):
                self.graph.add(op, last.value, last.known, origin=last.value.node.origin)

    def _current(self, build: Builder, id: str) -> _Now:
        """Return the variable as it is now; in the network, before any assignment, the value of earlier inferences."""
        if id not in self.now:
            if not self.top:
                raise InternalError(f"variable {id!r}: bodies are given what they use")
            about = (id, self.types[id].element_type, self.types[id].dims)
            sizes = [build(KeptSizes(*about))] if DYNAMIC in about[2] else []
            self.now[id] = _Now(build(IsSet(*about)), build(KeptValue(*about), *sizes))
        return self.now[id]

    def _read(self, build: Builder, node: Node, id: str) -> None:
        now = self._current(build, id)
        value = now.value
        if node.in_ports():
            first = node.source(0)
            type = self.types[id]
            fixed = DYNAMIC not in type.dims
            value = build.Select(now.known, value, first) if fixed else _either(build, now, first, type.element_type)
        node.out_port(0).replace_by(value)
        self.graph.remove(node)

    def _assign(self, build: Builder, node: Node, id: str) -> None:
        if self.top:
            self._current(build, id)
        (self.later if self.top else self.now)[id] = _Now(build.const(True, DType.BOOL), node.source(0))
        node.out_port(0).replace_by(node.source(0))
        self.graph.remove(node)

    def _through(self, build: Builder, node: Node, states: dict[str, _Now]) -> None:
        """Rebuild the node with inputs for variables that its bodies use, and outputs for those that they assign."""
        op = node.op
        sources = [p for p in node.sources() if p is not None]
        first_inputs = {id: len(sources) + 2 * k for k, id in enumerate(states)}
        sources += [p for now in states.values() for p in (now.known, now.value)]
        inner = {key: self._walk_body(body, states) for key, body in node.regions.items()}
        changed = [id for id in states if any(walk.now[id] != start[id] for walk, start in inner.values())]
        count = len(node.out_ports())
        maps = {key: self._maps(walk, start, first_inputs, changed, count) for key, (walk, start) in inner.items()}
        copied = self.graph.add(
            _with_maps(op, maps), *sources, name=node.name, origin=node.origin, outputs=count + 2 * len(changed)
        )
        copied.regions = node.regions
        node.regions = {}
        for k, port in node.out_ports().items():
            copied.out_port(k).add_tensor_names(port.names)
            port.replace_by(copied.out_port(k))
        self.graph.remove(node)
        copied.name = node.name
        for k, id in enumerate(changed):
            self.now[id] = _Now(copied.out_port(count + 2 * k), copied.out_port(count + 2 * k + 1))

    def _walk_body(self, body: Graph, given: Mapping[str, _Now]) -> tuple[_Walk, dict[str, _Now]]:
        """Walk a body with parameters for the variables added; returns the walk and those parameters."""
        start: dict[str, _Now] = {}
        for id in given:
            types = DType.BOOL, self.types[id].element_type
            known, value = (body.add(Parameter(t, None), name=f"{id}.{n}") for n, t in zip(_PARTS, types, strict=True))
            start[id] = _Now(known.out_port(0), value.out_port(0))
        walk = _Walk(body, self.types, dict(start))
        walk.run()
        return walk, start

    @staticmethod
    def _maps(
        walk: _Walk, start: Mapping[str, _Now], first_inputs: Mapping[str, int], changed: list[str], count: int
    ) -> _Maps:
        body = walk.graph
        inputs: list[InputMap] = []
        outputs: list[OutputMap] = []
        edges: list[BackEdge] = []
        for id, first in first_inputs.items():
            parameters = [body.parameters.index(p.node) for p in (start[id].known, start[id].value)]
            inputs += [InputMap(first + k, at) for k, at in enumerate(parameters)]
            if id in changed:
                for port, parameter in zip((walk.now[id].known, walk.now[id].value), parameters, strict=True):
                    body.add(Result(), port)
                    outputs.append(OutputMap(count + len(outputs), len(body.results) - 1))
                    edges.append(BackEdge(len(body.results) - 1, parameter))
        return _Maps(tuple(inputs), tuple(outputs), tuple(edges))


_PARTS = ("known", "value")


@dataclass(frozen=True, slots=True)
class _Maps:
    """Additions to the maps of one body for the variables."""

    inputs: tuple[InputMap, ...]
    outputs: tuple[OutputMap, ...]
    edges: tuple[BackEdge, ...]


def _with_maps(op: object, more: Mapping[str, _Maps]) -> If | Iterating:
    match op:
        case If():
            then, other = more["then"], more["else"]
            return replace(
                op,
                then_inputs=op.then_inputs + then.inputs,
                then_outputs=op.then_outputs + then.outputs,
                else_inputs=op.else_inputs + other.inputs,
                else_outputs=op.else_outputs + other.outputs,
            )
        case Iterating():
            maps = more["body"]
            return replace(
                op,
                input_maps=op.input_maps + maps.inputs,
                output_maps=op.output_maps + maps.outputs,
                back_edges=op.back_edges + maps.edges,
            )
        case _:
            raise InternalError(f"{type(op).__name__}: bodies are those of If, Loop and TensorIterator")


def _either(build: Builder, now: _Now, first: OutPort, element_type: DType) -> OutPort:
    """Build If(known) {value} {first}; its branches may differ in size."""
    maps = [((InputMap(k, 0),), (OutputMap(0, 0),)) for k in (1, 2)]
    node = build.node(If(*maps[0], *maps[1]), now.known, now.value, first)
    for name in ("then", "else"):
        body = Graph(name)
        body.add(Result(), body.add(Parameter(element_type, None)).out_port(0))
        node.regions[name] = body
    return node.out_port(0)
