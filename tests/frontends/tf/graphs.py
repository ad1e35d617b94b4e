"""Messages of TensorFlow for tests: nodes with attributes, functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

messages = pytest.importorskip("aot.frontends.tf.files.messages", exc_type=ImportError)
FLOAT, INT32, STRING, INT64, BOOL = 1, 3, 7, 9, 10


def node(graph: Any, op: str, name: str, *inputs: str, **attrs: Any) -> Any:
    """Add a node. Attributes: numbers, texts of functions (`f=...`), types as `T_type`, shapes as lists."""
    made = graph.add(name=name, op=op, input=inputs)
    for key, value in attrs.items():
        held = made.attr[key.removesuffix("_type")]
        match value:
            case bool():
                held.b = value
            case int() if key.endswith("_type") or key in ("T", "dtype"):
                held.type = value
            case int():
                held.i = value
            case bytes():
                held.s = value
            case str():
                held.func.name = value
            case _ if isinstance(value, list):
                held.shape.SetInParent()
                for d in value:
                    held.shape.dim.add(size=d)
            case _:
                held.tensor.CopyFrom(value)
    return made


def tensor(dtype: int, shape: Sequence[int], **fields: Any) -> Any:
    made = messages.TensorProto(dtype=dtype, **fields)
    made.tensor_shape.SetInParent()
    for d in shape:
        made.tensor_shape.dim.add(size=d)
    return made


def graph(*nodes: tuple[Any, ...]) -> Any:
    """A GraphDef with a placeholder `x` of [2] floats, and nodes: (op, name, *inputs, attributes)."""
    made = messages.GraphDef()
    node(made.node, "Placeholder", "x", dtype=FLOAT, shape=[2])
    for op, name, *rest in nodes:
        attrs = rest.pop() if rest and isinstance(rest[-1], dict) else {}
        node(made.node, op, name, *rest, **attrs)
    return made


def function(
    made: Any, name: str, *nodes: tuple[Any, ...], returns: str = "y:y:0", inputs: Sequence[str] = ("a",)
) -> Any:
    """Add a function of floats with one output."""
    one = made.library.function.add()
    one.signature.name = name
    for a in inputs:
        one.signature.input_arg.add(name=a, type=FLOAT)
    one.signature.output_arg.add(name="out", type=FLOAT)
    for op, label, *rest in nodes:
        attrs = rest.pop() if rest and isinstance(rest[-1], dict) else {}
        node(one.node_def, op, label, *rest, **attrs)
    one.ret["out"] = returns
    return one


def written(folder: Path, made: Any, name: str = "graph.pb") -> Path:
    path = folder / name
    path.write_bytes(made.SerializeToString())
    return path


def saved_model(folder: Path, made: Any, *, inputs: Sequence[str] = ("x",), outputs: Sequence[str] = ("y",)) -> Path:
    """A SavedModel without variables."""
    model = messages.SavedModel(saved_model_schema_version=1)
    meta = model.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.CopyFrom(made)
    signature = meta.signature_def["serving_default"]
    for side, names in ((signature.inputs, inputs), (signature.outputs, outputs)):
        for name in names:
            side[name].name = f"{name}:0"
            side[name].dtype = FLOAT
    folder.mkdir(exist_ok=True)
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    return folder
