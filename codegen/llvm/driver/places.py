"""Addresses of places in the memory of a request, as LLVM code."""

from __future__ import annotations

from aot.codegen.ir.program import Address, MemoryRegion
from aot.codegen.llvm.driver.size_code import SizeCode
from aot.runtime import abi

_REGION_FIELD = {
    MemoryRegion.INPUT: "inputs",
    MemoryRegion.OUTPUT: "outputs",
    MemoryRegion.ARENA: "arena",
    MemoryRegion.STATE: "state",
}


def address(name: str, place: Address, code: SizeCode, tag: str) -> str:
    """Return the pointer operand of a place; new values are named with the prefix `name`, and %request is defined."""
    if place.region is MemoryRegion.CONSTANT:
        base = f"@{abi.WEIGHTS_PREFIX}{tag}"
    else:
        base = f"%{name}.base"
        field = field_index(_REGION_FIELD[place.region])
        code.lines.append(f"%{name}.field = getelementptr %request, ptr %request, i64 0, i32 {field}")
        code.lines.append(f"{base} = load ptr, ptr %{name}.field, align 8")
        if place.region in (MemoryRegion.INPUT, MemoryRegion.OUTPUT):
            code.lines.append(f"%{name}.at = getelementptr ptr, ptr {base}, i64 {place.index}")
            base = f"%{name}.tensor"
            code.lines.append(f"{base} = load ptr, ptr %{name}.at, align 8")
    offset = code.operand(place.offset)
    if offset == "0":
        return base
    code.lines.append(f"%{name} = getelementptr i8, ptr {base}, i64 {offset}")
    return f"%{name}"


def field_index(name: str) -> int:
    """Return the index of a field of a request."""
    return int(getattr(abi.Request, name).offset) // 8
