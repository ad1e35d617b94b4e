"""Pads sums for bf16 chains: zeros at the end of both factors fill the last block.

    add[k in 197](x[i, k] * w[k, j])
    chains[k in 210](within(k, 197, x[i, k], 0) * within(k, 197, w[k, j], 0))          7 blocks of 30 terms

Data get a halo of zeros by their layouts, so that kernels do not ask; constants become longer. Both factors of an
added term are zero, so that it adds nothing to any sum, be it infinite. Factors in which the terms are no dimension of
their own, as those of heads of 37 channels, are copied before.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.loops import Buffer, Expr, Load, Reduce, Var, dense, prim
from aot.codegen.ir.numbers.bf16_chains import chain_factors, padded_terms
from aot.runtime.abi import DType


def can_fill(axis: Var, r: Reduce, constants: frozenset[str]) -> bool:
    """True if the factors of a sum of products, or copies of them, can be padded with zeros to whole blocks."""
    factors = chain_factors(r)
    if factors is None or not isinstance(axis.extent, int) or not padded_terms(axis.extent):
        return False
    guarded = r.body != prim("mul", *factors)  # a copy would read outside
    others = [x for x in factors if dim_along(x, axis) is None]
    return not any(guarded or x.buffer.name in constants or _is_repeated(x) for x in others)


def dim_along(x: Load, axis: Var) -> int | None:
    """Return the dimension that a sum along `axis` reads completely and in order; None if there is none."""
    dims = [k for k, i in enumerate(x.index) if axis in variables(i)]
    return dims[0] if len(dims) == 1 and x.index[dims[0]] == axis and x.buffer.shape[dims[0]] == axis.extent else None


def _is_repeated(x: Load) -> bool:
    """True if giving each axis its own dimension would repeat elements, as for overlapping windows."""
    reads = prod(typical(a.extent or 1) for a in variables(*x.index))
    return bool(loads(*x.index)) or reads > prod(map(typical, x.buffer.shape))


def laid_out(x: Load, axis: Var, name: str) -> Definition:
    """Return the copy of a factor in bf16 that has a dimension for each axis, the one of the terms last."""
    axes = (*sorted(variables(*x.index) - {axis}, key=lambda a: a.name), axis)
    buffer = dense(name, *(a.extent or 1 for a in axes), dtype=DType.BF16)
    return Definition(buffer, axes, x, axes)


def filled(r: Reduce, axis: Var, longer: Callable[[Buffer, int, int], Buffer | None]) -> Reduce:
    """Return a sum of products with factors padded by zeros at the end.

    `longer(b, k, n)`: returns a constant with `n` elements of dimension k, the last of which are zero; None for data.
    """
    factors = chain_factors(r)
    assert factors is not None and isinstance(axis.extent, int)
    extent, terms = axis.extent, padded_terms(axis.extent)
    padded_axis = Var(axis.name, terms)

    def padded(x: Load) -> Expr:
        k = dim_along(x, axis)
        assert k is not None
        index = (*x.index[:k], padded_axis, *x.index[k + 1 :])
        constant = longer(x.buffer, k, terms)
        if constant is not None:
            return Load(constant, index)
        return prim("within", padded_axis, extent, Load(x.buffer, index), 0.0)

    body = rewrite(r.body, {x: padded(x) for x in factors})
    return Reduce(r.fn, tuple(padded_axis if a == axis else a for a in r.axes), body, r.init)
