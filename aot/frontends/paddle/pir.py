"""Programs of PaddlePaddle 3, in JSON: regions of blocks of operations. Values are referred to by numbers.

    {"#": "1.relu", "A": [{"N": "place", "AT": {"#": "0.a_str", "D": ""}}], "I": [{"%": 3}], "O": [{"%": 5}]}
    {"#": "p", "A": [0, 1, 1, "conv2d_0.w_0"], "O": {"%": 1, ..}}                               a weight

The number before a name is that of its dialect: 0 has lists of tensors, 1 operations, 2 control flow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import inf, nan
from pathlib import Path
from typing import Any, cast

from aot.codegen.dataclass import dataclass
from aot.frontends.paddle.pir_states import with_states
from aot.frontends.paddle.program import Block, Input, Key, Operation, Program, element_type
from aot.runtime.errors import BudgetError, CorruptError
from aot.runtime.regular import read_file

VERSIONS = range(6)  # versions of the format that can be read
MAX_DEPTH = 32  # blocks in blocks
MAX_BYTES = 1 << 28  # networks of 10 000 operations have a few MB
_REALS = {"INF": inf, "-INF": -inf, "NaN": nan, "NAN": nan, "-NaN": nan}
_SILENT = (
    "struct_name",
    "place",
    "op_callstack",
    "stop_gradient",
    "persistable",
)  # of no data
_BROKEN = (TypeError, KeyError, ValueError, AttributeError, IndexError, OverflowError)


def read_program(path: Path) -> Program:
    """Return the network of a file. CorruptError for one that is damaged."""
    data = read_file(path, "model")
    if len(data) > MAX_BYTES:
        raise BudgetError(f"{path.name}: JSON can have at most {MAX_BYTES} bytes, got {len(data)}")
    try:
        document = json.loads(data)
        version = document.get("base_code", {}).get("version", 0)
        if version not in VERSIONS:
            raise CorruptError(f"{path.name}: versions up to {VERSIONS[-1]} of programs can be read, got {version!r}")
        (region,) = document["program"]["regions"]
        return _Walk(path.name, Program(Block(()))).run(_block(region))
    except json.JSONDecodeError as error:
        raise CorruptError(f"{path.name}: must be JSON, got a fault at character {error.pos}") from error
    except (*_BROKEN, RecursionError) as error:
        raise CorruptError(f"{path.name}: must be a program of PaddlePaddle, got {str(error)[:200]}") from error


def _block(region: Any) -> Any:
    """Return the block of a region, which has one."""
    (block,) = region["blocks"]
    return block


@dataclass(slots=True)
class _Walk:
    file: str
    program: Program

    def run(self, block: Any) -> Program:
        """Return the program."""
        self.program.block = with_states(self._read(block, "", 0), [key for _, key in self.program.outputs])
        return self.program

    def _read(self, block: Any, prefix: str, depth: int) -> Block:
        if depth > MAX_DEPTH:
            raise CorruptError(f"{self.file}: blocks can have at most {MAX_DEPTH} levels, got more")
        operations, results = list[Operation](), list[Key]()
        for i, op in enumerate(block["ops"]):
            kind = str(op["#"])
            if kind == "p":
                marks = op.get("OA") or [1]
                if marks[0]:
                    self.program.weights[_key(op["O"])] = str(op["A"][-1])
                else:  # the state of a layer in training, which no file has
                    self.program.absent.add(_key(op["O"]))
            elif kind == "2.yield":
                results = [_key(v) for v in op["I"]]
            else:
                self._operation(op, kind, f"{prefix}{i}", depth, operations)
        return Block(operations, [int(a["#"]) for a in block["args"]], results)

    def _operation(self, op: Any, kind: str, where: str, depth: int, operations: list[Operation]) -> None:
        """Add an operation, an input or an output of the network."""
        number, _, word = kind.partition(".")
        attrs = {str(a["N"]): _value(a["AT"]) for a in op["A"]}
        path = str(attrs.get("struct_name", "")).strip("/")
        name = f"{path}/{word}.{where}" if path else f"{word}.{where}"
        attrs = {n: v for n, v in attrs.items() if n not in _SILENT}
        inputs = [None if v["%"] == 0 else _key(v) for v in op["I"]]
        outputs = [_key(v) for v in op["O"]]
        if kind in ("1.data", "1.feed"):
            self.program.inputs[outputs[0]] = _input(attrs, op["O"][0]["TT"])
        elif kind == "1.fetch":
            key = _key(op["I"][0])
            self.program.outputs.append((str(attrs["name"]), key))
        else:
            blocks = [self._read(_block(r), f"{where}.", depth + 1) for r in op.get("regions", ())]
            own = word if number == "1" else f"{_DIALECTS.get(number, number)}.{word}"
            operations.append(Operation(own, name, inputs, outputs, attrs, blocks))


_DIALECTS = {"0": "builtin", "2": "cf", "3": "custom_op", "4": "pd_dist"}


def _key(value: Any) -> int:
    return int(value["%"])


def _input(attrs: dict[str, Any], declared: Any) -> Input:
    """Return an input; without a shape of its own it has its tensor's."""
    shape = attrs.get("shape") or declared["D"][1]
    name = attrs.get("dtype", "")
    dtype = element_type(name) if name and name != "undefined" else element_type(_DECLARED[declared["D"][0]["#"]])
    return Input(str(attrs["name"]), dtype, tuple(int(n) for n in shape))


_DECLARED = {
    "0.t_f32": "float32",
    "0.t_f64": "float64",
    "0.t_f16": "float16",
    "0.t_bf16": "bfloat16",
    "0.t_bool": "bool",
    "0.t_i8": "int8",
    "0.t_ui8": "uint8",
    "0.t_i16": "int16",
    "0.t_i32": "int32",
    "0.t_i64": "int64",
}


def _listed(data: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_value(v) for v in data)


def _integers(data: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(v) for v in data)


def _scalar(data: Any) -> Any:
    """Return a number, which may follow its type."""
    return cast("list[Any]", data)[-1] if isinstance(data, list) else data


_READERS: dict[str, Callable[[Any], Any]] = {
    "0.a_array": _listed,
    "0.a_bool": bool,
    "0.a_i32": int,
    "0.a_i64": int,
    "0.a_index": int,
    "0.a_f32": float,
    "0.a_f64": float,
    "0.a_str": str,
    "1.a_intarray": _integers,
    "1.a_scalar": _scalar,
    "1.a_dtype": str,
}


def _value(attribute: Any) -> Any:
    """Return the value of an attribute; a text for kinds that no operation has."""
    if "VD" in attribute:
        return _REALS[attribute["VD"]]
    reader = _READERS.get(attribute["#"])
    return reader(attribute["D"]) if reader is not None else str(attribute.get("D"))
