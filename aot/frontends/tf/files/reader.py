"""Reads TensorFlow files: GraphDef (.pb, .pbtxt), MetaGraph (.meta) and the folder of a SavedModel.

    file -> nodes, functions, interface, checkpoint -> Graph of tf.*

Names of inputs and outputs are the keys of the signature; without one, inputs are placeholders and outputs are nodes
that have no consumers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.scopes import Scope, SizeNames, Value, foreign
from aot.frontends.tf.files.element_types import element_type
from aot.frontends.tf.files.messages import GraphDef, MetaGraphDef, parsed, parsed_text
from aot.frontends.tf.files.restore import INIT_SIGNATURE, Stored, stored
from aot.frontends.tf.files.saved_model import meta_graph
from aot.frontends.tf.files.tensors import Sizes, shape_of
from aot.frontends.tf.graph import regions, tables, variables
from aot.frontends.tf.graph.frames import EXITS
from aot.frontends.tf.graph.functions import check_inlined
from aot.frontends.tf.graph.importer import Importer
from aot.frontends.tf.graph.nets import Item, Net, Output, graph_net, output_count, reference
from aot.frontends.tf.graph.switches import SWITCHES
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.ir.types import Shape
from aot.opset.control.infrastructure import Parameter, Result
from aot.runtime.errors import CorruptError, UnsupportedError, UsageError

__all__ = ["read", "regions", "tables", "variables"]

PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
DEFAULT_SIGNATURE = "serving_default"
# Nodes that nothing reads and that are no outputs: they check, print, save, or belong to training
_NO_OUTPUTS = frozenset(
    "Const VarHandleOp Variable VariableV2 ReadVariableOp VarIsInitializedOp Assign ShardedFilename RestoreV2".split()
) | {"IsVariableInitialized", *PLACEHOLDERS}


@dataclass(slots=True)
class Interface:
    """Inputs and outputs by name, as outputs of items; types of inputs that a signature declares."""

    inputs: dict[str, Output] = field(default_factory=dict[str, Output])
    outputs: dict[str, Output] = field(default_factory=dict[str, Output])
    declared: dict[str, Any] = field(default_factory=dict[str, Any])  # TensorInfo of inputs


def read(path: Path, signature: str | None = None) -> Graph:
    """Return the network of a file or of a SavedModel's folder, in dialect `tf`.

    CorruptError for a file that is damaged; UsageError for a signature that there is not. What single nodes lack is
    found by the pass that converts them.
    """
    if path.is_dir() or path.name in ("saved_model.pb", "saved_model.pbtxt"):
        folder = path if path.is_dir() else path.parent
        return _from_meta(meta_graph(folder), folder.name, folder / "variables" / "variables", folder, signature)
    if path.suffix == ".meta":
        meta = parsed(MetaGraphDef, path.read_bytes(), path.name)
        return _from_meta(meta, path.name, path.with_suffix(""), path.parent, signature)
    if signature is not None:
        raise UsageError(f"--signature: {path.name} is a graph without signatures, got {signature!r}")
    text = path.suffix == ".pbtxt"
    graph = parsed_text(GraphDef, path) if text else parsed(GraphDef, path.read_bytes(), path.name)
    if not graph.node:
        raise CorruptError(f"{path.name}: a graph must have nodes, got none")
    net = graph_net(graph, path.name)
    return _graph(graph, net, path.name, _ends(net, path.name), Stored(path.name))


def _from_meta(meta: Any, file: str, prefix: Path, folder: Path, signature: str | None) -> Graph:
    net = graph_net(meta.graph_def, file)
    entry = _signature(meta, file, signature)
    interface = _ends(net, file) if entry is None else _declared(net, entry, file)
    return _graph(meta.graph_def, net, file, interface, stored(meta, net, file, prefix, folder))


def _signature(meta: Any, file: str, name: str | None) -> Any:
    """Return the signature that the user names, else the default one or the only one; None if the file has none."""
    known = sorted(key for key in meta.signature_def if key != INIT_SIGNATURE)
    if name is None and not known:
        return None
    used_name = name or (DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in known else known[0] if len(known) == 1 else None)
    if used_name not in known:
        shown = ", ".join(known) or "none"
        got = "none that is named" if used_name is None else repr(used_name)
        raise UsageError(f"--signature: {file} has no such signature: must be one of {shown}, got {got}")
    return meta.signature_def[used_name]


def _declared(net: Net, signature: Any, file: str) -> Interface:
    """Return the interface of a signature; names are its keys."""
    interface = Interface()
    for side, infos in ((interface.inputs, signature.inputs), (interface.outputs, signature.outputs)):
        for key, info in sorted(infos.items()):
            if info.WhichOneof("encoding") != "name":
                raise UnsupportedError(
                    f"{file}: {key!r} of the signature must be dense, got a sparse or composite tensor"
                )
            side[key] = reference(net.items, info.name, f"signature, {key}", file)
    interface.declared = dict(signature.inputs)
    if not interface.outputs:
        raise UnsupportedError(f"{file}: a signature must have outputs, got none: choose another with --signature")
    return interface


def _ends(net: Net, file: str) -> Interface:
    """Return placeholders, and the outputs of nodes that nothing reads or waits for."""
    interface = Interface()
    consumed = {item for other in net.items.values() for item in other.above()}
    read_loops = {_loop_of(item) for item in consumed if item.kind in EXITS}
    for name, item in net.items.items():
        if item.kind in PLACEHOLDERS:
            interface.inputs[name] = (item, 0)
        is_unread_state = item.kind in EXITS and _loop_of(item) in read_loops
        if item not in consumed and item.kind not in _NO_OUTPUTS and not (_is_pivot(item) or is_unread_state):
            interface.outputs |= {name if not i else f"{name}:{i}": (item, i) for i in range(output_count(item))}
    if not interface.outputs:
        raise UnsupportedError(
            f"{file}: a graph must have outputs, nodes that nothing reads, got none: name one with --cut"
        )
    return interface


def _loop_of(exit_item: Item) -> Item | None:
    """Return the LoopCond of the loop that an Exit leaves: TensorFlow 1 makes an Exit for each of a loop's states."""
    switch = exit_item.inputs[0][0] if exit_item.inputs else None
    return switch.inputs[1][0] if switch is not None and len(switch.inputs) == 2 else None


