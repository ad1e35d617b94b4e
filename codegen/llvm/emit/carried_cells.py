"""Values of register buffers at the joins of basic blocks: phi nodes after loops and branches."""

from __future__ import annotations

from aot.codegen.ir.loops import Stmt
from aot.codegen.llvm.emit.function_text import Block, Function, Value
from aot.codegen.llvm.emit.registers import Cell, Cells, stored

Snapshot = dict[str, dict[Cell, Value]]  # by buffer


class CarriedCells:
    """Carries the cells of `registers` from block to block of a function."""

    def __init__(self, function: Function, registers: dict[str, Cells]) -> None:
        self.f, self.registers = function, registers

    def snapshot(self, stmts: tuple[Stmt, ...]) -> Snapshot:
        """Return the cells alive here of the register buffers that `stmts` write."""
        return {n: dict(self.registers[n].values) for n in sorted(stored(stmts) & self.registers.keys())}

    def restore(self, cells: Snapshot) -> None:
        """Restore the cells of a snapshot."""
        for name, values in cells.items():
            self.registers[name].values = dict(values)

    def carry(self, head: Block, cells: Snapshot, before: Block) -> list[tuple[str, Cell, int]]:
        """Add phis for cells that change from one iteration to the next."""
        carried: list[tuple[str, Cell, int]] = []
        for name, values in cells.items():
            for key, value in values.items():
                phi, number = self.f.phi(head, value.type, value, before)
                self.registers[name].values[key] = phi
                carried.append((name, key, number))
        return carried

    def close(self, head: Block, carried: list[tuple[str, Cell, int]], latch: Block) -> None:
        """Complete the phis of `carry` with the cells at the end of an iteration."""
        for name, key, number in carried:
            cells = self.registers[name]
            value = cells.read(self.f, *key)
            cells.write(self.f, *key, value)
            self.f.close(head, number, value, latch)

    def merge(self, block: Block, ways: list[tuple[Block, Snapshot]]) -> None:
        """Merge cells where two ways meet."""
        for name in ways[0][1]:
            keys = dict.fromkeys(key for _, snapshot in ways for key in snapshot[name])
            merged: dict[Cell, Value] = {}
            cells = self.registers[name]
            for key in keys:
                (first, a), (second, b) = ((w, s[name].get(key, Value(cells.type(key[1]), "poison"))) for w, s in ways)
                if a == b:
                    merged[key] = a
                    continue
                phi, number = self.f.phi(block, a.type, a, first)
                self.f.close(block, number, b, second)
                merged[key] = phi
            cells.values = merged
