"""Vectors of elements that are near each other in memory: whole loads, and shuffles of the loaded vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aot.codegen.ir.index import Affine, bounds
from aot.codegen.llvm.emit.function_text import Function, Value, lanes_of, scalar_of, vector


def pieces(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Return first element and length of loads that cover `positions`; none reads beyond the outermost ones."""
    low, high, width = min(positions), max(positions), len(positions)
    loads: list[tuple[int, int]] = []
    for p in sorted(set(positions)):
        if loads and p < sum(loads[-1]):
            continue
        size = 1 << (max(q for q in positions if q < p + width) - p).bit_length()
        while size > high - low + 1:
            size //= 2
        loads.append((min(p, high - size + 1), size))
    return loads


def aligned(positions: Sequence[int], first: Affine, room: int, size: int) -> int | None:
    """Find one vector of the elements at `first` + `positions`, for any `first` in a dimension of `room` elements.

    Return the number of its elements before `first`: it begins at multiples of its length `size`. None if the elements
    are not known to be in one vector.
    """
    before = first.const % size
    low, high = bounds(first)
    lies = min(positions) >= 0 and before + max(positions) < size and not any(c % size for c in first.terms.values())
    return before if lies and low >= before and high - before + size <= room else None


def are_near(positions: Sequence[int]) -> bool:
    """True if the elements are in so few vectors that loading these costs less than loading each lane."""
    return len(pieces(positions)) <= len(positions) // 2


def shuffled(f: Function, positions: Sequence[int], load: Callable[[int, int], Value]) -> Value:
    """Return the elements at `positions`; `load(first, lanes)` loads consecutive ones."""
    result: Value | None = None
    covered = min(positions)
    for start, size in pieces(positions):
        mask = [p - start if covered <= p < start + size else -1 for p in positions]
        result = _merged(f, result, load(start, size), mask)
        covered = start + size
    assert result is not None
    return result


def halves(f: Function, one: Value, other: Value, high: bool) -> Value:
    """Return the lower or the higher halves of two vectors of i32, as words of 64 bits: aarch64 has ZIP1 and ZIP2."""
    count = lanes_of(one.type) // 2
    pairs, first = vector("i64", count), count // 2 if high else 0
    a, b = (f.op(pairs, f"bitcast {v} to {pairs}") for v in (one, other))
    lanes = shuffle(f, a, b, [n + first + k for n in (0, count) for k in range(count // 2)])
    return f.op(one.type, f"bitcast {lanes} to {one.type}")


def _merged(f: Function, before: Value | None, part: Value, mask: Sequence[int]) -> Value:
    """Return `part[m]` in the lanes where `mask` has some m >= 0, `before` in the others."""
    wide = spread(f, part, mask)
    if before is None:
        return wide
    lanes = len(mask)
    lanes_taken = [lanes + i if m >= 0 else i for i, m in enumerate(mask)]
    return shuffle(f, before, wide, lanes_taken)


def spread(f: Function, v: Value, mask: Sequence[int]) -> Value:
    """Return `v[m]` for each m of `mask`; any value for -1."""
    return shuffle(f, v, Value(v.type, "poison"), mask)


def shuffle(f: Function, a: Value, b: Value, mask: Sequence[int]) -> Value:
    """Shuffle lanes of `a` and `b`, which are numbered after those of `a`; a scalar is a vector of one lane."""
    lanes = lanes_of(a.type)
    if lanes == 1:
        a, b = (Value(f"<1 x {v.type}>", v.name) if v.name == "poison" else _one(f, v) for v in (a, b))
    mask_text = ", ".join(f"i32 {m}" if m >= 0 else "i32 poison" for m in mask)
    return f.op(vector(scalar_of(a.type), len(mask)), f"shufflevector {a}, {b}, <{len(mask)} x i32> <{mask_text}>")


def _one(f: Function, v: Value) -> Value:
    type_ = f"<1 x {v.type}>"
    return f.op(type_, f"insertelement {type_} poison, {v}, i64 0")


def transposed(f: Function, rows: Sequence[Value]) -> list[Value]:
    """Return the columns of a matrix: a power of two rows, each of a power of two elements."""
    lanes, length = len(rows), lanes_of(rows[0].type)
    if lanes > length:
        parts = [transposed(f, rows[i : i + length]) for i in range(0, lanes, length)]
        return [_joined(f, [p[k] for p in parts]) for k in range(length)]
    if lanes < length:
        parts = [[f.part(r, i, lanes) for r in rows] for i in range(0, length, lanes)]
        return [column for p in parts for column in transposed(f, p)]
    block = list(rows)
    distance = 1
    while distance < lanes:
        upper = [j if not j & distance else lanes + j - distance for j in range(lanes)]
        lower = [j + distance if not j & distance else lanes + j for j in range(lanes)]
        for i in range(lanes):
            if not i & distance:
                a, b = block[i], block[i + distance]
                block[i], block[i + distance] = shuffle(f, a, b, upper), shuffle(f, a, b, lower)
        distance *= 2
    return block


def _joined(f: Function, parts: list[Value]) -> Value:
    """Concatenate vectors."""
    while len(parts) > 1:
        n = 2 * max(lanes_of(parts[0].type), 1)
        parts = [shuffle(f, a, b, range(n)) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
