"""Attributes of a node: a dictionary that the graph keeps, read as `node.x` and `node["x"]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from aot.mo.utils.arrays import is_a
from aot.mo.utils.error import AbsentError

UNKNOWN = "<UNKNOWN>"
SHOWN = 100  # characters of a value in the text of a node


class Attributes:
    """A node of a graph as the dictionary of its attributes."""

    graph: Any
    node: str  # the same as `id`
    id: str

    def __init__(self, graph: Any, node: str) -> None:
        assert node in graph, f"node {node} is not in the graph"
        vars(self).update(graph=graph, node=node, id=node)

    def other(self, id: str) -> Self:
        """Return another node of the graph."""
        return type(self)(self.graph, id)

    def attrs(self) -> dict[str, Any]:
        return self.graph.nodes[self.id]

    get_attrs = attrs

    def has(self, k: str) -> bool:
        return k in self.attrs()

    def has_valid(self, k: str) -> bool:
        """True if the attribute is there and not None."""
        return self.attrs().get(k) is not None

    def has_and_set(self, k: str) -> Any:
        """Return the attribute's value if it is there and not None, else False."""
        return self.has_valid(k) and self[k]

    def soft_get(self, k: str, default: Any = UNKNOWN) -> Any:
        """Return the attribute, or `default` if it is absent or None."""
        value = self.attrs().get(k)
        return default if value is None else value

    def __getattr__(self, k: str) -> Any:
        if "graph" not in vars(self):  # a copy in the making
            raise AttributeError(k)
        return self[k]

    def __getitem__(self, k: str) -> Any:
        try:
            value = self.attrs()[k]
        except KeyError:
            raise AbsentError(k) from None
        is_shared = k == "value" and is_a(value, np.ndarray) and not value.flags.writeable
        return self._own(value) if is_shared else value

    def _own(self, shared: Any) -> Any:
        """Return a copy of a constant of the model, which may be changed in place; it takes the constant's place.

        A Const and its data node have one array.
        """
        own = shared.copy()
        for id in (self.id, *self.graph.predecessors(self.id), *self.graph.successors(self.id)):
            attrs = self.graph.nodes[id]
            if attrs.get("value") is shared:
                attrs["value"] = own
        return own

    def __setattr__(self, k: str, v: Any) -> None:
        """Change an attribute; AttributeError for one that is not there."""
        if k not in self.attrs():
            raise AttributeError(f"Attribute {k} missing in {self.soft_get('name', self.id)} node")
        self[k] = v

    def __setitem__(self, k: str, v: Any) -> None:
        """Change or add an attribute; AttributeError for another `version`."""
        if k == "version" and self.attrs().get(k, v) != v:
            rule = "Attribute 'version' cannot be updated"
            raise AttributeError(f"{rule} in {self.soft_get('name', self.id)} node")
        self.attrs()[k] = v

    def __delitem__(self, k: str) -> None:
        try:
            del self.attrs()[k]
        except KeyError:
            raise AbsentError(k) from None

    def __contains__(self, k: str) -> bool:
        return self.has(k)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Attributes) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, str]:
        return id(self.graph), self.id

    def __str__(self, max_length: int = SHOWN) -> str:
        return str({k: shortened(v, max_length) if k == "value" else v for k, v in self.attrs().items()})


def shortened(value: Any, most: int = SHOWN) -> str:
    """Return the text of a value, cut to `most` characters."""
    text = str(value)
    return text if len(text) <= most else text.strip("\n")[: most - 3] + "..."


def dict_includes_compare_attrs(attr: Any, attr_probe: Any) -> bool:
    """True if an attribute fits: `attr_probe` is its value, or a function that is true for it."""
    if callable(attr_probe) and not isinstance(attr_probe, type):
        test: Callable[[Any], Any] = attr_probe
        return test(attr)
    try:
        equal: Any = attr == attr_probe
    except ValueError:  # arrays of different shapes
        return False
    if getattr(equal, "ndim", None) == 0:
        return equal.item()
    return equal if isinstance(equal, bool) else all(equal)


def dict_includes(big: dict[str, Any], sub_dict: dict[str, Any], skip_attr_names: Iterable[str] = ()) -> bool:
    """True if the attributes `big` fit all of `sub_dict` but those to be skipped; an absent one counts as None."""
    expected = {k: v for k, v in sub_dict.items() if k not in skip_attr_names}
    return all(dict_includes_compare_attrs(big.get(k), v) for k, v in expected.items())
