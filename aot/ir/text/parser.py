"""Reads the text of graphs that `aot.ir.text.printer` writes; importing `aot.opset` registers their operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from aot.ir.graph import Graph, Node, Origin, OutPort
from aot.ir.op import Foreign, Op
from aot.ir.registry import REGISTRY, operation
from aot.ir.text.printer import PLAIN_NAME
from aot.ir.text.scanner import NUMBER, Scanner
from aot.ir.types import Array, Dim, TensorType, numpy_dtype
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, ModelError

HASH = re.compile(r"[0-9a-f]{12}")
SPECIAL_WORDS = {"True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan")}


def parse_graph(text: str, constants: Mapping[str, Array] | None = None) -> Graph:
    """Return the graph that a text describes; `print_graph(parse_graph(text)) == text` for printed texts.

    `constants` holds arrays by hash (`constants_by_sha`). ModelError names the line that is wrong. Types are inferred;
    types in the text are used for foreign operations only.
    """
    reader = _Parser(text, constants or {})
    if reader.scan.word() != "graph":
        raise ModelError("graph text: 'graph' expected at its beginning")
    graph = reader.graph(reader.name())
    reader.scan.skip_space()
    if reader.scan.at < len(text):
        raise reader.scan.error("the end")
    return graph


class _Parser:
    def __init__(self, text: str, constants: Mapping[str, Array]) -> None:
        self.scan, self.constants = Scanner(text), constants

    def name(self) -> str:
        return self.scan.string() if self.scan.sees('"') else self.scan.need(PLAIN_NAME, "a name")

    def node_name(self) -> str:
        self.scan.expect("%")
        return self.name()

    def graph(self, name: str) -> Graph:
        """Parse a graph from its parameters on."""
        graph, nodes = Graph(name=name), dict[str, Node]()
        self.scan.expect("(")
        parameters: list[tuple[str, TensorType]] = []
        mark = self.scan.at
        self.scan.several(")", lambda: parameters.append(self.parameter()))
        end = self.scan.at
        self.scan.expect("{")
        if self.scan.accept("symbols "):
            self.scan.symbol_list()
            body, self.scan.at = self.scan.at, mark  # parse the parameters' shapes again: symbols have ranges now
            parameters.clear()
            self.scan.several(")", lambda: parameters.append(self.parameter()))
            assert self.scan.at == end
            self.scan.at = body
        for label, type in parameters:
            op = REGISTRY["Parameter"](element_type=type.dtype, shape=type.dims)  # type: ignore[call-arg]
            nodes[label] = graph.add(op, name=label, origin=Origin((label,)))
        while not self.scan.accept("}"):
            self.line(graph, nodes)
        return graph

    def parameter(self) -> tuple[str, TensorType]:
        name = self.node_name()
        self.scan.expect(":")
        return name, self.scan.type()

    def line(self, graph: Graph, nodes: dict[str, Node]) -> None:
        start = self.scan.at
        names: list[str] = []
        while self.scan.sees("%"):
            names.append(self.node_name())
            if self.scan.accept("#"):
                self.scan.integer()
            if not self.scan.accept(","):
                break
        if names and names[0] in nodes:
            raise self.scan.error(f"a new name instead of %{names[0]}")
        types = self.output_types(len(names)) if names and self.scan.accept(":") else None
        if names:
            self.scan.expect("=")
        label = names[0] if names else ""
        try:
            if self.scan.accept("const<"):
                dtype, data = self.constant()
                op = REGISTRY["Constant"](element_type=dtype)  # type: ignore[call-arg]
                nodes[label] = graph.add(op, name=label, origin=Origin((label,)), data=data)
                return
            node = self.operation(graph, nodes, label, len(names), types)
        except AotError as error:
            error.add_note(f"in {self.scan.text[start : self.scan.at].strip()[:200]!r}")
            raise
        if label:
            nodes[label] = node

    def output_types(self, count: int) -> tuple[TensorType, ...] | None:
        """Parse the types of `count` outputs; None if one of them is `?`."""
        types: list[TensorType | None] = []
        for i in range(count):
            if i:
                self.scan.expect(",")
            types.append(None if self.scan.accept("?") else self.scan.type())
        output_types_known = tuple(t for t in types if t is not None)
        return output_types_known if len(output_types_known) == count else None

    def operation(
        self, graph: Graph, nodes: dict[str, Node], label: str, outputs: int, types: tuple[TensorType, ...] | None
    ) -> Node:
        kind = self.scan.word()
        op = self.foreign(kind, types) if "." in kind else self.registered(kind)
        sources: list[OutPort | None] = []
        self.scan.expect("(")
        self.scan.several(")", lambda: sources.append(self.source(nodes)))
        node = graph.add(op, *sources, name=label, origin=Origin((label,)) if label else None, outputs=outputs)
        if self.scan.accept("{"):
            while not self.scan.accept("}"):
                region = self.name()
                node.regions[region] = self.graph(region)
        return node

    def source(self, nodes: Mapping[str, Node]) -> OutPort | None:
        if self.scan.accept("none"):
            return None
        name = self.node_name()
        if name not in nodes:
            raise self.scan.error(f"a known name instead of %{name}")
        return nodes[name].out_port(self.scan.integer() if self.scan.accept("#") else 0)

    def foreign(self, kind: str, types: tuple[TensorType, ...] | None) -> Foreign:
        pairs: list[tuple[str, object]] = []

        def pair() -> None:
            key = self.name()
            self.scan.expect("=")
            pairs.append((key, self.literal()))

        if self.scan.accept("<"):
            self.scan.several(">", pair)
        dialect, _, name = kind.rpartition(".")
        return Foreign(dialect=dialect, kind=name, attrs=tuple(pairs), types=types or ())

    def registered(self, kind: str) -> Op:
        cls = operation(kind)
        if cls is None:
            raise self.scan.error(f"an operation instead of {kind!r}")
        return cls(**self.arguments(cls, ">") if self.scan.accept("<") else {})

    def arguments(self, cls: type[Any], close: str) -> dict[str, Any]:
        """Parse `field=value, ... close`, by the types of the fields of a dataclass."""
        hints = get_type_hints(cls)
        attributes: dict[str, Any] = {}

        def pair() -> None:
            key = self.scan.word()
            if key not in hints:
                raise self.scan.error(f"an attribute of {cls.__name__} instead of {key!r}")
            self.scan.expect("=")
            attributes[key] = self.value(hints[key])

        self.scan.several(close, pair)
        return attributes

    def value(self, hint: Any) -> Any:
        """Parse a value for a field of type `hint`."""
        origin: object = get_origin(hint)
        if origin in (Union, UnionType) and hint != Dim:
            if self.scan.accept("None"):
                return None
            hint = next(h for h in get_args(hint) if h is not NoneType)
        if hint == Dim:
            return self.scan.dim()
        if get_origin(hint) is tuple:
            return self.tuple_of(lambda: self.value(get_args(hint)[0]))
        if isinstance(hint, type) and issubclass(hint, StrEnum):
            text = self.scan.string() if self.scan.sees('"') else self.scan.word()
            if text not in {e.value for e in hint}:
                raise self.scan.error(f"one of {', '.join(e.value for e in hint)} instead of {text!r}")
            return hint(text)
        if isinstance(hint, type) and is_dataclass(hint):
            if self.scan.word() != hint.__name__:
                raise self.scan.error(hint.__name__)
            self.scan.expect("(")
            return hint(**self.arguments(hint, ")"))
        value = self.literal()
        return float(value) if hint is float and not isinstance(value, bool) else value

    def tuple_of(self, item: Callable[[], Any]) -> tuple[Any, ...]:
        items: list[Any] = []
        self.scan.expect("(")
        self.scan.several(")", lambda: items.append(item()))
        return tuple(items)

    def literal(self) -> Any:
        """Parse a value by its syntax: number, string, word, tuple, element type, tensor type, constant."""
        if self.scan.sees("("):
            return self.tuple_of(self.literal)
        if self.scan.accept("const<"):
            return self.constant()[1]
        if self.scan.sees('"'):
            return self.scan.string()
        number = self.scan.take(NUMBER)
        if number is not None:
            return int(number) if re.fullmatch(r"-?\d+", number) else float(number)
        start = self.scan.at
        word = self.scan.word()
        if word in SPECIAL_WORDS:
            return SPECIAL_WORDS[word]
        if self.scan.sees("["):
            self.scan.at = start
            return self.scan.type()
        return DType(word) if word in set(DType) else word

    def constant(self) -> tuple[DType, Array]:
        """Parse a constant after its `const<`."""
        kind = self.scan.type()
        shape, dtype = kind.static_shape, numpy_dtype(kind.dtype)
        if self.scan.accept("sha="):
            sha = self.scan.need(HASH, "a hash")
            if sha not in self.constants:
                raise ModelError(f"graph text: constant {kind} with hash {sha} is not given")
            data = self.constants[sha].reshape(shape)
        elif self.scan.accept("fill="):
            data = np.full(shape, self.element(), dtype)
        else:
            elements: list[Any] = []
            if self.scan.accept("["):
                self.scan.several("]", lambda: elements.append(self.element()))
            else:
                elements.append(self.element())
            flat = np.empty(len(elements), dtype)
            flat[:] = elements
            if flat.size != int(np.prod(shape)):
                raise self.scan.error(f"{int(np.prod(shape))} elements instead of {flat.size}")
            data = flat.reshape(shape)
        self.scan.expect(">")
        return kind.dtype, data

    def element(self) -> Any:
        if self.scan.take(re.compile("True")):
            return True
        if self.scan.take(re.compile("False")):
            return False
        if self.scan.sees('"'):
            return self.scan.string()
        text = self.scan.need(NUMBER, "a number")
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
