"""Pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aot.frontends.pt2.neural.convolution import batched, per_axis, unbatched
from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort
from aot.ir.types import Dim
from aot.opset.products.pool_windows import Rounding
from aot.opset.products.pooling import Counted
from aot.runtime.errors import ModelError


def rank_of(node: AtenNode) -> int:
    """Return the number of spatial axes, which the name of the operation has."""
    return next(n for n in (1, 2, 3) if f"{n}d" in node.kind)


def windows(
    node: AtenNode,
    kernel: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    ceil_mode: bool,
) -> dict[str, Any]:
    """Attributes of a pooling; without strides, windows do not overlap."""
    rank = rank_of(node)
    sizes, pads = per_axis(node, kernel, rank, "kernel_size"), per_axis(node, padding, rank, "padding")
    return {
        "kernel": sizes,
        "strides": per_axis(node, stride, rank, "stride") if stride != () else sizes,
        "pads_begin": pads,
        "pads_end": pads,
        "rounding_type": Rounding.CEIL_TORCH if ceil_mode else Rounding.FLOOR,
    }


@aten("max_pool1d.default", "max_pool2d.default", "max_pool3d.default")
@aten("max_pool1d_with_indices.default", "max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool(
    node: AtenNode,
    x: OutPort,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> tuple[OutPort, ...]:
    """The maxima, and their places in the flattened spatial axes."""
    rank = rank_of(node)
    fields = windows(node, kernel_size, stride, padding, ceil_mode)
    gaps = per_axis(node, dilation, rank, "dilation")
    whole, alone = batched(node, x, rank)

    def pool(p: OutPort) -> tuple[OutPort, OutPort]:
        y = node.build.MaxPool_8(p, dilations=gaps, axis=2, **fields, outputs=2)
        return y, y.node.out_port(1)

    pooled = pool(whole) if len(node.outputs) == 1 else with_nan(node, whole, pool)
    return tuple(unbatched(node, p, alone) for p in pooled[: len(node.outputs)])


def with_nan(node: AtenNode, x: OutPort, pool: Callable[[OutPort], tuple[OutPort, OutPort]]) -> tuple[OutPort, OutPort]:
    """Return maxima and their places; in windows with NaN, the place of the last NaN."""
    y, position = pool(x)
    if not x.type.dtype.is_float:
        return y, position
    build, dims = node.build, node.dims(x, range(2, x.type.rank))
    all_places = build.Range(node.scalar(0), build.ReduceProd(dims, node.list([0])), node.scalar(1))
    absent = build.Select(build.IsNaN(x), build.Reshape(all_places, dims), node.scalar(-1))
    return y, build.Select(build.IsNaN(y), pool(absent)[0], position)


@aten("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(
    node: AtenNode,
    x: OutPort,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> OutPort:
    rank = rank_of(node)
    fields = windows(node, kernel_size, stride, padding, ceil_mode)
    whole, alone = batched(node, node.real(x), rank)
    if divisor_override is not None:
        gaps = {"dilations": (1,) * rank}
        mean = node.build.CountedAvgPool(whole, **fields, **gaps, counting=Counted.KERNEL)
        count = 1.0
        for n in fields["kernel"]:
            count *= n
        y = node.build.Multiply(mean, node.like(count / divisor_override, mean))
    elif count_include_pad and ceil_mode:
        y = node.build.CountedAvgPool(whole, **fields, dilations=(1,) * rank)
    else:
        y = node.build.AvgPool(whole, exclude_pad=not count_include_pad, **fields)
    return unbatched(node, y, alone)


def _adaptive(
    node: AtenNode, x: OutPort, output_size: Size | Sequence[Size], pool: Callable[..., tuple[OutPort, ...]]
) -> tuple[OutPort, ...]:
    rank = rank_of(node)
    sizes = (output_size,) if not isinstance(output_size, Sequence) else tuple(output_size)
    sizes = sizes * rank if len(sizes) == 1 else sizes
    if len(sizes) != rank:
        raise ModelError(f"{node.kind}: output_size must have {rank} numbers, got {len(sizes)}")
    whole, alone = batched(node, x, rank)
    return tuple(unbatched(node, p, alone) for p in pool(whole, node.vector(sizes), sizes))


@aten("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default")
@aten("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default")
def adaptive_avg_pool(node: AtenNode, x: OutPort, output_size: Size | Sequence[Size]) -> OutPort:
    def pool(whole: OutPort, sizes: OutPort, numbers: Sequence[Size]) -> tuple[OutPort, ...]:
        if all(n == 1 for n in numbers):
            return (node.build.ReduceMean(whole, node.list(range(2, whole.type.rank)), keep_dims=True),)
        window = _even(whole.shape[2:], numbers)
        if window is not None:
            pads = (0,) * len(window)
            return (
                node.build.AvgPool(
                    whole, exclude_pad=True, kernel=window, strides=window, pads_begin=pads, pads_end=pads
                ),
            )
        return (node.build.AdaptiveAvgPool(whole, sizes),)

    return _adaptive(node, x, output_size, pool)[0]


def _even(sizes: Sequence[Dim], counts: Sequence[Size]) -> tuple[int, ...] | None:
    """Return the size of windows that are equal and do not overlap; None if there are none."""
    window_sizes: list[int] = []
    for n, count in zip(sizes, counts, strict=True):
        if not isinstance(n, int) or not isinstance(count, int) or count < 1 or n < count or n % count:
            return None
        window_sizes.append(n // count)
    return tuple(window_sizes)


@aten("adaptive_max_pool1d.default", "adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def adaptive_max_pool(node: AtenNode, x: OutPort, output_size: Size | Sequence[Size]) -> tuple[OutPort, ...]:
    def pool(whole: OutPort, sizes: OutPort, numbers: Sequence[Size]) -> tuple[OutPort, ...]:
        del numbers

        def one(p: OutPort) -> tuple[OutPort, OutPort]:
            y = node.build.AdaptiveMaxPool(p, sizes, outputs=2)
            return y, y.node.out_port(1)

        return with_nan(node, whole, one)

    return _adaptive(node, x, output_size, pool)
