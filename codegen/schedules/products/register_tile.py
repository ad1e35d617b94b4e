"""The register tile of a product: rows and vectors of accumulators that one step of the sum updates.

6 rows x 2 vectors: 12 multiply-adds for 6 + 2 loads
"""

from __future__ import annotations

from collections.abc import Iterator

from aot.codegen.costs import COSTS
from aot.codegen.ir.schedule import WORD_BYTES
from aot.codegen.target import Target

VECTOR_BYTES = 16
WORD_ROWS = 8  # rows of a tile whose data are loaded 16 bytes at a time
WORD_SPARE = 3  # registers for weights
WORD_UNITS, WORD_LOADS = 4, 3  # instructions of vectors and loads a cycle; Neoverse V1 and V2


def tile_of(
    rows: int, columns: int, width: int, target: Target, depth: int = 0, cores: int = 1, kept: int = 0, sums: int = 1
) -> tuple[int, int]:
    """Return rows and vectors of the register tile that cost least for these extents.

    `depth`: bytes of a column of the panel, where these rows alone use it; `cores` share the panels. `kept`: vectors
    that a step of the sum keeps for each vector of columns; `sums`: accumulators of each point.
    """
    tried = _costs(rows, columns, width, target, depth, cores, kept, sums)
    _, height, vectors = min(tried, key=lambda t: (t[0], -t[1] * t[2], abs(t[1] - 4 * t[2]), t[1]))
    return height, vectors


def row_word_tile_of(rows: int, columns: int, target: Target, word_bytes: int) -> tuple[int, int]:
    """Return rows and vectors of the register tile of a product of bytes that costs least, 16 of a row at a time.

    `columns`: vectors of all columns. For 16 terms, each vector of sums takes an instruction of a unit of vectors for a
    word, and each row one more, which makes signed bytes of it or joins it to another one. Rows and weights are loaded.
    """
    tried: list[tuple[float, int, int]] = []
    for height in range(2, WORD_ROWS + 1, word_bytes // WORD_BYTES):
        for vectors in range(1, (target.registers - height - WORD_SPARE) // height + 1):
            whole, rest = divmod(columns, vectors)
            cost = 0.0
            for each, count in ((vectors, whole), (rest, 1 if rest else 0)):
                multiplied = VECTOR_BYTES // word_bytes * each * height + height
                loads = height + VECTOR_BYTES // WORD_BYTES * each
                cost += count * (max(multiplied / WORD_UNITS, loads / WORD_LOADS) + 0.05 * loads + 0.5)
            tried.append((cost * tile_count(rows, height), -height * vectors, height))
    _, area, height = min(tried)
    return height, -area // height


def tile_text(
    rows: int, columns: int, width: int, target: Target, depth: int = 0, cores: int = 1, kept: int = 0, sums: int = 1
) -> str:
    """Return the chosen register tile and the cheapest others as text, in half cycles for a step of the whole sum."""
    tried = list(_costs(rows, columns, width, target, depth, cores, kept, sums))
    chosen = tile_of(rows, columns, width, target, depth, cores, kept, sums)
    best, others = next(t for t in tried if t[1:] == chosen), sorted(t for t in tried if t[1:] != chosen)[:3]
    found = [f"{height}x{vectors} costs {cost:.6g}" for cost, height, vectors in (best, *others)]
    return f"register tile of {rows} rows, {columns} columns: {found[0]}; next {', '.join(found[1:]) or 'none'}"


def _costs(
    rows: int, columns: int, width: int, target: Target, depth: int, cores: int, kept: int, sums: int
) -> Iterator[tuple[float, int, int]]:
    """Yield cost, rows and vectors of all register tiles.

    A step of the reduction costs its multiply-adds or its loads, whichever is more, and at least one chain's latency.
    A panel that is used again and the next one stay in L2 together, if two vectors do, unless an L3 is near.
    With few rows, memory has hardly time to bring the next panel; then loads of one that is not in the nearest cache,
    of all tiles but the first, come on top. Accumulators of the last columns, which are cut into shorter vectors, may
    be more than the registers hold: a step then stores and loads the others.
    """
    free = target.registers - 1 + (target.machine.spare_registers if kept else 0)
    for vectors in range(1, min(8, max(tile_count(columns, width), 1)) + 1):
        for height in range(1, COSTS.max_tile_rows + 1):
            if (sums * height + 1 + kept) * vectors + 1 > free or (vectors > 4 and height > 1):
                continue
            again = vectors > 2 and height < rows and not target.near_l3
            if again and 2 * depth * vectors * width > target.l2 * 3 // 4:
                continue
            low, more = divmod(rows, max(tile_count(rows, height), 1))
            heights = [(low + 1, more), (low, max(tile_count(rows, height), 1) - more)]
            whole, rest = divmod(columns, vectors * width)
            widths = [(vectors, whole), (_cut(rest, width), 1 if rest else 0)]
            cost = sum(m * n * _step(h, v, free - 1 - kept * v) for h, m in heights for v, n in widths if h and m and n)
            if rows <= COSTS.single_use_rows and depth * vectors * width > target.l1 * 3 // 4:
                cost += (tile_count(rows, height) - 1) * -(-columns // width)
            if height >= rows and depth * columns >= COSTS.shared_panel_bytes:
                panels = tile_count(columns, max(vectors, 2) * width)  # chains of one vector cannot read as fast
                cost *= tile_count(panels, cores) * cores / panels
            yield cost, height, vectors


def _cut(columns: int, width: int) -> int:
    """Return the number of vectors of `width` lanes, and of shorter ones for the rest, by powers of two."""
    return columns // width + (columns % width).bit_count()


def _step(height: int, vectors: int, registers: int) -> float:
    """Return the half cycles of one step: two multiply-adds or loads a cycle, and a latency of four cycles to fill.

    `registers`: those that are free for accumulators and a row of the panel.
    """
    loads = height + vectors + 2 * max(0, (height + 1) * vectors - registers)
    return max(height * vectors, loads, 8) + 0.05 * loads + 0.5


def tile_count(n: int, size: int) -> int:
    """Return the number of tiles of `size` that hold `n`."""
    return -(-n // max(size, 1))
