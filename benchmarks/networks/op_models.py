"""IR files of one operation each, for benchmarks of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.networks.folder import Array

TYPES = {"float32": "f32", "int32": "i32", "int64": "i64", "uint8": "u8", "bool": "boolean"}
PRECISIONS = {"f32": "FP32", "i32": "I32", "i64": "I64", "u8": "U8", "boolean": "BOOL"}


@dataclass(frozen=True)
class Given:
    """An input that each inference gets."""

    array: Array


Attribute = str | int | float | bool | Sequence[int] | Sequence[float]


@dataclass(frozen=True)
class Case:
    """An operation with its inputs: those that are not `Given` are constants. `opset`: that of the definition."""

    type: str
    opset: int
    inputs: Sequence[Given | Array]
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    outputs: int = 1
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.type}-{self.opset}{f' {self.note}' if self.note else ''}"

    @property
    def given(self) -> dict[str, Array]:
        arrays = [i.array for i in self.inputs if isinstance(i, Given)]
        return {f"in{k}": array for k, array in enumerate(arrays)}

    def write(self, path: Path, vary: bool = False) -> None:
        """`path`.xml, and `.bin` beside it; `vary`: of f32 inputs, all sizes but that of axis 1 of 3 or more."""
        at, weights, layers, edges = 0, b"", list[str](), list[str]()
        last = len(self.inputs)
        for k, given in enumerate(self.inputs):
            array = given.array if isinstance(given, Given) else given
            kind = TYPES[array.dtype.name]
            free = isinstance(given, Given) and vary and kind == "f32"
            shape = [-1 if free and (array.ndim < 3 or axis != 1) else n for axis, n in enumerate(array.shape)]
            if isinstance(given, Given):
                data = f'shape="{_text(shape)}" element_type="{kind}"'
                head = f'name="in{at}" type="Parameter" version="opset1"><data {data}/>'
                at += 1
            else:
                data = f'shape="{_text(shape)}" element_type="{kind}" offset="{len(weights)}" size="{array.nbytes}"'
                weights += array.tobytes() + bytes(-array.nbytes % 64)
                head = f'name="c{k}" type="Const" version="opset1"><data {data}/>'
            layers.append(f'<layer id="{k}" {head}<output>{_port(0, kind, shape)}</output></layer>')
            edges.append(f'<edge from-layer="{k}" from-port="0" to-layer="{last}" to-port="{k}"/>')
        layers.append(self._operation(last))
        for k in range(self.outputs):
            result = '<input><port id="0" precision="FP32"/></input>'
            layers.append(f'<layer id="{last + 1 + k}" name="out{k}" type="Result" version="opset1">{result}</layer>')
            edges.append(f'<edge from-layer="{last}" from-port="{last + k}" to-layer="{last + 1 + k}" to-port="0"/>')
        parts = f"<layers>{''.join(layers)}</layers><edges>{''.join(edges)}</edges>"
        path.with_suffix(".xml").write_text(f'<?xml version="1.0"?><net name="op" version="11">{parts}</net>')
        path.with_suffix(".bin").write_bytes(weights)

    def _operation(self, id: int) -> str:
        data = " ".join(f'{name}="{_text(value)}"' for name, value in self.attributes.items())
        arrays = [i.array if isinstance(i, Given) else i for i in self.inputs]
        inputs = "".join(_port(k, TYPES[a.dtype.name], a.shape) for k, a in enumerate(arrays))
        outputs = "".join(f'<port id="{id + k}" precision="FP32"/>' for k in range(self.outputs))
        head = f'<layer id="{id}" name="op" type="{self.type}" version="opset{self.opset}"><data {data}/>'
        return f"{head}<input>{inputs}</input><output>{outputs}</output></layer>"


def _port(id: int, kind: str, shape: Sequence[int]) -> str:
    dims = "".join(f"<dim>{n}</dim>" for n in shape)
    return f'<port id="{id}" precision="{PRECISIONS[kind]}">{dims}</port>'


def _text(value: Attribute) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ",".join(map(str, value))
