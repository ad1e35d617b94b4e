"""Options of a compilation as keywords: `compile_model(m, shapes={"x": (1, 3, "h", "w")}, target="x86-64-v3")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast, get_args, get_type_hints

from aot.options.declaration import Keyword
from aot.options.table import CompileOptions, options
from aot.options.typed import CompileKeywords
from aot.runtime.errors import UsageError


def with_keywords(given: CompileOptions | None, keywords: CompileKeywords) -> CompileOptions:
    """Return options with those in `keywords` changed. UsageError names an unknown option or a wrong value."""
    known = [name for name, row in options().items() if row.keyword]
    if unknown := sorted(keywords.keys() - known):
        raise UsageError(f"compile: an option must be one of {', '.join(known)}, got {unknown[0]}")
    return replace(given or CompileOptions(), **{name: _read(name, value) for name, value in keywords.items()})


def _read(name: str, value: object) -> Any:
    form = options()[name].keyword
    if not isinstance(form, Keyword):
        return _plain(name, value)
    if form.by_name:
        if not isinstance(value, Mapping):
            raise UsageError(f"compile: {name} must be a mapping by name, got {value!r}")
        return tuple(_entry(name, form, key, one) for key, one in cast("Mapping[object, object]", value).items())
    try:
        return form.read(value)
    except TypeError as error:
        raise UsageError(f"compile: {name} must be {form.form}, got {value!r}") from error


def _entry(name: str, form: Keyword, key: object, value: object) -> tuple[Any, ...]:
    try:
        if not isinstance(key, str):
            raise TypeError
        return form.read(key, value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"compile: {name} must have entries: {form.form}, got {key!r}: {value!r}") from error


def _plain(name: str, value: object) -> object:
    """Return the value of a keyword that has the type of its field; a number of floats may be an integer."""
    hint = _hints()[name]
    types: tuple[type, ...] = get_args(hint) or (hint,)
    types = (int, *types) if float in types else types
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        kinds = " or ".join("None" if t is type(None) else t.__name__ for t in types)
        raise UsageError(f"compile: {name} must be {kinds}, got {value!r}")
    return value


@lru_cache(maxsize=1)
def _hints() -> dict[str, Any]:
    return get_type_hints(CompileOptions)
