"""The form of a configuration file: a list of entries, each checked field by field.

    id                              text; the `replacement_id` of a transformation
    match_kind                      scope, points or general
    instances                       scope: expressions for scopes; points: {"start_points": [...], "end_points": [...]}
    custom_attributes               an object, given to the transformation
    inputs                          for each tensor read: [{"node": expression, "port": number}, ...]
    outputs                         [{"node": expression, "port": number}, ...]
    include_inputs_to_sub_graph     true or false
    include_outputs_to_sub_graph    true or false
    op                              text: the operation that replaces the sub-graph

Source: Model Optimizer 2024.6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from aot.mo.utils.error import Error
from aot.runtime.errors import CorruptError
from aot.runtime.regular import open_file

KINDS = ("scope", "points", "general")
MAX_BYTES = 1 << 26
_POINTS = ("start_points", "end_points")

Entry = dict[str, Any]


def read_entries(path: Path) -> list[Entry]:
    """Return the entries of a file. CorruptError names the file, the entry's id and the field that is wrong."""
    try:
        with open_file(path, "transformations-config") as stream:
            text = stream.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise CorruptError(f"{path.name}: a configuration file has at most {MAX_BYTES} bytes, got more")
        found: object = json.loads(text.decode())
    except OSError as error:
        raise Error("transformations-config: a file that can be read, got {}: {}", path, error.strerror) from error
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"{path.name}: a configuration file is JSON, got {_where(error)}") from error
    if not isinstance(found, list):
        raise CorruptError(f"{path.name}: a configuration file is a list of entries, got {_shown(found)}")
    entries = cast("list[object]", found)
    return [_checked(path.name, i, entry) for i, entry in enumerate(entries)]


def _where(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        hint = " (`\\\\` is one backslash in JSON)" if "escape" in error.msg else ""
        return f"{error.msg} in line {error.lineno}, column {error.colno}{hint}"
    return "text that is nested too deeply" if isinstance(error, RecursionError) else "bytes that are no UTF-8 text"


def _shown(value: object) -> str:
    return json.dumps(value)[:60]


def _checked(file: str, index: int, entry: object) -> Entry:
    label = f"{file}: entry {index + 1}"
    if not isinstance(entry, dict):
        raise CorruptError(f"{label}: an entry is an object, got {_shown(entry)}")
    fields = cast("Entry", entry)
    if isinstance(fields.get("id"), str) and fields["id"]:
        label = f"{file}: {fields['id']}"
    for name, (rule, holds) in _FIELDS.items():
        if name not in fields:
            if name in ("id", "match_kind"):
                raise CorruptError(f"{label}: {name} must be given: {rule}")
        elif not holds(fields[name]):
            raise CorruptError(f"{label}: {name}: {rule}, got {_shown(fields[name])}")
    kind = fields["match_kind"]
    if kind == "general":
        return fields
    rule, holds = _INSTANCES[kind]
    if "instances" not in fields:
        raise CorruptError(f"{label}: instances must be given for {kind}: {rule}")
    if not holds(fields["instances"]):
        raise CorruptError(f"{label}: instances: {rule}, got {_shown(fields['instances'])}")
    return fields


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and v for v in cast("list[object]", value))


def _expression(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        re.compile(value)
    except re.error:
        return False
    return True


def _scopes(value: object) -> bool:
    return _texts(value) and bool(value) and all(map(_expression, cast("list[str]", value)))


def _points(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    found = cast("dict[str, object]", value)
    return all(_texts(found.get(name)) and bool(found[name]) for name in _POINTS)


def _end(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    found = cast("dict[str, object]", value)
    port = found.get("port")
    return _expression(found.get("node")) and isinstance(port, int) and not isinstance(port, bool) and port >= 0


def _list_of(holds: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(holds, cast("list[object]", value)))


_END = '{"node": expression for names, "port": number}'
_FLAG: tuple[str, Callable[[object], bool]] = ("true or false", lambda v: isinstance(v, bool))
_FIELDS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "id": ("a text", lambda v: isinstance(v, str) and bool(v)),
    "match_kind": (f"one of {', '.join(KINDS)}", lambda v: v in KINDS),
    "custom_attributes": ("an object", lambda v: isinstance(v, dict)),
    "inputs": (f"a list of lists of {_END}", _list_of(_list_of(_end))),
    "outputs": (f"a list of {_END}", _list_of(_end)),
    "include_inputs_to_sub_graph": _FLAG,
    "include_outputs_to_sub_graph": _FLAG,
    "op": ("a text", lambda v: isinstance(v, str)),
}
_INSTANCES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "scope": ("a list of regular expressions for scopes of names", _scopes),
    "points": ('{"start_points": [names], "end_points": [names]}', _points),
}
