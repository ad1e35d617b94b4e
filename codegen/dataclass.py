"""Data classes whose methods are written when one of them is first used.

`dataclasses.dataclass` writes and compiles six methods for each class: for the hundreds of operations, passes and
nodes that is two thirds of the time of importing them, and a compilation uses few of them.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from inspect import get_annotations
from threading import RLock
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn

COMPLETING = RLock()  # held while a class is changed: an exception that another thread raises would leave half of it
_FIELDS = "__dataclass_fields__"

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        """Return a data class as `dataclasses.dataclass` makes it, with methods that are written later."""
        if cls is None:
            return partial(dataclass, frozen=frozen, slots=slots, eq=eq)
        names = [
            n for n, type_ in get_annotations(cls).items() if not str(type_).startswith(("ClassVar", "typing.ClassVar"))
        ]
        defaults = {n: vars(cls)[n] for n in names if n in vars(cls)}
        inherited = (n for base in reversed(cls.__mro__[1:]) for n in vars(base).get("__match_args__", ()))
        if slots:
            cls = _slotted(cls, names)
        if "__match_args__" not in vars(cls):
            cls.__match_args__ = tuple(dict.fromkeys((*inherited, *names)))
        later = _Later(cls, defaults, frozen, eq)
        setattr(cls, _FIELDS, later)
        for name in later.methods:
            setattr(cls, name, _Method(later, name))
        if eq and not frozen and "__hash__" not in vars(cls):
            cls.__hash__ = None
        if frozen:
            cls.__setattr__, cls.__delattr__ = _refuse, _refuse
            if slots and "__getstate__" not in vars(cls):
                cls.__getstate__, cls.__setstate__ = _state, _set_state
        return cls


class _Later:
    """Stands for the fields of a class until one asks for them: then the methods are written."""

    def __init__(self, cls: type, defaults: dict[str, Any], frozen: bool, eq: bool) -> None:
        self.cls, self._defaults, self._frozen, self._eq = cls, defaults, frozen, eq
        names = ("__init__", "__repr__", *(("__eq__",) if eq else ()), *(("__hash__",) if eq and frozen else ()))
        self.methods = [n for n in names if n not in vars(cls)]

    def __get__(self, instance: object, owner: type | None = None) -> dict[str, dataclasses.Field[Any]]:
        self.complete()
        return getattr(self.cls, _FIELDS)

    def complete(self) -> None:
        """Write the methods, unless another thread has done so."""
        with COMPLETING:
            if vars(self.cls)[_FIELDS] is not self:
                return
            for name in (*self.methods, *(("__setattr__", "__delattr__") if self._frozen else ())):
                delattr(self.cls, name)
            slots = {n: d for n, d in vars(self.cls).items() if isinstance(d, MemberDescriptorType)}
            for name, default in self._defaults.items():  # the class of slots has none
                setattr(self.cls, name, default)
            dataclasses.dataclass(frozen=self._frozen, eq=self._eq)(self.cls)
            for name, place in slots.items():
                setattr(self.cls, name, place)


class _Method:
    """Stands for a method until one asks for it: then all of them are written."""

    def __init__(self, later: _Later, name: str) -> None:
        self._later, self._name = later, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self._later.complete()
        return vars(self._later.cls)[self._name].__get__(instance, owner)


def _slotted(cls: type, names: list[str]) -> Any:
    """Return the same class with slots."""
    taken = {n for base in cls.__mro__[1:] for n in vars(base).get("__slots__", ())}
    body = {n: v for n, v in vars(cls).items() if n not in (*names, "__dict__", "__weakref__")}
    made = type(cls)(cls.__name__, cls.__bases__, body | {"__slots__": tuple(n for n in names if n not in taken)})
    made.__qualname__ = cls.__qualname__
    return made


def _refuse(self: object, name: str, value: object = None) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
