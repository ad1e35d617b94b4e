"""Requests and answers of the protocol's HTTP form: JSON, and tensors as raw bytes after it.

{"inputs": [{"name", "shape", "datatype", "data" | "parameters": {"binary_data_size"}}], "outputs": [...]} raw raw ...
"""

from __future__ import annotations

from typing import cast

import numpy as np

from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import UsageError
from aot.serve.datatypes import check_datatype, checked_shape, from_json, from_raw, metadata_of, to_json, to_raw
from aot.serve.json_texts import fragment, request_tree, written
from aot.serve.protocol import Answer, Call, check_parameters, checked_id, input_of, outputs_of, timeout_of
from aot.serve.served_model import ServedModel

LENGTH_HEADER = "inference-header-content-length"
Json = dict[str, object]


def parse(served: ServedModel, body: bytes, header: str | None) -> Call:
    """Return the request in `body`; `header`: how many of its bytes are JSON, None for all. UsageError."""
    length = len(body) if header is None else _length(header, len(body))
    try:
        tree = request_tree(body[:length])
    except ValueError as error:
        raise UsageError(f"request: must be JSON, got {str(error)[:200]}") from None
    root = _object("request", tree)
    parameters = _parameters("request", root)
    check_parameters("request", parameters)
    raw = _Raw(memoryview(body)[length:])
    inputs = dict[str, Array]()
    for item in _objects(root, "inputs"):
        name = _text("input", item, "name")
        if name in inputs:
            raise UsageError(f"input '{name[:80]}': must be given once, got another")
        inputs[name] = _array(served, name, item, raw)
    if not raw.at_end:
        raise UsageError("request: bytes behind the JSON must belong to an input, got more of them")
    requested = _objects(root, "outputs") if root.get("outputs") is not None else []
    outputs = outputs_of(served, [_text("output", item, "name") for item in requested])
    for item in requested:
        check_parameters("output", _parameters("output", item))
    call = Call(inputs, outputs, checked_id(root.get("id", "")), timeout_of(parameters))
    default = parameters.get("binary_data_output") is True
    wishes = {
        _text("output", item, "name"): _parameters("output", item).get("binary_data", default) for item in requested
    }
    call.binary = {info.name for info in outputs if wishes.get(info.name, default) is True}
    return call


def render(call: Call, answer: Answer) -> tuple[bytes, int | None]:
    """Return the body of an answer, and how many of its bytes are JSON if others follow."""
    outputs: list[Json] = []
    raw: list[bytes] = []
    for info in call.outputs:
        array = answer.results[info.name]
        entry = metadata_of(info) | {"shape": list(array.shape)}
        if info.name in call.binary:
            raw.append(to_raw(info, array))
            entry["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            entry["data"] = to_json(info, array)
        outputs.append(entry)
    tree: Json = {"model_name": answer.served.name, "model_version": answer.served.version, "outputs": outputs}
    if call.id:
        tree["id"] = fragment(call.id)
    text = written(tree)
    return b"".join((text, *raw)), len(text) if raw else None


class _Raw:
    """The bytes after the JSON, which inputs take in their order."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, name: str, size: object) -> memoryview:
        left = len(self._data) - self._at
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= left:
            raise UsageError(f"input '{name}': binary_data_size must be from 0 to {left}, got {str(size)[:20]}")
        self._at += size
        return self._data[self._at - size : self._at]


def _array(served: ServedModel, name: str, item: Json, raw: _Raw) -> Array:
    info = input_of(served, name)
    check_datatype(info, item.get("datatype"))
    shape = checked_shape(name, item.get("shape"))
    parameters = _parameters(f"input '{name}'", item)
    check_parameters(f"input '{name}'", parameters)
    if "binary_data_size" in parameters:
        return from_raw(info, shape, raw.take(name, parameters["binary_data_size"]))
    return np.asarray(from_json(info, shape, item.get("data")))


def _length(text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise UsageError(f"request: {LENGTH_HEADER} must be a number up to {most}, got {text[:20]}")
    return int(text)


def _object(what: str, value: object) -> Json:
    if not isinstance(value, dict):
        raise UsageError(f"{what}: must be an object, got {type(value).__name__}")
    return cast(Json, value)


def _objects(root: Json, key: str) -> list[Json]:
    value = root.get(key)
    if not isinstance(value, list):
        raise UsageError(f"request: {key} must be a list, got {type(value).__name__}")
    return [_object(key, item) for item in cast(list[object], value)]


def _parameters(what: str, item: Json) -> Json:
    value = item.get("parameters")
    return {} if value is None else _object(f"{what}: parameters", value)


def _text(what: str, item: Json, key: str) -> str:
    value = item.get(key)
    if not isinstance(value, str):
        raise UsageError(f"{what}: {key} must be a text, got {type(value).__name__}")
    return value
