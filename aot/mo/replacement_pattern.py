"""ReplacementPattern: the base class of all transformations."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar, cast

from aot.mo.graph.graph import Graph
from aot.mo.middle.pattern_match import apply_pattern

C = TypeVar("C", bound=type[Any])


class ClassType(Enum):
    """Kinds of classes that extensions declare."""

    EXTRACTOR, OP, FRONT_REPLACER, MIDDLE_REPLACER, BACK_REPLACER, IR_READER_EXTENDER, LOADER = range(7)


class ReplacementPattern:
    """A transformation: `pattern` and `replace_pattern`, or `find_and_replace_pattern`.

    Attributes that the driver reads when a transformation is due: `enabled`, `graph_condition`, `run_not_recursively`,
    `force_clean_up`, `force_shape_inference`, `id`, `replacement_id`.
    """

    excluded_replacers: list[Any] = []  # noqa: RUF012

    def find_and_replace_pattern(self, graph: Graph) -> None:
        """Apply the transformation to each match of its pattern."""
        found: Any = self
        apply_pattern(graph, **found.pattern(), action=found.replace_pattern)

    def run_before(self) -> list[Any]:
        """Return the classes that run later."""
        return []

    def run_after(self) -> list[Any]:
        """Return the classes that run earlier."""
        return []


def base(cls: C) -> C:
    """Decorate a class that transformations derive from; it is none itself."""
    registry = cast(Any, cls)
    registry.registered_ops = dict[str, Any]()
    registry.registered_cls = list[Any]()
    ReplacementPattern.excluded_replacers.append(cls)
    return cls
