"""All operations, by name, and by type and operation set; those of extensions are in the scope of a compilation."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import MISSING, Field, field, fields
from importlib import import_module
from typing import Any, TypeVar, dataclass_transform

from aot.codegen.dataclass import dataclass
from aot.ir.op import Op
from aot.ir.scope import current, scope_for
from aot.runtime.errors import InternalError

T = TypeVar("T")
EXTENSION = "extension"
REGISTRY: dict[str, type[Op]] = {}
_BY_TYPE: dict[str, dict[int, type[Op] | None]] = {}
_SETS: dict[tuple[str, str], type[Op]] = {}  # operations by set and type, both in lower case
_LATER: list[str] = []  # modules whose import registers all operations


def attr(
    default: Any = MISSING,
    *,
    xml: str | None = None,
    since: str = "",
    before: Container[object] = (),
    only: tuple[str, object] | None = None,
) -> Any:
    """Declare an attribute with another name in XML, without a default, or extended by a later operation set.

    `since`: the set whose definition has the attribute, or allows more values. `before`: the values, besides the
    default, that older definitions allow; none if they do not have the attribute. `only`: the name and value that
    another attribute must have for files to hold this one.
    """
    metadata: dict[str, object] = {"only": only}
    if xml:
        metadata["xml"] = xml
    if since:
        metadata |= {"since": _number(since), "before": before}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


@dataclass_transform(frozen_default=True, field_specifiers=(attr, field))
def op(*opsets: str, type: str = "", xml: str = "") -> Callable[[type[T]], type[T]]:
    """Register an operation.

    `opsets`: the sets in which a versioned definition with this meaning was first registered; `extension`, or a name
    that the user chose, is a set of operations that OpenVINO does not have. `type`: the operation's name if the class
    has another one (`Interpolate_4`); `xml`: its spelling in IR files if that differs (`ReLU`). An operation without
    opsets is internal: passes create it, no file has it.
    """

    def register(cls: Any) -> Any:
        definition = dataclass(frozen=True)(cls)
        definition.type = type or cls.__name__
        definition.xml_type = xml or definition.type
        definition.opset = opsets[0] if opsets else ""
        scope = scope_for(cls.__module__)
        names = REGISTRY if scope is None else scope.operations
        types: dict[str, dict[int, Any]] = _BY_TYPE if scope is None else scope.types
        built_in = REGISTRY if scope is None else all_operations()
        known = built_in.get(cls.__name__, names.get(cls.__name__))
        own = not any(map(is_numbered, opsets)) and bool(opsets)
        if known is not None and not (own and known.opset == definition.opset):  # extensions may redefine their own
            raise InternalError(f"operation {cls.__name__} is registered twice")
        names[cls.__name__] = definition
        sets = _SETS if scope is None else scope.sets
        for name in opsets:
            if is_numbered(name):
                types.setdefault(definition.type.lower(), {})[_number(name)] = definition
            else:
                sets[name.lower(), definition.type.lower()] = definition
        return definition

    return register


def register_later(module: str) -> None:
    """Import a module as soon as an unknown operation is looked up; the import registers more operations."""
    _LATER.append(module)


def all_operations() -> Mapping[str, type[Op]]:
    """Return all built-in operations by name, including modules that nothing has imported yet."""
    for module in _LATER:
        import_module(module)
    return REGISTRY


def is_numbered(opset: str) -> bool:
    """True for the name of one of OpenVINO's sets, `opset13`."""
    return re.fullmatch(r"opset\d{1,3}", opset) is not None


def _number(opset: str) -> int:
    return int(opset.removeprefix("opset"))


def _order(opset: str) -> int:
    """Return the number of a set; 0 for sets that OpenVINO lacks, since their definitions are never extended."""
    return _number(opset) if is_numbered(opset) else 0


def absent(type_name: str, *opsets: str) -> None:
    """Declare that from these sets on a type has another, unimplemented meaning: `find` returns no older class."""
    for name in opsets:
        _BY_TYPE.setdefault(type_name.lower(), {}).setdefault(_number(name), None)


def find(type_name: str, opset: int | str) -> type[Op] | None:
    """Return the definition of a type in operation set `opset`, ignoring case, or None.

    `opset`: the number of one of OpenVINO's sets, or the name of a user's set; 0: `extension`.
    """
    if isinstance(opset, str) or opset == 0:
        key = opset.lower() if isinstance(opset, str) else EXTENSION, type_name.lower()
        if key not in current().sets and key not in _SETS:
            all_operations()
        return current().sets.get(key) or _SETS.get(key)
    names = {"const": "constant"}
    key = names.get(type_name.lower(), type_name.lower())
    if key not in _BY_TYPE:  # all definitions of a type are in one module
        all_operations()
    versions = _versions(key)
    fitting = [n for n in versions if n <= opset]
    return versions[max(fitting)] if fitting else None


def operation(name: str) -> type[Op] | None:
    """Return the operation class of that name, built in or of the active extensions; None if there is none."""
    return current().operations.get(name) or REGISTRY.get(name) or all_operations().get(name)


def _versions(type_name: str) -> Mapping[int, type[Op] | None]:
    """Return the definitions of a type by the number of their set."""
    return _BY_TYPE.get(type_name, {}) | current().types.get(type_name, {})


def opsets_of(cls: type[Op]) -> tuple[int, ...]:
    """Return the operation sets that first registered definitions with this meaning."""
    return tuple(sorted(n for n, definition in _versions(cls.type.lower()).items() if definition is cls))


def definition_of(op: Op) -> str | None:
    """Return the operation set that defines an operation with these attributes; None if no set does.

    It is the first set that has all attributes and values, if the definitions of the class differ in these
    (`attr(since=)`); else the last set, which has the widest definition.
    """
    sets = opsets_of(type(op))
    later = [f for f in attributes(op) if "since" in f.metadata]
    needed = [f.metadata["since"] for f in later if not _is_old(f, getattr(op, f.name))]
    fitting = [n for n in sets if n >= max(needed, default=0)]
    if not fitting:
        own = type(op).opset
        return own if own and not is_numbered(own) else None
    number = fitting[0] if any(f.metadata["since"] in sets for f in later) else fitting[-1]
    return f"opset{number}"


def is_written(op: Op, field: Field[Any], opset: str) -> bool:
    """True if files hold an attribute of an operation, in the definition of operation set `opset`.

    An empty list that is the default is left out, because OpenVINO reads an empty list as an explicit one.
    """
    value, only = getattr(op, field.name), field.metadata.get("only")
    known = bool(field.metadata.get("before")) or _order(opset) >= field.metadata.get("since", 0)
    return known and not (value == () == field.default) and (only is None or getattr(op, only[0]) == only[1])


def _is_old(field: Field[Any], value: object) -> bool:
    """True if the first definition allows a value of an attribute."""
    return value == field.default or value in field.metadata["before"]


def attributes(cls: type[Op] | Op) -> tuple[Field[Any], ...]:
    return fields(cls)
