"""Makes the cases of single operations in `op_cases`: graphs, inputs, and what TensorFlow gives for them.

    python tests/frontends/tf/make_op_cases.py [FAMILY ..]      needs tensorflow-cpu 2.21; not run by the tests

A family is one zip: `graph.pb`, a GraphDef with all cases side by side; `graph_dynamic.pb`, those cases whose sizes are
left open, without attributes that have their default; `cases.json`, names and places of inputs and outputs;
`data.bin`, their elements. The tables of cases are the Python files in `op_cases`, beside the zips that they become.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
import tensorflow as tf
from tensorflow.python.framework import meta_graph, op_def_library

HERE = Path(__file__).parent
FAMILIES = (
    "elementwise",
    "reduction",
    "products",
    "quantization",
    "shape",
    "movement",
    "gather",
    "segments",
    "diagonals",
    "sparse",
    "convolution",
    "pooling",
    "normalization",
    "recurrent",
    "resize",
    "boxes",
    "random",
)
PLAIN = {tf.quint8: tf.uint8, tf.qint8: tf.int8, tf.qint32: tf.int32}
TYPES = {np.dtype(np.complex64): np.float32, np.dtype(np.complex128): np.float64}


class Known:
    """A constant of the graph."""

    def __init__(self, value: Any, dtype: Any = None) -> None:
        self.value = np.asarray(value, dtype)


class Row:
    """An array that is fed; sizes of some axes, of the last one unless it says others, are never left open."""

    def __init__(self, value: Any, *known: int) -> None:
        self.value, self.known = np.asarray(value), known or (-1,)


class Bytes:
    """Bytes that are fed and taken as a quantised type."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)


def quantized(dtype: Any) -> Any:
    return {np.dtype(np.uint8): tf.quint8, np.dtype(np.int8): tf.qint8}[np.dtype(dtype)]


@dataclass
class Case:
    """One operation: inputs in the order of its definition, lists for lists; arrays are fed, `Known` is constant."""

    op: str
    inputs: list[Any]
    attrs: dict[str, Any]
    outputs: list[int] | None = None  # all of them, or those that are compared
    dynamic: bool = True  # True if a second case leaves all sizes open
    tolerance: float = 0.0  # of f32, where an operation has its own


def case(
    op: str, *inputs: Any, outputs: list[int] | None = None, dynamic: bool = True, tolerance: float = 0.0, **attrs: Any
) -> Case:
    return Case(op, list(inputs), attrs, outputs, dynamic, tolerance)


@dataclass
class Made:
    """A graph under construction."""

    graph: tf.Graph = field(default_factory=tf.Graph)
    feeds: dict[Any, Any] = field(default_factory=dict)
    cases: list[dict[str, Any]] = field(default_factory=list)
    fetches: list[Any] = field(default_factory=list)


def placeholder(
    made: Made, value: np.ndarray, name: str, dynamic: bool, entry: dict[str, Any], known: tuple[int, ...] = ()
) -> Any:
    shape = [None] * value.ndim if dynamic else list(value.shape)
    for axis in known:
        shape[axis] = value.shape[axis]
    with tf.name_scope(""):
        port = tf.compat.v1.placeholder(value.dtype, shape, name)
    made.feeds[port] = value
    entry["inputs"].append((name, value))
    return port


def defaults(definition: Any) -> dict[str, Any]:
    """Default values of the attributes that inputs do not decide."""
    inputs = {n for a in definition.input_arg for n in (a.type_attr, a.number_attr, a.type_list_attr)}
    found: dict[str, Any] = {}
    for one in definition.attr:
        kind = one.default_value.WhichOneof("value")
        if kind is None or one.name in inputs:
            continue
        value = getattr(one.default_value, kind)
        if kind == "list":
            value = next((list(v) for _, v in value.ListFields()), [])
        found[one.name] = value.decode() if isinstance(value, bytes) else value
    return found


