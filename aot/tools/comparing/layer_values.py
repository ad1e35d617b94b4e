"""Values of a model that can be compared: outputs of its layers, by the names of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.ir.graph import Graph, Node, OutPort
from aot.opset.control.infrastructure import Parameter, Result
from aot.options import CompileOptions
from aot.passes.front.cut import tensors_by_name
from aot.runtime.abi import DType
from aot.runtime.arrays.files import Arrays
from aot.tools.comparing.alone import alone

UNKNOWN_SIZE = 256  # elements that are assumed along an axis that the model itself computes


@dataclass(frozen=True, slots=True)
class Layer:
    """A value that a layer computes. `name`: its tensor's, or the layer's if its tensor has none.

    `layer`, `kind`: name and operation of the layer in the file; `tensors`: all names of the value; `sources`: names of
    the values that the layer reads; `shape`: text; `size`: bytes, assumed if dynamic.
    """

    name: str
    layer: str
    kind: str
    tensors: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    dtype: DType = DType.F32
    shape: str = ""
    size: int = 0


def layers_of(model: Path, options: CompileOptions, inputs: Arrays) -> list[Layer]:
    """Return the layers of a model that depend on its inputs, in execution order; strings are left out.

    `inputs`: arrays whose shapes give the sizes.
    """
    turned = {name for name, _ in options.layouts}  # shapes are given as the file has them
    shapes = tuple((name, array.shape) for name, array in inputs.items() if name not in turned)
    compilation = alone(model, replace(options, shapes=shapes, dims=()))
    layers = list(_named_layers(compilation.imported))
    known = tensors_by_name(compilation.converted)
    pairs = [(one, port_of(one, known)) for one in layers]
    return [_typed(one, port) for one, port in pairs if port is not None and _is_array(port)]


def port_of(layer: Layer, known: Mapping[str, OutPort]) -> OutPort | None:
    """Return the output that computes a layer's value, of a graph with `known` tensors; None if none does."""
    return next((known[name] for name in (*layer.tensors, layer.name) if name in known), None)


def batches(layers: Iterable[Layer], most: int) -> Iterator[list[Layer]]:
    """Cut layers into runs of at most `most` bytes each; a layer that is larger is one run."""
    run, size = list[Layer](), 0
    for one in layers:
        if run and size + one.size > most:
            yield run
            run = list[Layer]()
            size = 0
        run.append(one)
        size += one.size
    if run:
        yield run


def _named_layers(graph: Graph) -> Iterator[Layer]:
    """Give each value of the network itself one name; a value without one of its own has the name of its layer."""
    known: dict[OutPort, set[str]] = {}
    for name, port in tensors_by_name(graph).items():
        known.setdefault(port, set()).add(name)
    varying = _varying(graph)
    names: dict[OutPort, str] = {}
    for node in graph.order():
        if node.id not in varying or isinstance(node.op, Parameter | Result):
            continue
        sources = tuple(names[port] for port in node.sources() if port in names)
        for port in node.out_ports().values():
            own = [name for name in (node.name, *port.names) if name in known.get(port, ())]
            if own:
                names[port] = own[0]
                yield Layer(own[0], node.name, node.type, port.names, sources)


def _varying(graph: Graph) -> set[int]:
    """Return the nodes that depend on an input or a variable."""
    varying: set[int] = set()
    for node in graph.order():
        sources: Sequence[OutPort | None] = node.sources()
        if (
            isinstance(node.op, Parameter)
            or any(s is not None and s.node.id in varying for s in sources)
            or _state(node)
        ):
            varying.add(node.id)
    return varying


def _state(node: Node) -> bool:
    return bool(getattr(node.op, "variable_id", ""))


def _is_array(port: OutPort) -> bool:
    return port.type.dims is not None and port.type.dtype is not DType.STRING


def _typed(layer: Layer, port: OutPort) -> Layer:
    elements = prod(d if isinstance(d, int) else UNKNOWN_SIZE for d in port.shape)
    size = elements * port.type.dtype.stored_bytes
    return replace(layer, dtype=port.type.dtype, shape=str(port.type), size=size)
