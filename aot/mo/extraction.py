"""Extraction: an extension's extractors set the attributes of the nodes of the model's file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aot.frontends import DIALECTS
from aot.ir.graph import Node as IrNode
from aot.ir.op import Foreign
from aot.ir.scope import raised_in
from aot.mo.bridge.node_records import KEPT, NodeRecord, record_of
from aot.mo.extracted.classes import FROM_FILE
from aot.mo.extracted.messages import messages_of
from aot.mo.extracted.nodes import names_of
from aot.mo.front.caffe.blobs import connect_blobs
from aot.mo.graph.graph import Graph, Node
from aot.mo.loader import Declared, Switches
from aot.mo.middle.pattern_match import for_graph_and_each_sub_graph_recursively as for_all
from aot.mo.utils.error import Error
from aot.runtime.errors import AotError

_CONSTANT = {"onnx": "Constant", "tf": "Const"}  # kinds of constants in files
_CONVERSION = {dialect.name: dialect.conversion for dialect in DIALECTS}


def describe_of(framework: str) -> Callable[[IrNode], Any] | None:
    """Return the function that makes the message of a framework that a node was read from; None without messages."""
    module = messages_of(framework)
    return None if module is None else module.node_message


def extract(graph: Graph, declared: Declared, switches: Switches) -> None:
    """Let the extractor of each node's kind set its attributes; without one, the operation class of that name.

    A node that no extractor takes stays as the file has it, and is converted later.
    """
    extractors = {op.lower(): cls for op, cls in declared.extractors.items() if switches.of(cls) is not False}
    operations = {op.lower(): cls for op, cls in declared.operations.items()}

    def visit(body: Graph) -> None:
        for id in list(body.nodes()):
            _node(Node(body, id), extractors, operations)

    for_all(graph, visit)


def _node(node: Node, extractors: dict[str, type[Any]], operations: dict[str, type[Any]]) -> None:
    record = record_of(node)
    framework = node.graph.graph["fw"]
    kind = None if record is None else _kind(record.node, framework)
    if record is None or kind is None:
        return
    cls = extractors.get(_python_layer(record.node) or kind.lower()) or extractors.get(kind.lower())
    if cls is not None:
        describe = describe_of(framework)
        if record.node.data is not None and describe is not None:
            node["pb"] = describe(record.node)
        op_names = names_of(record.node.op) if isinstance(record.node.op, Foreign) else set[str]()
        known = {name: node.attrs().pop(name) for name in ("type", "version", *op_names) if node.has(name)}
        if _extracted(node, cls, kind):
            if not node.attrs().pop(FROM_FILE, False):
                if framework == "caffe" and isinstance(record.node.op, Foreign):
                    connect_blobs(node, dict(record.node.op.attrs).get("bottoms", 0))
                _settle(node, record)
        else:
            node.attrs().update(known)
    elif kind.lower() in operations and _is_unknown(record.node):
        for name in ("type", "version"):
            node.attrs().pop(name, None)
        operations[kind.lower()].update_node_stat(node)
        _settle(node, record)


def _kind(node: IrNode, framework: str) -> str | None:
    """Return the kind of a node in the file; None for one that the file does not have."""
    if isinstance(node.op, Foreign):
        return node.op.kind.removeprefix("CUSTOM.")
    return _CONSTANT.get(framework) if node.data is not None else None


def _python_layer(node: IrNode) -> str | None:
    """Return the module and the class of a Python layer of Caffe, in small letters; None for another node."""
    attrs = dict(node.op.attrs) if isinstance(node.op, Foreign) and node.op.kind == "Python" else {}
    return f"{attrs.get('module')}.{attrs.get('layer')}".lower() if attrs else None


def _is_unknown(node: IrNode) -> bool:
    op = node.op
    return isinstance(op, Foreign) and _CONVERSION[op.dialect](op.kind, {"domain": "", **dict(op.attrs)}) is None


def _extracted(node: Node, cls: type[Any], kind: str) -> bool:
    try:
        return bool(cls().extract(node))
    except Exception as error:
        where = raised_in(error)
        what = "" if isinstance(error, AotError) else f"{type(error).__name__}: "
        where_text = f" ({where})" if where else ""
        name = node.soft_get("name", node.id)
        raise Error(f"extension {cls.__name__}: node {name} ({kind}): {what}{error}{where_text}") from error


def _settle(node: Node, record: NodeRecord) -> None:
    """Let the node's attributes define its operation, instead of the file."""
    if isinstance(record.node.op, Foreign):
        node[KEPT] = NodeRecord(record.node, {**record.attrs, "op": None}, record.is_copy)
