"""Declarations in a file of an extension folder: passes, rules, conversions, classes for Model Optimizer's phases."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import ModuleType
from typing import Any, cast

from aot.passes.pattern import PatternRule
from aot.passes.rewrite import Rule, RuleSet
from aot.runtime.errors import UsageError

ENTRIES = ("find_and_replace_pattern", "__call__")
MO_METHODS = ("replace_pattern", "replace_sub_graph", "replace_op", "generate_sub_graph", "transform_graph", "extract")
KINDS = (
    "a class with find_and_replace_pattern or __call__, a rule, a conversion, or a class for Model Optimizer's phases"
)


def passes_in(module: ModuleType, name: str, phase: str, own: Iterable[type[Any]] = ()) -> list[object]:
    """Return the passes that a file declares itself, in its order; its rules are one pass called `name`.

    `own`: its classes that something else runs. Base classes, and classes that are made with arguments, are no passes.
    """
    taken = set(own)
    passes: list[object] = []
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__ and value not in taken and is_pass(value):
            if not hasattr(value, "phase"):
                cast(Any, value).phase = phase
            passes.append(value)
    rules = [v for v in vars(module).values() if isinstance(v, Rule) and v.body.__module__ == module.__name__]
    if phase == "front":  # patterns are of operations of the opset, whose types are known
        later = tuple(v for v in rules if isinstance(v, PatternRule))
        rules = [v for v in rules if not isinstance(v, PatternRule)]
        passes += [RuleSet(f"{name}_rewrites" if rules else name, later, phase="middle")] if later else []
    return [*passes, RuleSet(name, tuple(rules), phase=phase)] if rules else passes


def is_pass(cls: type[Any]) -> bool:
    """True if a class can be run: it has an entry that no subclass replaces, and is made without arguments."""
    # getattr finds the methods that call the class itself
    inherited = {name for base in cls.__mro__ for name in vars(base)}
    method = next((name for name in ENTRIES if name in inherited and callable(getattr(cls, name))), None)
    if method is None or inspect.isabstract(cls):
        return False
    if any(method in vars(below) for below in cls.__subclasses__()):
        return False
    try:
        inspect.signature(cls).bind()
    except (TypeError, ValueError):
        return False
    return True


def lost_methods(cls: type[Any]) -> list[str]:
    """Return the methods of Model Optimizer's classes that a class has, if nothing would call them."""
    runs = any(hasattr(cls, name) for name in ("find_and_replace_pattern", "registered_cls"))
    return [] if runs else [name for name in MO_METHODS if callable(getattr(cls, name, None))]


def check_used(file: str, module: ModuleType, modules: Iterable[ModuleType]) -> None:
    """UsageError for a file that declares nothing that can run, and that no other file imports from."""
    others = [m for m in modules if m is not module]
    for other in others:
        for value in vars(other).values():
            is_package = hasattr(other, "__path__")  # which has every module of it
            if (value is module and not is_package) or getattr(value, "__module__", None) == module.__name__:
                return
    own = [k for k, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
    shown = ", ".join(own) or "nothing"
    raise UsageError(f"--extensions: {file}: a file must declare what runs: {KINDS}; got {shown}")
