"""The meaning of a definition: numpy over whole index spaces, no loops, no schedule."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Size, Var

Array = NDArray[np.generic]
FOLD = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}
BINARY = {
    **FOLD,
    "sub": np.subtract,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "lt": np.less,
    "ge": np.greater_equal,
    "eq": np.equal,
}


class Meaning:
    """Evaluates definitions over named arrays; `origins` says where element [0, 0, ..] of an array with a halo lies."""

    def __init__(
        self,
        arrays: dict[str, Array],
        sizes: Mapping[Var, int] | None = None,
        origins: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.arrays, self.sizes, self.origins = arrays, dict(sizes or {}), dict(origins or {})

    def size(self, size: Size | None) -> int:
        if isinstance(size, int):
            return size
        assert size is not None
        return int(self.value(size, {v: np.asarray(n) for v, n in self.sizes.items()}))

    def run(self, work: Definition | Group) -> None:
        """Write the outputs (and temps) into `arrays`."""
        if isinstance(work, Group):
            for member in work.members:
                self.run(member)
            return
        axes = work.axes
        env = {
            a: np.arange(self.size(a.extent)).reshape([-1 if i == n else 1 for n in range(len(axes))])
            for i, a in enumerate(axes)
        }
        env |= {v: np.asarray(n) for v, n in self.sizes.items()}
        shape = tuple(self.size(a.extent) for a in axes)
        out = self.arrays[work.out.name]
        value = np.broadcast_to(self.value(work.value, env), shape)
        index = tuple(np.broadcast_to(self.value(i, env), shape) for i in work.target)
        keep = np.ones(shape, bool)
        for i, bound in work.where:
            keep &= np.broadcast_to(self.value(i, env) < self.size(bound), shape)
        out[tuple(i[keep] for i in index)] = value[keep]

    def value(self, e: Expr, env: dict[Var, Array]) -> Array:
        match e:
            case Const(number):
                return np.asarray(number)
            case Var():
                return env[e]
            case Load(buffer, index):
                at = self.origins.get(buffer.name, (0,) * len(index))
                parts = [self.value(i, env) + o for i, o in zip(index, at, strict=True)]
                return self.arrays[buffer.name][
                    tuple(np.clip(p, 0, n - 1) for p, n in zip(parts, self.arrays[buffer.name].shape, strict=True))
                ]
            case Prim("within", (i, n, v)):
                at_ = self.value(i, env)
                return np.where((at_ >= 0) & (at_ < self.value(n, env)), self.value(v, env), 0)
            case Prim("select", (c, a, b)):
                return np.where(self.value(c, env), self.value(a, env), self.value(b, env))
            case Prim("cast", (a,), dtype):
                return self.value(a, env).astype({"i64": "i8", "f32": "f4", "i32": "i4"}[dtype.value])
            case Prim(fn, (a, b)):
                return BINARY[fn](self.value(a, env), self.value(b, env))
            case Reduce(fn, axes, body, init):
                n = max((x.ndim for x in env.values()), default=0)
                inner = {
                    v: x.reshape(x.shape + (1,) * (n - x.ndim + len(axes))) if x.ndim else x for v, x in env.items()
                }
                for i, a in enumerate(axes):
                    inner[a] = np.arange(self.size(a.extent)).reshape(
                        [-1 if n + i == k else 1 for k in range(n + len(axes))]
                    )
                full = np.broadcast_shapes(*(x.shape for x in inner.values()))
                body_ = np.broadcast_to(self.value(body, inner), full)
                total = reduce(lambda x, _: FOLD[fn].reduce(x, axis=-1, dtype=body_.dtype), axes, body_)
                return total if init is None else FOLD[fn](self.value(init, env), total)
        raise NotImplementedError(str(e))
