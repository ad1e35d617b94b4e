"""Lookup tables whose keys and values are constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.conversion.scopes import Handle, Scope, Table, Value, foreign
from aot.frontends.tf.graph.importer import Importer, rule
from aot.frontends.tf.graph.nets import Item
from aot.ir.graph import OutPort
from aot.ir.types import Array
from runtime.errors import CorruptError, UnsupportedError

__all__ = ["FILLERS", "Table"]

FILLERS = ("InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2")


@rule("HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2")
def table(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    return [Handle(item.text("shared_name") or name)]


@rule(*FILLERS)
def fill(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    """Keys and values become the table's; those that are no constants leave it unknown."""
    if len(inputs) < 3:
        raise CorruptError(f"{item.kind}: a table, keys and values are inputs, got {len(inputs)}")
    keys, values = (_data(v) for v in inputs[1:3])
    if keys is not None and values is not None:
        if keys.shape[:1] != values.shape[:1]:
            raise CorruptError(f"{item.kind}: as many values as keys, got {values.shape} and {keys.shape}")
        self.tables[self.handle(inputs[0], item).name] = (keys, values)
    return []


def _data(value: Value) -> Array | None:
    return value.node.data if isinstance(value, OutPort) else None


@rule("LookupTableFind", "LookupTableFindV2")
def find(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    """A foreign lookup whose inputs are keys, values, what is looked up, and the default; a constant where all are."""
    keys, values = _known(self, item, inputs)
    wanted, default = (_data(v) for v in inputs[1:3]) if len(inputs) > 2 else (None, None)
    if wanted is not None and default is not None:
        return [self.constant(scope, _looked_up(keys, values, wanted, default), name)]
    ports = [self.constant(scope, a, f"{name}/{what}") for a, what in ((keys, "keys"), (values, "values"))]
    given = [self.given(v, scope, item.kind) for v in inputs[1:]]
    return [foreign(scope, "LookupTableFindV2", *ports, *given, name=name, file=self.file)]


def _looked_up(keys: Array, values: Array, wanted: Array, default: Array) -> Array:
    """Return the value of each key that is there, and the default elsewhere; texts, too."""
    places: dict[object, int] = {}
    for i, key in enumerate(keys.reshape(-1).tolist()):
        places.setdefault(key, i)
    if len(places) > len(values) or default.shape not in ((), values.shape[1:]):
        rule = "a value for each key, and a default like one of them"
        raise CorruptError(f"LookupTableFindV2: {rule}, got {values.shape}, {keys.shape} and {default.shape}")
    at = np.array([places.get(key, -1) for key in wanted.reshape(-1).tolist()], np.int64)
    rows = np.concatenate([values, np.broadcast_to(default, (1, *values.shape[1:])).astype(values.dtype)])
    return rows[at].reshape(*wanted.shape, *values.shape[1:])


@rule("LookupTableSize", "LookupTableSizeV2")
def size(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    return [self.constant(scope, np.array(len(_known(self, item, inputs)[0]), np.int64), name)]


def _known(self: Importer, item: Item, inputs: Sequence[Value]) -> Table:
    handle = self.handle(inputs[0] if inputs else None, item)
    if handle.name not in self.tables:
        raise UnsupportedError(f"{item.kind}: tables that are filled with constants are supported, got {handle.name!r}")
    return self.tables[handle.name]
