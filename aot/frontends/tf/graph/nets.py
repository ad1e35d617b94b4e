"""Networks of TensorFlow as items that refer to each other, made of GraphDef and FunctionDef.

    "conv:1", "^init"     ->     (conv item, output 1), a control input

A function names the outputs of its nodes by arguments, `split:output:2`; `outputs.txt` has the arguments of operations
with several. Attributes of a function's nodes may be those that a call gives (`placeholder`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.tf.defaults import defaults_of
from aot.runtime.errors import CorruptError, UnsupportedError

Message = Any
Attributes = Mapping[str, Message]  # AttrValue by name
Output = tuple["Item", int]

MAX_OUTPUTS = 1 << 16  # outputs of one operation
ARGUMENT = "_Arg"


@dataclass(slots=True, eq=False)
class Item:
    """A node: its operation, its data inputs, the nodes that run before it."""

    name: str
    kind: str
    attrs: Attributes = field(default_factory=dict[str, Message])
    inputs: list[Output] = field(default_factory=list[Output])
    controls: list[Item] = field(default_factory=list["Item"])
    nets: dict[str, Net] = field(default_factory=dict[str, "Net"])  # branches and bodies that are no functions

    def above(self) -> Iterable[Item]:
        return (*(item for item, _ in self.inputs), *self.controls)

    def type(self, name: str) -> int:
        """Return the number of the type in an attribute; 0 without it."""
        return self.attrs[name].type if name in self.attrs else 0

    def integer(self, name: str) -> int:
        return int(self.attrs[name].i) if name in self.attrs else int(defaults_of(self.kind).get(name, 0))

    def text(self, name: str) -> str:
        if name in self.attrs:
            return self.attrs[name].s.decode("utf-8", "surrogateescape")
        return str(defaults_of(self.kind).get(name, ""))

    def function(self, name: str) -> str:
        return self.attrs[name].func.name if name in self.attrs else ""


@dataclass(slots=True, eq=False)
class Net:
    """Items between arguments and results; `kept` run whether or not a result needs them."""

    name: str
    items: dict[str, Item]
    arguments: list[Item]
    results: list[Output]
    kept: list[Item]


@cache
def _argument_table() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the names of outputs of operations with none or several; of lists, the attribute of the length, too."""
    lines = Path(__file__).with_name("outputs.txt").read_text().splitlines()
    rows = (line.split() for line in lines)
    return {kind: tuple((a.partition("*")[0], a.partition("*")[2]) for a in outputs) for kind, *outputs in rows}


def output_count(item: Item) -> int:
    """Return the number of an operation's outputs."""
    return sum(_length(item, number) for _, number in _argument_table().get(item.kind, (("", ""),)))


def _length(item: Item, number: str) -> int:
    if not number:
        return 1
    value = item.attrs.get(number)
    if value is None:
        return 0
    count = value.i if value.WhichOneof("value") == "i" else len(value.list.type)
    if not 0 <= count <= MAX_OUTPUTS:
        raise CorruptError(f"{item.kind}: {number} must be 0 to {MAX_OUTPUTS}, got {count}")
    return int(count)


def graph_net(graph: Message, file: str) -> Net:
    """Return the items of a GraphDef, without arguments and results."""
    items = _items(graph.node, {}, file, file)
    find = _flat_references(items, file)
    _connect(graph.node, items, find, file)
    return Net(file, items, [], [], [])


def function_net(function: Message, attributes: Attributes, file: str) -> Net:
    """Return the items of a FunctionDef, called with the attributes `attributes`."""
    name = function.signature.name
    if any(a.number_attr or a.type_list_attr for a in function.signature.input_arg):
        raise UnsupportedError(f"{file}: function {name!r}: its arguments must be tensors, got a list of some")
    arguments = [Item(a.name, ARGUMENT) for a in function.signature.input_arg]
    items = {a.name: a for a in arguments}
    items |= _items(function.node_def, attributes, file, name, taken=items)
    find = _function_references(items, file)
    _connect(function.node_def, items, find, file)
    results: list[Output] = []
    for a in function.signature.output_arg:
        if a.name not in function.ret:
            raise CorruptError(f"{file}: function {name!r} does not return its output {a.name!r}")
        results.append(find(function.ret[a.name], name))
    kept = [node_named(items, text, name, file) for text in sorted(set(function.control_ret.values()))]
    return Net(name, items, arguments, results, kept)


