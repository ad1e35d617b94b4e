"""Connectionist temporal classification."""

from __future__ import annotations

from aot.frontends.tf.arrays.sparse import dense
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@tf("CTCGreedyDecoder")
def ctc_greedy_decoder(node: TfNode, scores: OutPort, lengths: OutPort) -> tuple[OutPort, ...]:
    """Scores [T, N, C]: the best classes as a sparse tensor, without blanks, and the negated sum of their scores."""
    build = node.build
    blank = build.const(node.integer("blank_index"), DType.I32)
    if node.integer("blank_index") < 0:
        blank = build.Add(node.cast(node.size(scores, 2), DType.I32), blank)
    batch_first = build.Transpose(scores, node.list([1, 0, 2]))
    ends = node.cast(lengths, DType.I32)
    first = build.CTCGreedyDecoderSeqLen(
        batch_first, ends, blank, merge_repeated=node.flag("merge_repeated"), classes_index_type=DType.I64, outputs=2
    )
    decoded, counts = first.node.out_ports().values()
    positions = build.Transpose(build.NonZero(build.GreaterEqual(decoded, 0)), node.list([1, 0]))
    values = build.GatherND(decoded, positions)
    longest = build.ReduceMax(node.cast(counts, DType.I64), node.list([0]), keep_dims=True)
    shape = build.Concat(node.dims(scores, [1]), longest, axis=0)
    steps = build.Range(node.scalar(0), node.size(scores, 0), node.scalar(1), output_type=DType.I64)
    inside = build.Less(build.Unsqueeze(steps, node.list([1])), node.cast(lengths, DType.I64))
    best = build.ReduceMax(scores, node.list([2]))
    total = build.ReduceSum(build.Select(inside, best, node.like(0, best)), node.list([0]))
    return positions, values, shape, build.Negative(build.Unsqueeze(total, node.list([1])))


@tf("CTCLoss")
def ctc_loss(
    node: TfNode, scores: OutPort, indices: OutPort, values: OutPort, lengths: OutPort
) -> tuple[OutPort | None, ...]:
    """The loss of each sequence; labels are sparse. The gradient is not made."""
    build = node.build
    batch = node.dims(scores, [1])
    column = build.Gather(indices, node.scalar(1), node.scalar(1))
    none = node.list([0])
    longest = build.Add(build.ReduceMax(build.Concat(node.list([0]), column, axis=0), none, keep_dims=True), 1)
    labels = dense(node, indices, values, build.Concat(batch, longest, axis=0))
    rows = build.Unsqueeze(build.Gather(indices, node.scalar(0), node.scalar(1)), node.list([1]))
    ones = build.Broadcast(build.const(1, DType.I32), node.dims(values, [0]))
    counts = dense(node, rows, ones, batch)
    loss = build.CTCLoss(
        build.Transpose(scores, node.list([1, 0, 2])),
        node.cast(lengths, DType.I32),
        labels,
        counts,
        build.Subtract(node.cast(node.size(scores, 2), DType.I32), 1),
        preprocess_collapse_repeated=node.flag("preprocess_collapse_repeated"),
        ctc_merge_repeated=node.flag("ctc_merge_repeated"),
    )
    return loss, None
