"""Inference of TensorFlow's control flow: the executed branches, and the values that pass through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aot.mo.utils.arrays import is_fully_defined, shape_array, strict_compare_tensors
from aot.mo.utils.error import InferenceError

Mark = Callable[[str, bool], None]


def switch_infer(node: Any) -> None:
    """Infer both outputs of Switch as input 0; with the value if the choice is known."""
    if len(node.in_nodes()) != 2:
        raise InferenceError("{}: has two inputs, got {}", node.soft_get("name", node.id), len(node.in_nodes()))
    tensor, choice = node.in_node(0), node.in_node(1)
    for idx in (0, 1):
        if idx in node.out_nodes():
            node.out_port(idx).data.set_shape(shape_array(tensor.shape))
            if choice.has_valid("value") and tensor.value is not None:
                node.out_port(idx).data.set_value(tensor.value.copy())


def switch_control_infer(node: Any, is_executable: bool, mark_executability: Mark) -> None:
    """Mark the outputs of Switch: the chosen one is executed if Switch is, both if the choice is not known."""
    outputs, choice = node.out_nodes(control_flow=True), node.in_node(1)
    if not 1 <= len({0, 1} & set(outputs)) <= 2:
        raise InferenceError("{}: Switch has an output", node.soft_get("name", node.id))
    known = choice.has_valid("value") and is_fully_defined(choice.value)
    branch = int(bool(np.asarray(choice.value).item(0))) if known else None
    order = (0, 1) if branch is None else (1 - branch, branch)
    for idx in order:
        if idx in outputs:
            mark_executability(outputs[idx].id, True if branch is None else idx == branch and is_executable)


def merge_infer(node: Any) -> None:
    """Infer Merge as its inputs that are inferred; the value is the one that all executed inputs agree on."""
    known = [n for n in node.in_nodes().values() if n["is_partial_inferred"]]
    if not known:
        raise InferenceError("{}: an input must be inferred", node.soft_get("name", node.id))
    tensor = known[0]
    node["is_not_fully_inferred"] = len(known) < len(node.in_nodes())
    executed = [n for n in known if n.has_and_set("executable")]
    if executed and not node.is_not_fully_inferred:
        tensor = executed[0]
        agreed = all(n.has_valid("value") for n in executed) and all(
            strict_compare_tensors(tensor.value, n.value) for n in executed
        )
        node.out_node().value = tensor.value.copy() if agreed else None
    node.out_node(0).shape = shape_array(tensor.shape)  # data.set_shape refuses one that has changed


def merge_control_infer(node: Any, is_executable: bool, mark_executability: Mark) -> None:
    """Mark the outputs of Merge: executed if one of its inputs is."""
    executed = any(n.has_and_set("executable") for n in node.in_nodes(control_flow=True).values())
    for data in node.out_nodes(control_flow=True).values():
        mark_executability(data.id, executed)


def assert_infer(node: Any) -> None:
    """Infer Assert: its condition passes through."""
    node.out_node().value = node.in_node(0).value.copy()
    node.out_node().shape = []


def assert_control_infer(node: Any, is_executable: bool, mark_executability: Mark) -> None:
    """Mark the nodes after Assert: executed if its condition holds."""
    for _, target in node.graph.out_edges(node.id):
        mark_executability(target, node.out_node().value and is_executable)


def pass_infer(node: Any) -> None:
    """Infer all outputs as input 0."""
    for data in node.out_nodes().values():
        data.shape = shape_array(node.in_node(0).shape)
        if node.in_node(0).has_valid("value"):
            data.value = node.in_node(0).value.copy()


def exit_control_infer(node: Any, is_executable: bool, mark_executability: Mark) -> None:
    """Mark the outputs of Exit as executed."""
    for data in node.out_nodes().values():
        mark_executability(data.id, True)
