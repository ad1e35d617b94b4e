"""Strings become numbers: a tensor of strings becomes three tensors, because kernels handle numbers only.

    x: string[n]   ->   x.begins: i32[n]   x.ends: i32[n]   x.symbols: u8[x.bytes]

String k is the text in bytes begins[k] to ends[k] of symbols. Operations that move strings move begins and ends. At a
Result or StringTensorUnpack the bytes are written one string after another, and invalid places are detected.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

from aot.codegen.ir.loops import Var
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import ViewOp
from aot.ir.origin import Origin
from aot.ir.types import TensorType
from aot.opset.base.decomposition import numbers
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.strings import StringPlaces, StringSymbols, StringTensorPack, StringTensorUnpack
from aot.opset.elementwise.comparison import Select
from aot.opset.movement.gather import GatherElements, Gathering, GatheringND
from aot.opset.movement.shape import ShapeOf
from aot.runtime.abi import DType
from aot.runtime.arrays.strings import PARTS, encode
from aot.runtime.errors import UnsupportedError

MOVING = (ViewOp, Gathering, GatherElements, GatheringND, Select)


class Spelled(NamedTuple):
    """A tensor of strings as three tensors of numbers."""

    begins: OutPort
    ends: OutPort
    symbols: OutPort


class SpellStrings:
    """Pass that replaces strings by numbers; UnsupportedError for operations that do not only move strings."""

    name = "lower_strings"
    required = True
    run_not_recursively = True  # strings inside of bodies are inputs or outputs of the node outside

    def __call__(self, graph: Graph) -> bool:
        if not any(o.dtype is DType.STRING for node in graph.nodes.values() for o in node.operands()):
            return False
        nodes = [node for node in graph.order() if any(map(_is_string, _ports(node)))]
        run = _Run(graph)
        for node in nodes:
            run.node(node)
        for listed in (graph.parameters, graph.results):
            listed[:] = dict.fromkeys(new for old in listed for new in run.ends.get(old.id, [old]))
        for node in reversed(nodes):
            graph.remove(node)
        return bool(nodes)


lower_strings = SpellStrings()


def _ports(node: Node) -> list[OutPort]:
    return [p for p in (*node.sources(), *node.out_ports().values()) if p is not None]


def _is_string(port: OutPort) -> bool:
    return port.type.dtype is DType.STRING


class _Run:
    """One run over a graph; `ends`: replacements of a Parameter or Result, by its id."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.spelled: dict[OutPort, Spelled] = {}
        self.ends: dict[int, list[Node]] = {}

    def node(self, node: Node) -> None:
        """Create numbers for all strings that a node produces, and connect its consumers to them."""
        build, ports = self._build(node), list(node.out_ports().values())
        constants = [port.value for port in ports if _is_string(port)]
        match node.op:
            case Parameter():
                self.spelled[ports[0]] = self._parameter(node)
            case Result():
                self._result(node)
            case StringTensorUnpack():
                for port, part in zip(ports, self._written(build, node.source(0)), strict=True):
                    port.replace_by(part)
            case _ if constants and all(value is not None for value in constants):
                for port in ports:
                    self.spelled[port] = _constant(build, port)
            case StringTensorPack():
                self.spelled[ports[0]] = Spelled(node.source(0), node.source(1), node.source(2))
            case ShapeOf():
                ports[0].replace_by(build(node.op, self.spelled[node.source(0)].begins))
            case _ if isinstance(node.op, MOVING):
                self._move(build, node)
            case _:
                text = "strings can be packed, unpacked and moved, nothing else"
                raise UnsupportedError(f"{node.type} {_origin(node).layers[0]!r}: {text}")

    def _build(self, node: Node) -> Builder:
        return Builder(self.graph, _origin(node))

    def _parameter(self, node: Node) -> Spelled:
        def part(name: str, type: TensorType) -> OutPort:
            new_node = self.graph.add(Parameter(type.dtype, type.dims), name=f"{node.name}.{name}", origin=node.origin)
            new_node.out_port(0).names = tuple(f"{own}.{name}" for own in names)
            self.graph.strings[new_node.id] = node.name
            return new_node.out_port(0)

        port, names = node.out_port(0), node.out_port(0).names
        begins, ends, symbols = PARTS
        text = TensorType(DType.U8, (self._size(node),))
        positions = TensorType(DType.I32, port.shape)
        parameter = Spelled(part(begins, positions), part(ends, positions), part(symbols, text))
        self.ends[node.id] = [p.node for p in parameter]
        return parameter

    def _size(self, node: Node) -> Var:
        """Return a symbol for the number of bytes of an input's strings."""
        shapes = (p.out_port(0).shape for p in self.graph.parameters)
        taken = {d.name for shape in shapes for d in shape if isinstance(d, Var)}
        name = re.sub(r"\W", "_", f"_{node.name}" if node.name[:1].isdigit() else node.name, flags=re.ASCII) + ".bytes"
        while name in taken:
            name += "_"
        return Var(name)

    def _result(self, node: Node) -> None:
        source = node.source(0)
        names = tuple(dict.fromkeys((*node.out_port(0).names, *source.names))) or (node.name,)
        parts = self._written(self._build(source.node), source)
        self.ends[node.id] = [self.graph.add(Result(), p, origin=node.origin) for p in parts]
        for new_node, name in zip(self.ends[node.id], PARTS, strict=True):
            new_node.out_port(0).names = tuple(f"{own}.{name}" for own in names)
            self.graph.strings[new_node.id] = names[0]

    def _written(self, build: Builder, port: OutPort) -> Spelled:
        """Build the strings with their bytes stored contiguously, in order."""
        begins, ends, symbols = self.spelled[port]
        places = build.node(StringPlaces(), begins, ends, symbols, outputs=3)
        first, last, counts = places.out_ports().values()
        return Spelled(first, last, build(StringSymbols(), begins, ends, symbols, counts))

    def _move(self, build: Builder, node: Node) -> None:
        """Apply the operation to begins and to ends; the symbols of several inputs are concatenated."""
        used = [self.spelled[p] for p in node.sources() if p is not None and _is_string(p)]
        joined = iter(used if len(used) == 1 else _joined(build, used))
        inputs = [next(joined) if p is not None and _is_string(p) else p for p in node.sources()]
        symbols = next(p.symbols for p in inputs if isinstance(p, Spelled))
        count = len(node.out_ports())
        begins = build.node(node.op, *(p.begins if isinstance(p, Spelled) else p for p in inputs), outputs=count)
        ends = build.node(node.op, *(p.ends if isinstance(p, Spelled) else p for p in inputs), outputs=count)
        for k, port in node.out_ports().items():
            self.spelled[port] = Spelled(begins.out_port(k), ends.out_port(k), symbols)


def _origin(node: Node) -> Origin:
    """Return the origin of a node, or one with its own name, for errors at run time."""
    return node.origin if node.origin.layers else Origin((node.name,), node.origin.file)


def _constant(build: Builder, port: OutPort) -> Spelled:
    assert port.value is not None
    begins, ends, symbols = encode(port.value)
    return Spelled(build.const(begins, DType.I32), build.const(ends, DType.I32), build.const(symbols, DType.U8))


def _joined(build: Builder, used: list[Spelled]) -> list[Spelled]:
    """Concatenate the symbols, and shift the places of each input to the start of its symbols."""
    symbols = build.Concat(*(one.symbols for one in used), axis=0)
    sizes = [build.Squeeze(build.ShapeOf(one.symbols, output_type=DType.I64), numbers(build, [0])) for one in used]
    starts = accumulate(sizes[:-1], build.Add, initial=build.const(0, DType.I64))
    pairs = zip(used, starts, strict=True)
    return [Spelled(_moved(build, one.begins, at), _moved(build, one.ends, at), symbols) for one, at in pairs]


def _moved(build: Builder, positions: OutPort, start: OutPort) -> OutPort:
    return build.Add(build.Convert(positions, destination_type=DType.I64), start)
