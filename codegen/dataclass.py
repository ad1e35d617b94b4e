"""Data classes that write their methods when one of them is first used.

`dataclasses.dataclass` writes and compiles six methods for each class: for the hundreds of operations, passes and
nodes that is two thirds of the time of importing them, and a compilation uses few of them. None is compiled for each
class here. What shows, compares and hashes objects reads the fields by name; what makes them is compiled once for each
number of fields and sorts of defaults, with names that are then replaced.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from copy import copy
from functools import cache, partial
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from threading import RLock
from types import CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn, cast

Fields = dict[str, dataclasses.Field[Any]]
Values = Callable[[Any], tuple[Any, ...]]
COMPLETING = RLock()  # held while a class is changed: an exception that another thread raises would leave half of it
MISSING = dataclasses.MISSING  # the default of a field that has none
_FIELDS, _PARAMETERS, _KIND = "__dataclass_fields__", "__dataclass_params__", "_field_type"  # names of `dataclasses`
_WITHOUT_PLACES = str.maketrans("", "", "in")  # sorts of fields without a parameter

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        """Return a data class as `dataclasses.dataclass` makes it, with methods that are written later."""
        if cls is None:
            return partial(dataclass, frozen=frozen, slots=slots, eq=eq)
        names = [n for n, t in get_annotations(cls).items() if not str(t).startswith(("ClassVar", "typing.ClassVar"))]
        defaults = {n: vars(cls)[n] if n in vars(cls) else _inherited(cls, n) for n in names}
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


@dataclasses.dataclass
class _Changing:
    one: int


@dataclasses.dataclass(frozen=True)
class _Frozen:
    one: int


class _Later:
    """Stands for the fields of a class until one asks for them or for a method: then all of these are made."""

    def __init__(self, cls: type, defaults: dict[str, Any], frozen: bool, eq: bool) -> None:
        """`defaults`: those of the class's own fields, or `dataclasses.Field`; MISSING for a field without one."""
        self.cls, self._defaults, self._frozen, self._eq = cls, defaults, frozen, eq
        names = ("__init__", "__repr__", *(("__eq__",) if eq else ()), *(("__hash__",) if eq and frozen else ()))
        self.methods = [n for n in names if n not in vars(cls)]

    def __get__(self, instance: object, owner: type | None = None) -> Fields:
        self.complete()
        return getattr(self.cls, _FIELDS)

    def complete(self) -> None:
        """Make fields and methods, unless another thread has done so."""
        with COMPLETING:
            if vars(self.cls)[_FIELDS] is not self:
                return
            fields: Fields = {}
            for base in reversed(self.cls.__mro__[1:]):
                fields |= getattr(base, _FIELDS, {}) if _FIELDS in vars(base) else {}
            types = get_annotations(self.cls)
            fields |= {n: self._field(n, types[n], default) for n, default in self._defaults.items()}
            self._add_methods(fields)
            like = _Frozen if self._frozen else _Changing
            methods = {_PARAMETERS: getattr(like, _PARAMETERS)} | (_refusals(self.cls, fields) if self._frozen else {})
            for name, value in {**methods, _FIELDS: fields}.items():
                setattr(self.cls, name, value)

    def _field(self, name: str, type_: object, default: Any) -> dataclasses.Field[Any]:
        """Return a field, and leave in the class what `dataclasses` leaves there: its default."""
        is_field = isinstance(default, dataclasses.Field)
        field: Any = copy(cast(object, default)) if is_field else dataclasses.field(default=default)
        field.name, field.type, field.kw_only = name, type_, False
        setattr(field, _KIND, getattr(dataclasses.fields(_Frozen)[0], _KIND))
        if is_field and field.default is not MISSING and "__slots__" not in vars(self.cls):
            setattr(self.cls, name, field.default)
        elif is_field and vars(self.cls).get(name) is default:
            delattr(self.cls, name)
        return field

    def _add_methods(self, fields: Fields) -> None:
        all_ = fields.values()
        methods: dict[str, object] = {
            "__init__": _initializer(fields, self._frozen, hasattr(self.cls, "__post_init__")),
            "__repr__": _text([f.name for f in all_ if f.repr]),
            "__eq__": _equality(_values([f.name for f in all_ if f.compare])),
            "__hash__": _hash(_values([f.name for f in all_ if (f.compare if f.hash is None else f.hash)])),
        }
        for name in self.methods:
            setattr(self.cls, name, methods[name])


