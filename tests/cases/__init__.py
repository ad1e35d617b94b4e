"""Tables of cases, in the folders of aot/opset: an operation, its inputs, and how close the compiled result must be.

Case(Relu(), [(DType.F32, (2, 3))])                       two inputs would be two entries
Case(ReduceSum(), [(DType.F32, ("n=3", 4)), AXES])        an array is a compile-time constant; `n` a run-time size
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pkgutil import walk_packages

import ml_dtypes
import numpy as np

from aot.codegen.ir.loops import Var
from aot.ir.op import Op
from aot.ir.operand import Operand
from aot.ir.types import Array, Dim, TensorType, dtype_of, numpy_dtype
from aot.runtime.abi import DType


@dataclass(frozen=True)
class Tolerance:
    """|found - expected| <= absolute + relative * |expected|; short floats may differ by one rounding more."""

    name: str
    relative: float
    absolute: float

    def allows(self, found: Array, expected: Array) -> bool:
        """True if both are equal within the tolerance; NaN equals NaN."""
        if expected.dtype.kind not in "fV" or not self.relative:
            return bool(np.array_equal(found, expected, equal_nan=expected.dtype.kind in "fV"))
        rounding = 2 * float(ml_dtypes.finfo(expected.dtype).eps) if expected.dtype.itemsize < 4 else 0.0
        relative = self.relative + rounding
        a, b = found.astype(np.float64), expected.astype(np.float64)
        return bool(np.allclose(a, b, rtol=relative, atol=self.absolute, equal_nan=True))


EXACT = Tolerance("exact", 0.0, 0.0)
CLOSE = Tolerance("close", 2e-6, 1e-6)  # a few roundings: element by element
LOOSE = Tolerance("loose", 1e-4, 1e-5)  # long sums, iterations

Spec = tuple[DType, tuple[int | str, ...]]
SIZE_LIMIT = 64  # of run-time dimensions


@dataclass(frozen=True)
class Case:
    """`inputs`: (element type, shape), an array that is a compile-time constant, or None for an absent input.

    Random floats are in low..high, integers too, both ends included. A dimension "n=3" is known at run time only.
    `long`: its sizes are for the vectors of compiled code; its loops are those of shorter cases, which Python runs.
    """

    op: Op
    inputs: Sequence[Spec | Array | None]
    tolerance: Tolerance = CLOSE
    low: float = -4.0
    high: float = 4.0
    outputs: int = 1
    long: bool = False

    @property
    def name(self) -> str:
        return f"{type(self.op).__name__}.{'.'.join(map(_text, self.inputs))}"

    def operands(self) -> list[Operand | None]:
        """Return the operands that inference gets."""
        return [None if s is None else _operand(s) for s in self.inputs]

    def static_operands(self) -> list[Operand | None]:
        """The same with the shapes of run time."""
        given = zip(self.operands(), self.arrays, strict=True)
        return [Operand(TensorType(o.dtype, a.shape), o.value) if o and a is not None else None for o, a in given]

    @cached_property
    def arrays(self) -> list[Array | None]:
        """Values of all inputs; the same ones each time."""
        rng = np.random.default_rng(zlib.crc32(f"{self.op}{self.name}".encode()))
        return [self._array(rng, s) for s in self.inputs]

    def _array(self, rng: np.random.Generator, spec: Spec | Array | None) -> Array | None:
        if spec is None or isinstance(spec, np.ndarray):
            return spec
        dtype, shape = spec[0], tuple(_size(d)[1] for d in spec[1])
        if dtype is DType.BOOL:
            return rng.integers(0, 2, shape).astype(np.bool_)
        if dtype.is_float:
            return rng.uniform(self.low, self.high, shape).astype(numpy_dtype(dtype))
        low = self.low if dtype.is_signed else max(self.low, 0)
        return rng.integers(int(low), int(self.high) + 1, shape).astype(numpy_dtype(dtype))

    @property
    def sizes(self) -> dict[str, int]:
        """Values of the run-time dimensions."""
        specs = [s for s in self.inputs if isinstance(s, tuple)]
        return {name: size for s in specs for name, size in map(_size, s[1]) if name}


@cache
def tables() -> dict[str, list[Case]]:
    """Return the cases of each module, by a name like "elementwise.activation"."""
    found = walk_packages(__path__, f"{__name__}.")
    return {m.name.removeprefix(f"{__name__}."): import_module(m.name).CASES for m in found if not m.ispkg}


def _size(dim: int | str) -> tuple[str, int]:
    if isinstance(dim, int):
        return "", dim
    name, size = dim.split("=")
    return name, int(size)


def _dim(dim: int | str) -> Dim:
    return dim if isinstance(dim, int) else Var(_size(dim)[0], SIZE_LIMIT + 1)


def _operand(spec: Spec | Array) -> Operand:
    if isinstance(spec, np.ndarray):
        return Operand(TensorType(dtype_of(spec), spec.shape), spec)
    return Operand(TensorType(spec[0], tuple(map(_dim, spec[1]))))


def _text(spec: Spec | Array | None) -> str:
    if spec is None:
        return "none"
    if isinstance(spec, np.ndarray):
        return f"const{'x'.join(map(str, spec.shape))}"
    return f"{spec[0].value}[{'x'.join(map(str, spec[1]))}]"
