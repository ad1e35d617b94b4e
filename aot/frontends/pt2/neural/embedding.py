"""Embeddings: rows of a table."""

from __future__ import annotations

from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort
from aot.opset.movement.embedding import Bag
from aot.runtime.abi import DType


@aten("embedding.default")
def embedding(
    node: AtenNode,
    weight: OutPort,
    indices: OutPort,
    padding_idx: Size = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> OutPort:
    return node.build.Gather(weight, indices, node.scalar(0))


@aten("embedding_bag.default", "embedding_bag.padding_idx", "_embedding_bag.default")
@aten("_embedding_bag_forward_only.default")
def embedding_bag(
    node: AtenNode,
    weight: OutPort,
    indices: OutPort,
    offsets: OutPort,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: OutPort | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[OutPort, ...]:
    """Sums, means or maxima of bags, which begin at offsets; an empty one gives 0. Nothing reads other outputs."""
    has_padding = padding_idx is not None and (padding_idx >= 0 or node.kind.startswith("embedding_bag"))
    node.refuse(has_padding, "rows of padding in a bag are not supported")
    node.refuse(any(node.outputs[1:]), "outputs behind the bags are not supported")
    build = node.build
    if indices.type.rank == 2:
        fields = {"reduction": Bag.MEAN if mode else Bag.SUM}
        weights = list[OutPort]() if per_sample_weights is None else [per_sample_weights]
        return (build.EmbeddingBagPacked(weight, node.cast(indices, DType.I64), *weights, **fields),) * 4
    if include_last_offset:
        offsets = build.Slice(offsets, node.list([0]), node.list([-1]), node.list([1]))
    if mode == 2:
        return (_maxima(node, weight, indices, node.cast(offsets, DType.I64)),) * 4
    inputs = [weight, node.cast(indices, DType.I64), node.cast(offsets, DType.I64)]
    if per_sample_weights is not None:
        inputs += [node.scalar(-1), node.cast(per_sample_weights, weight.type.dtype)]
    return (build.EmbeddingBagOffsets(*inputs, reduction=Bag.MEAN if mode else Bag.SUM),) * 4


def _maxima(node: AtenNode, weight: OutPort, indices: OutPort, offsets: OutPort) -> OutPort:
    """Return the maxima of the rows of bags, which begin at offsets; 0 of an empty one."""
    build = node.build
    rows = build.Gather(weight, indices, node.scalar(0))
    positions = build.Range(node.scalar(0), node.size(indices, 0), node.scalar(1))
    bags = build.Subtract(build.SearchSorted(offsets, positions, right_mode=True), node.scalar(1))
    return build.SegmentMax(rows, bags, node.size(offsets, 0))
