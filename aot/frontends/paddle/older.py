"""Programs of PaddlePaddle 2, in protobuf. `older.txt` translates their operations to version 3.

pool2d pool2d X @ksize > Out                           the second input is an attribute here
clip clip X Min,@min Max,@max > Out                    a tensor, or without it an attribute
concat concat X* AxisTensor,@axis > Out                a list of tensors
leaky_relu leaky_relu X > Out | alpha=negative_slope   an attribute of another name
write_to_array array_write =Out X I > Out              a variable that is changed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.paddle.older_blocks import CONDITION, LOOP, Blocks
from aot.frontends.paddle.program import NAMES, TYPES, Block, ConstantInput, Input, Keys, Operation, Program
from aot.frontends.wire import Message, parsed
from aot.runtime.errors import CorruptError, UnsupportedError
from aot.runtime.regular import read_file

TABLE = {  # fields of framework.proto that are read
    "ProgramDesc": {1: "blocks:BlockDesc*"},
    "BlockDesc": {3: "vars:VarDesc*", 4: "ops:OpDesc*"},
    "VarDesc": {1: "name:text", 2: "type:VarType", 3: "persistable:bool"},
    "VarType": {1: "type:int", 3: "dense:DenseDesc"},
    "DenseDesc": {1: "tensor:TensorDesc"},
    "TensorDesc": {1: "type:int", 2: "dims:int*"},
    "OpDesc": {1: "inputs:OpVar*", 2: "outputs:OpVar*", 3: "type:text", 4: "attrs:OpAttr*"},
    "OpVar": {1: "parameter:text", 2: "arguments:text*"},
    "OpAttr": {
        1: "name:text",
        2: "type:int",
        3: "i:int",
        4: "f:float",
        5: "s:text",
        6: "ints:int*",
        7: "floats:float*",
        8: "strings:text*",
        10: "b:bool",
        11: "bools:bool*",
        12: "block:int",
        13: "l:int",
        15: "longs:int*",
        16: "float64s:double*",
        19: "float64:double",
        20: "scalar:Scalar",
        21: "scalars:Scalar*",
    },
    "Scalar": {1: "type:int", 2: "b:bool", 3: "i:int", 4: "r:double"},
}
_FIELDS = {  # field of an attribute's value by its type
    0: ("i", 0),
    1: ("f", 0.0),
    2: ("s", ""),
    3: ("ints", ()),
    4: ("floats", ()),
    5: ("strings", ()),
    6: ("b", False),
    7: ("bools", ()),
    8: ("block", 0),
    9: ("l", 0),
    11: ("longs", ()),
    12: ("float64s", ()),
    15: ("float64", 0.0),
    16: ("scalar", None),
    17: ("scalars", ()),
}
_SCALARS = {1: ("b", False), 2: ("i", 0), 3: ("r", 0.0)}
_DENSE, _ARRAY = 7, 13  # types of variables that are tensors, and lists of tensors
_SILENT = ("op_role", "op_role_var", "op_namescope", "op_callstack", "op_device", "with_quant_attr", "use_mkldnn")


@dataclass(frozen=True, slots=True)
class Row:
    """The form of an operation in version 3. `inputs`: names to choose from for each; the first that exists counts."""

    kind: str
    inputs: Sequence[Sequence[str]]
    outputs: Sequence[str]
    renamed: Mapping[str, str]


@cache
def rows() -> dict[str, Row]:
    """Return the table."""
    table: dict[str, Row] = {}
    for line in Path(__file__).with_suffix(".txt").read_text("ascii").splitlines():
        operation, _, renamed = line.partition(" | ")
        left, _, outputs = operation.partition(" > ")
        old, kind, *inputs = left.split()
        names = dict(word.split("=") for word in renamed.split())
        table[old] = Row(kind, [i.split(",") for i in inputs], outputs.split(), names)
    return table


def read_older(path: Path) -> Program:
    """Return the network of a file. CorruptError for one that is damaged."""
    program = parsed(memoryview(read_file(path, "model")), "ProgramDesc", TABLE, path.name)
    if not program["blocks"]:
        raise CorruptError(f"{path.name}: a program must have blocks, got none")
    variables = {v.get("name", ""): v for block in program["blocks"] for v in block["vars"]}
    result = Program(Block(()))
    result.weights = {name: name for name, v in variables.items() if v.get("persistable") and _type(v) == _DENSE}
    blocks = [_block(block, result, variables, path.name) for block in program["blocks"]]
    ranks = {n: len(tensor["dims"]) for n, v in variables.items() if (tensor := _tensor(v)) is not None}
    control = Blocks(path.name, blocks, ranks)
    written = frozenset[str]().union(*control.written)
    arrays = sorted(n for n in written if n in variables and _type(variables[n]) == _ARRAY)
    defined = frozenset(map(str, (*result.weights, *result.inputs, *arrays)))
    operations = control.functional(0, defined, frozenset(label for label, _ in result.outputs))
    result.block = Block([*(Operation("create_array", n, [], [n], {}) for n in arrays), *operations])
    return result


def _type(variable: Message) -> int:
    return variable.get("type", {}).get("type", 0)


def _tensor(variable: Message) -> Message | None:
    """Return the description of a variable's element type and sizes."""
    return variable.get("type", {}).get("dense", {}).get("tensor")


