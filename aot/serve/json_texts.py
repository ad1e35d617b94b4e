"""JSON of requests and answers: numbers of tensors are read into arrays and written from them, without Python objects.

`json` reads what simdjson refuses: it knows more (NaN, integers above 64 bits, UTF-16), and its errors name the place.
It calls itself for each level of lists. At Python's limit, finalizers that the collector of garbage calls would fail,
too, and leave memory behind: texts with that many levels are refused before.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

import numpy as np
import orjson
import simdjson

from aot.runtime.arrays.tensors import Array

_BUFFERS = {"FP": ("d", np.float64), "BF": ("d", np.float64), "IN": ("i", np.int64), "UI": ("i", np.int64)}
MAX_LEVELS = 100
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NO_BRACKETS = bytes({*range(256)} - {*b"[]{}"})


def request_tree(text: bytes) -> object:
    """Return the value of a text; an input's `data` is an array if it is a flat list of numbers of its datatype's kind.

    ValueError for a text that is not JSON, or too deep.
    """
    _check_levels(text)
    try:
        root: object = simdjson.Parser().parse(text)
        return _request(root, text) if isinstance(root, simdjson.Object) else _plain(root)
    except (ValueError, RuntimeError):
        return json.loads(text)


def json_tree(text: bytes | str) -> object:
    """Return the value of a text; ValueError for one that is not JSON, or too deep."""
    _check_levels(text.encode(errors="surrogatepass") if isinstance(text, str) else text)
    return json.loads(text)


def _check_levels(text: bytes) -> None:
    """Raise ValueError for more than MAX_LEVELS lists and objects in each other."""
    if text.count(b"[") + text.count(b"{") <= MAX_LEVELS:
        return
    brackets = np.frombuffer(_STRING.sub(b"", text).translate(None, _NO_BRACKETS), np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1)
    if (deepest := int(np.cumsum(steps).max(initial=0))) > MAX_LEVELS:
        raise ValueError(f"lists and objects can be at most {MAX_LEVELS} deep in each other, got {deepest}")


def written(tree: object) -> bytes:
    """Return the JSON of a tree, which may hold arrays and what `fragment` returns."""
    return orjson.dumps(tree, option=orjson.OPT_SERIALIZE_NUMPY)


def fragment(value: object) -> object:
    """Return a value for `written` that may hold NaN, infinity and halves of surrogate pairs: orjson refuses these."""
    return orjson.Fragment(json.dumps(value, separators=(",", ":")))


def _request(root: simdjson.Object, text: bytes) -> dict[str, object]:
    tree = _fields(root)
    items = list(tree["inputs"]) if isinstance(tree.get("inputs"), simdjson.Array) else []
    inputs = [_fields(item) for item in items if isinstance(item, simdjson.Object)]
    if len(inputs) < len(items):
        return cast(dict[str, object], root.as_dict())
    lists = sum(isinstance(value, simdjson.Array) for fields in (tree, *inputs) for value in fields.values())
    # a list in another one would be flattened, whatever its length is
    is_flat = np.count_nonzero(np.frombuffer(text, np.uint8) == ord("[")) == lists
    for fields in inputs:
        data, kind = fields.get("data"), str(fields.get("datatype"))
        if is_flat and isinstance(data, simdjson.Array):
            fields["data"] = _numbers(data, kind)
    if items:
        tree["inputs"] = [{name: _plain(value) for name, value in fields.items()} for fields in inputs]
    return {name: _plain(value) for name, value in tree.items()}


def _fields(item: simdjson.Object) -> dict[str, Any]:
    names = list(item)
    if len({*names}) < len(names):
        raise ValueError("a name occurs twice: simdjson would find the first, json finds the last")
    return {name: item[name] for name in names}


def _numbers(data: simdjson.Array, datatype: str) -> Array | list[object]:
    kind, dtype = _BUFFERS.get(datatype[:2], ("", None))
    try:
        return np.frombuffer(data.as_buffer(of_type=cast(Any, kind)), dtype)
    except (TypeError, ValueError):  # an empty list, or other elements: numbers of another kind, texts, null
        return _plain(data)


def _plain(value: Any) -> Any:
    if isinstance(value, simdjson.Array):
        return cast(Any, value).as_list()
    return value.as_dict() if isinstance(value, simdjson.Object) else value
