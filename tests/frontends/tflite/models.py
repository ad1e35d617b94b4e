"""Makes TensorFlow Lite files of a few operators, by the functions of the schema package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

import flatbuffers
import numpy as np

CODES = {
    "f32": 0,
    "f16": 1,
    "i32": 2,
    "u8": 3,
    "i64": 4,
    "string": 5,
    "boolean": 6,
    "i16": 7,
    "complex64": 8,
    "i8": 9,
    "f64": 10,
    "u64": 12,
    "resource": 13,
    "variant": 14,
    "u32": 15,
    "u16": 16,
    "i4": 17,
    "bf16": 18,
    "i2": 19,
    "u4": 20,
}
NAMES = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float16): "f16",
    np.dtype(np.int32): "i32",
    np.dtype(np.uint8): "u8",
    np.dtype(np.int64): "i64",
    np.dtype(np.bool_): "boolean",
    np.dtype(np.int16): "i16",
    np.dtype(np.int8): "i8",
    np.dtype(np.float64): "f64",
    np.dtype(np.uint32): "u32",
}
VERSIONS = {"BROADCAST_TO": 2}  # of operations whose first version is gone
PLACEHOLDER = 127  # the older number of operations that came later


@dataclass
class Tensor:
    """A tensor; with `data` it is a constant. `signature`: its shape with -1 for sizes that vary."""

    name: str
    type: str
    shape: Sequence[int]
    data: np.ndarray | bytes | None = None
    scales: Sequence[float] = ()
    zeros: Sequence[int] = ()
    axis: int = 0
    variable: bool = False
    signature: Sequence[int] = ()
    sparsity: dict[str, Any] | None = None
    blocks: tuple[int, int, int] | None = (
        None  # numbers of the tensors of scales and of zero points, elements of a block
    )


@dataclass
class Op:
    """An operator; `options`: the name of their table without `Options`, and its fields."""

    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    custom: bytes = b""
    intermediates: Sequence[int] = ()


@dataclass
class Net:
    tensors: Sequence[Tensor]
    ops: Sequence[Op]
    inputs: Sequence[int]
    outputs: Sequence[int]
    name: str = "main"


def constant(name: str, data: Any, **facts: Any) -> Tensor:
    data = np.asarray(data)
    return Tensor(name, NAMES[data.dtype], data.shape, data, **facts)


class Writer:
    """Writes tables whose fields have the names of the schema."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1024)

    def table(self, name: str, **fields: Any) -> int:
        module, b = import_module(f"tflite.{name}"), self.builder
        made = {k: self._value(module, name, k, v) for k, v in fields.items() if v is not None}
        getattr(module, f"{name}Start")(b)
        for k, v in made.items():
            getattr(module, f"{name}Add{k}")(b, v)
        return getattr(module, f"{name}End")(b)

    def _value(self, module: Any, name: str, key: str, value: Any) -> Any:
        if isinstance(value, str):
            return self.builder.CreateString(value)
        if isinstance(value, bytes | np.ndarray):
            return self.builder.CreateNumpyVector(np.frombuffer(bytes(value), np.uint8))
        if isinstance(value, Offsets):
            getattr(module, f"{name}Start{key}Vector")(self.builder, len(value))
            for v in reversed(value):
                self.builder.PrependUOffsetTRelative(v)
            return self.builder.EndVector()
        if isinstance(value, list | tuple):
            return self._numbers(module, name, key, value)
        return value

    def _numbers(self, module: Any, name: str, key: str, value: Sequence[Any]) -> int:
        wide = {"ZeroPoint": np.int64, "Scale": np.float32, "Boundaries": np.float32}
        b = self.builder
        dtype = wide.get(key, np.int64 if name.startswith("Stablehlo") else np.int32)
        return b.CreateNumpyVector(np.array(value, dtype))


class Offsets(list[int]):
    """Tables that were written."""


