"""Permutations of attributes that follow a tensor with a changing layout, NHWC to NCHW or back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import networkx as nx
import numpy as np

from aot.mo.utils.arrays import int64_array, is_a
from aot.mo.utils.error import Error

_BY_PLACE = "dim pad pads shape stride window dilation kernel_shape output_shape"
_MASKS = "begin_mask end_mask shrink_axis_mask new_axis_mask ellipsis_mask"
_AXES = (
    "axes axis seq_axis batch_axis batch_dims channel_dims spatial_dims input_channel_dim output_channel_dim "
    "kernel_spatial_idx input_feature_channel output_feature_channel"
)
Rule = Callable[[Any, Any, str], Any]  # node, permutation, attribute -> its new value


def _place(node: Any, permutation: Any, attr: str) -> Any:
    return node[attr][permutation.perm]


def _mask(node: Any, permutation: Any, attr: str) -> Any:
    return node[attr][PermuteAttrs.get_nhwc_to_nchw_permutation(len(node[attr])).perm]


def _axis(node: Any, permutation: Any, attr: str) -> Any:
    return permutation.inv[node[attr]]


def _order(node: Any, permutation: Any, attr: str) -> Any:
    return permutation.inv[node[attr][permutation.perm]]


class Permutation(NamedTuple):
    """An order of dimensions, and its inverse."""

    perm: Any
    inv: Any


class Attr(NamedTuple):
    """An attribute that follows a port, `input:N` or `output:N`, by a rule."""

    name: str
    port: str
    func: Rule


class PermuteAttrs:
    """The attributes of a node that a permutation of one of its tensors changes."""

    Permutation = Permutation
    Attr = Attr
    common_permutation = staticmethod(_place)
    slice_permutation = staticmethod(_mask)
    common_permutation_inv = staticmethod(_axis)
    common_attrs_permutation: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(_BY_PLACE.split(), _place),
        **dict.fromkeys(_MASKS.split(), _mask),
        **dict.fromkeys(_AXES.split(), _axis),
        "order": _order,
    }

    def __init__(self) -> None:
        self.attrs: dict[str, Any] = {}

    def update_attrs(self, attrs: Iterable[Any]) -> PermuteAttrs:
        """Add (attribute, `input:N` or `output:N`) or (attribute, port, rule)."""
        for attr in attrs:
            if not is_a(attr, tuple) or len(attr) not in (2, 3):
                raise Error("attr object must be a tuple: (attribute_name, port) or (attribute_name, port, func)")
            name, port, *rule = attr
            if name not in self.common_attrs_permutation and not rule:
                raise Error("Attr {} is missing in PermuteAttrs.common_attrs_permutation: a rule must be given", name)
            side, _, number = port.partition(":")
            if side not in ("input", "output") or not number.isdigit():
                raise Error("Attribute port {} for {} wasn't set correctly!", port, name)
            self.attrs[name] = Attr(name, port, rule[0] if rule else self.common_attrs_permutation[name])
        return self

    def permute_attrs(self, node: Any) -> None:
        """Permute the attributes of a node if its data nodes have attribute `permutation`."""
        for name, port, rule in self.attrs.values():
            side, _, number = port.partition(":")
            data = node.in_node(int(number)) if side == "input" else node.out_node(int(number))
            if data.has_valid("permutation"):
                permutation = data.permutation
                lazy = not is_a(permutation, tuple) and callable(permutation)
                node[name] = rule(node, permutation(node) if lazy else permutation, name)

    @staticmethod
    def create_permute_attrs(node: Any, attrs: Iterable[Any] = ()) -> None:
        """Add attributes to the node's `permute_attrs`, which is made if it is absent."""
        if not node.has_valid("permute_attrs"):
            node["permute_attrs"] = PermuteAttrs()
        node["permute_attrs"].update_attrs(attrs or ())

    @staticmethod
    def set_permutation(node1: Any, node2: Any, permutation: Any, override: bool = False) -> None:
        """Set attribute `permutation` of the edge from `node1` to `node2`; Error for another one that is there."""
        edge = node1.graph.get_edge_data(node1.id, node2.id)[0]
        if "permutation" not in edge or override:
            nx.set_edge_attributes(node1.graph, {(node1.id, node2.id, 0): permutation}, "permutation")
        elif (edge["permutation"] is None) != (permutation is None) or not np.array_equal(
            edge["permutation"], permutation
        ):
            raise Error("Permutation already exists in edge between {} and {}", node1.id, node2.id)

    @staticmethod
    def get_inverse_permutation(perm: Any) -> list[int]:
        return [int(i) for i in np.argsort(perm)]

    @staticmethod
    def get_nhwc_to_nchw_permutation(dims_number: int) -> Any:
        """Return the permutation for a rank; three dimensions stay as they are."""
        last = [dims_number - 1] if dims_number > 1 and dims_number != 3 else []
        rest = [i for i in range(dims_number) if i not in last]
        return PermuteAttrs._permutation([*rest[:1], *last, *rest[1:]])

    @staticmethod
    def get_nchw_to_nhwc_permutation(dims_number: int) -> Any:
        """Return the permutation for a rank; three dimensions stay as they are."""
        last = [1] if dims_number > 1 and dims_number != 3 else []
        return PermuteAttrs._permutation([*(i for i in range(dims_number) if i not in last), *last])

    @staticmethod
    def _permutation(perm: list[int]) -> Any:
        inverse = PermuteAttrs.get_inverse_permutation(perm)
        return Permutation(int64_array(perm), int64_array(inverse))
