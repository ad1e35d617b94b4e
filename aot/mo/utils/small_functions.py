"""Small functions that extensions import."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from aot.mo.graph.attributes import shortened
from aot.mo.utils.arrays import dynamic_dimension, masked_arrays

_LOG = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])


def refer_to_faq_msg(question_num: int) -> str:
    """Return the note that Model Optimizer's errors end with."""
    return f"\n Model Optimizer's list of questions has more: question #{question_num}."


def check_values_equal(val1: Any, val2: Any) -> bool:
    """True if both values are None, or are equal."""
    if val1 is None or val2 is None:
        return val1 is val2
    return val1 == val2


class NamedAttrsClass:
    """An object with attributes from a dictionary."""

    def __init__(self, class_attrs: dict[str, Any]) -> None:
        vars(self).update(class_attrs)


def match_shapes(pattern: Any, shape: Any) -> bool:
    """True if the dimensions of `pattern` that are known and not 0 are equal in `shape`."""
    if pattern.size != shape.size:
        return False
    indices = [i for i, n in enumerate(pattern) if n is not dynamic_dimension and n != 0]
    return bool(masked_arrays.allequal(pattern[indices], shape[indices]))


def symm_match_shapes(shape1: Any, shape2: Any) -> bool:
    """True if one of the shapes matches the other as a pattern."""
    return match_shapes(shape1, shape2) or match_shapes(shape2, shape1)


def deprecated_api(class_name: Any = None, new_method_name: str | None = None) -> Callable[[F], F]:
    """Make a function warn that a method has taken its place."""

    def deprecated(func: F) -> F:
        @wraps(func)
        def warned(*args: Any, **kwargs: Any) -> Any:
            advice = ""
            if class_name is not None:
                owner = getattr(class_name, "__name__", class_name)
                advice = f"Please use {owner}.{new_method_name or func.__name__} method"
            warnings.warn(f"Call to deprecated function {func.__name__}. {advice}", DeprecationWarning, stacklevel=2)
            return func(*args, **kwargs)

        return cast(F, warned)

    return deprecated


def array_to_str(node: Any, attr: str) -> str | None:
    """Return the elements of an attribute, joined by commas; None without one."""
    return ",".join(map(str, node[attr])) if node.has_valid(attr) else None


def shrink_str_value(value: Any, max_symbols: int = 100) -> str:
    """Return the text of a value, cut to a length."""
    return shortened(value, max_symbols)


def files_by_pattern(dir: str, pattern: str, files_only: bool = True, add_prefix: bool = False) -> list[str]:
    """Return the names in a folder that begin with a match of `pattern`; with `add_prefix`, their paths."""
    names = [n for n in os.listdir(dir) if re.match(pattern, n)]
    paths = [(n, os.path.join(dir, n)) for n in names]
    return [path if add_prefix else n for n, path in paths if not files_only or os.path.isfile(path)]


def group_by_with_binary_predicate(xs: list[Any], predicate: Callable[[Any, Any], bool]) -> list[list[Any]]:
    """Return runs of elements; `predicate` holds for all neighbours in a run."""
    groups: list[list[Any]] = []
    for x in xs:
        if groups and predicate(groups[-1][-1], x):
            groups[-1].append(x)
        else:
            groups.append([x])
    return groups


def unique_by(xs: list[Any], predicate: Callable[[Any, Any], bool]) -> list[Any]:
    """Return the first element of each run; `predicate` holds for all neighbours in a run."""
    return [group[0] for group in group_by_with_binary_predicate(xs, predicate)]


def looking_for_op_in_list(nodes: list[Any], op: str) -> Any:
    """Return the first node of an operation; None without one."""
    return next((node for node in nodes if node.has_valid("op") and node.op == op), None)


def factor_update(factor: Any, real_factor: list[Any], in_shape: list[int], out_shape: list[int], name: str) -> Any:
    """Return the factor of a resized image: `factor`, else the common one of `real_factor`, of height and width."""
    if factor is None and real_factor[0] == real_factor[1]:
        return real_factor[0]
    if factor is None:
        _LOG.warning("%s: one factor for height and width, got %s for %s of %s", name, real_factor, out_shape, in_shape)
    return factor


def find_nodes_by_attribute_value(graph: Any, attr: str, attr_name: str) -> list[str]:
    """Return the ids of nodes with `attr_name` as attribute `attr`."""
    return [id for id, attrs in graph.nodes(data=True) if attr in attrs and attrs[attr] == attr_name]


def find_inputs(graph: Any) -> list[str]:
    return find_nodes_by_attribute_value(graph, "type", "Parameter")


def find_outputs(graph: Any) -> list[str]:
    """Return the ids of the nodes, or data nodes, that Results read."""
    sources = [node.in_nodes() for node in graph.get_op_nodes(op="Result")]
    assert all(len(nodes) == 1 for nodes in sources), "Result node should have exactly one input"
    return list(dict.fromkeys(nodes[0].id for nodes in sources))


def set_reshape_new_output_shape(reshape_node: Any, new_output_shape: Any) -> None:
    """Set the shape of the output, and the input that says it, if there is one."""
    reshape_node.out_port(0).data.set_shape(new_output_shape)
    if sum(not port.disconnected() for port in reshape_node.in_ports().values()) == 2:
        reshape_node.in_port(1).data.set_value(new_output_shape)
