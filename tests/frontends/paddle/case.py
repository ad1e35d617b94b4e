"""Cases of PaddlePaddle: their inputs and calls, and readers of the stored files and results."""

from __future__ import annotations

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


def interpolated(p: Any, x: Any, mode: str, **how: Any) -> Any:
    return p.nn.functional.interpolate(x, mode=mode, **how)


def network(p: Any, x: Any, w: Any) -> Any:
    """A loop of sizes, as OCR's exports have them: a map to a sequence."""
    n, c = p.shape(x)[0], p.shape(x)[1]
    y = p.nn.functional.conv2d(x, w, padding=1)
    y = p.transpose(p.reshape(y, [n, 5, -1]), [0, 2, 1])
    return p.concat([y, p.zeros([n, 1, 5])], 1), c
