"""Values of a request's fields, checked: whole numbers, reals, flags, lists, and fields that are refused."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import cast

from aot.runtime.errors import UsageError


class FieldError(UsageError):
    """A field of a request is wrong; `field` names it."""

    def __init__(self, field: str, rule: str, got: object) -> None:
        super().__init__(f"{field}: must be {rule}, got {str(got)[:60]}")
        self.field = field


def check_others(
    where: str, tree: Mapping[str, object], known: Collection[str], neutral: Mapping[str, tuple[object, ...]]
) -> None:
    """Raise FieldError for a field that is not known, unless it is null or has a value that changes nothing."""
    for field, value in tree.items():
        allowed = neutral.get(field, ())
        same = any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed)
        if field not in known and value is not None and not same:
            rule = f"{json.dumps(allowed[0])} or left out" if allowed else "left out"
            raise FieldError(f"{where}{field[:60]}", f"{rule} (others are not supported)", json.dumps(value))


def list_of(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def flag_of(tree: Mapping[str, object], field: str) -> bool:
    value = tree.get(field)
    if value is not None and not isinstance(value, bool):
        raise FieldError(field, "true or false", value)
    return bool(value)


def whole_of(tree: Mapping[str, object], field: str, default: int, least: int, most: int) -> int:
    value = tree.get(field)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < most:
        raise FieldError(field, f"an integer from {least}", value)
    return value


def real_of(tree: Mapping[str, object], field: str, default: float, least: float, most: float) -> float:
    value = tree.get(field)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise FieldError(field, f"a number from {least:g} to {most:g}", value)
    return float(value)


def object_of(value: object, field: str) -> dict[str, object]:
    """Return an object; FieldError for another value."""
    if not isinstance(value, dict):
        raise FieldError(field, "an object", json.dumps(value))
    return cast("dict[str, object]", value)
