"""Mutants of ONNX files: fields of any message of the protobuf, nodes, attributes, tensors, types, names, and bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message

from tests.fuzz.case import Case
from tests.fuzz.mutants.changes import changed_bytes, compile_and_run, drawn_changes, number
from tests.fuzz.mutants.protobuf import Path, change_field, copy, messages, messages_of
from tests.fuzz.reduce import fewest
from tests.fuzz.seeds import onnx_paths, onnx_seed
from tests.fuzz.server import Outcome
from tests.properties.drawing import Draw, random_draw

KINDS = (
    "If",
    "Loop",
    "Scan",
    "Concat",
    "Reshape",
    "Split",
    "Constant",
    "Identity",
    "Add",
    "MatMul",
    "Cast",
    "Shape",
    "LSTM",
    "SequenceAt",
    "Optional",
    "Range",
    "Expand",
    "Resize",
)


def _names(root: Message) -> list[str]:
    found = [n for node in messages_of(root, "NodeProto") for n in (*node.input, *node.output)]
    return sorted({*found, ""})


def _edge(d: Draw, root: Message) -> None:
    """An input or output of a node gets another name."""
    nodes = [n for n in messages_of(root, "NodeProto") if n.input or n.output]
    if nodes:
        node = d.pick(nodes)
        held = node.input if node.input and (not node.output or d.integer(0, 3)) else node.output
        held[d.integer(0, len(held) - 1)] = d.pick(_names(root))


def _node(d: Draw, root: Message) -> None:
    """A node of another type, with more or fewer inputs or outputs, or in another domain."""
    nodes = messages_of(root, "NodeProto")
    if not nodes:
        return
    node = d.pick(nodes)
    match d.integer(0, 4):
        case 0:
            node.op_type = d.pick([*KINDS, d.pick(nodes).op_type])
        case 1:
            node.input.extend([d.pick(_names(root))] * d.integer(1, 3))
        case 2:
            node.output.extend([f"more{d.integer(0, 9)}"])
        case 3:
            node.domain = d.pick(["", "ai.onnx.ml", "com.microsoft", "mine"])
        case _:
            d.pick(messages_of(root, "GraphProto")).node.add().CopyFrom(copy(node))


def _tensor(d: Draw, root: Message) -> None:
    """A type, a dimension or the data of a tensor."""
    tensors = messages_of(root, "TensorProto")
    if not tensors:
        _shape(d, root)
        return
    tensor = d.pick(tensors)
    match d.integer(0, 3):
        case 0:
            tensor.data_type = d.integer(0, 24)
        case 1:
            tensor.dims.append(number(d))
        case 2 if tensor.dims:
            k = d.integer(0, len(tensor.dims) - 1)
            tensor.dims[k] = number(d, tensor.dims[k]) if abs(tensor.dims[k]) < 2**40 else 1
        case _:
            tensor.raw_data = changed_bytes(d, tensor.raw_data)


def _shape(d: Draw, root: Message) -> None:
    """The declared type of an input, output or value."""
    types = [t.tensor_type for t in messages_of(root, "TypeProto") if t.HasField("tensor_type")]
    if not types:
        return
    chosen = d.pick(types)
    dims = chosen.shape.dim
    match d.integer(0, 4):
        case 0:
            chosen.elem_type = d.integer(0, 24)
        case 1:
            chosen.ClearField("shape")
        case 2:
            dims.add().dim_value = d.pick([0, 1, 2, 5])
        case _ if len(dims):
            dim = dims[d.integer(0, len(dims) - 1)]
            if d.flag():
                dim.dim_param = d.pick(["n", "m", "", "é"])
            else:
                dim.dim_value = min(max(number(d, dim.dim_value), -(2**63)), 2**63 - 1)
        case _:
            chosen.ClearField("shape")


def _attribute(d: Draw, root: Message) -> None:
    """An attribute of another node, type or value."""
    held = messages_of(root, "AttributeProto")
    if not held:
        _edge(d, root)
        return
    attribute = d.pick(held)
    match d.integer(0, 4):
        case 0:
            attribute.type = d.integer(0, 14)
        case 1:
            attribute.CopyFrom(copy(d.pick(held)))
        case 2:
            d.pick(messages_of(root, "NodeProto")).attribute.add().CopyFrom(copy(attribute))
        case 3 if attribute.ints:
            k = d.integer(0, len(attribute.ints) - 1)
            attribute.ints[k] = min(max(number(d, attribute.ints[k]), -(2**63)), 2**63 - 1)
        case _:
            attribute.i = min(max(number(d, attribute.i), -(2**63)), 2**63 - 1)


def _function(d: Draw, root: Any) -> None:
    """A node becomes the call of a function of the file that holds it, or its own."""
    nodes = list(root.graph.node)
    if not nodes:
        return
    node = d.pick(nodes)
    made = root.functions.add(name=f"F{d.integer(0, 2)}", domain="mine")
    made.input.extend(node.input)
    made.output.extend(node.output)
    made.node.add().CopyFrom(copy(node))
    made.opset_import.extend(root.opset_import)
    if not d.integer(0, 2):
        made.node[0].op_type, made.node[0].domain = made.name, "mine"  # calls itself
    node.op_type, node.domain = made.name, "mine"
    root.opset_import.add(domain="mine", version=1)


def _branch(d: Draw, root: Any) -> None:
    """A node goes into the branches of an If, or into the body of a Loop."""
    nodes = list(root.graph.node)
    if not nodes:
        return
    node = d.pick(nodes)
    outputs = [onnx.ValueInfoProto(name=n) for n in node.output]
    body = onnx.helper.make_graph([node], "body", [], outputs)
    condition = onnx.helper.make_tensor("condition", 9, [], [1])
    made = onnx.helper.make_node("If", ["condition"], list(node.output), then_branch=body, else_branch=body)
    node.CopyFrom(made)
    root.graph.initializer.add().CopyFrom(condition)


MUTATIONS: tuple[Callable[[Draw, Any], None], ...] = (
    change_field,
    change_field,
    change_field,
    _edge,
    _edge,
    _node,
    _tensor,
    _tensor,
    _shape,
    _shape,
    _attribute,
    _attribute,
    _function,
    _branch,
)


def mutate(data: bytes, seeds: Sequence[int]) -> bytes:
    """One mutation for each seed; those of bytes come last. Fields that cannot hold a value stay as they are."""
    root = onnx.ModelProto.FromString(data)
    draws = [random_draw(s) for s in seeds]
    raw = [d for d in draws if not d.integer(0, 9)]
    for d in draws:
        if d not in raw:
            d.pick(MUTATIONS)(d, root)
    data = root.SerializeToString()
    for d in raw:
        data = changed_bytes(d, data)
    return data


class OnnxMutants:
    """Mutation fuzzer of ONNX files."""

    name = "onnx"

    def draw(self, seed: int) -> Case:
        d = random_draw(seed)
        base = onnx_seed(d.integer(0, len(onnx_paths()) - 1))
        return Case({"model.onnx": mutate(base.files["model.onnx"], drawn_changes(d))})

    def judge(self, case: Case) -> Outcome:
        return compile_and_run(case)

    def smallest(self, case: Case, holds: Callable[[Case], bool]) -> Case:
        """Remove the fields and elements that the fault does not need."""
        try:
            root = onnx.ModelProto.FromString(case.files["model.onnx"])
        except DecodeError:
            return case
        atoms = [
            (path, field.name, k)
            for path, m in messages(root)
            for field, value in m.ListFields()
            for k in (range(len(value)) if field.is_repeated else (-1,))
        ]

        def without(left: Sequence[tuple[Path, str, int]]) -> Case:
            return Case({"model.onnx": _without(root, set(left)).SerializeToString()}, case.facts)

        return without(fewest(atoms, lambda left: holds(without(left))))


def _without(root: Message, kept: set[tuple[Path, str, int]], path: Path = ()) -> Message:
    """A copy with the fields and elements in `kept`."""
    made: Any = type(root)()
    for field, value in root.ListFields():
        inner = field.message_type is not None
        if field.is_repeated:
            for k, v in enumerate(value):
                if (path, field.name, k) in kept:
                    held = getattr(made, field.name)
                    held.append(_without(v, kept, (*path, (field.name, k))) if inner else v)
        elif (path, field.name, -1) in kept:
            if inner:
                getattr(made, field.name).CopyFrom(_without(value, kept, (*path, (field.name, -1))))
            else:
                setattr(made, field.name, value)
    return made
