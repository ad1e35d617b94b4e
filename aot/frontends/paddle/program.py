"""Programs of PaddlePaddle in one form, which both versions of files are brought to.

    matmul(%3, %4) transpose_x=False -> %5

Operations have the names and the inputs of version 3. Values have keys: numbers, or names of version 2, where an
operation may write a value again. A tuple of keys is a list of tensors; a `ConstantInput` is an
attribute in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.table import element_types
from aot.ir.types import Array
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

Key = int | str  # of a value
Keys = Key | tuple[Key, ...]  # of a value, or of a list of tensors

TYPES = element_types(  # numbers of version 2
    "0=boolean 1=i16 2=i32 3=i64 4=f16 5=f32 6=f64 20=u8 21=i8 22=bf16 32=f8e4m3 33=f8e5m2 36=u16 37=u32 38=u64"
)
_WORDS = (
    "bool=boolean int8=i8 uint8=u8 int16=i16 uint16=u16 int32=i32 uint32=u32 int64=i64 uint64=u64 float16=f16 "
    "bfloat16=bf16 float32=f32 float64=f64 float8_e4m3fn=f8e4m3 float8_e5m2=f8e5m2"
)
NAMES = {name: DType(own) for name, _, own in (word.partition("=") for word in _WORDS.split())}


def element_type(name: str) -> DType:
    """Return the element type of this name; UnsupportedError if there is none."""
    if name not in NAMES:
        raise UnsupportedError(f"element type {name} is not supported")
    return NAMES[name]


@dataclass(frozen=True, slots=True)
class ConstantInput:
    """An input with its value in the file."""

    data: Array


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation; `blocks` run in it, and read values around them."""

    kind: str
    name: str
    inputs: Sequence[Keys | ConstantInput | None]
    outputs: Sequence[Keys]
    attrs: Mapping[str, Any]
    blocks: Sequence[Block] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Operations in their order; `results`: the values that a block in an operation gives."""

    operations: Sequence[Operation]
    arguments: Sequence[Key] = ()
    results: Sequence[Key] = ()


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a network; sizes of -1 vary."""

    name: str
    dtype: DType
    shape: Sequence[int]


@dataclass(slots=True)
class Program:
    """A network. `weights`: names in the file of weights by keys of values; `absent`: keys of values without data."""

    block: Block
    absent: set[Key] = field(default_factory=set[Key])
    weights: dict[Key, str] = field(default_factory=dict[Key, str])
    inputs: dict[Key, Input] = field(default_factory=dict[Key, Input])
    outputs: list[tuple[str, Key]] = field(default_factory=list[tuple[str, Key]])
