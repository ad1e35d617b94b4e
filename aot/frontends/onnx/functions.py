"""Operations that ONNX defines by a function: a node without a conversion is replaced by the function's body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, defs, inliner, shape_inference

from aot.frontends.onnx.registry import conversion_of
from aot.runtime.errors import BudgetError, CorruptError

DOMAIN = "aot.functions"  # domain of the local functions that are created from the bodies
MAX_NODES = 1 << 20  # nodes at most after inlining; the largest networks have a few 10 000
MAX_ROUNDS = 8  # rounds of expansion: bodies may contain functions again


def expanded(model: ModelProto, opsets: dict[str, int]) -> ModelProto:
    """Return `model`, or a copy in which the functions' bodies replace nodes without a conversion."""
    for _ in range(MAX_ROUNDS):
        nodes = ((node, _defined(node, opsets)) for node in every_node(model.graph.node))
        defined = [(node, schema) for node, schema in nodes if schema is not None]
        if not defined:
            break
        model = _inlined(model, defined)
    return model


def check_inlined(model: ModelProto, file: str) -> None:
    """Raise BudgetError for more than `MAX_NODES` nodes after inlining, CorruptError for a recursive function."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    counts: dict[tuple[str, str, str], int] = {}

    def calls(nodes: Iterable[NodeProto]) -> list[tuple[str, str, str]]:
        keys = ((n.domain, n.op_type, n.overload) for n in every_node(nodes))
        return [key for key in keys if key in functions]

    def visit(root: tuple[str, str, str]) -> None:
        """Count callees first, without recursion; a function that is met again while it is open calls itself."""
        stack, opened = [root], set[tuple[str, str, str]]()
        while stack:
            key = stack[-1]
            below = calls(functions[key].node)
            waiting = [k for k in below if k not in counts]
            if waiting and key in opened:
                raise CorruptError(f"{file}: a function must not call itself, got {key[1]!r}")
            opened.add(key)
            stack += dict.fromkeys(waiting)
            if not waiting:
                counts[stack.pop()] = sum(1 for _ in every_node(functions[key].node)) + sum(counts[k] for k in below)

    total = sum(1 for _ in every_node(model.graph.node))
    for key in calls(model.graph.node):
        if key not in counts:
            visit(key)
        total += counts[key]
    if total > MAX_NODES:
        raise BudgetError(f"{file}: there can be at most {MAX_NODES} nodes once functions are inlined, got {total}")


def every_node(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield the nodes, and the nodes of graphs in their attributes."""
    for node in nodes:
        yield node
        for a in node.attribute:
            for graph in (*([a.g] if a.HasField("g") else []), *a.graphs):
                yield from every_node(graph.node)


Schema = Any  # an OpSchema; the stubs of onnx leave its functions out


def _defined(node: NodeProto, opsets: dict[str, int]) -> Schema | None:
    """Return the schema of the function that defines the node; None if the node has a conversion or no function."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    opset = opsets.get(domain, 1)
    if conversion_of(domain, node.op_type) is not None or not defs.has(node.op_type, opset, domain):
        return None
    schema: Schema = defs.get_schema(node.op_type, opset, domain)
    return schema if schema.has_function or schema.has_context_dependent_function else None


def _body(node: NodeProto, schema: Schema, types: dict[str, TypeProto]) -> FunctionProto:
    """Return a copy of the function's body for the node's types; the node gets its default attributes."""
    body = FunctionProto()
    if schema.has_function:
        body.CopyFrom(schema.function_body)
    else:
        inputs = [types.get(name, TypeProto()).SerializeToString() for name in node.input]
        body.ParseFromString(schema.get_context_dependent_function(node.SerializeToString(), inputs))
    present = {a.name for a in node.attribute}
    defaults = [schema.attributes[name].default_value for name in body.attribute if name not in present]
    node.attribute.extend(a for a in defaults if a.name)
    return body


def _inlined(model: ModelProto, defined: list[tuple[NodeProto, Schema]]) -> ModelProto:
    """Return a model with all calls of local functions inlined; each call first gets a function of its own."""
    types = _types(model.graph, shape_inference.infer_shapes(model).graph)
    for i, (node, schema) in enumerate(defined):
        function = _body(node, schema, types)
        node.domain = function.domain = DOMAIN
        node.op_type = function.name = f"{node.op_type}_{i}"
        function.ClearField("overload")
        if any(a.HasField("g") for a in node.attribute):  # the model's own nodes are in the body: SequenceMap
            del function.opset_import[:]
            function.opset_import.extend(model.opset_import)
        model.functions.append(function)
    model.opset_import.add(domain=DOMAIN, version=1)
    inlined = inliner.inline_local_functions(model)
    opsets = [o for o in inlined.opset_import if o.domain != DOMAIN]
    del inlined.opset_import[:]
    inlined.opset_import.extend(opsets)
    return inlined


def _types(*graphs: GraphProto) -> dict[str, TypeProto]:
    """Return the types of values by name; initializers are inputs of their type."""
    types: dict[str, TypeProto] = {}
    for graph in graphs:
        for info in (*graph.input, *graph.value_info, *graph.output):
            types[info.name] = info.type
        for tensor in graph.initializer:
            kind = TypeProto()
            kind.tensor_type.elem_type = tensor.data_type
            kind.tensor_type.shape.SetInParent()
            for d in tensor.dims:
                kind.tensor_type.shape.dim.add(dim_value=d)
            types[tensor.name] = kind
        for node in graph.node:
            for a in node.attribute:
                if a.HasField("g"):
                    types |= _types(a.g)
    return types