def _items(
    nodes: Iterable[Message], attributes: Attributes, file: str, where: str, taken: Iterable[str] = ()
) -> dict[str, Item]:
    items: dict[str, Item] = {}
    reserved = set(taken)
    for node in nodes:
        if not node.name or not node.op:
            raise CorruptError(f"{file}: a node must have a name and an operation, got {node.name!r} and {node.op!r}")
        if node.name in items or node.name in reserved:
            raise CorruptError(f"{file}: nodes of {where!r} must have different names, got {node.name!r} twice")
        items[node.name] = Item(node.name, node.op, _resolved(node, attributes, file))
    return items


def _resolved(node: Message, given: Attributes, file: str) -> Attributes:
    """Return the attributes of a node, those that a call gives filled in."""
    if not any(v.placeholder for v in node.attr.values()):
        return node.attr
    attributes = dict(node.attr)
    for name, value in attributes.items():
        if value.placeholder and value.placeholder not in given:
            rule = f"attribute {name!r} is attribute {value.placeholder!r} of a function's call, which has none"
            raise CorruptError(f"{file}: node {node.name!r}: {rule}")
        if value.placeholder:
            attributes[name] = given[value.placeholder]
    return attributes


Find = Callable[[str, str], Output]


def _connect(nodes: Iterable[Message], items: Mapping[str, Item], find: Find, file: str) -> None:
    for node in nodes:
        item = items[node.name]
        for text in node.input:
            if text.startswith("^"):
                control = items.get(text[1:])
                if control is None:
                    raise CorruptError(f"{file}: node {node.name!r} waits for {text[1:]!r}, which is no node")
                item.controls.append(control)
            else:
                item.inputs.append(find(text, node.name))


def node_named(items: Mapping[str, Item], name: str, reader: str, file: str) -> Item:
    """Return the node of a name; CorruptError if there is none. `name` may be that of an output."""
    item = items.get(name.partition(":")[0])
    if item is None:
        raise CorruptError(f"{file}: {reader!r} runs {name!r}, which is no node")
    return item


def reference(items: Mapping[str, Item], text: str, reader: str, file: str) -> Output:
    """Return the output that `name` or `name:index` of a GraphDef means; CorruptError if there is none."""
    return _flat_references(items, file)(text, reader)


def _flat_references(items: Mapping[str, Item], file: str) -> Find:
    def find(text: str, reader: str) -> Output:
        name, colon, index = text.rpartition(":")
        item = items.get(name if colon and index.isdigit() else text)
        at = int(index[:9]) if colon and index.isdigit() else 0
        return _checked(item, at, text, reader, file)

    return find


def _function_references(items: Mapping[str, Item], file: str) -> Find:
    def find(text: str, reader: str) -> Output:
        name, _, rest = text.partition(":")
        item, (argument, _, index) = items.get(name), rest.partition(":")
        if item is None or (rest and not index.isdigit()):
            return _checked(None, 0, text, reader, file)
        at = int(index[:9]) if rest else 0
        before = 0
        for own, number in _argument_table().get(item.kind, ()):
            if own == argument:
                break
            before += _length(item, number)
        return _checked(item, before + at if rest else 0, text, reader, file)

    return find


def _checked(item: Item | None, at: int, text: str, reader: str, file: str) -> Output:
    if item is None:
        raise CorruptError(f"{file}: {reader!r} reads {text!r}, which nothing makes")
    most = output_count(item)
    if at >= most and item.kind != ARGUMENT:
        raise CorruptError(f"{file}: {reader!r} reads {text!r}, but {item.kind} has {most} outputs")
    return item, at
