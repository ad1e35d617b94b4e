"""Windows over pictures: convolutions, pooling, resizing."""

from __future__ import annotations

import numpy as np

from aot.opset.image.grid import GridSample, Outside, SampleMode
from aot.opset.image.resize import Interpolate_1, Interpolate_4, Interpolate_11, ShapeFrom
from aot.opset.image.resize_weights import Coordinates, Mode
from aot.opset.image.resize_weights import Rounding as NearestRounding
from aot.opset.products.adaptive_pooling import AdaptiveAvgPool, AdaptiveMaxPool
from aot.opset.products.convolution import BinaryConvolution, Convolution, GroupConvolution
from aot.opset.products.deconvolution import ConvolutionBackpropData, GroupConvolutionBackpropData
from aot.opset.products.deformable import DeformableConvolution, DeformableConvolution_1
from aot.opset.products.pool_windows import AutoPad, Rounding
from aot.opset.products.pooling import AvgPool, AvgPool_16, MaxPool, MaxPool_8
from aot.runtime.abi import DType
from tests.cases import EXACT, LOOSE
from tests.properties.drawing import FLOATS, INDICES, Draw, Trial, listed

PIXELS = (DType.F32, DType.F32, DType.F16, DType.I32, DType.U8, DType.I8)
PADS = (AutoPad.EXPLICIT, AutoPad.EXPLICIT, AutoPad.VALID, AutoPad.SAME_UPPER, AutoPad.SAME_LOWER)


def picture(d: Draw, rank: int, low: int = 5, high: int = 8) -> tuple[int, ...]:
    return (d.integer(1, 2), d.integer(1, 3), *d.ints(rank, low, high if rank < 3 else low + 1))


def geometry(d: Draw, rank: int) -> tuple[tuple[int, ...], dict[str, tuple[int, ...]]]:
    """A kernel, and attributes of windows."""
    kernel = d.ints(rank, 1, 3)
    begin, end = d.ints(rank, 0, 2), d.ints(rank, 0, 2)
    begin = tuple(min(p, k - 1) for p, k in zip(begin, kernel, strict=True))
    end = tuple(min(p, k - 1) for p, k in zip(end, kernel, strict=True))
    return kernel, {"strides": d.ints(rank, 1, 3), "pads_begin": begin, "pads_end": end}


def convolution(d: Draw) -> Trial:
    rank = d.integer(1, 3)
    kernel, named = geometry(d, rank)
    op_fields = named | {"dilations": d.ints(rank, 1, 2)}
    dtype, shape, out = d.pick(FLOATS), picture(d, rank), d.integer(1, 4)
    pad = d.pick(PADS)
    if d.flag():
        op = Convolution(**op_fields, auto_pad=pad)
        return Trial(op, [d.array(dtype, shape), d.array(dtype, (out, shape[1], *kernel))], tolerance=LOOSE)
    groups = d.integer(1, 3)
    data = d.array(dtype, (shape[0], groups * shape[1], *shape[2:]))
    weights = d.array(dtype, (groups, out, shape[1], *kernel))
    return Trial(GroupConvolution(**op_fields, auto_pad=pad), [data, weights], tolerance=LOOSE)


def transposed(d: Draw) -> Trial:
    rank = d.integer(1, 3)
    kernel, named = geometry(d, rank)
    shape, out, groups = picture(d, rank, 2, 4), d.integer(1, 3), d.integer(1, 3)
    named["dilations"] = d.ints(rank, 1, 2)
    named["output_padding"] = tuple(d.integer(0, s - 1) for s in named["strides"])
    dtype = d.pick((DType.F32, DType.F32, DType.F16))
    grouped = d.flag()
    weights = d.array(dtype, (groups, shape[1], out, *kernel) if grouped else (shape[1], out, *kernel))
    data = d.array(dtype, (shape[0], shape[1] * groups, *shape[2:]) if grouped else shape)
    kind = GroupConvolutionBackpropData if grouped else ConvolutionBackpropData
    pad = d.pick(PADS)
    if pad is AutoPad.EXPLICIT or d.flag():
        return Trial(kind(**named, auto_pad=pad), [data, weights], tolerance=LOOSE)
    terms = zip(shape[2:], kernel, named["strides"], named["dilations"], strict=True)
    whole = [(n - 1) * s + (k - 1) * r + 1 for n, k, s, r in terms]
    target = listed(d.pick(INDICES), [max(n - d.integer(0, 2), 1) for n in whole])
    named.pop("output_padding")
    return Trial(kind(**named, auto_pad=pad), [data, weights, target], frozenset({2}), LOOSE)


