"""Data that moves, and data that is filled in."""

from __future__ import annotations

from aot.frontends.tf.math.complex_numbers import by_parts
from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

MIRRORS = ("REFLECT", "SYMMETRIC")


@tflite("STABLEHLO_TRANSPOSE", stored=True)
@by_parts
def transpose_by(node: TfliteNode, x: OutPort) -> OutPort:
    return node.build.Transpose(x, node.list(node.integers("permutation", ())))


@tflite("PAD", "PADV2", stored=True)
@by_parts
def pad(node: TfliteNode, x: OutPort, pads: OutPort, value: OutPort | None = None) -> OutPort:
    """0, which quantised tensors store as their zero point, or a value around the data."""
    q = node.output_quantization()
    zero = node.build.const(False if x.type.dtype is DType.BOOL else 0 if q is None else q.zeros[0], x.type.dtype)
    begins, ends = (_column(node, pads, k) for k in range(2))
    return node.build.Pad(x, begins, ends, zero if value is None else node.single(value))


def _column(node: TfliteNode, pads: OutPort, k: int) -> OutPort:
    """Column k of [axes, 2]"""
    return node.build.Gather(node.cast(pads, DType.I64), node.scalar(k), node.scalar(1))


@tflite("MIRROR_PAD", stored=True)
@by_parts
def mirror_pad(node: TfliteNode, x: OutPort, pads: OutPort) -> OutPort:
    mode = node.integer("mode", 0)
    node.refuse(not 0 <= mode < len(MIRRORS), f"mode {mode} is not supported")
    return node.tf("MirrorPad", x, pads, mode=MIRRORS[mode])


@tflite("REVERSE_SEQUENCE", stored=True)
@by_parts
def reverse_sequence(node: TfliteNode, x: OutPort, lengths: OutPort) -> OutPort:
    return node.tf(
        "ReverseSequence", x, lengths, seq_dim=node.integer("seq_dim", 0), batch_dim=node.integer("batch_dim", 0)
    )


@tflite("SPACE_TO_DEPTH", stored=True)
@by_parts
def space_to_depth(node: TfliteNode, x: OutPort) -> OutPort:
    return node.tf("SpaceToDepth", x, block_size=node.integer("block_size", 0))


@tflite("DEPTH_TO_SPACE", stored=True)
@by_parts
def depth_to_space(node: TfliteNode, x: OutPort) -> OutPort:
    return node.tf("DepthToSpace", x, block_size=node.integer("block_size", 0))


@tflite("SPACE_TO_BATCH_ND", stored=True)
@by_parts
def space_to_batch(node: TfliteNode, x: OutPort, block: OutPort, pads: OutPort) -> OutPort:
    """Padding of quantised tensors is their zero point."""
    q = node.output_quantization()
    if q is None or not any(q.zeros):
        return node.tf("SpaceToBatchND", x, block, pads)
    shift = node.build.const(q.zeros[0], DType.I32)
    rearranged = node.tf("SpaceToBatchND", node.build.Subtract(node.cast(x, DType.I32), shift), block, pads)
    return node.cast(node.build.Add(rearranged, shift), x.type.dtype)


@tflite("STABLEHLO_PAD", stored=True)
@by_parts
def pad_apart(node: TfliteNode, x: OutPort, value: OutPort) -> OutPort:
    """Elements around the data, or fewer where padding is negative, and between elements."""
    low, high, between = (node.integers(f"{n}_padding", ()) for n in ("edge_low", "edge_high", "interior"))
    node.refuse(any(between), "padding between elements is not supported")
    if len(low) != x.type.rank or len(high) != x.type.rank:
        raise ModelError(
            f"{node.kind}: there must be a number for each of {x.type.rank} axes, got {len(low)} and {len(high)}"
        )
    return node.build.Pad(x, node.list(low), node.list(high), node.single(value))
