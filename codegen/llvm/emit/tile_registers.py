"""Statements on tile registers as instructions: Intel's AMX. Registers have numbers: schedules know their content."""

from __future__ import annotations

from aot.codegen.ir.loops import TileOp
from aot.codegen.llvm.emit.function_text import Value, integer
from aot.codegen.llvm.emit.values import Values
from aot.runtime.errors import InternalError

CONFIGURATION_BYTES = 64


class TileRegisters:
    """Emits statements on tile registers."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def emit(self, stmt: TileOp) -> None:
        f, tiles = self.values.f, [integer(n, "i8") for n in stmt.tiles]
        name = self.values.abilities.intrinsic(f"tile_{stmt.op}" + (f"_{stmt.kind}" if stmt.op == "dot" else ""))
        match stmt.op:
            case "configure":
                f.run(name, Value("ptr", self._configuration(stmt.shape)))
            case "release" | "zero" | "dot":
                f.run(name, *tiles)
            case _:
                self._moved(name, stmt, tiles)

    def _moved(self, name: str, stmt: TileOp, tiles: list[Value]) -> None:
        """Move a tile from or to memory."""
        at, buffer = self.values.at, stmt.buffer
        if buffer is None:
            raise InternalError(f"tiles: no statement {stmt.op!r}")
        pointer = at.pointer(at.access(buffer, stmt.index))
        step = self.values.f.binary("mul", at.size(stmt.stride), integer(buffer.dtype.stored_bytes))
        if isinstance(stmt.stride, int):
            step = integer(stmt.stride * buffer.dtype.stored_bytes)
        self.values.f.run(name, *tiles, pointer, step)
        if stmt.op == "store":
            self.values.loaded.pop(buffer.name, None)

    def _configuration(self, shape: tuple[tuple[int, int], ...]) -> str:
        """Return the name of a constant with the palette, bytes of a row and rows of each tile."""
        data = bytearray(CONFIGURATION_BYTES)
        data[0] = 1
        for n, (rows, size) in enumerate(shape):
            data[16 + 2 * n : 18 + 2 * n] = size.to_bytes(2, "little")
            data[48 + n] = rows
        return self.values.constant_bytes(bytes(data))