def binary(d: Draw) -> Trial:
    kernel, named = geometry(d, 2)
    shape = picture(d, 2)
    weights = d.whole(DType.U8, (d.integer(1, 3) * 8, shape[1], *kernel), 0, 1)
    op = BinaryConvolution(**named, pad_value=d.pick([0.0, 1.0, -1.0]))
    return Trial(op, [d.array(DType.F32, shape), weights], frozenset({1}), EXACT)


def deformable(d: Draw) -> Trial:
    kernel, named = geometry(d, 2)
    groups, parts = d.integer(1, 2), d.integer(1, 2)
    shape, out = picture(d, 2), d.integer(1, 2)
    named["dilations"] = d.ints(2, 1, 2)
    channels = shape[1] * groups * parts
    data = d.array(DType.F32, (shape[0], channels, *shape[2:]))
    weights = d.array(DType.F32, (out * groups, channels // groups, *kernel))
    lists = (named[name] for name in ("pads_begin", "pads_end", "strides", "dilations"))
    terms = zip(shape[2:], kernel, *lists, strict=True)
    places = [(n + a + b - (k - 1) * r - 1) // s + 1 for n, k, a, b, s, r in terms]
    count = parts * kernel[0] * kernel[1]
    offsets = d.array(DType.F32, (shape[0], 2 * count, *places), -3, 3)
    more = {"group": groups, "deformable_group": parts}
    if d.flag():
        return Trial(DeformableConvolution_1(**named, **more), [data, offsets, weights], tolerance=LOOSE)
    mask = [d.array(DType.F32, (shape[0], count, *places), 0, 1)] if d.flag() else []
    op = DeformableConvolution(**named, **more, bilinear_interpolation_pad=d.flag())
    return Trial(op, [data, offsets, weights, *mask], tolerance=LOOSE)


def average(d: Draw) -> Trial:
    rank = d.integer(1, 3)
    kernel, named = geometry(d, rank)
    more = {"kernel": kernel, "rounding_type": d.pick(list(Rounding)), "auto_pad": d.pick(PADS)}
    more["exclude_pad"] = d.flag()
    shape, dtype = picture(d, rank), d.pick((DType.F32, DType.F32, DType.F16, DType.BF16, DType.F64))
    if d.flag():
        return Trial(AvgPool(**named, **more), [d.array(dtype, shape)], tolerance=LOOSE)
    op = AvgPool_16(**named, **more, dilations=d.ints(rank, 1, 2))
    return Trial(op, [d.array(dtype, shape)], tolerance=LOOSE)


def maximum(d: Draw) -> Trial:
    rank = d.integer(1, 3)
    kernel, named = geometry(d, rank)
    more = {"kernel": kernel, "rounding_type": d.pick(list(Rounding)), "auto_pad": d.pick(PADS)}
    shape, dtype = picture(d, rank), d.pick(PIXELS)
    data = d.array(dtype, shape)
    if d.flag():
        return Trial(MaxPool(**named, **more), [data], tolerance=EXACT)
    op = MaxPool_8(
        **named, **more, dilations=d.ints(rank, 1, 2), index_element_type=d.pick(INDICES), axis=d.axis(rank + 2)
    )
    return Trial(op, [data], tolerance=EXACT)


def adaptive(d: Draw) -> Trial:
    rank = d.integer(1, 3)
    shape, target = picture(d, rank, 2, 7), listed(d.pick(INDICES), d.ints(rank, 1, 5))
    data = d.array(d.pick((DType.F32, DType.F16)), shape)
    op = AdaptiveAvgPool() if d.flag() else AdaptiveMaxPool(d.pick(INDICES))
    return Trial(op, [data, target], frozenset({1}))


def grid_sample(d: Draw) -> Trial:
    shape = picture(d, 2, 1, 5)
    grid = d.array(DType.F32, (shape[0], *d.ints(2, 1, 4), 2), -1.6, 1.6)
    op = GridSample(d.flag(), d.pick(list(SampleMode)), d.pick(list(Outside)))
    return Trial(op, [d.array(DType.F32, shape), grid], tolerance=LOOSE)


def resize_1(d: Draw) -> Trial:
    mode = d.pick([Mode.NEAREST, Mode.LINEAR, Mode.CUBIC])
    axes = (2, 3) if mode is not Mode.NEAREST or d.flag() else d.pick([(2,), (3,), (0, 1, 2, 3)])
    shape = picture(d, 2, 2, 6)
    target = [shape[a] if a < 2 else d.integer(1, 9) for a in axes]
    op = Interpolate_1(mode, d.integer(0, 3) == 0, axes=axes, align_corners=d.flag())
    return Trial(op, [d.array(DType.F32, shape), listed(DType.I64, target)], frozenset({1}), LOOSE)


def resize(d: Draw) -> Trial:
    """Interpolate of versions 4 and 11, with sizes and scales."""
    newest = d.flag()
    pillow = [Mode.BILINEAR_PILLOW, Mode.BICUBIC_PILLOW] if newest else []
    mode = d.pick([Mode.NEAREST, Mode.NEAREST, Mode.LINEAR, Mode.LINEAR_ONNX, Mode.CUBIC, *pillow])
    shape = picture(d, 2, 2, 6)
    all_of, some = tuple(range(4)), d.pick([(2, 3), (3, 2), (2,), (3,), (1, 2)])
    axes = some if mode in (Mode.NEAREST, Mode.LINEAR, Mode.CUBIC) else (2, 3)
    axes = all_of if mode is Mode.NEAREST and not d.integer(0, 5) else axes
    integral = d.flag()
    scales = [1.0 if a < 2 else float(d.integer(1, 3)) if integral else d.integer(4, 25) / 10 for a in axes]
    target = [shape[a] if a < 2 else max(int(shape[a] * s), 1) for a, s in zip(axes, scales, strict=True)]
    by_scales = d.flag() and all(shape[a] * s >= 1 for a, s in zip(axes, scales, strict=True))
    if not by_scales:
        target = [n if a < 2 else d.integer(1, 9) for a, n in zip(axes, target, strict=True)]
    pads = ((), ())
    if not d.integer(0, 3) and mode not in pillow:
        pads = (tuple(d.integer(0, 1) * (k > 1) for k in range(4)), tuple(d.integer(0, 1) * (k > 1) for k in range(4)))
    named = {
        "mode": mode,
        "antialias": mode is Mode.LINEAR and d.flag(),
        "pads_begin": pads[0],
        "pads_end": pads[1],
        "shape_calculation_mode": ShapeFrom.SCALES if by_scales else ShapeFrom.SIZES,
        "coordinate_transformation_mode": d.pick(list(Coordinates)),
        "nearest_mode": d.pick(list(NearestRounding)),
        "cube_coeff": d.pick([-0.75, -0.5]),
    }
    dtype = d.pick((DType.F32, DType.F32, DType.F16, DType.U8, DType.I8, DType.I32))
    data = d.array(dtype, shape, 0, 100)
    tolerance = EXACT if mode is Mode.NEAREST else LOOSE
    where, sizes, factors = listed(DType.I64, axes), listed(DType.I64, target), np.array(scales, np.float32)
    if newest:
        inputs = [data, factors if by_scales else sizes, where]
        return Trial(Interpolate_11(**named), inputs, frozenset({1, 2}), tolerance)  # type: ignore[arg-type]
    return Trial(Interpolate_4(**named), [data, sizes, factors, where], frozenset({1, 2, 3}), tolerance)  # type: ignore[arg-type]


TRIALS = [
    convolution,
    transposed,
    binary,
    deformable,
    average,
    maximum,
    adaptive,
    grid_sample,
    resize_1,
    resize,
]
