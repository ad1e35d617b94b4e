"""Rows of a batch with lengths of their own, so that requests of different lengths share one inference of a token each.

    Append("v")(new, sizes, room, rows)     --row-lengths     ->     Append("v")(new, sizes, room, rows, starts)

`starts` is where `attention_mask` ends: the last token that a row may look at is its new one. All rows of a mask
without zeros at the end are as long as each other, and nothing changes. Calls of several tokens append to all rows
alike.
"""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import Graph, Node, OutPort
from aot.opset.control.growing_variables import PAST, Append, CacheSizes
from aot.passes.middle.control.row_masks import differs_by_longest
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from aot.runtime.generation.interface import MASK

ROWS = 5  # inputs of an Append with rows


def set_row_lengths(graph: Graph) -> bool:
    """Give each Append the place of each row.

    UsageError for networks without caches, rows or mask, and for those that compare columns with the longest row.
    """
    appends = [n for n in graph.order() if isinstance(n.op, Append)]
    mask = next((p for p in graph.parameters if MASK in (p.name, *p.out_port(0).names)), None)
    if not appends or mask is None or any(len(n.in_ports()) != ROWS for n in appends):
        needed = f"{MASK} and beam_idx, whose variables all grow by the tokens of a call"
        rule = f"the model must be a language model with {needed}"
        raise UsageError(f"--row-lengths: {rule}, got another network")
    context = next(n.op.context for n in graph.nodes.values() if isinstance(n.op, CacheSizes))
    if (wrong := differs_by_longest(graph, context)) is not None:
        rule = "masks must not depend on the longest row of a batch, as sliding windows that count from it do"
        raise UsageError(f"--row-lengths: {rule}, got layer {wrong.name!r}; next: compile without --row-lengths")
    first = appends[0]
    starts = _starts(graph, mask, first.source(1), first.source(2))
    for node in appends:
        node.add_input_port().connect(starts)
    return True


def _starts(graph: Graph, mask: Node, new: OutPort, sizes: OutPort) -> OutPort:
    """Return where rows put their tokens [batch]: a single one where the mask ends, several after all kept tokens."""
    build = Builder(graph, mask.origin)
    zero, one = build.const(0, DType.I64), build.const(1, DType.I64)

    def element(of: OutPort, at: int) -> OutPort:
        return build.Gather(of, build.const([at], DType.I64), zero)

    total = build.Squeeze(
        element(build.ShapeOf(mask.out_port(0), output_type=DType.I64), 1), build.const([0], DType.I64)
    )
    columns = build.Range(one, build.Add(total, one), one, output_type=DType.I64)
    shown = build.Convert(
        build.NotEqual(mask.out_port(0), build.const(0, mask.out_port(0).type.dtype)), destination_type=DType.I64
    )
    ends = build.ReduceMax(build.Multiply(shown, columns), build.const([1], DType.I64))
    single = build.LogicalAnd(build.Equal(element(new, 1), one), build.Greater(ends, zero))
    return build.Select(single, build.Subtract(ends, one), element(sizes, PAST))
