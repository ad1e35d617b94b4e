"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.registry import AtenNode, Number, Size, aten
from aot.ir.graph import OutPort
from aot.opset.movement.padding import PadMode
from aot.runtime.errors import ModelError

MODES = {"constant": PadMode.CONSTANT, "reflect": PadMode.REFLECT, "replicate": PadMode.EDGE}


def padded(node: AtenNode, x: OutPort, pad: Sequence[Size], mode: PadMode, value: Number = 0) -> OutPort:
    """`pad`: counts before and after the last axis, then of the axis before it, and so on."""
    rank = x.type.rank
    if len(pad) % 2 or len(pad) > 2 * rank:
        raise ModelError(f"{node.kind}: there must be pairs of sizes for at most {rank} axes, got {len(pad)} sizes")
    none = [0] * (rank - len(pad) // 2)
    begins, ends = (node.vector([*none, *reversed(pad[k::2])]) for k in (0, 1))
    return node.build.Pad(x, begins, ends, node.same(value, x), pad_mode=mode)


@aten("constant_pad_nd.default")
def constant_pad(node: AtenNode, x: OutPort, pad: Sequence[Size], value: Number = 0) -> OutPort:
    return padded(node, x, pad, PadMode.CONSTANT, value)


@aten("pad.default")
def pad(
    node: AtenNode, x: OutPort, pad: Sequence[Size], mode: str = "constant", value: Number | None = None
) -> OutPort:
    if mode == "circular":
        return circular(node, x, pad)
    node.refuse(mode not in MODES, f"mode is {', '.join(MODES)} or circular, got {mode!r}")
    return padded(node, x, pad, MODES[mode], 0 if value is None else value)


@aten(*(f"{kind}_pad{n}d.default" for kind in ("reflection", "replication") for n in (1, 2, 3)))
def edge_pad(node: AtenNode, x: OutPort, padding: Sequence[Size]) -> OutPort:
    return padded(node, x, padding, PadMode.REFLECT if node.kind.startswith("reflection") else PadMode.EDGE)


def circular(node: AtenNode, x: OutPort, pad: Sequence[Size]) -> OutPort:
    """Pad each axis with elements of its other end."""
    build, rank = node.build, x.type.rank
    for k in range(len(pad) // 2):
        before, behind = pad[2 * k], pad[2 * k + 1]
        axis = rank - 1 - k
        if not isinstance(before, int) or not isinstance(behind, int) or before < 0 or behind < 0:
            node.refuse(True, "circular padding has sizes of 0 and more, known at compile time")
            continue
        size = node.dims(x, [axis])
        at, one = node.list([axis]), node.list([1])
        last = build.Slice(x, build.Subtract(size, node.list([before])), size, one, at)
        first = build.Slice(x, node.list([0]), node.list([behind]), one, at)
        parts = [p for p, n in ((last, before), (x, 1), (first, behind)) if n]
        x = parts[0] if len(parts) == 1 else build.Concat(*parts, axis=axis)
    return x
