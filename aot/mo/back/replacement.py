"""BackReplacementPattern: the base class of the back phase's transformations."""

from __future__ import annotations

from typing import Any, ClassVar

from aot.mo.replacement_pattern import ClassType, ReplacementPattern, base
from aot.mo.transforms import placeholder


@base
class BackReplacementPattern(ReplacementPattern):
    """A transformation of the back phase."""

    registered_ops: ClassVar[dict[str, Any]]
    registered_cls: ClassVar[list[Any]]

    def run_after(self) -> list[Any]:
        return [placeholder("BackStart")]

    def run_before(self) -> list[Any]:
        return [placeholder("BackFinish")]

    @classmethod
    def class_type(cls) -> ClassType:
        return ClassType.BACK_REPLACER
