"""Control flow, arrays of tensors and quantised numbers of PaddlePaddle: what is called there, and the inputs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tests.frontends.paddle.case import Case, ints, numbers, older

X = numbers(2, 3, 4)
ONE_SCALE = numbers(1, low=1, high=2)
CHANNELS = "fake_channel_wise_dequantize_max_abs"


def translated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call of a function whose loops and branches of Python become those of the program."""

    def call(p: Any, *inputs: Any) -> Any:
        module = importlib.import_module("paddle.jit.dy2static.program_translator")
        return module.convert_to_static(function)(p, *inputs)

    return call


def rows_written(p, x, n):  # type: ignore[no-untyped-def]
    """Write a row of the result in each step from a state that is carried on, as the head of SLANet does."""
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
    """Return the elements of an array that was appended to and overwritten."""
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


CONTROL_CASES: tuple[Case, ...] = (
    # control flow
    Case("if", lambda p, x: p.static.nn.cond(p.mean(x) > 0, lambda: x + 1, lambda: x * 2), [X]),
    Case("if_none", lambda p, x: p.static.nn.cond(p.mean(x) > 5, lambda: (x + 1, x), lambda: (x * 2, x - 1)), [X]),
    Case(
        "while",
        lambda p, n, x: p.static.nn.while_loop(
            lambda i, y: i < n, lambda i, y: [i + 1, y * 2 + x], [p.zeros([1], "int64"), x]
        ),
        [ints([4]), X],
    ),
    Case("rows_written", translated(rows_written), [numbers(2, 4), ints([4])]),
    Case("rows_collected", translated(rows_collected), [numbers(5, 4), ints([3])]),
    Case("nested", translated(nested), [numbers(3, 4), ints([3])]),
    Case("array_ends", array_ends, [X]),
    # quantised
    Case("levels", levels, [X, numbers(1, low=1, high=2)]),
    Case("levels_channels", lambda p, x, s: levels(p, x, s, 1), [X, numbers(3, low=1, high=2)]),
    Case("levels_wide", lambda p, x, s: levels(p, x, s, bits=16), [X, numbers(1, low=1, high=2)]),
    *(
        Case(kind, lambda p, x, s, kind=kind: faked(p, kind, {"X": x, "InScale": s}, is_test=True), [X, ONE_SCALE])
        for kind in (
            "fake_quantize_dequantize_moving_average_abs_max",
            "fake_quantize_moving_average_abs_max",
            "fake_quantize_range_abs_max",
        )
    ),
    *(
        Case(kind, lambda p, x, kind=kind: faked(p, kind, {"X": x}), [X])
        for kind in ("fake_quantize_dequantize_abs_max", "fake_channel_wise_quantize_dequantize_abs_max")
    ),
    Case(
        "fake_dequantize_max_abs",
        lambda p, x, s: older(p, "fake_dequantize_max_abs", {"X": x, "Scale": s}, "float32", max_range=127.0),
        [X, ONE_SCALE],
    ),
    Case(
        "fake_channel_wise_dequantize_max_abs",
        lambda p, x, s, t: [
            *older(p, CHANNELS, {"X": x, "Scales": [s]}, "float32", quant_bits=[8], quant_axis=1),
            *older(p, CHANNELS, {"X": p.round(x), "Scales": [s, t]}, "float32", quant_bits=[8, 8], x_num_col_dims=1),
        ],
        [X, numbers(3, low=1, high=2), ONE_SCALE],
    ),
)
