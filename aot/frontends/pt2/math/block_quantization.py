"""Quantisation as torchao writes it: a scale and a zero point for each block of elements, of rows, groups or tensors.

dequantize_affine(q [n, 64], block 1 x 32, s [n, 2], z)     ->     (q [n, 2, 32] - z) s, as [n, 64]
"""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.dataclass import dataclass
from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, UnsupportedError

SPACE = "torchao::"
# The smallest normal numbers, which scales have at least.
SMALLEST = {DType.F32: 2.0**-126, DType.BF16: 2.0**-126, DType.F16: 2.0**-14, DType.F64: 2.0**-1022}


@dataclass(frozen=True, slots=True)
class Blocks:
    """A tensor with axes cut at the blocks. `inner`: the axes that lie in a block."""

    node: AtenNode
    sizes: tuple[OutPort, ...]  # of the axes, in vectors
    inner: tuple[int, ...]
    rank: int
    is_cut: bool

    def cut(self, x: OutPort) -> OutPort:
        """Return `x` with axes that are cut."""
        return self.node.build.Reshape(x, self._vector(self.sizes)) if self.is_cut else x

    def whole(self, y: OutPort, x: OutPort) -> OutPort:
        """Return `y` with the axes of `x`."""
        return self.node.build.Reshape(y, self.node.dims(x, range(x.type.rank))) if self.is_cut else y

    def parameter(self, p: OutPort, dtype: DType) -> OutPort:
        """Return the scales or zero points of blocks so that they broadcast to `cut(x)`."""
        build, node = self.node.build, self.node
        outer = [a for a in range(self.rank) if a not in self.inner]
        flat = build.Reshape(node.cast(p, dtype), self._sizes_of(outer) if outer else node.list([1]))
        return build.Unsqueeze(flat, node.list(self.inner)) if outer and self.inner else flat

    def _sizes_of(self, axes: Sequence[int]) -> OutPort:
        build, node = self.node.build, self.node
        return build.Gather(self._vector(self.sizes), node.list(axes), node.scalar(0))

    def _vector(self, parts: Sequence[OutPort]) -> OutPort:
        return parts[0] if len(parts) == 1 else self.node.build.Concat(*parts, axis=0)


