"""First values of variables: the nodes that restore a checkpoint say which tensor of it is which variable's.

AssignVariableOp(v, Identity(RestoreV2(prefix, ["dense/kernel"], [""])))     ->     v: "dense/kernel"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.scopes import Saved, Scope, Value
from aot.frontends.tf.files.assets import asset_files
from aot.frontends.tf.files.checkpoint import OBJECTS, Checkpoint
from aot.frontends.tf.files.messages import TrackableObjectGraph, parsed
from aot.frontends.tf.graph.functions import check_inlined
from aot.frontends.tf.graph.importer import CALLS, Importer
from aot.frontends.tf.graph.nets import Item, Net, Output, node_named, reference
from aot.frontends.tf.graph.tables import FILE_FILLERS, FILLERS
from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.runtime.errors import UnsupportedError

INIT_SIGNATURE = "__saved_model_init_op"
_INIT = ("saved_model_main_op", "legacy_init_op", "saved_model_init_op")


@dataclass(slots=True)
class Stored:
    """Values that lie beside a graph: variables in a checkpoint, tables in nodes that fill them."""

    file: str
    checkpoint: Checkpoint | None = None
    saved: Mapping[str, Saved] = field(default_factory=dict[str, Saved])
    bound: Mapping[str, str] = field(default_factory=dict[str, str])  # keys by variables of the graph, by objects
    names: Mapping[str, str] = field(default_factory=dict[str, str])  # keys by names of variables
    fillers: list[Item] = field(default_factory=list[Item])  # nodes that run when the model is loaded
    assets: Mapping[str, str] = field(default_factory=dict[str, str])  # files by the tensors that hold their paths
    folder: Path | None = None

    def value_of(self, name: str) -> Array | None:
        """Return the value of a variable; None if there is none."""
        if self.checkpoint is None:
            return None
        saved = self.saved.get(name)
        if saved is not None and saved.part:
            raise UnsupportedError(f"variable {name!r}: variables in several parts are not supported")
        for key in (saved.key if saved is not None else "", self.bound.get(name, ""), name, self.names.get(name, "")):
            if key and (key in self.checkpoint or saved is not None):
                return self.checkpoint.read(key)
        return None

    def fill_tables(self, importer: Importer, net: Net) -> None:
        """Let an importer know the tables that nodes fill when the model is loaded."""
        fillers = self.fillers or [i for i in net.items.values() if i.kind in (*FILLERS, *FILE_FILLERS)]
        if fillers:
            importer.assets, importer.folder = frozenset(self.assets.values()), self.folder
            _walk(importer, net, fillers, self.assets)


def stored(meta: Any, net: Net, file: str, prefix: Path, folder: Path) -> Stored:
    """Return the values of a MetaGraph. `prefix`: of its checkpoint, which a graph without variables may lack."""
    has_checkpoint = prefix.with_name(f"{prefix.name}.index").is_file()
    checkpoint = Checkpoint(prefix) if has_checkpoint else None
    functions = {f.signature.name: f for f in meta.graph_def.library.function}
    check_inlined(meta.graph_def.node, functions, file)
    importer = Importer(file, functions)
    restore = meta.saver_def.restore_op_name
    if checkpoint is not None and restore:
        _walk(importer, net, [node_named(net.items, restore, "saver", file)])
    fillers = [node_named(net.items, name, "initializer", file) for name in _initializers(meta)]
    bound, names = _bound_keys(meta, net, checkpoint), _keys(checkpoint)
    return Stored(file, checkpoint, importer.saved, bound, names, fillers, asset_files(meta, file), folder)


def _walk(importer: Importer, net: Net, items: Iterable[Item], texts: Mapping[str, str] | None = None) -> None:
    """Walk items for their effects on variables and tables; the resulting graph is thrown away.

    `texts`: values of tensors by their names.
    """
    scope, env = Scope(Graph()), dict[Output, Value]()
    for name, text in (texts or {}).items():
        env[reference(net.items, name, "asset", importer.file)] = importer.constant(scope, np.array(text, object), name)
    importer.visit(Net(net.name, net.items, [], [], list(items)), env, scope, "")


def _initializers(meta: Any) -> list[str]:
    """Nodes that run when the model is loaded."""
    names = [name for key in _INIT if key in meta.collection_def for name in meta.collection_def[key].node_list.value]
    if INIT_SIGNATURE in meta.signature_def:
        names += [info.name for info in meta.signature_def[INIT_SIGNATURE].outputs.values()]
    return names


def _keys(checkpoint: Checkpoint | None) -> dict[str, str]:
    """Keys of a checkpoint of objects by the full names of variables; names that several have are left out."""
    pairs = [(a.full_name, a.checkpoint_key) for node in _objects(checkpoint) for a in node.attributes if a.full_name]
    count = Counter(name for name, _ in pairs)
    return {name: key for name, key in pairs if count[name] == 1}


def _objects(checkpoint: Checkpoint | None) -> Sequence[Any]:
    """Return the objects of a checkpoint, the first one is the root; none without a graph of objects."""
    if checkpoint is None or OBJECTS not in checkpoint:
        return ()
    return parsed(TrackableObjectGraph, checkpoint.text(OBJECTS), checkpoint.index.name).nodes


def _bound_keys(meta: Any, net: Net, checkpoint: Checkpoint | None) -> dict[str, str]:
    """Return the checkpoint keys by the names of a graph's variables; names of objects may be ambiguous.

    A call of a concrete function ends with the variables that the function is bound to: its list of objects.
    """
    objects = _paired(meta.object_graph_def.nodes, _objects(checkpoint))
    functions, bound_keys = meta.object_graph_def.concrete_functions, dict[str, str]()
    for item in net.items.values():
        name = item.function("f") if item.kind in CALLS else ""
        bound: Sequence[int] = functions[name].bound_inputs if name in functions else ()
        for (handle, _), number in zip(reversed(item.inputs), reversed(bound), strict=False):
            keys = [a.checkpoint_key for a in objects[number].attributes] if number in objects else []
            if handle.kind == "VarHandleOp" and len(keys) == 1:
                bound_keys[handle.text("shared_name") or handle.name] = keys[0]
    return bound_keys


def _paired(model: Sequence[Any], checkpoint: Sequence[Any]) -> dict[int, Any]:
    """Return objects of a checkpoint by their numbers in a model: those that the same path of names leads to."""
    pairs, todo = dict[int, Any](), [(0, 0)]
    while todo:
        a, b = todo.pop()
        if a in pairs or not (0 <= a < len(model) and 0 <= b < len(checkpoint)):
            continue
        pairs[a] = checkpoint[b]
        numbers = {child.local_name: child.node_id for child in checkpoint[b].children}
        todo += [(c.node_id, numbers[c.local_name]) for c in model[a].children if c.local_name in numbers]
    return pairs
