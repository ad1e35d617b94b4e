"""Outputs of YOLO networks: squashed coordinates, objectness and class scores."""

from __future__ import annotations

import numpy as np

from aot.ir.build import Builder
from aot.ir.conditions import axis_of
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType
from aot.opset.base.decomposition import numbers
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@op("opset1")
class RegionYolo(DecomposedOp):
    """Channels are regions of (coords, objectness, classes): x, y and objectness through a sigmoid.

    do_softmax: `num` regions, softmax of the classes, dimensions axis..end_axis flattened. Otherwise one region for
    each entry of `mask`, sigmoid of the classes, shape unchanged.
    """

    elements = Elements.FLOAT

    anchors: tuple[float, ...] = ()
    axis: int = 1
    coords: int = 4
    classes: int = 0
    end_axis: int = 3
    num: int = 1
    do_softmax: bool = True
    mask: tuple[int, ...] = ()

    @property
    def regions(self) -> int:
        return self.num if self.do_softmax else len(self.mask)

    def infer(self, x: Operand) -> TensorType:
        if x.rank != 4:
            raise ShapeError(f"RegionYolo: the input must have rank 4, got {x.type}")
        channels = self.regions * (self.coords + self.classes + 1)
        if isinstance(x.shape[1], int) and x.shape[1] != channels:
            raise ShapeError(f"RegionYolo: channels must be {channels}, got {x.shape[1]}")
        if not self.do_softmax:
            return TensorType(x.dtype, (x.shape[0], channels, *x.shape[2:]))
        first, last = (axis_of(a, 4, "RegionYolo") for a in (self.axis, self.end_axis))
        flat: Dim = 1
        for n in x.shape[first : last + 1]:
            flat = flat * n
        return TensorType(x.dtype, (*x.shape[:first], flat, *x.shape[last + 1 :]))

    def decompose(self, build: Builder, x: OutPort) -> OutPort:
        lengths = (2, self.coords - 2, 1, self.classes)
        parts = [n for _ in range(self.regions) for n in lengths]
        used = [n for n in parts if n]
        axis = build.const(1, DType.I64)
        split = build.VariadicSplit(x, axis, build.const(used, DType.I64), outputs=len(used)).node
        ports = iter(split.out_ports().values())
        regions: list[OutPort] = []
        for position, n in enumerate(parts):
            if n:
                port, kind = next(ports), position % 4
                is_unchanged, soft = kind == 1, kind == 3 and self.do_softmax
                regions.append(port if is_unchanged else build.Softmax(port, axis=1) if soft else build.Sigmoid(port))
        joined = build.Concat(*regions, axis=1)
        if not self.do_softmax or self.axis % 4 == self.end_axis % 4:
            return joined
        first, last = self.axis % 4, self.end_axis % 4
        target = numbers(build, [*([0] * first), -1])
        if last < 3:
            rest = build.Gather(build.ShapeOf(x), numbers(build, range(last + 1, 4)), numbers(build, [0]))
            target = build.Concat(target, rest, axis=0)
        return build.Reshape(joined, target, special_zero=True)

    def reference(self, x: Array) -> Array:
        wide = x.astype(np.float64).reshape(len(x), self.regions, self.coords + self.classes + 1, *x.shape[2:])
        out = 1 / (1 + np.exp(-wide))
        out[:, :, 2 : self.coords] = wide[:, :, 2 : self.coords]
        if self.do_softmax:
            scores = wide[:, :, self.coords + 1 :]
            powers = np.exp(scores - scores.max(2, keepdims=True))
            out[:, :, self.coords + 1 :] = powers / powers.sum(2, keepdims=True)
        out = out.reshape(x.shape).astype(x.dtype)
        if not self.do_softmax:
            return out
        first, last = self.axis % 4, self.end_axis % 4
        return out.reshape(*x.shape[:first], -1, *x.shape[last + 1 :])