def _inherited(cls: type, name: str) -> Any:
    """Return the default that a class inherits for a field."""
    method = getattr(cls, name, MISSING)
    return MISSING if isinstance(method, MemberDescriptorType) else method


class _Method:
    """Stands for a method until one asks for it: then all of them are written."""

    def __init__(self, later: _Later, name: str) -> None:
        self._later, self._name = later, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self._later.complete()
        return vars(self._later.cls)[self._name].__get__(instance, owner)


def _initializer(fields: Fields, frozen: bool, post: bool) -> FunctionType:
    """Return the function that makes an object of its fields."""
    sorts, names = "".join(map(_sort, fields.values())), {f"_{k}": name for k, name in enumerate(fields)}
    if "v" in sorts.translate(_WITHOUT_PLACES).lstrip("v"):
        raise TypeError(f"a field without a default follows one with a default: {', '.join(fields)}")
    code = _template(sorts.replace("d", "v"), frozen, post)
    code = code.replace(
        co_varnames=tuple(names.get(n, n) for n in code.co_varnames),
        co_names=tuple(names.get(n, n) for n in code.co_names),
        co_consts=tuple(names.get(c, c) if isinstance(c, str) else c for c in code.co_consts),
    )
    makers = {f"make_{k}": f.default_factory for k, f in enumerate(fields.values())}
    defaults = tuple(f.default for f, sort in zip(fields.values(), sorts, strict=True) if sort in "df")
    return FunctionType(code, {"set_": object.__setattr__, "missing_": MISSING, **makers}, "__init__", defaults)


def _sort(field: dataclasses.Field[Any]) -> str:
    """Return the kind of a field: v without a default, d with a default, f with a default factory.

    Fields of kinds i and n have no parameter: a factory sets the former, and the latter stay unset.
    """
    if field.default_factory is not MISSING:
        return "f" if field.init else "i"
    return "n" if not field.init else "v" if field.default is MISSING else "d"


@cache
def _template(sorts: str, frozen: bool, post: bool) -> CodeType:
    """Return the code that makes an object with these sorts of fields; their names are _0, _1, …"""
    lines = [f"def __init__(self{''.join(f', _{k}' for k, sort in enumerate(sorts) if sort in 'vf')}):"]
    for k, sort in enumerate(sorts):
        value = {"f": f"make_{k}() if _{k} is missing_ else _{k}", "i": f"make_{k}()"}.get(sort, f"_{k}")
        if sort != "n":
            lines.append(f" set_(self, '_{k}', {value})" if frozen else f" self._{k} = {value}")
    lines.append(" self.__post_init__()" if post else " return None")
    function_types: dict[str, FunctionType] = {}
    exec("\n".join(lines), function_types)
    return function_types["__init__"].__code__


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
    result = type(cls)(cls.__name__, cls.__bases__, body | {"__slots__": tuple(n for n in names if n not in taken)})
    result.__qualname__ = cls.__qualname__
    return result


def _refusals(cls: type, fields: Fields) -> dict[str, Callable[..., None]]:
    """Return the methods that set and delete attributes: none of the class, or those of its subclasses."""

    def change(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in fields:
            _refuse(self, name)
        super(cls, self).__setattr__(name, value)  # pyrefly: ignore[invalid-argument]  any class

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in fields:
            _refuse(self, name)
        super(cls, self).__delattr__(name)  # pyrefly: ignore[invalid-argument]  any class

    return {"__setattr__": change, "__delattr__": delete}


def _refuse(self: object, name: str, value: object = None) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
    if (finish := getattr(type(self), "__post_init__", None)) is not None:
        finish(self)
