"""Data classes whose methods are written when one of them is first used.

`dataclasses.dataclass` writes and compiles six methods for each class: for the hundreds of operations, passes and
nodes that is two thirds of the time of importing them, and a compilation uses few of them. What shows, compares and
hashes objects is not compiled for each class at all: it reads the fields by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from threading import RLock
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn

Values = Callable[[Any], tuple[Any, ...]]
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
            documented = self.cls.__doc__
            self.cls.__doc__ = documented or self.cls.__name__  # for none, dataclasses writes the signature: slow
            dataclasses.dataclass(frozen=self._frozen, repr=False, eq=False)(self.cls)
            self.cls.__doc__ = documented
            self._add_general()
            for name, place in slots.items():
                setattr(self.cls, name, place)

    def _add_general(self) -> None:
        """Add the methods that the class does not define and that need no code of their own."""
        own, all_ = vars(self.cls), dataclasses.fields(self.cls)
        made: dict[str, object] = {}
        if "__repr__" not in own:
            made["__repr__"] = _text([f.name for f in all_ if f.repr])
        if self._eq and "__eq__" not in own:
            made["__eq__"] = _equality(_values([f.name for f in all_ if f.compare]))
        if self._eq and self._frozen and own.get("__hash__") is None:
            made["__hash__"] = _hash(_values([f.name for f in all_ if (f.compare if f.hash is None else f.hash)]))
        for name, method in made.items():
            setattr(self.cls, name, method)


class _Method:
    """Stands for a method until one asks for it: then all of them are written."""

    def __init__(self, later: _Later, name: str) -> None:
        self._later, self._name = later, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self._later.complete()
        return vars(self._later.cls)[self._name].__get__(instance, owner)


def _values(names: list[str]) -> Values:
    """Return the function that gives the values of these fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _text(names: list[str]) -> Callable[[Any], str]:
    """Return the function that shows an object as `dataclasses` does: its class, and these fields."""
    form, values = "%s(" + ", ".join(f"{name}=%r" for name in names) + ")", _values(names)

    @recursive_repr()
    def shown(self: Any) -> str:
        return form % (type(self).__qualname__, *values(self))

    return shown


def _equality(values: Values) -> Callable[[Any, object], bool]:
    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(values: Values) -> Callable[[Any], int]:
    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


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
