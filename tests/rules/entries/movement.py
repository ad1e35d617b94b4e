"""Rules of data movement: indices, for symbolic sizes where a rule allows them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.opset.movement.movement import Split
from aot.passes.rules import shape
from aot.runtime.abi import DType
from tests.rules.proof import Entry, Pattern

BOX = ("n=2", "m=3", "k=4")
TURNED = ("m=3", "n=2", "k=4")
FOUR = ("n=2", "m=3", "k=4", "l=5")


def ints(b: Builder, *numbers: int) -> OutPort:
    return b.const(numbers, DType.I64)


def turned_twice(first: tuple[int, ...], then: tuple[int, ...], *sizes: str) -> Pattern:
    return Pattern(lambda b, x: b.Transpose(b.Transpose(x, ints(b, *first)), ints(b, *then)), (sizes,))


def reduced(kind: str, order: tuple[int, ...], *axes: int) -> Pattern:
    return Pattern(
        lambda b, x: getattr(b, kind)(b.Transpose(x, ints(b, *order)), ints(b, *axes)), ((2, 3, 2),), within=1e-6
    )


def product(a: bool, other: bool) -> Pattern:
    """A product whose left or right factor is turned; factors of two and three dimensions."""

    def make(b: Builder, x: OutPort, y: OutPort) -> OutPort:
        left = b.Transpose(x, ints(b, 0, 2, 1)) if a else x
        right = b.Transpose(y, ints(b, 1, 0)) if other else y
        return b.MatMul(left, right, transpose_b=True)

    left = ("n=2", 3, "m=4") if a else ("n=2", "m=4", 3)
    return Pattern(make, (left, (3, "k=5") if other else ("k=5", 3)))


def reshapes(*targets: tuple[int, ...]) -> Pattern:
    def make(b: Builder, x: OutPort) -> OutPort:
        for target in targets:
            x = b.Reshape(x, ints(b, *target), special_zero=True)
        return x

    return Pattern(make, ((4, 6),))


def with_run_time_target(b: Builder, x: OutPort) -> OutPort:
    size = b.Gather(b.ShapeOf(x), ints(b, 0), b.const(0, DType.I64))
    return b.Reshape(x, b.Concat(size, ints(b, 6), axis=0), special_zero=False)


CHECK = {"operation": "Check", "rule": "small"}


def checked(b: Builder, x: OutPort) -> OutPort:
    return b.Add(x, b.Convert(b.InRange(ints(b, 2), 0, 5, **CHECK), destination_type=DType.F32))


def given_if_checked(b: Builder, x: OutPort) -> OutPort:
    return b.InRange(ints(b, 2), 0, 5, x, **CHECK)


def stacked(sliced: Callable[[Builder, OutPort], OutPort]) -> Callable[[Builder, OutPort, OutPort], OutPort]:
    """A part of two tensors, one of them padded, the other one turned, along the second dimension."""

    def make(b: Builder, x: OutPort, y: OutPort) -> OutPort:
        padded = b.Pad(x, ints(b, 0, 1, 0), ints(b, 0, 0, 0), b.const(0, DType.F32))
        return sliced(b, b.Concat(padded, b.Transpose(y, ints(b, 1, 0, 2)), axis=1))

    return make


def shape_of_turned(b: Builder, x: OutPort) -> OutPort:
    sizes = b.ShapeOf(b.Transpose(x, ints(b, 2, 0, 1)))
    return b.Multiply(b.Convert(sizes, destination_type=DType.F32), 2.0)


ENTRIES = (
    Entry(shape.drop_identity, (Pattern(lambda b, x: b.Identity(x), (BOX,)),)),
    Entry(shape.drop_kept_demand, (Pattern(checked, (BOX,)), Pattern(given_if_checked, (BOX,)))),
    Entry(
        shape.merge_transposes,
        (
            *(turned_twice(p, q, *BOX) for p in permutations(range(3)) for q in permutations(range(3))),
            *(turned_twice((1, 2, 3, 0), q, *FOUR) for q in permutations(range(4))),
        ),
        note="all orders of three dimensions, 24 of four",
    ),
    Entry(
        shape.transpose_as_reshape,
        (
            Pattern(lambda b, x: b.Transpose(x, ints(b, 1, 0, 2)), ((1, 3, 5),)),
            Pattern(lambda b, x: b.Transpose(x, ints(b, 0, 2, 3, 1)), ((2, 1, 3, 4),)),
            Pattern(lambda b, x: b.Transpose(x, ints(b, 2, 0, 1, 3)), ((1, "n=3", 1, 4),)),
        ),
    ),
    Entry(
        shape.merge_reshapes,
        (
            reshapes((3, 8), (2, 12)),
            reshapes((2, 3, 4), (-1, 2)),
            reshapes((24,), (4, 6)),
            Pattern(lambda b, x: b.Squeeze(b.Unsqueeze(x, ints(b, 1)), ints(b, 1)), (("n=4", "m=3"),)),
            Pattern(lambda b, x: b.Unsqueeze(b.Unsqueeze(x, ints(b, 0)), ints(b, 3)), (("n=4", 3),)),
        ),
    ),
    Entry(shape.write_target_out, (Pattern(with_run_time_target, (("n=4", 2, 3),)),)),
    Entry(
        shape.transpose_into_product,
        (product(True, False), product(False, True), product(True, True)),
        note="three terms in the sum, other sizes symbolic",
    ),
    Entry(
        shape.reduce_before_transpose,
        tuple(
            reduced(kind, order, *axes)
            for kind in ("ReduceSum", "ReduceMax", "ReduceMean")
            for order, axes in (((2, 0, 1), (0,)), ((0, 2, 1), (1, 2)), ((1, 0, 2), (0, -1)), ((2, 1, 0), (0, 2)))
        ),
    ),
    Entry(shape.sizes_before_transpose, (Pattern(shape_of_turned, (BOX,)),)),
    Entry(
        shape.drop_whole_copy,
        (
            Pattern(lambda b, x: b.Slice(x, ints(b, 0), ints(b, 2**40), ints(b, 1), ints(b, 0)), (BOX,)),
            Pattern(lambda b, x: b.Tile(x, ints(b, 1, 1, 1)), (BOX,)),
            Pattern(lambda b, x: b.Broadcast(x, b.ShapeOf(x)), (BOX,)),
            Pattern(lambda b, x: b.StridedSlice(x, ints(b, 0), ints(b, 0), ints(b, 1), end_mask=(1,)), (BOX,)),
        ),
    ),
    Entry(shape.drop_empty_pad, (Pattern(lambda b, x: b.Pad(x, ints(b, 0, 0, 0), ints(b, 0, 0, 0)), (BOX,)),)),
    Entry(shape.drop_single_concat, (Pattern(lambda b, x: b.Concat(x, axis=1), (BOX,)),)),
    Entry(
        shape.merge_concats,
        tuple(
            Pattern(
                lambda b, x, y, z, axis=axis: b.Concat(z, b.Concat(x, y, axis=axis), x, axis=axis - 3),
                tuple(tuple(f"{'nmk'[d] if d != axis else name}=3" for d in range(3)) for name in "pqr"),
            )
            for axis in range(3)
        ),
    ),
    Entry(
        shape.nest_concats,
        tuple(
            Pattern(
                lambda b, x, y, z, a=axis: b.Concat(b.Concat(x, y, z, x, axis=a), b.Concat(x, y, axis=a - 3), axis=a),
                tuple(tuple(f"{'nmk'[d] if d != axis else name}=3" for d in range(3)) for name in "pqr"),
            )
            for axis in range(3)
        ),
    ),
    Entry(
        shape.slice_before_concat,
        (
            Pattern(stacked(lambda b, x: b.Slice(x, ints(b, 1), ints(b, 4), ints(b, 2), ints(b, -1))), (BOX, TURNED)),
            Pattern(
                stacked(lambda b, x: b.Slice(x, ints(b, 0, 1), ints(b, 2**31 - 1, 3), ints(b, 1, 1), ints(b, 1, 2))),
                (("n=2", 2, "k=4"), (3, "n=2", "k=4")),
            ),
            Pattern(stacked(lambda b, x: b.Slice(x, ints(b, -2), ints(b, -9), ints(b, -1), ints(b, 2))), (BOX, TURNED)),
            Pattern(
                stacked(lambda b, x: b.StridedSlice(x, ints(b, 1, 0, 1), ints(b, 2, 0, 3), end_mask=(0, 1, 0))),
                (BOX, TURNED),
            ),
        ),
    ),
    Entry(
        shape.drop_single_split,
        (Pattern(lambda b, x: b(Split(1), x, b.const(1, DType.I64)), (BOX,)),),
    ),
    Entry(
        shape.drop_broadcast_of_operand,
        (
            Pattern(lambda b, x, y: b.Add(b.Broadcast(x, b.ShapeOf(y)), y), ((1, "m=3"), ("n=2", "m=3"))),
            Pattern(lambda b, x, y: b.Subtract(y, b.Broadcast(x, ints(b, 2, 3))), ((3,), (2, 3))),
        ),
    ),
)
