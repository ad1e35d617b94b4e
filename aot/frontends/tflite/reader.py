"""Reads TensorFlow Lite files (.tflite).

    file -> tables, checked -> sub-graph 0 or that of a signature -> Graph of tflite.*

Names of inputs and outputs are those of the signature; without one, those of the tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.scopes import Scope, SizeNames
from aot.frontends.tflite import regions
from aot.frontends.tflite.importer import Importer, Value
from aot.frontends.tflite.metadata import described
from aot.frontends.tflite.nets import Nets
from aot.frontends.tflite.schema import Table, corrupt, root
from aot.frontends.tflite.tensors import PACKED, Stored
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.ir.types import Shape
from aot.opset.control.infrastructure import Parameter, Result
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.regular import read_file

__all__ = ["read", "regions"]

VERSIONS = (3,)  # versions of the schema that are read
DEFAULT_SIGNATURE = "serving_default"


@dataclass(slots=True)
class Interface:
    """Numbers of tensors of a sub-graph, and their names for users."""

    graph: int = 0
    names: dict[int, str] = field(default_factory=dict[int, str])  # of inputs
    outputs: dict[int, str] = field(default_factory=dict[int, str])


def read(path: Path, signature: str | None = None) -> Graph:
    """Return the network of a file in dialect `tflite`.

    CorruptError for a file that is damaged; UsageError for a signature that there is not. What single operators lack is
    found by the pass that converts them.
    """
    return read_bytes(read_file(path, "model"), path, signature)


def read_bytes(data: bytes, path: Path, signature: str | None = None) -> Graph:
    """Return the network in the bytes of a file, see `read`. `path`: what the file is called."""
    with corrupt(path.name, "a table"):
        model = root(data, path.name)
        version = model.number("Version")
        if version not in VERSIONS:
            raise CorruptError(f"{path.name}: version 3 of the schema can be read, got {version}")
        nets = Nets(model, data, path.name)
        return _graph(nets, _interface(model, path.name, signature), path)


def _interface(model: Table, file: str, name: str | None) -> Interface:
    """Return the signature that the user names, else sub-graph 0's, the default one first."""
    tables = {s.text("SignatureKey"): s for s in model.tables("SignatureDefs")}
    if name is not None and name not in tables:
        raise UsageError(f"--signature: {file} has the signatures {', '.join(tables) or 'none'}, got {name!r}")
    first = [key for key, s in tables.items() if s.number("SubgraphIndex") == 0]
    key = name if name is not None else DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in first else (first or [None])[0]
    if key is None:
        return Interface()
    table = tables[key]
    sides = ({m.number("TensorIndex"): m.text("Name") for m in table.tables(side)} for side in ("Inputs", "Outputs"))
    return Interface(table.number("SubgraphIndex"), *sides)


def _graph(nets: Nets, interface: Interface, path: Path) -> Graph:
    net = nets[interface.graph]
    graph = Graph(name=path.stem, file=path.name)
    scope, importer, inputs = Scope(graph), Importer(nets), _Inputs(path.name)
    args: list[Value] = [inputs.parameter(graph, net.tensors[n], interface.names.get(n)) for n in net.inputs]
    if not net.outputs:
        raise CorruptError(f"{path.name}: a network must have outputs, got none")
    results = importer.run(interface.graph, args, scope, "")
    for n, value in zip(net.outputs, results, strict=True):
        tensor = net.tensors[n].facts.name
        name = interface.outputs.get(n, tensor)
        node = graph.add(Result(), importer.tensor(value, "output"), name=name, origin=Origin((name,), path.name))
        node.out_port(0).names = tuple(dict.fromkeys((name, tensor)))
    scope.keep_variables(list(scope.written), importer.first, importer.file)
    graph.rt_info["about"] = described(nets)
    return graph


@dataclass(slots=True)
class _Inputs:
    """Parameters of inputs; sizes that vary get names."""

    file: str
    names: SizeNames = field(default_factory=SizeNames)

    def parameter(self, graph: Graph, stored: Stored, name: str | None) -> OutPort:
        facts = stored.facts
        name = name or facts.name
        origin = Origin((name,), self.file)
        try:
            dtype = DType(facts.type)
        except ValueError:
            dtype = DType.STRING
        if dtype in (DType.STRING, *PACKED):
            op = Foreign("tflite", "Input", (("unsupported", f"inputs of type {facts.type} are not supported"),))
            return graph.add(op, name=name, origin=origin).out_port(0)
        shape = self._shape(name, facts.shape, stored.size)
        port = graph.add(Parameter(dtype, shape), name=name, origin=origin).out_port(0)
        port.names = tuple(dict.fromkeys((name, facts.name)))
        return port

    def _shape(self, name: str, sizes: Sequence[int], first: Sequence[int]) -> Shape:
        """Return the shape of a tensor: the batch that the file has, 1 as a rule; other sizes of -1 may vary."""
        if -1 not in sizes[1:]:
            return tuple(first)
        return tuple(d if d >= 0 else self.names.symbol(f"{name}.d{i}") for i, d in enumerate(sizes))
