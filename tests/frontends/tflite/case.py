"""Cases of TensorFlow Lite's operations: what they are made of, and the list of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.frontends.tflite.models import Tensor, constant


@dataclass
class Case:
    """An operator: arrays are inputs of the network, tensors with data constants, None is left out.

    `values`: of inputs that are given as tensors without data. `runs`: inferences, of which the last one counts.
    """

    name: str
    kind: str
    inputs: Sequence[Any]
    outputs: Sequence[Any] = ("f32",)
    options: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    values: Sequence[np.ndarray] = ()
    custom: bytes = b""
    made: bytes | None = None
    runs: int = 1
    kernels: str = "reference"


rng = np.random.default_rng(20)


def f(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    return rng.uniform(low, high, shape).astype(np.float32)


def i(*shape: int, low: int = -9, high: int = 9, dtype: Any = np.int32) -> np.ndarray:
    return rng.integers(low, high, shape, dtype=dtype)


def c(value: Any, dtype: Any = np.int32, name: str = "c", **facts: Any) -> Tensor:
    c.count = getattr(c, "count", 0) + 1  # type: ignore[attr-defined]
    return constant(f"{name}{c.count}", np.asarray(value, dtype), **facts)  # type: ignore[attr-defined]


def b(*shape: int) -> np.ndarray:
    return rng.integers(0, 2, shape).astype(bool)


CASES: list[Case] = []


def case(
    name: str,
    kind: str,
    *inputs: Any,
    outputs: Sequence[Any] = ("f32",),
    options: str = "",
    values: Sequence[np.ndarray] = (),
    custom: bytes = b"",
    runs: int = 1,
    kernels: str = "reference",
    **fields: Any,
) -> None:
    CASES.append(Case(name, kind, inputs, outputs, options, fields, values, custom, None, runs, kernels))


def network(name: str, made: bytes, *values: np.ndarray, runs: int = 1) -> None:
    CASES.append(Case(name, "", (), (), "", {}, values, b"", made, runs))
