"""Images resized, padded and sampled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.conversion.node_context import Value
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
RANKS = {"linear": 3, "trilinear": 5}  # ranks by mode; all other modes have images of rank 4
PADDED = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@paddle("nearest_interp", "linear_interp", "bilinear_interp", "trilinear_interp", "bicubic_interp")
def interp(
    node: PaddleNode,
    x: OutPort,
    size: OutPort | None = None,
    sizes: Value = None,
    factor: OutPort | None = None,
    *,
    interp_method: str = "nearest",
    align_corners: bool = True,
    align_mode: int = 1,
) -> OutPort:
    """Resize to sizes, which are a tensor, a list or attributes, or by factors."""
    data, last = node.first(x, x.type.rank)
    axes = list(range(2, x.type.rank))
    mode = node.choice("interp_method", MODES, interp_method)
    attrs: dict[str, object] = {"axes": axes, "mode": mode, "coordinate_transformation_mode": "half_pixel"}
    if align_corners:
        attrs["coordinate_transformation_mode"] = "align_corners"
    elif mode == "nearest" or (mode == "linear" and align_mode == 1):
        attrs["coordinate_transformation_mode"] = "asymmetric"
    if mode == "nearest":
        attrs["nearest_mode"] = "round_prefer_ceil" if align_corners else "floor"
    wanted, scales = _wanted(node, size if size is not None else sizes, factor, len(axes))
    return node.back(node.onnx("Resize", data, None, scales, wanted, **attrs), last)


def _wanted(
    node: PaddleNode, sizes: Value, factor: OutPort | None, count: int
) -> tuple[OutPort | None, OutPort | None]:
    """Return sizes, or else factors, of the spatial axes."""
    build = node.build
    if sizes is not None:
        return node.vector(sizes), None
    if factor is not None:
        flat = node.reshape(node.cast(factor, DType.F32), (-1,))
        return None, flat if flat.type.dims == (count,) else build.Tile(flat, node.list([count]))
    several = isinstance(node.attrs.get("scale"), tuple)  # older versions have one number
    factors = list(node.numbers("scale")) if several else [node.number("scale", 0.0)]
    factors = factors if len(factors) == count else factors * count
    if len(factors) == count and all(f > 0 for f in factors):
        return None, build.const(np.array(factors, np.float32), DType.F32)
    own = [node.integer(name, -1) for name in ("out_d", "out_h", "out_w")][-count:]
    if any(n < 1 for n in own):
        raise ModelError(f"{node.kind}: there must be sizes or factors, got none")
    return node.list(own), None


@paddle("pad3d")
def pad3d(node: PaddleNode, x: OutPort, pads: Value, *, mode: str = "constant", pad_value: float = 0.0) -> OutPort:
    """Pad the spatial axes by the counts before and after each, the last axis first."""
    data, last = node.first(x, 5)
    before, behind = _spatial_pads(node, pads, 3)
    return node.back(_padded(node, data, [0, 0, *before], [0, 0, *behind], mode, pad_value), last)


def _spatial_pads(node: PaddleNode, pads: Value, rank: int) -> tuple[list[int], list[int]]:
    paddings = list(node.ints(node.vector(pads), "paddings"))
    if len(paddings) != 2 * rank:
        raise ModelError(f"{node.kind}: {rank} axes must have {2 * rank} paddings, got {paddings}")
    return paddings[-2::-2], paddings[-1::-2]


def _padded(
    node: PaddleNode, x: OutPort, before: Sequence[int], behind: Sequence[int], mode: str, value: float
) -> OutPort:
    kind = PADDED.get(mode)
    node.refuse(kind is None, f"mode must be one of {', '.join(PADDED)}, got {mode}")
    return node.onnx("Pad", x, node.list([*before, *behind]), node.like(value, x), mode=kind or "")


@paddle("pad")
def pad(node: PaddleNode, x: OutPort, value: OutPort | None = None, *, paddings: Sequence[int]) -> OutPort:
    """Pad all axes by the counts before and after each, the first axis first."""
    if len(paddings) != 2 * x.type.rank:
        raise ModelError(f"{node.kind}: {x.type.rank} axes must have twice as many paddings, got {list(paddings)}")
    number = node.number("pad_value", 0.0) if value is None else float(node.one(value, "pad_value"))
    return _padded(node, x, paddings[::2], paddings[1::2], "constant", number)


@paddle("grid_sample")
def grid_sample(
    node: PaddleNode,
    x: OutPort,
    grid: OutPort,
    *,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> OutPort:
    attrs = {"mode": {"bilinear": "linear"}.get(mode, mode), "padding_mode": padding_mode}
    return node.onnx("GridSample", x, grid, **attrs, align_corners=int(align_corners))
