"""The source of a node of Model Optimizer's graph, so that an unchanged node comes back as it was."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.graph import Node
from aot.mo.utils.arrays import is_a

KEPT = "aot_node"  # the attribute that holds it


@dataclass(eq=False)
class NodeRecord:
    """A node of the compiler's graph, and the attributes that its counterpart got from its operation."""

    node: Node
    attrs: dict[str, Any]
    is_copy: bool = False  # the counterpart of a copy is a new node with the same operation
    hidden: Any = None  # operations around a convolution or a pool that is shown in Model Optimizer's form

    def __deepcopy__(self, memo: dict[int, Any]) -> NodeRecord:
        return NodeRecord(self.node, self.attrs, True, self.hidden)

    def changed(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes that now have another value, with it; None for those that were removed."""
        return {k: attributes.get(k) for k, v in self.attrs.items() if not are_equal(attributes.get(k), v)}


def record_of(node: Any) -> NodeRecord | None:
    """Return the record of a node; None for one that an extension has made."""
    return node.soft_get(KEPT, None)


def are_equal(one: Any, other: Any) -> bool:
    """True if two values of attributes are the same; arrays by their elements and types."""
    if one is other:
        return True
    if is_a(one, np.ndarray) or is_a(other, np.ndarray):
        both = [np.ma.asarray(v) for v in (one, other) if is_a(v, np.ndarray)]
        return len(both) == 2 and both[0].dtype == both[1].dtype and _same_elements(both[0], both[1])
    if type(one) is not type(other):
        return False
    is_same: object = one == other
    return bool(is_same)


def _same_elements(one: Any, other: Any) -> bool:
    ma: Any = np.ma
    if not np.array_equal(ma.getmaskarray(one), ma.getmaskarray(other)):
        return False
    return bool(np.array_equal(ma.filled(one, 0), ma.filled(other, 0)))
