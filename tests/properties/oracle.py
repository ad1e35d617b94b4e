"""A trial as a model of one layer, in the text that OpenVINO reads: attributes as files have them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np

from aot.ir.op import Op
from aot.ir.registry import attributes, opsets_of
from aot.ir.types import Array, dtype_of
from aot.runtime.abi import DType
from tests.frontends.openvino.irfile import network
from tests.properties.drawing import Trial


def text(value: Any) -> str:
    """An attribute's value, as files have it."""
    match value:
        case bool():
            return "true" if value else "false"
        case DType() | StrEnum():
            return str(value.value)
        case tuple():
            return ",".join(map(text, value))
        case float():
            return repr(value)
        case _:
            return str(value)


def fields(op: Op) -> dict[str, str]:
    """All attributes of an operation under their names in files; those without a value are left out."""
    named = {str(f.metadata.get("xml", f.name)): getattr(op, f.name) for f in attributes(op)}
    return {k: text(v) for k, v in named.items() if v is not None}


def layer(id: int, type: str, opset: str, data: dict[str, str], inputs: list[str], outputs: list[str]) -> str:
    attrs = "".join(f' {k}="{v}"' for k, v in data.items())
    given, made = "".join(inputs), "".join(outputs)
    ports = (f"<input>{given}</input>" if inputs else "") + (f"<output>{made}</output>" if outputs else "")
    return f'<layer id="{id}" name="l{id}" type="{type}" version="{opset}"><data{attrs}/>{ports}</layer>'


def port(id: int, dtype: DType, dims: tuple[int, ...]) -> str:
    sizes = "".join(f"<dim>{n}</dim>" for n in dims)
    return f'<port id="{id}" precision="{_precision(dtype)}">{sizes}</port>'


def _precision(dtype: DType) -> str:
    return {"f32": "FP32", "f64": "FP64", "f16": "FP16", "boolean": "BOOL"}.get(dtype.value, dtype.value.upper())


def model(trial: Trial, opset: str = "") -> tuple[str, bytes]:
    """XML and weights of a network with the trial's operation, an input and an output for each of its own."""
    op, weights, layers, edges = trial.op, b"", list[str](), list[str]()
    results = op.evaluate(*trial.arrays)
    own = len(trial.arrays)
    ports = []
    for k, array in enumerate(trial.arrays):
        if array is None:
            continue
        dtype = dtype_of(array)
        dims = ["?"] * array.ndim if trial.dynamic and k not in trial.fixed else [str(n) for n in array.shape]
        data = {"element_type": dtype.value, "shape": ",".join(dims)}
        if k in trial.fixed:
            weights += b"\0" * (-len(weights) % 64)
            data |= {"offset": str(len(weights)), "size": str(array.nbytes)}
            weights += np.ascontiguousarray(array).tobytes() or b"\0"
        shape = tuple(-1 if d == "?" else int(d) for d in dims)
        kind = "Const" if k in trial.fixed else "Parameter"
        layers.append(layer(k, kind, "opset1", data, [], [port(0, dtype, shape)]))
        edges.append(f"{k}.0->{own}.{k}")
        ports.append(port(k, dtype, shape))
    made = [port(own + n, dtype_of(r), _sizes(r, trial)) for n, r in enumerate(results)]
    name = opset or f"opset{opsets_of(type(op))[-1]}"
    layers.append(layer(own, op.xml_type, name, fields(op), ports, made))
    for n, result in enumerate(results):
        given = [port(0, dtype_of(result), _sizes(result, trial))]
        layers.append(layer(own + 1 + n, "Result", "opset1", {}, given, []))
        edges.append(f"{own}.{own + n}->{own + 1 + n}.0")
    return network(layers, " ".join(edges)), weights


def _sizes(result: Array, trial: Trial) -> tuple[int, ...]:
    return tuple(-1 if trial.dynamic else n for n in result.shape)
