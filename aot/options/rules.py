"""Rules for the values of options, which `CompileOptions` checks when it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from aot.options.declaration import Rule

AUTO, EXACT, ROUNDED = "auto", "f32", "int8"  # data of products: by what the weights are, as they come, in 8 bits
KINDS = ("int4", "int8", "bf16")  # types of weights with fewer bits than in the file
_ACTIVATIONS = (AUTO, EXACT, ROUNDED)


def _all_in_tuple(holds: Callable[[Any], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, tuple) and all(map(holds, cast("tuple[Any, ...]", value)))


def _is_one_of(*values: str | None) -> Callable[[object], bool]:
    return lambda value: value in values


def _is_numbers(entry: object) -> bool:
    pair: list[object] = list(cast("tuple[object, ...]", entry)) if isinstance(entry, tuple) else []
    if len(pair) != 2 or not isinstance(pair[0], str | int) or not isinstance(pair[1], tuple):
        return False
    numbers = cast("tuple[object, ...]", pair[1])
    return bool(numbers) and all(isinstance(n, int | float) for n in numbers)


def _is_named(entry: object) -> bool:
    return isinstance(entry, tuple) and len(cast("tuple[object, ...]", entry)) > 1 and isinstance(entry[0], str)


def _is_place(value: object) -> bool:
    numbers = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (None,)
    return len(numbers) in (0, 2) and all(type(n) is int and n >= 0 for n in numbers)


NAMES = Rule(_all_in_tuple(lambda name: isinstance(name, str)), "must be a tuple of names")
NUMBERS = Rule(_all_in_tuple(_is_numbers), "must be a tuple of pairs of an input and numbers")
NAMED = Rule(_all_in_tuple(_is_named), "must be a tuple of tuples that begin with a name")
OFFSETS = Rule(_is_place, "must be a row and a column, from 0")
POSITIVE = Rule(lambda value: value is None or value > 0, "must be above 0")
WEIGHTS = Rule(_is_one_of(None, *KINDS), f"must be {', '.join(KINDS[:-1])} or {KINDS[-1]}")
ACTIVATIONS = Rule(_is_one_of(*_ACTIVATIONS), f"must be {', '.join(_ACTIVATIONS[:-1])} or {ROUNDED}")
