"""Print the attributes that Model Optimizer's extractors set; Python with `openvino-dev==2024.6.0` runs it, not ours.

    PYTHON benchmarks/model_optimizer/ask_extractors.py onnx|tf > extractors.jsonl

A line for each extractor and message: module, class, op, whether it is enabled, the operation set, the message
(base64) and the attributes that extraction set, as JSON (see `held`). TensorFlow needs the package tensorflow.
"""

from __future__ import annotations

import base64
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

OPSETS = (9, 11, 13)
SAMPLES = {  # values of attributes without a default
    "axes": [0, 1],
    "axis": 1,
    "blocksize": 2,
    "block_size": 2,
    "dilations": [1, 2],
    "ends": [3, 4],
    "strides": [2, 1],
    "kernel_shape": [3, 2],
    "pads": [1, 2, 3, 4],
    "perm": [1, 0, 2],
    "scales": [1.0, 2.0],
    "shape": [2, 3],
    "size": 5,
    "split": [1, 2],
    "starts": [0, 1],
    "to": 6,
}
LISTS = {"strides": [1, 2, 3, 1], "ksize": [1, 3, 2, 1], "dilations": [1, 2, 1, 1], "rates": [1, 2, 2, 1]}


def held(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, np.ma.MaskedArray):
        return {"array": value.filled(-1).tolist(), "type": str(value.dtype)}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "type": str(value.dtype)}
    if isinstance(value, np.generic):
        return {"array": value.item(), "type": str(value.dtype)}
    if isinstance(value, type):
        return {"class": np.dtype(value).name if issubclass(value, np.generic) else value.__name__}
    if hasattr(value, "perm") and hasattr(value, "inv"):
        return {"perm": held(value.perm), "inv": held(value.inv)}
    if isinstance(value, (list, tuple)):
        return [held(v) for v in value]
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {"object": "function" if callable(value) else type(value).__name__}


def onnx_messages(op: str) -> Iterator[tuple[int, Any]]:
    """Yield the operation set and messages of an operation: with attributes that must be there, and with all."""
    onnx: Any = importlib.import_module("onnx")

    def value(attribute: Any) -> Any:
        if attribute.name in SAMPLES:
            return SAMPLES[attribute.name]
        kind = attribute.type.name
        if kind == "TENSOR":
            return onnx.helper.make_tensor("value", onnx.TensorProto.FLOAT, [2], [1.5, 2.5])
        given = {"INT": 1, "FLOAT": 0.5, "STRING": "x", "INTS": [1, 2], "FLOATS": [0.5, 1.5], "STRINGS": ["x"]}
        return given.get(kind)

    for opset in OPSETS:
        try:
            schema = onnx.defs.get_schema(op, opset)
        except onnx.defs.SchemaError:
            continue
        least = {n: value(a) for n, a in schema.attributes.items() if a.required}
        every = {
            n: onnx.helper.get_attribute_value(a.default_value)
            for n, a in schema.attributes.items()
            if a.default_value.name
        }
        every = {**{n: value(a) for n, a in schema.attributes.items()}, **every}
        for attrs in (least, every):
            attrs = {n: v for n, v in attrs.items() if v is not None}
            yield opset, onnx.helper.make_node(op, ["a", "b"], ["y"], name="node", **attrs)


def fill_tf(made: Any, attribute: Any) -> None:
    """Give an attribute without a default a value."""
    kind = attribute.type
    allowed = attribute.allowed_values.list
    if kind == "type":
        made.type = next(iter(allowed.type), 1)
    elif kind == "string":
        made.s = next(iter(allowed.s), b"x")
    elif kind == "shape":
        made.shape.dim.add().size = 2
    elif kind == "tensor":
        made.tensor.dtype = 1
        made.tensor.tensor_shape.dim.add().size = 2
        made.tensor.float_val.extend([1.5, 2.5])
    elif kind in ("int", "bool"):
        setattr(made, kind[0], 2 if kind == "int" else True)
    elif kind.startswith("list("):
        made.list.SetInParent()


def tf_messages(op: str) -> Iterator[tuple[int, Any]]:
    """Yield a message of an operation, with the defaults of TensorFlow and samples."""
    messages: Any = importlib.import_module("tensorflow.core.framework.node_def_pb2")
    definition: Any = importlib.import_module("tensorflow.python.framework.op_def_registry").get(op)
    if definition is None:
        return
    message = messages.NodeDef(name="node", op=op, input=["a", "b"])
    for attribute in definition.attr:
        made = message.attr[attribute.name]
        if attribute.HasField("default_value"):
            made.CopyFrom(attribute.default_value)
        if attribute.name in LISTS:
            made.list.ClearField("i")
            made.list.i.extend(LISTS[attribute.name])
        elif not attribute.HasField("default_value"):
            fill_tf(made, attribute)
    yield 0, message


def node_of(graph: Any, node_class: Any, message: Any, framework: str, opset: int) -> Any:
    """Return a node of the front phase with a message and three inputs."""
    graph.graph.update(fw=framework, layout="NCHW" if framework == "onnx" else "NHWC", fw_opset_version=opset)
    graph.stage = "front"
    op = message.op_type if framework == "onnx" else message.op
    graph.add_node("node", kind="op", name="node", pb=message, op=op)
    node = node_class(graph, "node")
    for i in range(3):
        graph.add_node(f"in{i}", kind="op", op="Parameter", name=f"in{i}", _in_ports={}, _out_ports={0: {}})
        node.add_input_port(i)
        graph.create_edge(node_class(graph, f"in{i}"), node, 0, i)
    return node


def plain_attributes(cls: Any, node: Any) -> dict[str, Any]:
    """Return the attributes that an extractor sets, or the error that it raises."""
    try:
        cls.extract(node)
    except Exception as error:  # any may come of a message that the extractor does not expect
        return {"error": type(error).__name__}
    skipped = ("pb", "name", "kind", "_in_ports", "_out_ports", "dim_attrs", "shape_attrs", "IE")
    return {k: held(v) for k, v in node.attrs().items() if k not in skipped}


def main() -> None:
    framework = sys.argv[1]
    base: Any = importlib.import_module("openvino.tools.mo.front.extractor").FrontExtractorOp
    graphs: Any = importlib.import_module("openvino.tools.mo.graph.graph")
    package: Any = importlib.import_module(f"openvino.tools.mo.front.{framework}")
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        try:
            importlib.import_module(found.name)
        except Exception as error:  # modules fail in many ways where their framework is not installed
            print(f"{found.name}: {error}", file=sys.stderr)
    messages = onnx_messages if framework == "onnx" else tf_messages
    for cls in sorted(base.__subclasses__(), key=lambda c: (c.__module__, c.__name__)):
        module = cls.__module__.partition("openvino.tools.mo.")[2]
        row = {"module": module, "class": cls.__name__, "op": getattr(cls, "op", None), "enabled": bool(cls.enabled)}
        made = list(messages(row["op"])) if row["op"] else []
        for opset, message in made or [(None, None)]:
            attrs = (
                {}
                if message is None
                else plain_attributes(cls, node_of(graphs.Graph(), graphs.Node, message, framework, opset))
            )
            data = "" if message is None else base64.b64encode(message.SerializeToString()).decode()
            print(json.dumps({**row, "opset": opset, "message": data, "attrs": attrs}))


if __name__ == "__main__":
    main()
