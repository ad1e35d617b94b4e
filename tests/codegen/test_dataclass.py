"""Data classes whose methods are written when one is first used: they do what those of the standard library do."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import ClassVar

import pytest

from aot.codegen.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 3
    names: list[str] = field(default_factory=list[str])
    kind: ClassVar[str] = "point"


@dataclass(frozen=True)
class Base:
    a: int = 1


@dataclass(frozen=True)
class Below(Base):
    b: int = 2

    def __repr__(self) -> str:
        return "own"


@dataclass(slots=True)
class Counter:
    n: int

    def __post_init__(self) -> None:
        self.n += 1


@dataclass
class Lazy:
    given: list[int]
    made: list[int] = field(default_factory=list[int], init=False, compare=False)
    late: int = field(init=False, repr=False)


@dataclasses.dataclass(frozen=True)
class OfLibrary(Below):
    c: int = 3


@dataclass(eq=False)
class Same:
    n: int = 0


def test_values() -> None:
    assert Point(1) == Point(1, 3, [])
    assert repr(Point(1)) == "Point(x=1, y=3, names=[])"
    assert not hasattr(Point(1), "__dict__")
    assert replace(Point(1), x=5).x == 5
    assert pickle.loads(pickle.dumps(Point(2))) == Point(2)
    assert Counter(1).n == 2
    assert Same() != Same()
    with pytest.raises(FrozenInstanceError):
        Point(1).x = 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter(1))


def test_inheritance() -> None:
    assert [f.name for f in fields(Below)] == ["a", "b"]
    assert hash(Below()) == hash((1, 2))
    assert repr(Below()) == "own"
    match Below():
        case Below(a, b):
            assert (a, b) == (1, 2)


def test_fields_without_a_parameter() -> None:
    lazy = Lazy([1])
    assert list(inspect.signature(Lazy).parameters) == ["given"]
    assert lazy.made == [] and lazy.made is not Lazy([1]).made
    assert not hasattr(lazy, "late")
    lazy.late = 2
    assert repr(lazy) == "Lazy(given=[1], made=[])"


def test_a_class_of_the_library_may_be_below() -> None:
    assert [f.name for f in fields(OfLibrary)] == ["a", "b", "c"]
    assert replace(OfLibrary(), b=5) == OfLibrary(1, 5, 3)
    with pytest.raises(FrozenInstanceError):
        OfLibrary().a = 2


def test_a_signature_asks_for_the_methods() -> None:
    @dataclass(frozen=True)
    class Asked:
        x: int

    assert list(inspect.signature(Asked).parameters) == ["x"]
