"""Differences allowed between two right programs: the references run again with every value a few roundings off.

An element that moves by d under random roundings may differ by FACTOR * d; one that takes another integer, or is
infinite once and finite once, is not compared. (Stochastic arithmetic: Vignes 1993.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.op import Op
from aot.ir.types import Array
from aot.runtime.errors import AotError

RUNS = 4
FACTOR = 8.0
ROUNDINGS = 4.0  # of each value, at most
# operations whose errors are roundings of 1, however small the result
CANCELLING = ("Gelu", "Swish", "Mish", "SoftPlus", "Erf", "LogSoftmax")
# operations whose errors are roundings of sums over all of their input: a reference by another algorithm may give 0
TRANSFORMS = ("STFT", "ISTFT", "DFT", "IDFT", "RDFT", "IRDFT")
RELATIVE = {2: 0.0, 4: 4e-6, 8: 4e-6}  # of the result, by bytes of an element; short floats by their rounding


@dataclass(frozen=True)
class Expected:
    """A result and what each element may be off by: infinite where it is not compared."""

    value: Array
    allowed: Array

    def differs(self, found: Array, exact: bool = False) -> str:
        """Describe the difference of `found` from the expected value; empty if there is none."""
        value = self.value
        if found.dtype != value.dtype and found.dtype.itemsize == value.dtype.itemsize and found.dtype.kind in "uVf":
            found = found.view(value.dtype)  # bf16 travels as bits
        if (found.dtype, found.shape) != (value.dtype, value.shape):
            return f"{found.dtype}{list(found.shape)}, not {value.dtype}{list(value.shape)}"
        if value.dtype == object:
            return "" if np.array_equal(found, value) else "other strings"
        a, b = (found, value) if value.dtype.kind in "iub" else (found.astype(np.float64), value.astype(np.float64))
        near = a == b
        if value.dtype.kind not in "iub":
            with np.errstate(all="ignore"):
                near |= (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= (0 if exact else self.allowed))
        wrong = ~near & ~(np.isinf(self.allowed) & (not exact))
        if not wrong.any():
            return ""
        at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        return f"{int(wrong.sum())} of {wrong.size} elements, at {[int(k) for k in at]} {a[at]}, not {b[at]}"


States = Sequence[dict[str, Array]]  # variables: those of the references, and those of each run with other roundings


def no_states() -> States:
    return [{} for _ in range(1 + RUNS)]


def expectations(graph: Graph, inputs: Sequence[Array], states: States | None = None) -> list[Expected]:
    """The results of the references and what they may be off by. `states` are before and afterwards."""
    states = no_states() if states is None else states
    for node in graph.nodes.values():
        if node.data is not None and node.data.dtype != object:
            node.data = np.array(node.data)
            node.data.flags.writeable = False  # so that views of constants are not moved either
    values = interpret(graph, [x.copy() for x in inputs], state=states[0])
    spread = [np.zeros(v.shape) for v in values]
    for seed in range(RUNS):
        moved = _moved_run(graph, inputs, states[1 + seed], seed)
        for k, v in enumerate(values):
            spread[k] = np.maximum(spread[k], _distance(v, moved[k] if moved is not None else None))
    return [Expected(v, _allowed(v, s)) for v, s in zip(values, spread, strict=True)]


def _moved_run(graph: Graph, inputs: Sequence[Array], state: dict[str, Array], seed: int) -> list[Array] | None:
    """Results with every float of every value moved at random; None if the references refuse them."""
    rng = np.random.default_rng(seed)

    def move(port: OutPort, value: Array) -> None:
        step = _rounding(value, port.node.op)
        if step and value.flags.writeable and value.size:
            with np.errstate(all="ignore"):
                noise = rng.uniform(-ROUNDINGS, ROUNDINGS, value.shape) * step
                size = np.maximum(np.abs(value), 1) if port.node.type in CANCELLING else value
                size = np.full_like(value, np.abs(value).max()) if port.node.type in TRANSFORMS else size
                value[...] = (value.astype(np.float64) + size.astype(np.float64) * noise).astype(value.dtype)

    try:
        return interpret(graph, [x.copy() for x in inputs], state=state, observe=move)
    except AotError:
        return None


def _rounding(value: Array, op: Op | None = None) -> float:
    """Relative error of one rounding; 0 for what is no float."""
    if value.dtype.kind not in "fV" or value.dtype == object:
        return 0.0
    eps = float(ml_dtypes.finfo(value.dtype).eps)
    return max(eps, float(np.finfo(np.float32).eps)) if op is not None and op.single else eps


def _distance(value: Array, moved: Array | None) -> Array:
    """Return the distance that each element has moved; infinite if that is no number."""
    if moved is None or moved.shape != value.shape or value.dtype == object:
        return np.full(value.shape, np.inf)
    if value.dtype.kind in "iub":
        return np.where(value == moved, 0.0, np.inf)
    a, b = value.astype(np.float64), moved.astype(np.float64)
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isfinite(gap), gap, np.inf))


def _allowed(value: Array, spread: Array) -> Array:
    if value.dtype == object or value.dtype.kind in "iub":
        return spread
    relative = max(RELATIVE.get(value.dtype.itemsize, 0.0), 2 * _rounding(value))
    with np.errstate(all="ignore"):
        size = np.abs(value.astype(np.float64))
    size = np.where(np.isfinite(size), size, 0.0)
    return FACTOR * spread + relative * size + 1e-30 + 1e-6 * relative * (float(size.max()) if size.size else 0.0)
