"""Nodes of an archive become foreign operations of a graph: mutations become values, sub-graphs regions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.scopes import Scope
from aot.frontends.conversion.table import decorator
from aot.frontends.pt2.files.element_types import COMPLEX, ELEMENT_TYPES
from aot.frontends.pt2.files.schema import Table, elements, union
from aot.frontends.pt2.graph.aliases import INVERSES, Tensor, View, functional
from aot.frontends.pt2.graph.arguments import Arguments
from aot.frontends.pt2.graph.symbols import Symbols
from aot.frontends.pt2.graph.traces import module_path, source_line
from aot.frontends.pt2.registry import Argument
from aot.ir.graph import Node, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, BudgetError, CorruptError, UnsupportedError

MAX_NODES = 1 << 20
MAX_DEPTH = 32  # sub-graphs within sub-graphs
GRAPH = "as_graph"  # the tag of an argument that is a sub-graph
OPERATIONS = "torch.ops."
SPACES = ("aten.", "higher_order.")  # name spaces that are left out of kinds

MIXED = re.compile("(batch|layer|group|instance|rms)_norm")  # their data and tables have types of their own

Rule = Callable[["ProgramImporter", "Item"], "Sequence[OutPort | Tensor]"]
RULES: dict[str, Rule] = {}


rule = decorator(RULES)  # registers the walk's functions for operations with sub-graphs


def kind_of(target: str) -> str:
    """Return the kind of an operation, `add.Tensor` for `torch.ops.aten.add.Tensor`."""
    if not target.startswith(OPERATIONS):
        return target
    name = target.removeprefix(OPERATIONS)
    for space in SPACES:
        if name.startswith(space):
            return name.removeprefix(space)
    space, _, rest = name.partition(".")
    return f"{space}::{rest}"


@dataclass(slots=True)
class Item:
    """A node of the archive: `where` in errors; `outputs` are the names of its values."""

    kind: str
    name: str
    table: Table
    outputs: list[str]
    trace: str
    path: str
    _inputs: list[Table] | None = None

    @property
    def inputs(self) -> list[Table]:
        """The arguments."""
        if self._inputs is None:
            self._inputs = list(self.table.tables("inputs"))
        return self._inputs


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that holds in every inference, and the rule in words."""

    port: OutPort
    rule: str


@dataclass(slots=True)
class Counter:
    """Nodes that were walked in a file."""

    count: int = 0


