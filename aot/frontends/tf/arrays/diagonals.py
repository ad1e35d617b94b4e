"""Diagonals of matrices: element (i, j) lies on diagonal j - i.

The bands of MatrixDiagV3 and its like are [.., diagonals, longest], from the uppermost diagonal to the lowest; `align`
says at which end shorter diagonals are filled.
"""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


def _count(node: TfNode, size: OutPort) -> OutPort:
    return node.build.Range(node.scalar(0), size, node.scalar(1), output_type=DType.I64)


def _steps(node: TfNode, rows: OutPort, columns: OutPort) -> tuple[OutPort, OutPort]:
    """Row numbers [rows, 1] and column numbers [columns]."""
    return node.build.Unsqueeze(_count(node, rows), node.list([1])), _count(node, columns)


@tf("MatrixBandPart", "BatchMatrixBandPart")
def band_part(node: TfNode, x: OutPort, lower: OutPort, upper: OutPort) -> OutPort:
    """Diagonals outside of the band are 0; negative limits keep all."""
    build, rank = node.build, x.type.rank
    rows, columns = _steps(node, node.size(x, rank - 2), node.size(x, rank - 1))
    gap = build.Subtract(rows, columns)
    low, high = (node.cast(node.single(p), DType.I64) for p in (lower, upper))
    below = build.LogicalOr(build.Less(low, 0), build.LessEqual(gap, low))
    above = build.LogicalOr(build.Less(high, 0), build.LessEqual(build.Negative(gap), high))
    return build.Select(build.LogicalAnd(below, above), x, node.like(0, x))


@dataclass(frozen=True, slots=True)
class _Band:
    """Diagonals low..high of matrices [rows, columns], all of them i64 scalars; `longest` elements in a row."""

    low: OutPort
    high: OutPort
    rows: OutPort
    columns: OutPort
    longest: OutPort


ALIGN = {
    "LEFT_LEFT": (True, True),
    "LEFT_RIGHT": (True, False),
    "RIGHT_LEFT": (False, True),
    "RIGHT_RIGHT": (False, False),
}
# for diagonals above the main one, and for it and those below: True if elements begin at the left


def _length(node: TfNode, d: OutPort, rows: OutPort, columns: OutPort) -> OutPort:
    """Number of elements of diagonal `d`."""
    build = node.build
    return build.Minimum(build.Add(rows, build.Minimum(d, 0)), build.Subtract(columns, build.Maximum(d, 0)))


def _limits(node: TfNode, k: OutPort) -> tuple[OutPort, OutPort]:
    """Return the lowest and the highest diagonal of `k`, one number or two."""
    flat = node.build.Reshape(node.cast(k, DType.I64), node.list([-1]))
    last = node.extent(flat, 0, "the number of diagonals") - 1
    low, high = (node.build.Gather(flat, node.scalar(i), node.scalar(0)) for i in (0, last))
    return low, high


def _band(node: TfNode, k: OutPort, rows: OutPort, columns: OutPort) -> _Band:
    low, high = _limits(node, k)
    build = node.build
    nearest = build.Minimum(build.Maximum(node.scalar(0), low), high)
    return _Band(low, high, rows, columns, _length(node, nearest, rows, columns))


def _offset(node: TfNode, band: _Band, d: OutPort) -> OutPort:
    """Number of filled places in front of a diagonal."""
    default = "RIGHT_LEFT" if node.kind.endswith("V3") else "LEFT_LEFT"
    above, below = node.choice("align", ALIGN, default)
    build = node.build
    room = build.Subtract(band.longest, _length(node, d, band.rows, band.columns))
    up, down = (node.scalar(0) if left else room for left in (above, below))
    return build.Select(build.Greater(d, 0), up, down)


def _elements(node: TfNode, x: OutPort, positions: OutPort, inside: OutPort, default: OutPort, batch: int) -> OutPort:
    """Return elements of the flattened last axis of `x` at `positions`; `default` where these are not inside."""
    build = node.build
    safe_positions = build.Select(inside, positions, node.scalar(0))
    return build.Select(inside, build.Gather(x, safe_positions, node.scalar(batch)), default)


def _in_matrix(node: TfNode, band: _Band, values: OutPort, default: OutPort) -> tuple[OutPort, OutPort]:
    """Return the band's values [.., diagonals * longest] as matrices, and [rows, columns] of where the band is."""
    build, batch = node.build, values.type.rank - 1
    rows, columns = _steps(node, band.rows, band.columns)
    d = build.Subtract(columns, rows)
    inside = build.LogicalAnd(build.GreaterEqual(d, band.low), build.LessEqual(d, band.high))
    along = build.Subtract(columns, build.Maximum(d, 0))
    position = build.Add(along, _offset(node, band, d))
    position = build.Add(build.Multiply(build.Subtract(band.high, d), band.longest), position)
    return _elements(node, values, position, inside, default, batch), inside


