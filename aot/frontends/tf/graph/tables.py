"""Lookup tables with constant keys and values, or with those in a file of the SavedModel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.conversion.scopes import Handle, Scope, Table, Value, foreign
from aot.frontends.tf.files.assets import Columns, read_lines, table_of
from aot.frontends.tf.files.element_types import element_type
from aot.frontends.tf.graph.importer import Importer, data_of, rule
from aot.frontends.tf.graph.nets import Item
from aot.runtime.errors import CorruptError

__all__ = ["FILE_FILLERS", "FILLERS", "Table"]

CUT = "make what is looked up an input of the network: --cut"

FILLERS = ("InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2")
FILE_FILLERS = ("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")


@rule("HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2")
def table(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    handle = Handle(item.text("shared_name") or name)
    self.table_types[handle.name] = item.type("key_dtype"), item.type("value_dtype")
    return [handle]


@rule(*FILLERS)
def fill(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    """Keys and values become the table's; those that are no constants leave it unknown."""
    if len(inputs) < 3:
        raise CorruptError(f"{item.kind}: a table, keys and values must be inputs, got {len(inputs)}")
    keys, values = (data_of(v) for v in inputs[1:3])
    if keys is not None and values is not None:
        if keys.ndim != 1 or keys.shape != values.shape:
            raise CorruptError(
                f"{item.kind}: there must be a vector of keys and a value for each, got {keys.shape}, {values.shape}"
            )
        self.tables[self.handle(inputs[0], item).name] = (keys, values)
    return []


@rule(*FILE_FILLERS)
def fill_from_file(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    """Lines of an asset become keys and values; a table of another file stays unknown."""
    if len(inputs) < 2:
        raise CorruptError(f"{item.kind}: a table and the name of a file must be inputs, got {len(inputs)}")
    filled, paths = self.handle(inputs[0], item).name, self.texts(inputs[1], item)
    if self.folder is None or paths[:1] != paths or paths[0] not in self.assets:
        self.unfilled[filled] = f"tables are filled with constants or from assets of a SavedModel, got {paths}"
        return []
    columns = Columns(
        item.integer("key_index"),
        item.integer("value_index"),
        item.text("delimiter"),
        item.integer("offset"),
        item.integer("vocab_size"),
    )
    key, value = (element_type(t) for t in self.table_types.get(filled, (0, 0)))
    self.tables[filled] = table_of(read_lines(self.folder, paths[0]), columns, key, value, f"asset {paths[0]!r}")
    return []


@rule("LookupTableFind", "LookupTableFindV2")
def find(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    """A foreign lookup with four inputs: keys, values, the keys to look up, and the default."""
    if len(inputs) < 3:
        raise CorruptError(f"{item.kind}: a table, keys and a default must be inputs, got {len(inputs)}")
    tensors = [self.tensor_of(v, scope, item.kind) for v in inputs[1:3]]
    known, reason = _known(self, item, inputs)
    if known is None:
        return [foreign(scope, "LookupTableFindV2", *tensors, name=name, file=self.file, unsupported=reason)]
    ports = [self.constant(scope, a, f"{name}/{what}") for a, what in zip(known, ("keys", "values"), strict=True)]
    return [foreign(scope, "LookupTableFindV2", *ports, *tensors, name=name, file=self.file)]


@rule("LookupTableSize", "LookupTableSizeV2")
def size(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    known, reason = _known(self, item, inputs)
    if known is None:
        return [foreign(scope, "LookupTableSizeV2", name=name, file=self.file, unsupported=reason)]
    return [self.constant(scope, np.array(len(known[0]), np.int64), name)]


def _known(self: Importer, item: Item, inputs: Sequence[Value]) -> tuple[Table | None, str]:
    """Return the table; without one, why it is not known."""
    name = self.handle(inputs[0] if inputs else None, item).name
    rule = f"tables that are filled with constants or from assets are supported, got {name!r}"
    return self.tables.get(name), f"{self.unfilled.get(name, rule)}: {CUT}"
