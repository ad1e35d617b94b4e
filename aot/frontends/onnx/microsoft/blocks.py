"""Weights of 2 to 8 bits with a scale for each block of a row, in domain com.microsoft; for language models."""

from __future__ import annotations

import numpy as np

from aot.frontends.onnx.microsoft.operations import MS
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


@onnx("MatMulNBits", domain=MS)
def matmul_nbits(
    node: OnnxNode,
    a: OutPort,
    b: OutPort,
    scales: OutPort,
    zeros: OutPort | None = None,
    order: OutPort | None = None,
    bias: OutPort | None = None,
) -> OutPort:
    """a [.., K] times weights [N, K] of 2 to 8 bits, with a scale for each block of a row. The weights become f32.

    `order`: the block of each column, if blocks are permuted.
    """
    bits, block, inner, outer = (node.integer(name) for name in ("bits", "block_size", "K", "N"))
    node.refuse(bits not in (2, 4, 8), f"weights of 2, 4 and 8 bits are supported, got {bits}")
    count = -(-inner // block)
    if inner < 1 or outer < 1 or outer * count * block * bits != 8 * np.prod(b.type.static_shape, dtype=object):
        raise ModelError(f"MatMulNBits: weights must hold {outer} rows of {inner} numbers, got {b.type}")
    levels = unpacked(node.known(b, "weights"), bits).reshape(outer, -1)[:, :inner]
    if zeros is None:
        points = np.full((outer, count), 2.0 ** (bits - 1), np.float32)
    else:
        packed_zeros = node.known(zeros, "zero points")
        if packed_zeros.dtype == np.uint8:
            packed_zeros = unpacked(packed_zeros.reshape(outer, -1), bits)[:, :count]
        points = packed_zeros.reshape(outer, count).astype(np.float32)
    factors = node.known(scales, "scales").reshape(outer, count).astype(np.float32)
    if order is None and inner % block == 0:
        parts = (levels.reshape(outer, count, block), points[..., None], factors[..., None])
        weights = node.cast(_compressed(node, *parts), a.type.dtype)
    else:
        blocks = np.arange(inner) // block if order is None else node.known(order, "blocks (g_idx)")[:inner]
        whole = (levels.astype(np.float32) - points[:, blocks]) * factors[:, blocks]
        weights = node.build.const(whole, a.type.dtype)
    y = node.build.MatMul(a, weights, transpose_b=True)
    return y if bias is None else node.build.Add(y, bias)


def _compressed(node: OnnxNode, levels: Array, points: Array, factors: Array) -> OutPort:
    """Return (levels - points) factors as operations, so that the numbers stay small until they are packed."""
    build = node.build
    whole = build.Subtract(node.cast(build.const(levels, DType.U8), DType.F32), build.const(points, DType.F32))
    rows = node.list([levels.shape[0], levels.shape[1] * levels.shape[2]])
    return build.Reshape(build.Multiply(whole, build.const(factors, DType.F32)), rows, special_zero=False)


def unpacked(
    packed: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], bits: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Unpack 8 / bits numbers from each byte, lowest bits first, along the last axis."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    levels = (packed[..., None] >> shifts) & np.uint8(2**bits - 1)
    return levels.reshape(*packed.shape[:-1], -1)


@onnx("GatherBlockQuantized", domain=MS)
def gather_block_quantized(
    node: OnnxNode, x: OutPort, indices: OutPort, scales: OutPort, zeros: OutPort | None = None
) -> OutPort:
    """(x[indices] - zero) scale, block by block along the last axis. The table stays packed."""
    build, rank, packed = node.build, x.type.rank, x.type.dtype is DType.U8
    bits = node.integer("bits", 4) if packed else x.type.dtype.bits
    first, last = node.axis(node.integer("gather_axis", 0), rank), node.axis(node.integer("quantize_axis", 1), rank)
    node.refuse(first != 0 or last != rank - 1, f"rows, in blocks of the last axis, are supported, got {first}, {last}")
    node.refuse(bits not in (2, 4, 8), f"tables of 2, 4 and 8 bits are supported, got {bits}")

    def rows(p: OutPort, small: bool) -> OutPort:
        gathered = build.Gather(p, indices, node.scalar(0))
        return _apart(node, gathered, bits) if small and bits < 8 else gathered

    values, factors = rows(x, packed), rows(scales, False)
    size, block = node.extent(values, -1, "the size of rows"), node.integer("block_size", 128)
    blocks = node.list([i // block for i in range(size)])
    value = node.cast(values, DType.F32)
    if zeros is not None or packed:
        points = node.like(2 ** (bits - 1), value)
        if zeros is not None:
            points = node.cast(build.Gather(rows(zeros, packed), blocks, node.scalar(-1)), DType.F32)
        value = build.Subtract(value, points)
    factor = node.cast(build.Gather(factors, blocks, node.scalar(-1)), DType.F32)
    return node.cast(build.Multiply(value, factor), scales.type.dtype)


def _apart(node: OnnxNode, x: OutPort, bits: int) -> OutPort:
    """Unpack 8 / bits numbers from each byte, lowest bits first, along the last axis."""
    build, rank = node.build, x.type.rank
    shifted = [x if by == 0 else build.BitwiseRightShift(x, by) for by in range(0, 8, bits)]
    parts = [build.Unsqueeze(build.BitwiseAnd(p, 2**bits - 1), node.list([rank])) for p in shifted]
    return build.Reshape(build.Concat(*parts, axis=rank), node.list([*[0] * (rank - 1), -1]), special_zero=True)
