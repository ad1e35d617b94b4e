"""Cases of PyTorch's operations: what they are made of.

    CASES = [case("add.Tensor", f(2, 3), f(3), alpha=2), ...]

Arrays are inputs of the network, `known(..)` are buffers, `dtype("float16")` is an element type; all else is constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Known:
    """An array that is a buffer of the module."""

    value: np.ndarray


@dataclass(frozen=True)
class Short:
    """An array of f32 that is fed as another type: bfloat16, float8_e4m3fn."""

    value: np.ndarray
    type: str


@dataclass(frozen=True)
class Dtype:
    """An element type or a memory format: `float16` is torch.float16."""

    name: str


@dataclass
class Case:
    """An operation with its arguments. `tolerance`: relative to the largest number of an output."""

    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 0.0
    fixed: bool = False  # sizes are not left open
    first: bool = False  # only the first output is one of the program


def case(op: str, *args: Any, tolerance: float = 0.0, fixed: bool = False, first: bool = False, **kwargs: Any) -> Case:
    return Case(op, args, kwargs, tolerance, fixed, first)


rng = np.random.default_rng(35)


def f(*shape: int, low: float = -2.0, high: float = 2.0, dtype: Any = np.float32) -> np.ndarray:
    return rng.uniform(low, high, shape).astype(dtype)


def p(*shape: int) -> np.ndarray:
    """Positive numbers."""
    return f(*shape, low=0.1, high=3.0)


def i(*shape: int, low: int = -9, high: int = 9, dtype: Any = np.int64) -> np.ndarray:
    return rng.integers(low, high, shape, dtype=dtype)


def b(*shape: int) -> np.ndarray:
    return rng.integers(0, 2, shape).astype(bool)


def h(*shape: int) -> np.ndarray:
    return f(*shape, dtype=np.float16)


def bf(*shape: int) -> Short:
    return Short(f(*shape), "bfloat16")


def known(value: Any, dtype: Any = None) -> Known:
    return Known(np.asarray(value, dtype))


def dtype(name: str) -> Dtype:
    return Dtype(name)
