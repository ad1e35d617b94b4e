"""Results of a quantisation: layers, outputs, sizes, times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.compilation.search.costly_layers import error_of
from aot.ir.types import Array

F32, INT8 = "f32", "int8"


@dataclass(frozen=True, slots=True)
class QuantizedLayer:
    """A product: its type, the range of its data, its signal over noise in dB.

    `error`: of the results if only this layer is quantised; None if the user set no limit of errors.
    """

    layer: str
    precision: str
    low: float
    high: float
    decibels: float
    error: float | None


@dataclass(frozen=True, slots=True)
class QuantizedOutput:
    """An output against f32: the largest difference over the largest number, and the mean one (root of mean squares).

    `same`: share of rows, along the last dimension, whose greatest element is the same one; None for one element.
    """

    name: str
    error: float
    mean: float
    same: float | None


@dataclass(frozen=True, slots=True)
class Quantized:
    """A quantised network: layers as they run, outputs, bytes of weights, seconds of an inference.

    `left_out`: recurrent layers, loops and branches, whose products stay in f32.
    """

    layers: tuple[QuantizedLayer, ...]
    outputs: tuple[QuantizedOutput, ...]
    bytes: int
    seconds_f32: float
    seconds: float
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = sum(x.precision == INT8 for x in self.layers)
        lines = [f"{count} of {len(self.layers)} products in 8 bits, weights {self.bytes / 1e6:.4g} MB"]
        lines += [f"  {self.seconds * 1e3:.4g} ms, in f32 {self.seconds_f32 * 1e3:.4g} ms (one thread)"]
        if self.left_out:
            lines.append(f"  {', '.join(self.left_out)}: recurrent layers, loops and branches stay in f32")
        for x in self.outputs:
            same = "" if x.same is None else f", same greatest element in {x.same:.1%} of rows"
            lines.append(f"  output {x.name}: error {x.error:.2g}, mean {x.mean:.2g}{same}")
        for x in self.layers:
            alone = "" if x.error is None else f"{x.error:8.2g}  "
            lines.append(f"  {alone}{x.precision:4}  {x.decibels:5.1f} dB  {x.low:9.4g} .. {x.high:<9.4g}  {x.layer}")
        return "\n".join(lines)


def worst(outputs: Sequence[QuantizedOutput]) -> float:
    """Return the largest error of all outputs."""
    return max((x.error for x in outputs), default=0.0)


def compared(name: str, pairs: Sequence[tuple[Array, Array]]) -> QuantizedOutput:
    """Compare an output of all samples with the same output in f32."""
    error = max(error_of(y, w) for y, w in pairs)
    if pairs[0][1].dtype.kind != "f":
        return QuantizedOutput(name, error, error, None)
    noise = sum(float(np.square(y.astype(np.float64) - w).sum()) for y, w in pairs)
    signal = sum(float(np.square(w.astype(np.float64)).sum()) for _, w in pairs)
    rows = [np.equal(y.argmax(-1), w.argmax(-1)) for y, w in pairs if w.ndim and w.shape[-1] > 1 and w.size]
    same = float(np.mean(np.concatenate([r.reshape(-1) for r in rows]))) if rows else None
    return QuantizedOutput(name, error, float(np.sqrt(noise / (signal or 1.0))), same)