def _is_pivot(item: Item) -> bool:
    """True for a node of TensorFlow 1 that exists in a branch only: others of the branch may wait for it."""
    while item.kind == "Identity" and item.inputs:
        item = item.inputs[0][0]
    return item.kind in SWITCHES


def _graph(definition: Any, net: Net, file: str, interface: Interface, values: Stored) -> Graph:
    graph = Graph(name=Path(file).stem, file=file)
    scope = Scope(graph)
    functions = {f.signature.name: f for f in definition.library.function}
    check_inlined(definition.node, functions, file)
    importer = Importer(file, functions, values.value_of)
    values.fill_tables(importer, net)
    env: dict[Output, Value] = {}
    shapes = _Shapes(file)
    for name, output in interface.inputs.items():
        env[output] = shapes.parameter(graph, name, output[0], interface.declared.get(name))
    roots = Net(file, net.items, [], list(interface.outputs.values()), [])
    importer.visit(roots, env, scope, "")
    for name, output in zip(interface.outputs, roots.results, strict=True):
        port = importer.tensor_of(importer.get(env, output, name), scope, f"output {name!r}")
        result = graph.add(Result(), port, name=name, origin=Origin((name,), file))
        result.out_port(0).names = (name,) if ":" in name else (name, f"{name}:0")
    persistent = [name for name in scope.written if name in scope.firsts]  # others are always set before they are read
    for name in persistent:
        if importer.shapes.get(name):  # a value keeps the sizes of its variable, also where they follow from inputs
            shape = Sizes(importer.shapes[name] or ())
            scope.set(name, foreign(scope, "EnsureShape", scope.values[name], name=name, file=file, shape=shape))
    scope.keep_variables(persistent, importer.first, importer.file)
    for node in graph.nodes.values():
        for i, port in node.out_ports().items():
            if isinstance(node.op, Foreign) and port.destinations:
                port.names = (f"{node.name}:{i}",)  # as TensorFlow calls it; for --cut
    return graph


@dataclass(slots=True)
class _Shapes:
    """Types of inputs; sizes that are not known get names."""

    file: str
    names: SizeNames = field(default_factory=SizeNames)

    def parameter(self, graph: Graph, name: str, item: Item, declared: Any) -> OutPort:
        origin = Origin((name,), self.file)
        code = declared.dtype if declared is not None and declared.dtype else item.type("dtype")
        try:
            dtype = element_type(code)
        except UnsupportedError as error:
            op = Foreign("tf", "Placeholder", (("unsupported", str(error)),))
            return graph.add(op, name=name, origin=origin).out_port(0)
        port = graph.add(Parameter(dtype, self._shape(name, item, declared)), name=name, origin=origin).out_port(0)
        port.names = tuple(dict.fromkeys((name, f"{item.name}:0")))
        return port

    def _shape(self, name: str, item: Item, declared: Any) -> Shape | None:
        what = f"{self.file}: input {name!r}"
        found: Sequence[int] | None = None
        if declared is not None and declared.HasField("tensor_shape"):
            found = shape_of(declared.tensor_shape, what)
        elif "shape" in item.attrs:
            found = shape_of(item.attrs["shape"].shape, what)
        if found is None:
            return None
        return tuple(d if d >= 0 else self.names.symbol(f"{name}.d{i}") for i, d in enumerate(found))
