"""Operations on variables: reads take the value at their place, writes set it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aot.frontends.conversion.scopes import Handle, Saved, Scope, Value, foreign
from aot.frontends.tf.files.tensors import shape_of
from aot.frontends.tf.graph.importer import Importer, rule
from aot.frontends.tf.graph.nets import Item
from aot.ir.graph import OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.runtime.errors import CorruptError

_UPDATES = {"AssignAddVariableOp": "AddV2", "AssignSubVariableOp": "Sub", "AssignAdd": "AddV2", "AssignSub": "Sub"}
_ROWS = ("Update", "Add", "Sub", "Max", "Min")


def _attrs(item: Item, *names: str) -> dict[str, Any]:
    """Whole numbers among the attributes of an item."""
    return {name: item.attrs[name].i for name in names if name in item.attrs}


def _check_count(item: Item, inputs: Sequence[Value], count: int) -> None:
    """Raise CorruptError for fewer inputs than an operation has."""
    if len(inputs) < count:
        raise CorruptError(f"{item.kind}: {count} inputs, got {len(inputs)} in {item.name!r}")


@rule("VarHandleOp")
def var_handle(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    return [_handle(self, item, name)]


@rule("Variable", "VariableV2")
def variable(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    return [_handle(self, item, name, reference=True)]


def _handle(self: Importer, item: Item, name: str, reference: bool = False) -> Handle:
    """Return the handle of a variable; its shape is kept."""
    handle = Handle(item.text("shared_name") or name, reference)
    if "shape" in item.attrs:
        self.shapes[handle.name] = shape_of(item.attrs["shape"].shape, f"{self.file}: variable {handle.name!r}")
    return handle


@rule("ReadVariableOp")
def read(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    _check_count(item, inputs, 1)
    return [foreign(scope, "Identity", self.read(self.handle(inputs[0], item), scope), name=name, file=self.file)]


@rule("VarIsInitializedOp", "IsVariableInitialized")
def is_initialized(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    return [self.constant(scope, np.array(True), name)]


@rule("DestroyResourceOp")
def destroy(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    return []


@rule("AssignVariableOp", "Assign")
def assign(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    _check_count(item, inputs, 2)
    handle, value = self.handle(inputs[0], item), inputs[1]
    if isinstance(value, Saved):
        self.saved[handle.name] = value
    else:
        scope.set(handle.name, self.tensor_of(value, scope, item.kind))
    return [handle]


@rule(*_UPDATES)
def update(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    _check_count(item, inputs, 2)
    handle = self.handle(inputs[0], item)
    before, by = self.read(handle, scope), self.tensor_of(inputs[1], scope, item.kind)
    scope.set(handle.name, foreign(scope, _UPDATES[item.kind], before, by, name=name, file=self.file))
    return [handle]


@rule("ResourceGather")
def gather(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    _check_count(item, inputs, 2)
    axis = self.constant(scope, np.array(item.integer("batch_dims"), np.int32), f"{name}/axis")
    x, at = self.read(self.handle(inputs[0], item), scope), self.tensor_of(inputs[1], scope, item.kind)
    return [foreign(scope, "GatherV2", x, at, axis, name=name, file=self.file, **_attrs(item, "batch_dims"))]


@rule("ResourceGatherNd")
def gather_nd(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    _check_count(item, inputs, 2)
    x, at = self.read(self.handle(inputs[0], item), scope), self.tensor_of(inputs[1], scope, item.kind)
    return [foreign(scope, "GatherNd", x, at, name=name, file=self.file)]


@rule(*(f"ResourceScatter{kind}" for kind in _ROWS), *(f"Scatter{kind}" for kind in _ROWS))
def scatter(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    """Rows of a variable: indices are along its first axis."""
    _check_count(item, inputs, 3)
    last = self.constant(scope, np.array(-1, np.int32), f"{name}/last")
    at = foreign(
        scope, "ExpandDims", self.tensor_of(inputs[1], scope, item.kind), last, name=f"{name}/rows", file=self.file
    )
    kind = item.kind.removeprefix("Resource").removeprefix("Scatter")
    return _scattered(self, item, scope, inputs, at, f"TensorScatter{kind}", name)


@rule(*(f"ResourceScatterNd{kind}" for kind in _ROWS), *(f"ScatterNd{kind}" for kind in _ROWS))
def scatter_nd(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    _check_count(item, inputs, 3)
    kind = item.kind.removeprefix("Resource").removeprefix("ScatterNd")
    at = self.tensor_of(inputs[1], scope, item.kind)
    return _scattered(self, item, scope, inputs, at, f"TensorScatter{kind}", name)


def _scattered(
    self: Importer, item: Item, scope: Scope, inputs: list[Value], at: OutPort, kind: str, name: str
) -> Sequence[Value]:
    handle = self.handle(inputs[0], item)
    x, updates = self.read(handle, scope), self.tensor_of(inputs[2], scope, item.kind)
    scope.set(handle.name, foreign(scope, kind, x, at, updates, name=name, file=self.file))
    return [handle]


@rule("ResourceStridedSliceAssign", "StridedSliceAssign")
def strided_slice_assign(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    _check_count(item, inputs, 5)
    handle = self.handle(inputs[0], item)
    rest = [self.tensor_of(v, scope, item.kind) for v in inputs[1:5]]
    masks = _attrs(item, "begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    port = foreign(
        scope, "TensorStridedSliceUpdate", self.read(handle, scope), *rest, name=name, file=self.file, **masks
    )
    scope.set(handle.name, port)
    return [handle]


# ---- checkpoints


@rule("RestoreV2")
def restore(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    """Tensors of the checkpoint, read when a variable that takes one is."""
    _check_count(item, inputs, 3)
    keys, parts = (self.texts(v, item) for v in inputs[1:3])
    return [Saved(key, part) for key, part in zip(keys, parts, strict=False)]


@rule("MergeV2Checkpoints", "SaveV2", "ShardedFilename")
def saving(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    """Leave out operations that write files; a file name that has consumers is unsupported."""
    op = Foreign("tf", item.kind, (("unsupported", "an inference writes no files"),))
    node = scope.graph.add(op, name=name, origin=Origin((name,), self.file))
    return [node.out_port(0)] if item.kind == "ShardedFilename" else []
