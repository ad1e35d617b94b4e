"""Messages of frameworks: the source of a node in its file, and the operation that a message describes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from aot.ir.op import Foreign
from aot.mo.utils.error import Error

_DESCRIBE = {
    name: f"aot.frontends.{home}.describe" for name, home in (("onnx", "onnx"), ("tf", "tf.files"), ("caffe", "caffe"))
}


def messages_of(framework: str) -> Any:
    """Return the module that makes and reads the messages of a framework; None for one without."""
    return import_module(_DESCRIBE[framework]) if framework in _DESCRIBE else None


def described(node: Any, framework: str, kind: str) -> Foreign:
    """Return the operation of a node's message; `kind`: of a layer of Caffe. Error without one."""
    message = node.pb
    if message is None:
        raise Error("{}: an extractor reads the message of a node of a file, got none", kind)
    if framework == "caffe":
        return Foreign(framework, kind, tuple(messages_of(framework).node_attributes(message, kind).items()))
    attrs: dict[str, Any] = messages_of(framework).node_attributes(message)
    if framework == "tf":
        return Foreign(framework, message.op, tuple(attrs.items()))
    facts = getattr(node.graph, "graph", {})
    known = {"domain": message.domain, "opset": facts.get("fw_opset_version", 0)}
    return Foreign(framework, message.op_type, tuple({**known, **attrs}.items()))
