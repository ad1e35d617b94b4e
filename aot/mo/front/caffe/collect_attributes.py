"""Fields of Caffe's messages as attributes."""

from __future__ import annotations

from typing import Any


def collect_attributes(
    obj: Any, prefix: str = "", disable_omitting_optional: bool = False, enable_flattening_nested_params: bool = False
) -> dict[str, str]:
    """Return the fields that are set or have a default, as texts; those of messages within, too, by their own names."""
    attrs: dict[str, str] = {}
    for field in obj.DESCRIPTOR.fields:
        value = getattr(obj, field.name)
        name = f"{prefix}__{field.name}" if enable_flattening_nested_params and prefix else field.name
        if field.message_type is not None:
            for part in value if field.is_repeated else [value] if obj.HasField(field.name) else []:
                attrs |= collect_attributes(part, name, disable_omitting_optional, enable_flattening_nested_params)
        elif field.is_repeated:
            if len(value):
                attrs[name] = ",".join(str(v) for v in value)
        elif disable_omitting_optional or field.has_default_value or obj.HasField(field.name):
            attrs[name] = _text(field, value)
    return attrs


def _text(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        return f"{field.containing_type.full_name}.{field.enum_type.values_by_number[value].name}"
    return str(int(value)) if isinstance(value, bool) else str(value)


def merge_attrs(param: Any, update_attrs: dict[str, Any]) -> dict[str, Any]:
    """Return those of some attributes that the message has."""
    return {name: update_attrs[name] for name in collect_attributes(param) if name in update_attrs}