@dataclass(slots=True)
class ProgramImporter:
    """The walk over one graph of a file, into the graph of `scope`."""

    table: Table
    scope: Scope
    symbols: Symbols
    prefix: str = ""
    depth: int = 0
    conditional: bool = False  # it may not run in an inference: it is a branch, or the body of a loop
    autocast: bool = False  # the types of results say in which types floats are computed
    counter: Counter = field(default_factory=Counter)
    values: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    checks: list[Check] = field(default_factory=list[Check])
    _metas: list[Table] = field(default_factory=list[Table], init=False)  # facts of values; at most one table

    @property
    def file(self) -> str:
        return self.symbols.file

    def run(self) -> None:
        for table in self.table.tables("nodes"):
            item = self._item(table)
            try:
                self._node(item)
            except AotError as error:
                error.add_note(f"in PyTorch node {item.name!r} ({item.kind}) of {self.file}")
                raise

    def _item(self, table: Table) -> Item:
        self.counter.count += 1
        if self.counter.count > MAX_NODES:
            raise BudgetError(f"{self.file}: at most {MAX_NODES} nodes, got more")
        outputs = [n for value in table.list("outputs") for n in output_names(value, table.place("outputs"))]
        facts = table.table("metadata")
        own = table.text("name") if "name" in table else (outputs or [f"node{self.counter.count}"])[0]
        path = module_path(facts.value("nn_module_stack"))
        name = f"{self.prefix}{path}/{own}" if path else self.prefix + own
        return Item(kind_of(table.text("target")), name, table, outputs, source_line(facts.value("stack_trace")), path)

    def read(self, name: str) -> OutPort:
        """Return a value by its name, at the place that is reached."""
        if name not in self.values:
            raise CorruptError(f"{self.file}: a node before it must give {name!r}, got none")
        return self.values[name].read()

    def arguments(self, item: Item, *tags: str) -> tuple[dict[str, Any], list[OutPort]]:
        """Return arguments by name, those of kinds `tags` as they are in the file, and the inputs that they use."""
        reader = Arguments(self.read)
        found = dict[str, Any]()
        for i, table in enumerate(item.inputs):
            name, where = table.text("name") or f"#{i}", table.where
            if name in found:
                raise CorruptError(f"{where}: arguments must have different names, got {name!r} twice")
            value = table.value("arg")
            found[name] = value if tags and union(value, where)[0] in tags else reader.read(value, where)
        return found, self._autocast(item, reader) if self.autocast and not tags else reader.ports

    def _autocast(self, item: Item, read: Arguments) -> list[OutPort]:
        """Return the inputs of a node of an autocast region, which has no nodes for its casts.

        An operation computes in the type of its result; tables of normalisations keep their own.
        """
        dtype = self.type_of(item.outputs[0]) if item.outputs else None
        if not isinstance(dtype, DType) or not dtype.is_float or MIXED.search(item.kind):
            return read.ports
        ports: list[OutPort] = []
        for port, name in zip(read.ports, read.names, strict=True):
            own, meta = self.type_of(name), self._meta(name)
            if isinstance(own, DType) and own.is_float and own is not dtype and meta is not None and meta.list("sizes"):
                named = {"input": Argument(0), "dtype": dtype}
                ports.append(self.add(item, "to.dtype", named, [port], [dtype]).out_port(0))
            else:
                ports.append(port)
        return ports

    def _node(self, item: Item) -> None:
        if item.kind in RULES:
            self.keep(item, RULES[item.kind](self, item))
            return
        graphs = [g for table in item.inputs if (g := graph_of(table.value("arg"), item.name))]
        if graphs:
            self._refused_region(item, graphs)
            return
        arguments, ports = self.arguments(item)
        functional_kind = functional(item.kind)
        node = self.add(item, functional_kind or item.kind, arguments, ports, self._types(item))
        outputs = list(node.out_ports().values())
        first = next(iter(arguments.values()), None)
        owner = self._owner(item) if isinstance(first, Argument) else None
        if functional_kind is not None and owner is not None:
            owner.write(outputs[0], self._adder(item))
            self.values |= dict.fromkeys(item.outputs, owner)
        elif owner is not None and item.kind.partition(".")[0] in INVERSES:
            self._views(item, node, arguments, owner)
        else:
            self.keep(item, outputs)

    def _refused_region(self, item: Item, graphs: Sequence[Table]) -> None:
        """Add a node for an operation with sub-graphs that has no conversion, with the first line inside of them."""
        reason = "there is no conversion for it, an operation with sub-graphs"
        inside = [self._item(table).trace for graph in graphs for table in graph.tables("nodes")]
        item.trace = next((trace for trace in (item.trace, *inside) if trace), "")
        node = self.add(item, item.kind, {}, [], self._types(item), unsupported=reason)
        self.keep(item, list(node.out_ports().values()))

    def keep(self, item: Item, found: Sequence[OutPort | Tensor]) -> None:
        """Give the values of a node their names."""
        if len(found) != len(item.outputs):
            raise CorruptError(f"{self.file}: {item.kind}: {len(found)} outputs, got {len(item.outputs)}")
        for name, value in zip(item.outputs, found, strict=True):
            self.values[name] = value if isinstance(value, Tensor) else Tensor(value)
            port = self.values[name].read()
            if not self.depth and port.node.type != "Parameter":  # an input keeps its own name alone
                port.add_tensor_names((name,))

    def _owner(self, item: Item) -> Tensor | None:
        """Return the tensor that is the first argument of a node."""
        for table in item.inputs:
            tag, value = union(table.value("arg"), table.where)
            return self.values.get(Table(value, table.where).text("name")) if tag == "as_tensor" else None
        return None

    def _views(self, item: Item, node: Node, arguments: Mapping[str, Any], owner: Tensor) -> None:
        op, rest = node.op, list(node.sources())[1:]
        sizes = self._sizes(item, arguments)
        for i, name in enumerate(item.outputs):

            def again(base: OutPort, i: int = i) -> OutPort:
                new_node = self.scope.graph.add(
                    op, base, *rest, name=node.name, origin=node.origin, outputs=len(item.outputs)
                )
                return new_node.out_port(i)

            view = View(item.kind.partition(".")[0], again, arguments, i, sizes)
            self.values[name] = Tensor(node.out_port(i), owner, view, seen=owner.version)
            if not self.depth:
                node.out_port(i).add_tensor_names((name,))

    def _sizes(self, item: Item, arguments: Mapping[str, Any]) -> tuple[int, ...]:
        """Return sizes of the outputs along the axis that they are parts of, as far as they are numbers."""
        found: list[int] = []
        dim = arguments.get("dim", 0)
        for name in item.outputs:
            meta = self._meta(name)
            sizes: Sequence[Any] = meta.list("sizes") if meta is not None else ()
            if not isinstance(dim, int) or not -len(sizes) <= dim < len(sizes):
                break
            tag, size = union(sizes[dim], self.file)
            if tag != "as_int":
                break
            found.append(size)
        return tuple(found)

    def add(
        self,
        item: Item,
        kind: str,
        arguments: Mapping[str, Any],
        ports: Sequence[OutPort],
        types: Sequence[Any],
        **more: Any,
    ) -> Node:
        """Add a foreign node. `types`: element types of its outputs."""
        attrs = {"arguments": tuple(arguments.items()), "given": tuple(types), "trace": item.trace, **more}
        op = Foreign("aten", kind, tuple(attrs.items()))
        origin = Origin((item.name,), self.file)
        return self.scope.graph.add(op, *ports, name=item.name, origin=origin, outputs=len(types))

    def _adder(self, item: Item) -> Callable[..., OutPort]:
        """Return a function that adds the operations a write needs."""

        def add(kind: str, *tensors: OutPort, **named: Any) -> OutPort:
            arguments: dict[str, Any] = {f"tensor{i}": Argument(i) for i in range(len(tensors))}
            if kind.endswith("_scatter.default"):
                arguments = {"input": Argument(0), "src": Argument(1)}
            elif kind.endswith("_as.default"):
                arguments = {"input": Argument(0), "other": Argument(1)}
            ports = list(tensors)
            for name, value in named.items():
                arguments[name] = self._moved(value, item, ports)
            return self.add(item, kind, arguments, ports, [None]).out_port(0)

        return add

    def _moved(self, value: Any, item: Item, ports: list[OutPort]) -> Any:
        """Return an argument of another node."""
        if isinstance(value, Argument):
            raise UnsupportedError(f"{item.kind}: a write through a view at a place that is known at run time only")
        return value

    # ---- values of the file

    def _meta(self, name: str) -> Table | None:
        if not self._metas:
            self._metas.append(self.table.table("tensor_values"))
        return self._metas[0].table(name) if name in self._metas[0] else None

    def _types(self, item: Item) -> list[DType | str | None]:
        return [self.type_of(name) for name in item.outputs]

    def type_of(self, name: str) -> DType | str | None:
        """Return the element type that the file gives a value; None if it gives none."""
        meta = self._meta(name)
        if meta is not None:
            code = meta.whole("dtype")
            return COMPLEX.get(code) or ELEMENT_TYPES.get(code)
        for field_name, dtype in (("int", DType.I64), ("bool", DType.BOOL), ("float", DType.F64)):
            own = f"sym_{field_name}_values"
            if own in self.table and name in self.table.table(own):
                return dtype
        return None

    def constant(self, data: Array, name: str) -> OutPort:
        origin = Origin((name,), self.file)
        return self.scope.graph.add(Constant(dtype_of(data)), name=name, origin=origin, data=data).out_port(0)

    def refused(self, kind: str, name: str, reason: str) -> OutPort:
        """Add a node for a value that cannot be computed, which the error lists with all others."""
        op = Foreign("aten", kind, (("unsupported", reason),))
        return self.scope.graph.add(op, name=name, origin=Origin((name,), self.file)).out_port(0)


def graph_of(value: Any, where: str) -> Table | None:
    """Return the sub-graph that an argument holds; None for another argument."""
    tag, found = union(value, where)
    return Table(found, where).table("graph") if tag == GRAPH else None


def output_names(value: Any, where: str) -> list[str]:
    """Return the names of the values in an output; lists are spread out."""
    tag, found = union(value, where)
    match tag:
        case "as_tensor" | "as_token":
            return [Table(found, where).text("name")]
        case "as_tensors":
            return [Table(v, where).text("name") for v in elements(found, where)]
        case "as_sym_int" | "as_sym_float" | "as_sym_bool":
            kind, name = union(found, where)
            return [name] if kind == "as_name" and isinstance(name, str) else []
        case "as_optional_tensor":
            return output_names(found, where)
        case "as_optional_tensors":
            return [n for v in elements(found, where) for n in output_names(v, where)]
        case "as_none":
            return []
        case _:
            raise CorruptError(f"{where}: outputs must be tensors or numbers, got {tag}")
