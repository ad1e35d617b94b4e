"""Extractors: they set the attributes of a node from its description in the model's file, `node.pb`."""

from __future__ import annotations

import ast
import logging
from typing import Any, ClassVar

from aot.mo.graph.graph import Node
from aot.mo.replacement_pattern import ClassType
from aot.mo.utils.error import Error

_LOG = logging.getLogger(__name__)


class FrontExtractorOp:
    """Sets the attributes of operations with `op` as their kind in the file, whatever the case of its letters."""

    op: ClassVar[Any]
    enabled: ClassVar[Any]
    registered_ops: ClassVar[dict[str, Any]] = {}
    registered_cls: ClassVar[list[Any]] = []

    @classmethod
    def extract(cls, node: Node) -> Any:
        """Set attributes of `node`; return True if the operation is supported."""
        raise Error("{}: an extractor has a class method extract, got none", cls.__name__)

    @classmethod
    def class_type(cls) -> ClassType:
        return ClassType.EXTRACTOR


class CaffePythonFrontExtractorOp:
    """Sets the attributes of Python layers of Caffe; `op`: the module and the class of the layer, `rpn.layer.Layer`."""

    registered_ops: ClassVar[dict[str, Any]] = {}
    registered_cls: ClassVar[list[Any]] = []

    @staticmethod
    def parse_param_str(param_str: str) -> Any:
        """Return the parameters, written as a dictionary with or without its brackets."""
        object_text = param_str if param_str[:1] == "{" and param_str[-1:] == "}" else f"{{{param_str}}}"
        return ast.literal_eval(object_text)

    @staticmethod
    def get_attrs(pb: Any) -> Any:
        return CaffePythonFrontExtractorOp.parse_param_str(pb.python_param.param_str)

    @staticmethod
    def check_param(op_cls: Any, attrs: dict[str, Any]) -> None:
        """Warn of attributes that the operation does not have."""
        for name in attrs:
            if name not in op_cls(None, {}).supported_attrs():
                _LOG.warning("%s has no attribute %s, which the layer has", op_cls.op, name)

    @classmethod
    def class_type(cls) -> ClassType:
        return ClassType.EXTRACTOR


def attr_getter(node: Node, name: str) -> Any:
    """Return the text of an attribute: elements with commas between them; None for an absent one."""
    if not node.has(name):
        return None
    value = node[name]
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return str(value) if isinstance(value, str) else value
    return ",".join(map(str, value))


def bool_to_str(node: Node, attr: str) -> Any:
    """Return `true` or `false` for an attribute that is a truth value, 0 or 1; None for an absent one."""
    if not node.has(attr):
        return None
    value = node.soft_get(attr, None)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(bool(value)).lower()
    return value


def spatial_attr_getter(node: Node, field: str, dim: int, post: Any = lambda x: x) -> Any:
    """Return one spatial element of an attribute; None for an absent one."""
    return post(node[field][node.spatial_dims[dim]]) if node.has_valid(field) else None


def spatial_getter(name: str, field: str, dim: int, post: Any = lambda x: x) -> Any:
    """Return the pair of a name in files and the function that gives one spatial element of an attribute."""

    def element(node: Node) -> Any:
        return spatial_attr_getter(node, field, dim, post)

    return name, element


def add_attrs_props(attrs: dict[str, Any]) -> dict[str, Any]:
    """Add the attributes that every node has."""
    for key, value in (("kind", "op"), ("infer", None), ("precision", "FP32")):
        attrs.setdefault(key, value)
    return attrs


def update_ie_fields(attrs: dict[str, Any], ir_version: int | None = None) -> None:
    """Let a node have the attributes of its operation in files, in place of `backend_attrs`.

    `ir_version`: 10, 11 or None; Error for another one.
    """
    if ir_version not in (None, 10, 11):
        raise Error("Unrecognized IR version was specified: {}", ir_version)
    attrs.pop("IE", None)


def update_attrs(attrs: Any, attr: str, new: str | list[str]) -> None:
    """Add names to the list of an attribute, which is made if it is absent."""
    names: list[str] = attrs.soft_get(attr, []) if isinstance(attrs, Node) else attrs.get(attr, [])
    attrs[attr] = list(dict.fromkeys([*names, *([new] if isinstance(new, str) else new)]))


def kernel_getter(node: Node, dim: int) -> Any:
    """Return the size of a convolution's window along a spatial dimension; None for another operation."""
    if node.kind != "op" or node.op not in ("Conv2D", "DepthwiseConv2dNative", "Deconv2D"):
        return None
    if node.has("kernel_spatial"):
        return node.kernel_spatial[dim]
    weights = node.in_node(1)
    return weights.shape[weights.spatial_dims[dim]]


def extension_extractor(
    node: Node, ex_cls: Any, disable_omitting_optional: bool = False, enable_flattening_optional_params: bool = False
) -> dict[str, Any] | None:
    """Run an extractor; return the node's attributes, None if it does not support it. The flags are not used."""
    return node.attrs() if ex_cls().extract(node) else None


def extension_op_extractor(node: Node, op_cls: Any) -> dict[str, Any]:
    """Make a node one of an operation; return its attributes."""
    op_cls.update_node_stat(node)
    return node.attrs()
