"""Convolutions, and transposed ones."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.registry import AtenNode, aten
from aot.ir.graph import OutPort
from aot.ir.types import Dim
from aot.runtime.errors import ModelError


def per_axis(node: AtenNode, values: int | Sequence[int], rank: int, name: str) -> tuple[int, ...]:
    """Return one number for each spatial axis; a single number counts for all axes."""
    result = (values,) if isinstance(values, int) else tuple(values)
    if len(result) == 1:
        result *= rank
    if len(result) != rank:
        raise ModelError(f"{node.kind}: {name} must have {rank} numbers, got {len(result)}")
    return result


def spatial_rank(node: AtenNode, x: OutPort, w: OutPort) -> int:
    """Return the number of spatial axes, by the weights: a batch of one may have no axis."""
    rank = w.type.rank - 2
    node.refuse(not 1 <= rank <= 3, f"1 to 3 spatial axes, got weights {w.type}")
    if x.type.rank not in (rank + 1, rank + 2):
        raise ModelError(f"{node.kind}: an input of rank {rank + 2} for weights {w.type}, got {x.type}")
    return rank


def grouped(node: AtenNode, w: OutPort, groups: int) -> OutPort:
    """Reshape [a, b, ..] to [groups, a / groups, b, ..]."""
    first: Dim = w.shape[0]
    if groups < 1 or (isinstance(first, int) and first % groups):
        raise ModelError(f"{node.kind}: groups must divide the {first} channels of the weights, got {groups}")
    sizes = [node.list([groups, -1]), node.dims(w, range(1, w.type.rank))]
    return node.build.Reshape(w, node.build.Concat(*sizes, axis=0))


def batched(node: AtenNode, x: OutPort, rank: int) -> tuple[OutPort, bool]:
    """`x` with a batch, and whether it had none."""
    alone = x.type.rank == rank + 1
    return (node.build.Unsqueeze(x, node.list([0])) if alone else x), alone


def unbatched(node: AtenNode, y: OutPort, alone: bool) -> OutPort:
    return node.build.Squeeze(y, node.list([0])) if alone else y


@aten("conv1d.default", "conv2d.default", "conv3d.default")
@aten("conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv(
    node: AtenNode,
    x: OutPort,
    weight: OutPort,
    bias: OutPort | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> OutPort:
    rank = spatial_rank(node, x, weight)
    steps, gaps = per_axis(node, stride, rank, "stride"), per_axis(node, dilation, rank, "dilation")
    if isinstance(padding, str):
        begins, ends = _named_padding(node, padding, weight, gaps)
    else:
        begins = ends = per_axis(node, padding, rank, "padding")
    fields = {"strides": steps, "dilations": gaps, "pads_begin": begins, "pads_end": ends}
    whole, alone = batched(node, x, rank)
    if groups == 1:
        y = node.build.Convolution(whole, weight, **fields)
    else:
        y = node.build.GroupConvolution(whole, grouped(node, weight, groups), **fields)
    return unbatched(node, node.biased(y, bias), alone)


def _named_padding(
    node: AtenNode, name: str, w: OutPort, gaps: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding `same` puts the odd element at the end."""
    if name not in ("same", "valid"):
        raise ModelError(f"{node.kind}: padding must be same or valid, got {name!r}")
    if name == "valid":
        return (0,) * len(gaps), (0,) * len(gaps)
    totals = [gap * (node.extent(w, 2 + i, "the kernel") - 1) for i, gap in enumerate(gaps)]
    return tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)


@aten("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(
    node: AtenNode,
    x: OutPort,
    weight: OutPort,
    bias: OutPort | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> OutPort:
    rank = spatial_rank(node, x, weight)
    pads = per_axis(node, padding, rank, "padding")
    fields = {
        "strides": per_axis(node, stride, rank, "stride"),
        "dilations": per_axis(node, dilation, rank, "dilation"),
        "pads_begin": pads,
        "pads_end": pads,
        "output_padding": per_axis(node, output_padding, rank, "output_padding"),
    }
    whole, alone = batched(node, x, rank)
    if groups == 1:
        y = node.build.ConvolutionBackpropData(whole, weight, **fields)
    else:
        y = node.build.GroupConvolutionBackpropData(whole, grouped(node, weight, groups), **fields)
    return unbatched(node, node.biased(y, bias), alone)


@aten("convolution.default", "_convolution.default", "convolution_overrideable.default")
def convolution(
    node: AtenNode,
    x: OutPort,
    weight: OutPort,
    bias: OutPort | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    transposed: bool,
    output_padding: int | Sequence[int],
    groups: int,
    benchmark: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = False,
) -> OutPort:
    if transposed:
        return conv_transpose(node, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(node, x, weight, bias, stride, padding, dilation, groups)
