"""MiddleReplacementPattern: the base class of the middle phase's transformations."""

from __future__ import annotations

from typing import Any, ClassVar

from aot.mo.replacement_pattern import ClassType, ReplacementPattern, base
from aot.mo.transforms import placeholder


@base
class MiddleReplacementPattern(ReplacementPattern):
    """A transformation of the middle phase."""

    registered_ops: ClassVar[dict[str, Any]]
    registered_cls: ClassVar[list[Any]]

    def run_after(self) -> list[Any]:
        return [placeholder("MiddleStart")]

    def run_before(self) -> list[Any]:
        return [placeholder("MiddleFinish")]

    @classmethod
    def class_type(cls) -> ClassType:
        return ClassType.MIDDLE_REPLACER