def _flat(node: TfNode, x: OutPort, behind: int) -> OutPort:
    """Flatten the last `behind` axes into one."""
    kept = range(x.type.rank - behind)
    return node.build.Reshape(x, node.build.Concat(node.dims(x, kept), node.list([-1]), axis=0)) if behind > 1 else x


def _is_single(k: OutPort) -> bool:
    """True if `k` names one diagonal, which has no axis of its own."""
    return not k.type.rank or k.shape[0] == 1 or (k.value is not None and len({int(v) for v in k.value.flat}) == 1)


@tf("MatrixDiag", "BatchMatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def matrix_diag(
    node: TfNode,
    x: OutPort,
    k: OutPort | None = None,
    rows: OutPort | None = None,
    columns: OutPort | None = None,
    default: OutPort | None = None,
) -> OutPort:
    """Matrices with the given diagonals; sizes of -1 are the smallest ones that have room, or those of squares."""
    build = node.build
    k = node.scalar(0) if k is None else k
    low, high = _limits(node, k)
    longest = node.size(x, x.type.rank - 1)
    least = [build.Add(longest, p) for p in (build.Maximum(build.Negative(high), 0), build.Maximum(low, 0))]
    sizes = [node.scalar(-1) if p is None else node.cast(node.single(p), DType.I64) for p in (rows, columns)]
    free = [build.Less(p, 0) for p in sizes]
    square = build.Maximum(*least)
    extents = [
        build.Select(f, build.Select(other, square, m), s)
        for f, other, m, s in zip(free, free[::-1], least, sizes, strict=True)
    ]
    band = _Band(low, high, extents[0], extents[1], longest)
    values = _flat(node, x, 1 if _is_single(k) else 2)
    fill = node.like(0, x) if default is None else default
    return _in_matrix(node, band, values, fill)[0]


@tf("MatrixDiagPart", "BatchMatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part(node: TfNode, x: OutPort, k: OutPort | None = None, default: OutPort | None = None) -> OutPort:
    build, rank = node.build, x.type.rank
    k = node.scalar(0) if k is None else k
    rows, columns = (node.size(x, rank + a) for a in (-2, -1))
    band = _band(node, k, rows, columns)
    count = build.Add(build.Subtract(band.high, band.low), 1)
    d = build.Subtract(band.high, build.Unsqueeze(_count(node, count), node.list([1])))
    along = build.Subtract(_count(node, band.longest), _offset(node, band, d))
    inside = build.LogicalAnd(build.GreaterEqual(along, 0), build.Less(along, _length(node, d, rows, columns)))
    i, j = build.Subtract(along, build.Minimum(d, 0)), build.Add(along, build.Maximum(d, 0))
    position = build.Add(build.Multiply(i, columns), j)
    fill = node.like(0, x) if default is None else default
    port = _elements(node, _flat(node, x, 2), position, inside, fill, rank - 2)
    return build.Squeeze(port, node.list([rank - 2])) if _is_single(k) else port


@tf("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(node: TfNode, x: OutPort, diagonal: OutPort, k: OutPort | None = None) -> OutPort:
    k = node.scalar(0) if k is None else k
    rows, columns = (node.size(x, x.type.rank + a) for a in (-2, -1))
    band = _band(node, k, rows, columns)
    values = _flat(node, diagonal, 1 if _is_single(k) else 2)
    port, inside = _in_matrix(node, band, values, node.like(0, x))
    return node.build.Select(inside, port, x)


@tf("Diag")
def diag(node: TfNode, x: OutPort) -> OutPort:
    """A tensor of twice the rank with `x` where both halves of an index are equal."""
    build, rank = node.build, x.type.rank
    sizes = node.dims(x, range(rank))
    flat = build.Reshape(x, node.list([-1]))
    count = _count(node, node.size(flat, 0))
    same = build.Equal(build.Unsqueeze(count, node.list([1])), count)
    return build.Reshape(build.Select(same, flat, node.like(0, x)), build.Concat(sizes, sizes, axis=0))


@tf("DiagPart")
def diag_part(node: TfNode, x: OutPort) -> OutPort:
    """The elements with two equal halves of the index."""
    build, half = node.build, x.type.rank // 2
    sizes = node.dims(x, range(half))
    count = build.ReduceProd(sizes, node.list([0]))
    positions = build.Multiply(_count(node, count), build.Add(count, 1))
    return build.Reshape(build.Gather(build.Reshape(x, node.list([-1])), positions, node.scalar(0)), sizes)