def _block(block: Message, program: Program, variables: Mapping[str, Message], file: str) -> list[Operation]:
    """Return the operations of a block; inputs and outputs of the network become those of the program."""
    operations = list[Operation]()
    for i, op in enumerate(block["ops"]):
        kind = op.get("type", "")
        inputs, outputs = (_arguments(op[side]) for side in ("inputs", "outputs"))
        if kind == "feed":
            (name,) = _single(outputs.get("Out", ()), kind, file)
            program.inputs[name] = _input(name, variables.get(name), file)
        elif kind == "fetch":
            (name,) = _single(inputs.get("X", ()), kind, file)
            program.outputs.append((name, name))
        else:
            operations.append(_operation(kind, i, inputs, outputs, op["attrs"], file))
    return operations


def _single(names: Sequence[str], kind: str, file: str) -> Sequence[str]:
    if len(names) != 1:
        raise CorruptError(f"{file}: {kind} must have one variable, got {len(names)}")
    return names


def _arguments(variables: Sequence[Message]) -> dict[str, Sequence[str]]:
    return {v.get("parameter", ""): v["arguments"] for v in variables}


def _input(name: str, variable: Message | None, file: str) -> Input:
    """Return the input of a variable."""
    described = None if variable is None else _tensor(variable)
    if described is None:
        raise CorruptError(f"{file}: input {name!r} must have a type and a shape, got none")
    if described.get("type", 0) not in TYPES:
        raise UnsupportedError(f"{file}: input {name!r}: element type {described.get('type', 0)} is not supported")
    return Input(name, TYPES[described.get("type", 0)], tuple(described["dims"]))


def _operation(
    kind: str,
    position: int,
    inputs: dict[str, Sequence[str]],
    outputs: dict[str, Sequence[str]],
    attributes: Sequence[Message],
    file: str,
) -> Operation:
    """Return an operation in the form of version 3; as it is if the table does not have it."""
    attrs = {a.get("name", ""): _value(a) for a in attributes}
    attrs = {n: v for n, v in attrs.items() if n not in _SILENT}
    if kind in (LOOP, CONDITION):
        condition = _single(inputs.get("Condition" if kind == LOOP else "Cond", ()), kind, file)
        return Operation(kind, f"{kind}.{position}", condition, [], {"sub_block": attrs.get("sub_block", 0)})
    row = rows().get(kind)
    if row is None:
        ends = [n for names in outputs.values() for n in names]
        sources = [n for names in inputs.values() for n in names]
        return Operation(kind, ends[0] if ends else f"{kind}.{position}", sources, ends, attrs)
    sources = [_source(choices, inputs, outputs, attrs) for choices in row.inputs]
    results: list[Keys] = []
    for i, name in enumerate(row.outputs):
        names = outputs.get(name.removesuffix("*"), ())
        results.append(tuple(names) if name.endswith("*") else names[0] if names else f" {position}.{i}")
    first = next((n for name in row.outputs for n in outputs.get(name.removesuffix("*"), ())), f"{kind}.{position}")
    attrs = {row.renamed.get(n, n): _named_type(row.renamed.get(n, n), v) for n, v in attrs.items()}
    return Operation(row.kind, first, sources, results, attrs)


def _source(
    choices: Sequence[str], inputs: dict[str, Sequence[str]], outputs: dict[str, Sequence[str]], attrs: dict[str, Any]
) -> Keys | ConstantInput | None:
    """Return an input: the first of the choices that an operation has."""
    for choice in choices:
        if choice.startswith("="):
            return outputs[choice[1:]][0] if outputs.get(choice[1:]) else None
        if choice.startswith("@"):
            value = attrs.get(choice[1:])
            return None if value is None else ConstantInput(_array(value))
        names = inputs.get(choice.removesuffix("*"), ())
        if names:
            return tuple(names) if choice.endswith("*") else names[0]
    return None


def _array(value: Any) -> Any:
    values = np.asarray(value)
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    return values.astype(np.int64)


def _named_type(name: str, value: Any) -> Any:
    """Return the name of an element type for its number."""
    if name in ("dtype", "in_dtype", "out_dtype") and isinstance(value, int):
        dtype = TYPES.get(value)
        return next((n for n, own in NAMES.items() if own is dtype), "undefined" if value < 0 else str(value))
    return value


def _value(attribute: Message) -> Any:
    """Return the value of an attribute; None for a block."""
    name, default = _FIELDS.get(attribute.get("type", 0), ("", None))
    value: Any = attribute.get(name, default) if name else None
    if name == "scalar":
        return None if value is None else _scalar(value)
    if name == "scalars":
        return tuple(_scalar(s) for s in value or ())
    return tuple(value) if name.endswith("s") and len(name) > 1 else value


def _scalar(message: Message) -> Any:
    name, default = _SCALARS.get(message.get("type", 0), ("i", 0))
    return message.get(name, default)
