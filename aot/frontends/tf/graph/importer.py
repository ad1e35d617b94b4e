"""Items become foreign operations of a graph: functions are inlined, variables become values, branches become regions.

    read = ReadVariableOp(v); AssignAddVariableOp(v, d)     ->     read = v0; v1 = AddV2(v0, d)

A variable is a value that changes on the way: the walk follows the order that control inputs demand, and reads take the
value that was set last. A loop carries the variables that it sets, an If gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.scopes import Handle, Saved, Scope, Table, Value, foreign
from aot.frontends.conversion.table import decorator
from aot.frontends.tf.files.element_types import COMPLEX
from aot.frontends.tf.files.tensors import array, attributes, complex_parts
from aot.frontends.tf.graph.frames import functional
from aot.frontends.tf.graph.functions import MAX_NODES
from aot.frontends.tf.graph.nets import ARGUMENT, Item, Net, Output, function_net, output_count
from aot.ir.graph import OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.ir.topological import producers_first
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant
from aot.runtime.errors import AotError, BudgetError, CorruptError, ModelError, UnsupportedError

MAX_DEPTH = 48  # functions within functions; each takes a few frames of Python's stack
CALLS = ("PartitionedCall", "StatefulPartitionedCall")
PASSES = ("Identity", "IdentityN")  # handles go through unchanged

Rule = Callable[["Importer", Item, Scope, list[Value], str], Sequence[Value]]
RULES: dict[
    str, Rule
] = {}  # rules of variables, tables and control flow by operation; the last input is the node's name


rule = decorator(RULES)  # registers the walk's functions for operations


def data_of(value: Value) -> Array | None:
    """Return the elements of a constant, also if it is read from a variable."""
    while isinstance(value, OutPort) and isinstance(value.node.op, Foreign) and value.node.op.kind in PASSES:
        value = value.node.source(value.idx)
    return value.node.data if isinstance(value, OutPort) else None


@dataclass(slots=True)
class Importer:
    """The walk over items. `functions`: FunctionDef by name; `value_of`: a variable's first value, None without one."""

    file: str
    functions: Mapping[str, Any]
    value_of: Callable[[str], Array | None] = lambda name: None
    shapes: dict[str, tuple[int, ...] | None] = field(default_factory=dict[str, tuple[int, ...] | None])  # of variables
    saved: dict[str, Saved] = field(default_factory=dict[str, Saved])  # variables that were set from the checkpoint
    tables: dict[str, Table] = field(default_factory=dict[str, Table])
    table_types: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])  # of keys and values
    unfilled: dict[str, str] = field(default_factory=dict[str, str])  # tables that are unknown, and why
    assets: frozenset[str] = frozenset()  # names of files of which tables may be filled
    folder: Path | None = None  # of the SavedModel
    calling: list[str] = field(default_factory=list[str])
    count: int = 0

    # ---- the walk

    def run(self, net: Net, args: Sequence[Value], scope: Scope, prefix: str) -> list[Value]:
        """Return the results of a net in the graph of `scope`."""
        if len(args) != len(net.arguments):
            raise CorruptError(f"{self.file}: {net.name!r} must have {len(net.arguments)} inputs, got {len(args)}")
        env: dict[Output, Value] = {(a, 0): v for a, v in zip(net.arguments, args, strict=True)}
        self.visit(net, env, scope, prefix)
        return [self.get(env, output, net.name) for output in net.results]

    def visit(self, net: Net, env: dict[Output, Value], scope: Scope, prefix: str) -> None:
        """Walk all that the results of a net need, and all that it keeps, in functional form."""
        functional(net, self.file)
        roots = [*net.kept, *(item for item, _ in net.results)]
        try:
            order = list(producers_first(roots, Item.above, lambda i: i.name))
        except ModelError as error:
            raise CorruptError(f"{self.file}: {net.name!r}: {error}") from error
        for item in order:
            if item.kind == ARGUMENT or (item, 0) in env:
                continue
            self.count += 1
            if self.count > MAX_NODES:
                raise BudgetError(
                    f"{self.file}: there can be at most {MAX_NODES} nodes once functions are inlined, got more"
                )
            inputs = [self.get(env, output, item.name) for output in item.inputs]
            try:
                outputs = self._item(item, scope, inputs, prefix)
            except AotError as error:
                error.add_note(f"in TensorFlow node {prefix + item.name!r} ({item.kind}) of {self.file}")
                raise
            env.update({(item, i): value for i, value in enumerate(outputs)})

    def get(self, env: Mapping[Output, Value], output: Output, reader: str) -> Value:
        """Return the value of an output that was walked."""
        if output not in env:
            item, at = output
            raise CorruptError(f"{self.file}: {reader!r} reads output {at} of {item.name!r}, which does not make it")
        return env[output]

    def _item(self, item: Item, scope: Scope, inputs: list[Value], prefix: str) -> Sequence[Value]:
        name = prefix + item.name
        if item.kind == "Const":
            return [self._constant(item, scope, name)]
        if item.kind in PASSES and any(isinstance(v, Handle | Saved) for v in inputs):
            return inputs
        if item.kind in RULES:
            return RULES[item.kind](self, item, scope, inputs, name)
        function = item.kind if item.kind in self.functions else item.function("f") if item.kind in CALLS else ""
        if function:
            return self.call(function, item, inputs, scope, f"{name}/")
        return self.node(item, scope, inputs, name)

    def node(self, item: Item, scope: Scope, inputs: Sequence[Value], name: str) -> list[Value]:
        """Add a foreign node for an item."""
        count = output_count(item)
        if not count:  # it acts on the world around: messages, files
            return []
        attrs = attributes(item.attrs, f"{self.file}: node {name!r}")
        ports: list[OutPort | None] = []
        for value in inputs:
            if isinstance(value, Handle) and not value.reference:
                attrs["unsupported"] = f"it reads a resource, {value.name!r}, and only variables and tables are known"
            ports.append(self.tensor(value, scope))
        node = scope.graph.add(
            Foreign("tf", item.kind, tuple(attrs.items())),
            *ports,
            name=name,
            origin=Origin((name,), self.file),
            outputs=count,
        )
        return list(node.out_ports().values())

    def tensor(self, value: Value, scope: Scope) -> OutPort | None:
        """Return a value as a tensor; a reference to a variable is read."""
        if isinstance(value, Handle):
            return self.read(value, scope) if value.reference else None
        return None if isinstance(value, Saved) else value

    def _constant(self, item: Item, scope: Scope, name: str) -> OutPort:
        if "value" not in item.attrs:
            raise CorruptError(f"{self.file}: node {name!r}: a Const must have the attribute value, got none")
        proto, what = item.attrs["value"].tensor, f"{self.file}: node {name!r}"
        try:
            if proto.dtype in COMPLEX:
                parts = [self.constant(scope, a, f"{name}/part{k}") for k, a in enumerate(complex_parts(proto, what))]
                return foreign(scope, "Complex", *parts, name=name, file=self.file)
            return self.constant(scope, array(proto, what), name)
        except UnsupportedError as error:
            return foreign(scope, "Const", name=name, file=self.file, unsupported=str(error))

    def constant(self, scope: Scope, data: Array, name: str) -> OutPort:
        origin = Origin((name,), self.file)
        return scope.graph.add(Constant(dtype_of(data)), name=name, origin=origin, data=data).out_port(0)

    # ---- variables

    def handle(self, value: Value, item: Item) -> Handle:
        """Return the handle that an operation on variables has as its input."""
        if not isinstance(value, Handle):
            rule = "its first input is a variable or a table of the model"
            raise UnsupportedError(f"{item.kind}: {rule}, got one that the inference computes, in {item.name!r}")
        return value

    def read(self, handle: Handle, scope: Scope) -> OutPort:
        """Return the value of a variable at this place."""
        return scope.read(handle.name, self.first)

    def first(self, name: str, scope: Scope) -> OutPort:
        """Return the value of a variable before the inference."""
        if name not in scope.firsts:
            scope.firsts[name] = self._first(name, scope)
        return scope.firsts[name]

    def _first(self, name: str, scope: Scope) -> OutPort:
        try:
            value = self.value_of(name)
            reason = (
                "it has no value: give the folder of its SavedModel, or its MetaGraph with the checkpoint beside it"
            )
        except UnsupportedError as error:
            value, reason = None, str(error)
        if value is None:
            return foreign(scope, "Variable", name=name, file=self.file, unsupported=reason)
        return self.constant(scope, value, name)

    def texts(self, value: Value, item: Item) -> list[str]:
        """Return the strings of a constant."""
        data = data_of(value)
        if data is None or data.dtype != object:
            raise UnsupportedError(f"{item.kind}: its strings must be constants, got others in {item.name!r}")
        return [str(text) for text in data.reshape(-1)]

    # ---- functions and regions

    def call(self, name: str, item: Item, args: Sequence[Value], scope: Scope, prefix: str) -> list[Value]:
        """Return the results of a function, as nodes of the graph around the call."""
        return self.run_function(self.net(name, item), args, scope, prefix)

    def run_function(self, net: Net, args: Sequence[Value], scope: Scope, prefix: str) -> list[Value]:
        """Return the results of a net. CorruptError if it calls itself, or if calls are nested too deeply."""
        if net.name in self.calling:
            raise CorruptError(f"{self.file}: a function cannot call itself, got {net.name!r}")
        if len(self.calling) >= MAX_DEPTH:
            raise CorruptError(f"{self.file}: there can be at most {MAX_DEPTH} functions within functions, got more")
        self.calling.append(net.name)
        try:
            return self.run(net, args, scope, prefix)
        finally:
            self.calling.pop()

    def net(self, name: str, item: Item, attribute: str = "f") -> Net:
        """Return a function as a net; `item`: the node that calls it, by an attribute or by its own operation."""
        if name not in self.functions:
            raise CorruptError(f"{self.file}: {item.name!r} calls function {name!r}, and there is none of this name")
        given = item.attrs[attribute].func.attr if attribute in item.attrs else item.attrs
        return function_net(self.functions[name], given, self.file)

    def tensor_of(self, value: Value, scope: Scope, what: str) -> OutPort:
        """Return a value that must be a tensor."""
        port = self.tensor(value, scope)
        if port is None:
            raise UnsupportedError(f"{what}: a branch or a loop must take and give tensors, got another value")
        return port
