"""Elements picked and written by index, segments, and indices found by value."""

from __future__ import annotations

from aot.frontends.tf.math.complex_numbers import by_parts
from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@tflite("GATHER", stored=True)
@by_parts
def gather(node: TfliteNode, x: OutPort, indices: OutPort) -> OutPort:
    axis, batch = node.axis(node.integer("axis", 0), x.type.rank), node.integer("batch_dims", 0)
    return node.build.Gather(
        x, indices, node.scalar(axis), batch_dims=batch + indices.type.rank if batch < 0 else batch
    )


@tflite("EMBEDDING_LOOKUP")
def embedding_lookup(node: TfliteNode, ids: OutPort, table: OutPort) -> OutPort:
    return node.build.Gather(table, ids, node.scalar(0))


@tflite("HASHTABLE_LOOKUP")
def hashtable_lookup(node: TfliteNode, queries: OutPort, keys: OutPort, values: OutPort) -> tuple[OutPort, OutPort]:
    """The row of `values` that belongs to a key, or zeros; whether there is one."""
    build = node.build
    here = build.Equal(build.Unsqueeze(queries, node.list([1])), keys)
    hits = build.ReduceLogicalOr(here, node.list([1]))
    first_match = node.tf("ArgMax", node.cast(here, DType.U8), node.scalar(1), output_type="i64")
    rows = build.Gather(values, first_match, node.scalar(0))
    wide = build.Unsqueeze(hits, node.list(range(1, rows.type.rank))) if rows.type.rank > 1 else hits
    return build.Select(wide, rows, node.like(0, rows)), node.cast(hits, DType.U8)


@tflite("UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_SUM")
def unsorted_segments(node: TfliteNode, x: OutPort, ids: OutPort, count: OutPort) -> OutPort:
    return node.tf("UnsortedSegment" + node.kind.rpartition("_")[2].capitalize(), x, ids, count)


@tflite("UNIQUE", stored=True)
def unique(node: TfliteNode, x: OutPort) -> tuple[OutPort, ...]:
    return node.tf("Unique", x, out_idx=node.output_type(1).value)


@tflite("BUCKETIZE")
def bucketize(node: TfliteNode, x: OutPort) -> OutPort:
    return node.tf("Bucketize", x, boundaries=node.numbers("boundaries", ()))
