"""The register tile of a product: rows and vectors of accumulators that one step of the sum updates.

6 rows x 2 vectors: 12 multiply-adds for 6 + 2 loads
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.schedule import WORD_BYTES
from aot.codegen.target import Target

VECTOR_BYTES = 16
WORD_ROWS = 8  # rows of a tile whose data are loaded 16 bytes at a time
WORD_SPARE = 3  # registers for weights
WORD_UNITS, WORD_LOADS = 4, 3  # instructions of vectors and loads a cycle; Neoverse V1 and V2


@dataclass(frozen=True, slots=True)
class Product:
    """A product for the cost of its register tile: `rows` and `columns`, in vectors of `width`, and how they are read.

    `depth`: bytes of a column of the panel, where these rows alone use it; `cores` share the panels. `kept`: vectors
    that a step of the sum keeps for each vector of columns; `sums`: accumulators of each point. `terms`: those that a
    vector of a row holds, which stays in a register; 1 if each is loaded for itself. `has_code`: a tile that divides
    rows and columns is preferred, since each other size has code of its own.
    """

    rows: int
    columns: int
    width: int
    depth: int = 0
    cores: int = 1
    kept: int = 0
    sums: int = 1
    terms: int = 1
    has_code: bool = False


@lru_cache(maxsize=1 << 10)  # each product asks for several, and layers are alike
def tile_of(product: Product, target: Target) -> tuple[int, int]:
    """Return rows and vectors of the register tile that costs least."""
    tried = _costs(product, target)
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
            full_tiles, rest = divmod(columns, vectors)
            cost = 0.0
            for each, count in ((vectors, full_tiles), (rest, 1 if rest else 0)):
                multiplied = VECTOR_BYTES // word_bytes * each * height + height
                loads = height + VECTOR_BYTES // WORD_BYTES * each
                cost += count * (max(multiplied / WORD_UNITS, loads / WORD_LOADS) + 0.05 * loads + 0.5)
            tried.append((cost * tile_count(rows, height), -height * vectors, height))
    _, area, height = min(tried)
    return height, -area // height


def tile_text(product: Product, target: Target) -> str:
    """Return the chosen register tile and the cheapest others as text, in half cycles for a step of the whole sum."""
    tried, best = list(_costs(product, target)), tile_of(product, target)
    chosen_costs, others = next(t for t in tried if t[1:] == best), sorted(t for t in tried if t[1:] != best)[:3]
    costs = [f"{height}x{vectors} costs {cost:.6g}" for cost, height, vectors in (chosen_costs, *others)]
    sizes = f"{product.rows} rows, {product.columns} columns"
    return f"register tile of {sizes}: {costs[0]}; next {', '.join(costs[1:]) or 'none'}"


def _costs(p: Product, target: Target) -> Iterator[tuple[float, int, int]]:
    """Yield cost, rows and vectors of all register tiles.

    A step of the reduction costs its multiply-adds or its loads, whichever is more, and at least one chain's latency.
    A panel that is used again and the next one stay in L2 together, if two vectors do, unless an L3 is near.
    With few rows, memory has hardly time to bring the next panel; then loads of one that is not in the nearest cache,
    of all tiles but the first, come on top. Accumulators of the last columns, which are cut into shorter vectors, may
    be more than the registers hold: a step then stores and loads the others.
    """
    free, columns = target.registers - 1 + (target.machine.spare_registers if p.kept else 0), p.columns
    for vectors in range(1, min(8, max(tile_count(columns, p.width), 1)) + 1):
        for height in range(1, (COSTS.little_tile_rows if target.compact_code else COSTS.max_tile_rows) + 1):
            reserved = height + 1 if p.terms > 1 else 1  # one is for the next load of the panel
            if (p.sums * height + 1 + p.kept) * vectors + reserved > free or (vectors > 4 and height > 1):
                continue
            tiles, panel = tile_count(p.rows, height), p.depth * vectors * p.width
            again = vectors > 2 and height < p.rows and not target.near_l3
            if again and 2 * panel > target.l2 * 3 // 4:
                continue
            low, more = divmod(p.rows, max(tiles, 1))
            heights = [(low + 1, more), (low, max(tiles, 1) - more)]
            if can_overlap(p.rows, height):
                heights = [(low + 1, tiles)]
            full_tiles, columns_left = divmod(columns, vectors * p.width)
            widths = [(vectors, full_tiles), (_cut(columns_left, p.width), 1 if columns_left else 0)]
            each = [(m * n, h, v) for h, m in heights for v, n in widths if h and m and n]
            cost = sum(n * _step(h, v, free - reserved - p.kept * v, p.terms) for n, h, v in each)
            if p.has_code:
                cost *= 1 + COSTS.tile_code * (len(each) - 1)
            if p.rows <= COSTS.single_use_rows and panel > target.l1 * 3 // 4:
                cost += (tiles - 1) * -(-columns // p.width)
            if height >= p.rows and p.depth * columns >= COSTS.shared_panel_bytes:
                panels = tile_count(columns, max(vectors, 2) * p.width)  # chains of one vector cannot read as fast
                cost *= tile_count(panels, p.cores) * p.cores / panels
            yield cost, height, vectors


def _cut(columns: int, width: int) -> int:
    """Return the number of vectors of `width` lanes, and of shorter ones for the rest, by powers of two."""
    return columns // width + (columns % width).bit_count()


def _step(height: int, vectors: int, registers: int, terms: int) -> float:
    """Return the half cycles of one step: two multiply-adds or loads a cycle, and a latency of four cycles to fill.

    `registers`: those that are free for accumulators and a row of the panel. `terms`: see `Product`.
    """
    loads = height / terms + vectors + 2 * max(0, (height + 1) * vectors - registers)
    return max(height * vectors, loads, 8) + 0.05 * loads + 0.5


def can_overlap(rows: int, height: int) -> bool:
    """True if the last one of equal tiles, of up to `height` rows, computes some rows again, but only a few."""
    tiles = max(tile_count(rows, height), 1)
    return 0 < tile_count(rows, tiles) * tiles - rows <= COSTS.max_overlap * rows


def tile_count(n: int, size: int) -> int:
    """Return the number of tiles of `size` that hold `n`."""
    return -(-n // max(size, 1))