def add(made: Made, made_case: Case, number: int, dynamic: bool) -> None:
    """Add a case to the graph."""
    prefix = f"c{number}"
    entry: dict[str, Any] = {
        "name": f"{made_case.op}-{number}",
        "inputs": [],
        "outputs": [],
        "tolerance": made_case.tolerance,
    }
    count = 0

    def port(value: Any) -> Any:
        nonlocal count
        if isinstance(value, list):
            return [port(v) for v in value]
        if isinstance(value, Known):
            return tf.constant(value.value)
        if isinstance(value, Bytes):
            return tf.bitcast(port(value.value), quantized(value.value.dtype))
        known = value.known if isinstance(value, Row) else ()
        value, name = np.asarray(value.value if isinstance(value, Row) else value), f"{prefix}_x{count}"
        count += 1
        if value.dtype in TYPES:
            parts = [
                placeholder(made, np.array(p), f"{name}{n}", dynamic, entry)
                for n, p in (("r", value.real), ("i", value.imag))
            ]
            return tf.raw_ops.Complex(real=parts[0], imag=parts[1], Tout=value.dtype)
        return placeholder(made, value, name, dynamic, entry, known)

    with made.graph.as_default(), tf.name_scope(prefix + "/"):
        definition = made.graph.op_def_for_type(made_case.op)
        names = [a.name for a in definition.input_arg]
        inputs = dict(zip(names, map(port, made_case.inputs), strict=True))
        found = op_def_library.apply_op(made_case.op, **inputs, **defaults(definition) | made_case.attrs)
        ports = list(found) if isinstance(found, (tuple, list)) else [found]
        ports = [q for p in ports for q in (p if isinstance(p, list) else [p])]
        for k in range(len(ports)) if made_case.outputs is None else made_case.outputs:
            parts = [ports[k]]
            if ports[k].dtype in PLAIN:
                parts = [tf.bitcast(ports[k], PLAIN[ports[k].dtype])]
            if ports[k].dtype.is_complex:
                parts = [tf.math.real(ports[k]), tf.math.imag(ports[k])]
            for n, part in enumerate(parts):
                name = f"{prefix}_y{k}{'ri'[n] if len(parts) > 1 else ''}"
                with tf.name_scope(""):
                    made.fetches.append(tf.identity(part, name))
                entry["outputs"].append(name)
    made.cases.append(entry)


def build(cases: list[Case], dynamic: bool) -> tuple[Made, list[np.ndarray]]:
    """A graph with all cases, and the values of its outputs."""
    made = Made()
    for number, one in enumerate(cases):
        if not dynamic or one.dynamic:
            try:
                add(made, one, number, dynamic)
            except Exception as error:
                raise SystemExit(f"{one.op} ({number}): {error}") from error
    with tf.compat.v1.Session(graph=made.graph) as session:
        return made, session.run(made.fetches, made.feeds)


def write(family: str) -> None:
    """Write the zip of a family."""
    cases = import_module(f"op_cases.{family}").CASES
    graphs: dict[str, bytes] = {}
    index: dict[str, Any] = {}
    data = bytearray()

    def kept(value: np.ndarray) -> list[Any]:
        value = np.asarray(value, order="C")
        if value.dtype.kind in "OS":  # strings
            return [
                "string",
                list(value.shape),
                [v.decode() if isinstance(v, bytes) else v for v in value.astype(object).reshape(-1)],
            ]
        place = len(data)
        data.extend(value.tobytes())
        return [str(value.dtype), list(value.shape), place]

    for name, dynamic in (("graph", False), ("graph_dynamic", True)):
        made, values = build(cases, dynamic)
        if not made.cases:
            continue
        meta = tf.compat.v1.MetaGraphDef(graph_def=made.graph.as_graph_def())
        if dynamic:  # files may leave attributes out that have their default
            meta_graph.strip_graph_default_valued_attrs(meta)
        graphs[name + ".pb"] = meta.graph_def.SerializeToString(deterministic=True)
        results = iter(values)
        index[name] = [
            {
                "name": entry["name"],
                "tolerance": entry["tolerance"],
                "inputs": [[n, *kept(v)] for n, v in entry["inputs"]],
                "outputs": [[n, *kept(next(results))] for n in entry["outputs"]],
            }
            for entry in made.cases
        ]
    path = HERE / "op_cases" / f"{family}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in (*graphs.items(), ("cases.json", json.dumps(index).encode()), ("data.bin", bytes(data))):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    sys.stdout.write(f"{family}: {len(cases)} cases, {path.stat().st_size} bytes\n")


class Numbers:
    """Small numbers, multiples of 1/8, so that files stay small; the same in each run."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def f32(self, *shape: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
        return (np.round(self.rng.uniform(low, high, shape) * 8) / 8).astype(np.float32)

    def ints(self, *shape: int, low: int = -9, high: int = 10, dtype: Any = np.int32) -> np.ndarray:
        return self.rng.integers(low, high, shape).astype(dtype)

    def bools(self, *shape: int) -> np.ndarray:
        return self.rng.integers(0, 2, shape).astype(bool)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    sys.modules["make_op_cases"] = sys.modules["__main__"]
    tf.compat.v1.disable_eager_execution()
    for chosen in sys.argv[1:] or FAMILIES:
        write(chosen)