def blocks_of(node: AtenNode, x: OutPort, block: Sequence[Size]) -> Blocks:
    """Return the blocks of a tensor. ModelError for a block that does not divide it."""
    if len(block) != x.type.rank or not block:
        raise ModelError(f"{node.kind}: a block must have a size for each of {x.type.rank} axes, got {len(block)}")
    sizes, inner, axis, is_cut = list[OutPort](), list[int](), 0, False
    for i, (size, part) in enumerate(zip(x.shape, block, strict=True)):
        if not isinstance(part, int) or part in (1, size):
            sizes.append(node.dims(x, [i]))
            inner += [axis] if part != 1 else []
            axis += 1
            continue
        if not isinstance(size, int):
            raise UnsupportedError(f"{node.kind}: blocks of an axis whose size varies are not supported")
        if part < 1 or size % part:
            raise ModelError(f"{node.kind}: the size of a block must divide {size}, got {part}")
        sizes.append(node.list([size // part, part]))
        inner.append(axis + 1)
        axis, is_cut = axis + 2, True
    return Blocks(node, tuple(sizes), tuple(inner), axis, is_cut)


def _ends(node: AtenNode, dtype: DType, low: int | None, high: int | None) -> tuple[int, int]:
    """Return the least and the greatest integer, those of the type if none are given."""
    node.refuse(not dtype.is_integer, f"integers are supported, got {dtype.value}")
    first = 0 if dtype.value.startswith("u") else -(1 << (dtype.bits - 1))
    return first if low is None else low, first + (1 << dtype.bits) - 1 if high is None else high


@aten(SPACE + "dequantize_affine.default")
def dequantize(
    node: AtenNode,
    x: OutPort,
    block_size: Sequence[Size],
    scale: OutPort,
    zero_point: OutPort | None,
    input_dtype: DType,
    quant_min: int | None = None,
    quant_max: int | None = None,
    output_dtype: DType = DType.F32,
) -> OutPort:
    build, blocks = node.build, blocks_of(node, x, block_size)
    whole = node.cast(blocks.cut(x), DType.I32)
    if zero_point is not None:
        whole = build.Subtract(whole, blocks.parameter(zero_point, DType.I32))
    port = build.Multiply(node.cast(whole, output_dtype), blocks.parameter(scale, output_dtype))
    return blocks.whole(port, x)


@aten(SPACE + "quantize_affine.default")
def quantize(
    node: AtenNode,
    x: OutPort,
    block_size: Sequence[Size],
    scale: OutPort,
    zero_point: OutPort | None,
    output_dtype: DType,
    quant_min: int | None = None,
    quant_max: int | None = None,
) -> OutPort:
    """clamp(round(x * (1 / scale)) + zero), halves to even."""
    build, blocks = node.build, blocks_of(node, x, block_size)
    low, high = _ends(node, output_dtype, quant_min, quant_max)
    factor = blocks.parameter(scale, x.type.dtype)
    whole = build.Round(build.Multiply(blocks.cut(x), build.Divide(node.like(1, factor), factor)))
    if zero_point is not None:
        whole = build.Add(whole, blocks.parameter(zero_point, x.type.dtype))
    return blocks.whole(node.cast(build.Clamp(whole, min=float(low), max=float(high)), output_dtype), x)


@aten(SPACE + "choose_qparams_affine.default")
def choose_parameters(
    node: AtenNode,
    x: OutPort,
    mapping_type: str,
    block_size: Sequence[Size],
    target_dtype: DType,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: DType | None = None,
    zero_point_dtype: DType | None = None,
    keepdim: bool = False,
) -> tuple[OutPort, OutPort]:
    """Scales and zero points that spread the range of each block, with 0 in it, over the integers."""
    build, blocks = node.build, blocks_of(node, x, block_size)
    first, last = _ends(node, target_dtype, quant_min, quant_max)
    axes, parts = node.list(blocks.inner), blocks.cut(x)
    low = build.Minimum(build.ReduceMin(parts, axes, keep_dims=keepdim), node.like(0, x))
    high = build.Maximum(build.ReduceMax(parts, axes, keep_dims=keepdim), node.like(0, x))
    least = node.like(SMALLEST[x.type.dtype] if eps is None else eps, x)
    if mapping_type == "ASYMMETRIC":
        scale = build.Maximum(build.Divide(build.Subtract(high, low), node.like(last - first, x)), least)
        zero = build.Subtract(node.like(first, x), build.Round(build.Divide(low, scale)))
        zero = build.Clamp(zero, min=float(first), max=float(last))
    else:
        scale = build.Maximum(_symmetric_scale(node, mapping_type, (low, high), (first, last)), least)
        zero = build.Add(build.Multiply(scale, node.like(0, x)), node.like((last + first + 1) // 2, x))
    if keepdim and blocks.is_cut:
        outer = build.Divide(node.dims(x, range(x.type.rank)), node.vector(block_size))
        scale, zero = build.Reshape(scale, outer), build.Reshape(zero, outer)
    return scale, zero


def _symmetric_scale(node: AtenNode, mapping: str, ranged: tuple[OutPort, OutPort], ends: tuple[int, int]) -> OutPort:
    """Return the scale of a range that has its zero point in the middle of the integers."""
    build, (low, high), (first, last) = node.build, ranged, ends
    if mapping == "SYMMETRIC":
        most = build.Maximum(build.Negative(low), high)
        return build.Divide(most, node.like((last - first) / 2, most))
    node.refuse(mapping != "SYMMETRIC_NO_CLIPPING_ERR", f"this mapping is not supported: {mapping}")
    return build.Maximum(build.Divide(low, node.like(first, low)), build.Divide(high, node.like(last, high)))


@aten("_int_mm.default")
def int_matmul(node: AtenNode, x: OutPort, mat2: OutPort) -> OutPort:
    """The product of matrices of i8, in i32."""
    return node.onnx("MatMulInteger", x, mat2)
