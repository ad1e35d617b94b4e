"""Distances and similarities of vectors."""

from __future__ import annotations

import numpy as np

from aot.frontends.pt2.math.products import cdist
from aot.frontends.pt2.math.reduction import norm
from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.ir.values.estimate import check_table
from aot.runtime.abi import DType


@aten("_pdist_forward.default", "pdist.default")
def pdist(node: AtenNode, x: OutPort, p: float = 2.0) -> OutPort:
    """Distances of row i from row j of x [n, k], for all i < j."""
    n = node.extent(x, 0, "the number of rows")
    check_table(node.kind, n, n)
    rows, columns = np.triu_indices(n, 1)
    flat = node.build.Reshape(cdist(node, x, x, p), node.list([-1]))
    return node.build.Gather(flat, node.build.const(rows * n + columns, DType.I64), node.scalar(0))


@aten("dist.default")
def dist(node: AtenNode, x: OutPort, other: OutPort, p: Number = 2) -> OutPort:
    a, b = node.promoted(x, other, floats=True)
    return norm(node, node.build.Subtract(a, b), p)


@aten("pairwise_distance.default")
def pairwise_distance(
    node: AtenNode, x: OutPort, x2: OutPort, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> OutPort:
    gap = node.real(node.build.Subtract(*node.promoted(x, x2)))
    gap = node.build.Add(gap, node.like(eps, gap))
    return norm(node, gap, p, None, -1, keepdim)


@aten("cosine_similarity.default")
def cosine_similarity(node: AtenNode, x: OutPort, x2: OutPort, dim: int = 1, eps: float = 1e-8) -> OutPort:
    """The product of vectors divided by their lengths, each at least `eps`."""
    build = node.build
    a, b = node.promoted(x, x2, floats=True)
    least = node.like(eps, a)
    rank = max(a.type.rank, b.type.rank)
    axis = node.axis(dim, rank)
    units = [
        build.Divide(v, build.Maximum(build.ReduceL2(v, node.list([axis - rank]), keep_dims=True), least))
        for v in (a, b)
    ]
    return build.ReduceSum(build.Multiply(units[0], units[1]), node.list([axis - rank]))


@aten("_weight_norm.default", "_weight_norm_interface.default")
def weight_norm(node: AtenNode, v: OutPort, g: OutPort, dim: int = 0) -> tuple[OutPort, ...]:
    """`v` with the norms `g` of its slices along an axis, and the norms that they have."""
    axis = node.axis(dim, v.type.rank)
    size = node.build.ReduceL2(v, node.list([k for k in range(v.type.rank) if k != axis]), keep_dims=True)
    return (node.build.Multiply(v, node.build.Divide(g, size)), size)[: len(node.outputs)]
