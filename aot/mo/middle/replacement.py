"""The base classes of transformations by their phases; classes of the front phase have more in `front.common`."""

from __future__ import annotations

from typing import Any, ClassVar

from aot.mo.replacement_pattern import ClassType, ReplacementPattern, base
from aot.mo.transforms import placeholder


class OfPhase(ReplacementPattern):
    """A transformation that runs between the first and the last place of its phase."""

    mo_phase: ClassVar[str]
    registered_ops: ClassVar[dict[str, Any]]
    registered_cls: ClassVar[list[Any]]

    def run_after(self) -> list[Any]:
        return [placeholder(f"{self.mo_phase}Start")]

    def run_before(self) -> list[Any]:
        return [placeholder(f"{self.mo_phase}Finish")]

    @classmethod
    def class_type(cls) -> ClassType:
        return ClassType[f"{cls.mo_phase.upper()}_REPLACER"]


@base
class MiddleReplacementPattern(OfPhase):
    """A transformation of the middle phase."""

    mo_phase = "Middle"


@base
class BackReplacementPattern(OfPhase):
    """A transformation of the back phase."""

    mo_phase = "Back"
