"""Connections between ports: a tensor is led to other nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import InternalError


class Output(Protocol):
    """Methods of the port at the beginning of a connection."""

    names: tuple[str, ...]
    node: Any

    @property
    def destinations(self) -> Any: ...

    def add_tensor_names(self, names: Iterable[str]) -> None: ...


class Input(Protocol):
    """Methods of a port at the end of a connection."""

    def connect(self, source: Any) -> None: ...

    def disconnect(self) -> None: ...


class Inserted(Protocol):
    """The methods that a connection needs of a node that is inserted."""

    def in_port(self, idx: int = 0) -> Any: ...

    def out_port(self, idx: int = 0) -> Any: ...


Begin = TypeVar("Begin", bound=Output)
End = TypeVar("End", bound=Input)


@dataclass(slots=True)
class Connection(Generic[Begin, End]):
    """A source port and some of its destinations: the path of one tensor."""

    source: Begin | None
    destinations: list[End]

    def get_source(self) -> Begin | None:
        return self.source

    def get_destination(self) -> End | None:
        if len(self.destinations) > 1:
            raise InternalError(f"connection from {self.source} has {len(self.destinations)} destinations")
        return self.destinations[0] if self.destinations else None

    def get_destinations(self) -> list[End]:
        return list(self.destinations)

    def set_source(self, port: Begin) -> None:
        """Let the destinations read `port`; tensor names move, unless the old source is an input or is read still."""
        for destination in self.destinations:
            destination.connect(port)
        self._move_names(port)
        self.source = port

    def _move_names(self, port: Begin) -> None:
        old = self.source
        if old is not None and old is not port and old.node.type != "Parameter" and not old.destinations:
            port.names, old.names = tuple(dict.fromkeys((*old.names, *port.names))), ()

    def set_destination(self, port: End) -> None:
        if len(self.destinations) > 1:
            raise InternalError(f"connection from {self.source} has {len(self.destinations)} destinations")
        for old in self.destinations:
            old.disconnect()
        self.add_destination(port)
        self.destinations = [port]

    def add_destination(self, port: End) -> None:
        if self.source is None:
            raise InternalError("a connection without a source has no destinations")
        port.connect(self.source)
        self.destinations.append(port)

    def insert_node(self, node: Inserted) -> None:
        """Put a node with one input and one output between source and destinations; names move as with `set_source`."""
        if self.source is None:
            raise InternalError("a connection without a source cannot take a node")
        for destination in self.destinations:
            destination.connect(node.out_port(0))
        self._move_names(node.out_port(0))
        node.in_port(0).connect(self.source)

    def remove(self) -> None:
        for destination in self.destinations:
            destination.disconnect()
        self.destinations = []