def model(
    *nets: Net,
    signatures: Sequence[tuple[str, int, dict[str, int], dict[str, int]]] = (),
    metadata: Mapping[str, bytes] = MappingProxyType({}),
    description: str = "",
    newer: bool = False,
) -> bytes:
    """The bytes of a file. `newer`: numbers of operations stand in the newer field alone."""
    w = Writer()
    buffers: list[int] = [w.table("Buffer")]
    codes: dict[tuple[str, str], int] = {}
    numbers = vars(import_module("tflite.BuiltinOperator").BuiltinOperator)
    kinds = [vars(import_module(f"tflite.{n}").__dict__[n]) for n in ("BuiltinOptions", "BuiltinOptions2")]
    graphs = Offsets()
    for net in nets:
        tensors = Offsets(_tensor(w, t, buffers) for t in net.tensors)
        ops = Offsets()
        for op in net.ops:
            name, _, custom = op.kind.partition(".")
            code = codes.setdefault((name, custom), len(codes))
            fields: dict[str, Any] = {"OpcodeIndex": code, "Inputs": list(op.inputs), "Outputs": list(op.outputs)}
            if op.options:
                table = w.table(f"{op.options}Options", **op.fields)
                for suffix, known in zip(("", "2"), kinds, strict=True):
                    if f"{op.options}Options" in known:
                        fields |= {
                            f"BuiltinOptions{suffix}Type": known[f"{op.options}Options"],
                            f"BuiltinOptions{suffix}": table,
                        }
                        break
            if op.intermediates:
                fields["Intermediates"] = list(op.intermediates)
            if op.custom:
                fields["CustomOptions"] = op.custom
            ops.append(w.table("Operator", **fields))
        graphs.append(
            w.table(
                "SubGraph",
                Tensors=tensors,
                Inputs=list(net.inputs),
                Outputs=list(net.outputs),
                Operators=ops,
                Name=net.name,
            )
        )
    made = Offsets(
        w.table(
            "OperatorCode",
            DeprecatedBuiltinCode=None if newer else min(numbers[name], PLACEHOLDER),
            BuiltinCode=numbers[name],
            Version=VERSIONS.get(name, 1),
            CustomCode=custom or None,
        )
        for name, custom in codes
    )
    shown = Offsets()
    for name, raw in metadata.items():
        buffers.append(w.table("Buffer", Data=raw))
        shown.append(w.table("Metadata", Name=name, Buffer=len(buffers) - 1))
    keys = Offsets()
    for key, graph, inputs, outputs in signatures:
        sides = [
            Offsets(w.table("TensorMap", Name=n, TensorIndex=i) for n, i in side.items()) for side in (inputs, outputs)
        ]
        keys.append(w.table("SignatureDef", Inputs=sides[0], Outputs=sides[1], SignatureKey=key, SubgraphIndex=graph))
    root = w.table(
        "Model",
        Version=3,
        OperatorCodes=made,
        Subgraphs=graphs,
        Description=description,
        Buffers=Offsets(buffers),
        SignatureDefs=keys,
        Metadata=shown,
    )
    w.builder.Finish(root, b"TFL3")
    return bytes(w.builder.Output())


def _tensor(w: Writer, t: Tensor, buffers: list[int]) -> int:
    number = 0
    if t.data is not None:
        raw = t.data if isinstance(t.data, bytes) else np.ascontiguousarray(t.data).tobytes()
        buffers.append(w.table("Buffer", Data=raw))
        number = len(buffers) - 1
    quantization = None
    if t.scales:
        zeros = list(t.zeros or [0] * len(t.scales))
        quantization = w.table(
            "QuantizationParameters", Scale=list(t.scales), ZeroPoint=zeros, QuantizedDimension=t.axis
        )
    if t.blocks is not None:
        quantization = _in_blocks(w.builder, *t.blocks)
    return w.table(
        "Tensor",
        Shape=list(t.shape),
        Type=CODES[t.type],
        Buffer=number,
        Name=t.name,
        Quantization=quantization,
        IsVariable=t.variable,
        ShapeSignature=list(t.signature) or None,
        Sparsity=None if t.sparsity is None else _sparsity(w, **t.sparsity),
    )


def _in_blocks(b: flatbuffers.Builder, scales: int, zeros: int, size: int) -> int:
    """QuantizationParameters with BlockwiseQuantization, which the package lacks: fields by their numbers."""
    b.StartObject(3)
    for slot, value in enumerate((scales, zeros, size)):
        b.PrependInt32Slot(slot, value, 0)
    details = b.EndObject()
    b.StartObject(7)
    b.PrependUint8Slot(4, 2, 0)
    b.PrependUOffsetTRelativeSlot(5, details, 0)
    return b.EndObject()


def _sparsity(w: Writer, order: Sequence[int], blocks: Sequence[int], axes: Sequence[Any]) -> int:
    """`axes`: the size of each dense axis, or segments and indices of a sparse one."""
    tables = Offsets()
    for axis in axes:
        if isinstance(axis, int):
            tables.append(w.table("DimensionMetadata", Format=0, DenseSize=axis))
        else:
            parts = [w.table("Int32Vector", Values=list(p)) for p in axis]
            tables.append(
                w.table(
                    "DimensionMetadata",
                    Format=1,
                    ArraySegmentsType=1,
                    ArraySegments=parts[0],
                    ArrayIndicesType=1,
                    ArrayIndices=parts[1],
                )
            )
    return w.table("SparsityParameters", TraversalOrder=list(order), BlockMap=list(blocks), DimMetadata=tables)
