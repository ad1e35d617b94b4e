"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.registry import Call, aten
from aot.ir.graph import OutPort
from runtime.abi import DType


@aten("sum.default", "sum.dim_IntList", "mean.default", "mean.dim")
def reduced(
    node: Call,
    x: OutPort,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> OutPort:
    """No axes, `[]`, are all axes. Elements are converted first."""
    axes = node.axes(dim or None if not isinstance(dim, int) else dim, x.type.rank)
    kind = "ReduceSum" if node.kind.startswith("sum") else "ReduceMean"
    return getattr(node.build, kind)(node.cast(x, dtype or node.dtype()), node.list(axes), keep_dims=keepdim)
