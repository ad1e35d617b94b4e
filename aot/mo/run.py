"""Runs transformations: one after another, with the checks and the errors of Model Optimizer."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from aot.ir.scope import raised_in
from aot.mo.graph.cleaning import shape_inference
from aot.mo.graph.graph import Graph
from aot.mo.loader import Switches
from aot.mo.middle.pattern_match import for_graph_and_each_sub_graph_recursively as for_all
from aot.mo.transforms import is_placeholder
from aot.mo.utils.error import Error
from aot.runtime.errors import AotError, BudgetError, InternalError

_LOG = logging.getLogger(__name__)


def run_transforms(graph: Graph, classes: Iterable[type[Any]], switches: Switches) -> None:
    """Run transformations in this order; the attributes of a class are read when its turn comes."""
    for cls in classes:
        run_transform(graph, cls, switches)


def run_transform(graph: Graph, cls: type[Any], switches: Switches) -> None:
    """Run one transformation, unless it is switched off or does not suit the graph.

    An error of its code becomes one that names the class, the file and the line.
    """
    try:
        _run(graph, cls, switches.of(cls))
    except (BudgetError, InternalError):
        raise
    except MemoryError as error:
        raise BudgetError(f"extension {cls.__name__}: more memory than there is, got {error!r}") from error
    except RecursionError as error:
        raise BudgetError(f"extension {cls.__name__}: a deeper stack than there is, got {error!r}") from error
    except Exception as error:
        id = str(getattr(cls, "replacement_id", "")) or cls.__name__
        where = raised_in(error)
        kind = "" if isinstance(error, AotError) else f"{type(error).__name__}: "
        text = str(error).replace("[REPLACEMENT_ID]", id)
        raise Error(f"extension {cls.__name__}: {kind}{text}{f' ({where})' if where else ''}") from error


def _run(graph: Graph, cls: type[Any], switched: bool | None) -> None:
    transform: Any = cls()
    if not (switched if switched is not None else getattr(transform, "enabled", True)):
        _LOG.info("%s: switched off", cls.__name__)
        return
    if not all(holds(graph) for holds in getattr(transform, "graph_condition", ())):
        _LOG.info("%s: the graph does not meet its condition", cls.__name__)
        return
    before, wires = results(graph), _wires(graph)
    if getattr(transform, "run_not_recursively", False):
        transform.find_and_replace_pattern(graph)
    else:
        for_all(graph, transform.find_and_replace_pattern)
    if is_placeholder(cls) and _wires(graph) == wires:
        return  # a transformation of Model Optimizer that has found nothing
    if getattr(transform, "force_clean_up", False):
        for_all(graph, lambda body: body.clean_up())
    if getattr(transform, "force_shape_inference", False):
        shape_inference(graph)
    _check(graph, before)
    _LOG.info("%s: %d nodes", cls.__name__, graph.number_of_nodes())


def results(graph: Graph) -> dict[str, str]:
    """Return the names of the network's outputs by the ids of their Results."""
    outputs: dict[str, str] = {}
    for node in graph.get_op_nodes(op="Result"):
        source = node.in_port(0).get_source() if node.has_port("in", 0) else None
        names: list[str] = [] if source is None else source.get_tensor_names()
        outputs[node.id] = str(names[0] if names else node.name if source is None else source.node.name)
    return outputs


def _wires(graph: Graph) -> list[Any]:
    """Return the nodes and edges of a graph and its bodies."""
    wires: list[Any] = []
    for_all(graph, lambda body: wires.extend([*body.nodes, *body.edges]))
    return wires


def _check(graph: Graph, before: dict[str, str]) -> None:
    """Error for a network without outputs, and for shapes that are none."""
    left = results(graph)
    if before and not left:
        raise Error("a network keeps one of its outputs at least, got {} removed", ", ".join(before.values()))
    if len(left) < len(before):
        _LOG.warning(
            "outputs are removed: %s", ", ".join(sorted(name for id, name in before.items() if id not in left))
        )
    graph.check_shapes_consistency()
