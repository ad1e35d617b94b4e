"""The classes that an extension folder declares for Model Optimizer's phases, and which of them take part.

A class counts by the base class that it derives from directly, as in Model Optimizer. Of the classes with an `op`, one
takes part for each `op`, the first of a folder, and that of a later folder instead of an earlier one's.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from types import ModuleType
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.mo.front.common.replacement import FrontReplacementOp, FrontReplacementPattern, FrontReplacementSubgraph
from aot.mo.front.extractor import CaffePythonFrontExtractorOp, FrontExtractorOp
from aot.mo.front.tf.replacement import (
    FrontReplacementFromConfigFileGeneral,
    FrontReplacementFromConfigFileOp,
    FrontReplacementFromConfigFileSubGraph,
)
from aot.mo.middle.replacement import BackReplacementPattern, MiddleReplacementPattern
from aot.mo.ops.op import Op
from aot.mo.replacement_pattern import ReplacementPattern
from aot.mo.transforms import ROOTS, is_known, is_placeholder
from aot.mo.utils.error import Error

_LOG = logging.getLogger(__name__)

Class = type[Any]
FROM_CONFIG = (
    FrontReplacementFromConfigFileGeneral,
    FrontReplacementFromConfigFileSubGraph,
    FrontReplacementFromConfigFileOp,
)
REPLACERS: tuple[Class, ...] = (
    FrontReplacementPattern,
    FrontReplacementSubgraph,
    FrontReplacementOp,
    *FROM_CONFIG,
    MiddleReplacementPattern,
    BackReplacementPattern,
)
BASES: tuple[Class, ...] = (FrontExtractorOp, CaffePythonFrontExtractorOp, Op, *REPLACERS)


@dataclass(slots=True)
class Declared:
    """Extractors and operations by their `op`; transformations in the order of their declaration."""

    extractors: dict[str, Class] = field(default_factory=dict[str, Class])
    operations: dict[str, Class] = field(default_factory=dict[str, Class])
    transforms: list[Class] = field(default_factory=list[Class])

    def __bool__(self) -> bool:
        return bool(self.extractors or self.operations or self.transforms)


def classes_in(module: ModuleType) -> list[Class]:
    """Return the classes for Model Optimizer's phases that a module declares itself."""
    own = (v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__)
    return [cls for cls in own if issubclass(cls, (*BASES, ReplacementPattern)) and not is_placeholder(cls)]


def declare(folders: Iterable[Iterable[Class]]) -> Declared:
    """Return the declarations of the classes of each folder. Error for classes that cannot run."""
    declared = Declared()
    by_op: dict[tuple[Class, str], Class] = {}
    for classes in folders:
        first: dict[tuple[Class, str], Class] = {}
        for cls in classes:
            base, op = _base(cls), getattr(cls, "op", None)
            if base is None:
                _LOG.warning("extension %s: a class runs if it derives from a base class directly", cls.__name__)
            elif op is not None:
                first.setdefault((base, str(op).lower()), cls)
            elif base in REPLACERS:
                declared.transforms.append(cls)
            else:
                raise Error("extension {}: op names the operation that the class is for, got none", cls.__name__)
        by_op |= first
    for (base, _), cls in by_op.items():
        if base in (FrontExtractorOp, CaffePythonFrontExtractorOp):
            declared.extractors[cls.op] = cls
        elif base is Op:
            declared.operations[cls.op] = cls
        else:
            declared.transforms.append(cls)
    return declared


def _base(cls: Class) -> Class | None:
    """Return the base class that decides the phase of a class."""
    base = next((base for base in cls.__bases__ if base in BASES), None)
    if base is FrontReplacementOp and cls.op == FrontReplacementOp.op:
        raise Error("extension {}: op names the operation that is replaced, got none", cls.__name__)
    return base


@dataclass(frozen=True, slots=True)
class Switches:
    """Names of classes that the user switches on or off: `id`, name, or module and name. Off wins."""

    on: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()

    def of(self, cls: Class) -> bool | None:
        """Return True or False for a class that is switched; None for another one."""
        names = names_of(cls)
        return False if names & self.off else True if names & self.on else None

    def unknown(self, classes: Iterable[Class]) -> list[str]:
        """Return the names that are of none of these classes, and of no transformation of Model Optimizer's."""
        known = {name for cls in classes for name in names_of(cls)}
        return [name for name in sorted((self.on | self.off) - known) if not is_known(name)]

    def __str__(self) -> str:
        return f"on {sorted(self.on)} off {sorted(self.off)}"


def names_of(cls: Class) -> set[str]:
    """Return the names of a class: `id`, its own, `front.flip.Flip` and `FOLDER.front.flip.Flip`."""
    if is_placeholder(cls):
        module = cls.place.module
        paths = [module, *(f"{root}.{module}" for root in ROOTS)]
    else:
        package, _, module = cls.__module__.partition(".")
        folders: list[str] = list(getattr(sys.modules.get(package), "__path__", ()))
        paths = [module, *(f"{Path(folder).name}.{module}" for folder in folders)]
    own = {cls.__name__, *(f"{path}.{cls.__name__}" for path in paths)}
    id = getattr(cls, "id", None)
    return own | {id} if isinstance(id, str) else own


def check_entries(declared: Declared, entries: Mapping[str, Any]) -> None:
    """Error for an entry of a configuration file that no transformation reads."""
    known = {cls.replacement_id for cls in declared.transforms if issubclass(cls, FROM_CONFIG)}
    for id in entries:
        if id not in known:
            rule = "an id is the replacement_id of a transformation"
            raise Error("transformations-config: {}, one of {}, got {}", rule, ", ".join(sorted(known)) or "none", id)
