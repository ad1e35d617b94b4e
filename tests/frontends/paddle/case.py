"""Cases of PaddlePaddle: their inputs and calls, and readers of the stored files and results."""

from __future__ import annotations

import importlib
import json
import lzma
from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Array = Any
STORED = Path(__file__).with_name("cases.xz")


@dataclass(frozen=True)
class Case:
    """A function of PaddlePaddle, as `p`, and tensors. `fixed`: its sizes must be known; `newer`: not in version 2."""

    name: str
    call: Callable[..., Any]
    inputs: Sequence[Array]
    fixed: bool = False
    newer: bool = False


@cache
def stored() -> dict[str, dict[str, Any]]:
    """Return the files and the results of the cases by their names, and by the suffixes of files."""
    return json.loads(lzma.decompress(STORED.read_bytes()))


def array(kept: Sequence[Any]) -> Array:
    """Return a stored array."""
    dtype, shape, data = kept
    return np.frombuffer(b64decode(data), dtype).reshape(shape)


def numbers(*shape: int, low: float = -2, high: float = 2, seed: int = 1) -> Array:
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(np.float32)


def ints(values: Any, dtype: Any = np.int64) -> Array:
    return np.array(values, dtype)


def cases_of(words: str, inputs: Sequence[Array], module: str = "") -> list[Case]:
    """Return cases of functions of one name, called with the inputs."""

    def call(name: str) -> Callable[..., Any]:
        return lambda p, *xs: getattr(p.nn.functional if module else p, name)(*xs)

    return [Case(name, call(name), inputs) for name in words.split()]


def both(found: Any) -> list[Any]:
    """Return the results and the last states of recurrent layers."""
    return [found[0], *found[2]]


def older(p: Any, kind: str, inputs: Any, result: str, outputs: Sequence[str] = ("Out",), **attrs: Any) -> Any:
    """Return the outputs of an operation that version 2 alone has."""
    block = p.static.default_main_program().current_block()
    made = {n: block.create_var(name=f"{kind}.{n}", dtype=result) for n in outputs}
    block.append_op(type=kind, inputs=inputs, outputs=made, attrs=attrs)
    return list(made.values())


def translated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call of a function whose loops and branches of Python become those of the program."""

    def call(p: Any, *inputs: Any) -> Any:
        module = importlib.import_module("paddle.jit.dy2static.program_translator")
        return module.convert_to_static(function)(p, *inputs)

    return call


def rows_written(p, x, n):  # type: ignore[no-untyped-def]
    """As SLANet's head: a state, and a row of the result in each step."""
    rows, state = p.zeros([2, 5, 4]), p.zeros([2, 4])
    for i in range(n[0]):
        state = p.tanh(x + state)
        rows = p.static.setitem(rows, (slice(None), i), state)
    return p.exp(rows)


def rows_collected(p, x, n):  # type: ignore[no-untyped-def]
    """An array that a loop fills, and one of which a tensor is taken."""
    rows, state = [], p.zeros([4])
    for i in range(n[0]):
        state = state * 0.5 + x[i]
        rows.append(state)
    return p.stack(rows), p.concat(rows)


def nested(p, x, n):  # type: ignore[no-untyped-def]
    """Branches with and without a loop, and a branch in a loop."""
    if n[0] > 2:
        y = x + 1
        z = y * 2
    else:
        y, z = x * 3, x
    i = p.zeros([1], "int64")
    while i < n:
        y = y + 1
        i = i + 1
        if y.mean() > 2:
            z = z - y
    return y, z, i


def array_ends(p: Any, x: Any) -> Any:
    """Return what is in an array, after writes behind the last one and in place of one."""
    place = [p.full([1], i, "int64") for i in range(3)]
    xs = p.tensor.array_write(x, place[0])
    for i, y in ((1, x * 2), (2, x + 1), (0, x - 3)):
        p.tensor.array_write(y, place[i], xs)
    return p.tensor.array_read(xs, place[0]), p.tensor.array_read(xs, place[2]), p.tensor.array_length(xs)


def levels(p: Any, x: Any, scale: Any, axis: int = -1, bits: int = 8) -> Any:
    """Return numbers rounded to levels."""
    how = {"quant_axis": axis, "bit_length": bits, "is_test": True, "round_type": 0}
    given = {"Scale": scale, "ZeroPoint": p.zeros_like(scale)}
    (levels,) = older(p, "quantize_linear", {"X": x, **given}, "float32", ("Y",), **how)
    return older(p, "dequantize_linear", {"X": levels, **given}, "float32", ("Y",), **how)


def faked(p: Any, kind: str, inputs: Any, **attrs: Any) -> Any:
    """Return the results of an operation that rounds to levels."""
    found = older(p, kind, inputs, "float32", ("Out", "OutScale"), bit_length=8, **attrs)
    return found[:1] if "is_test" in attrs else found


def interpolated(p: Any, x: Any, mode: str, **how: Any) -> Any:
    return p.nn.functional.interpolate(x, mode=mode, **how)


def network(p: Any, x: Any, w: Any) -> Any:
    """A loop of sizes, as OCR's exports have them: a map to a sequence."""
    n, c = p.shape(x)[0], p.shape(x)[1]
    y = p.nn.functional.conv2d(x, w, padding=1)
    y = p.transpose(p.reshape(y, [n, 5, -1]), [0, 2, 1])
    return p.concat([y, p.zeros([n, 1, 5])], 1), c
