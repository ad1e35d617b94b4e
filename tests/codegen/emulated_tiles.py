"""Tile registers in plain LLVM: what kernels for x86-64-v4-amx compute is tested on processors without them.

Modules call functions of this text instead of the intrinsics. They follow Intel's definition of the instructions: sums
of bf16 by an even and an odd chain of multiply-adds, denormal numbers as zero. One thread at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import aot.codegen.llvm.object.optimize as optimize
from aot.codegen.target import Target
from aot.runtime.machine import missing_features, refused_tiles

NAMES = "ldtilecfg tilerelease tilezero tileloadd64 tilestored64 tdpbf16ps tdpbusd tdpbsud".split()
HAS_TILES = not missing_features(Target.parse("x86-64-v4-amx").isa_features) and not refused_tiles()

HEAD = """
@tmm = internal global [8192 x i8] zeroinitializer, align 64
@configuration = internal global [64 x i8] zeroinitializer, align 64
define internal i64 @rows(i8 %t) nounwind {
  %n = zext i8 %t to i64
  %at = add i64 %n, 48
  %p = getelementptr i8, ptr @configuration, i64 %at
  %r = load i8, ptr %p
  %v = zext i8 %r to i64
  ret i64 %v
}
define internal i64 @bytes(i8 %t) nounwind {
  %n = zext i8 %t to i64
  %twice = shl i64 %n, 1
  %at = add i64 %twice, 16
  %p = getelementptr i8, ptr @configuration, i64 %at
  %r = load i16, ptr %p
  %v = zext i16 %r to i64
  ret i64 %v
}
define internal ptr @row(i8 %t, i64 %r) nounwind {
  %n = zext i8 %t to i64
  %tile = shl i64 %n, 10
  %line = shl i64 %r, 6
  %at = add i64 %tile, %line
  %p = getelementptr i8, ptr @tmm, i64 %at
  ret ptr %p
}
define internal void @emulated.ldtilecfg(ptr %p) nounwind {
  call void @llvm.memcpy.p0.p0.i64(ptr @configuration, ptr %p, i64 64, i1 false)
  ret void
}
define internal void @emulated.tilerelease() nounwind {
  ret void
}
define internal void @emulated.tilezero(i8 %t) nounwind {
  %p = call ptr @row(i8 %t, i64 0)
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 1024, i1 false)
  ret void
}
define internal float @flushed(float %x) nounwind {
  %size = call float @llvm.fabs.f32(float %x)
  %small = fcmp olt float %size, 0x3810000000000000
  %zero = call float @llvm.copysign.f32(float 0.0, float %x)
  %r = select i1 %small, float %zero, float %x
  ret float %r
}
define internal float @half(i32 %w, i1 %odd) nounwind {
  %up = shl i32 %w, 16
  %high = and i32 %w, -65536
  %bits = select i1 %odd, i32 %high, i32 %up
  %x = bitcast i32 %bits to float
  %r = call float @flushed(float %x)
  ret float %r
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare float @llvm.fabs.f32(float)
declare float @llvm.copysign.f32(float, float)
declare float @llvm.fma.f32(float, float, float)
"""


def loop(name: str, extent: str, body: str) -> str:
    """Return the lines of a loop whose counter is %name."""
    return f"""
  store i64 0, ptr %{name}.at
  br label %{name}.test
{name}.test:
  %{name} = load i64, ptr %{name}.at
  %{name}.more = icmp slt i64 %{name}, {extent}
  br i1 %{name}.more, label %{name}.body, label %{name}.done
{name}.body:
{body}
  %{name}.next = add i64 %{name}, 1
  store i64 %{name}.next, ptr %{name}.at
  br label %{name}.test
{name}.done:"""


def moves(name: str, load: bool) -> str:
    order = "ptr %inside, ptr %outside" if load else "ptr %outside, ptr %inside"
    clear = "call void @emulated.tilezero(i8 %t)" if load else ""
    body = f"""
  %inside = call ptr @row(i8 %t, i64 %m)
  %far = mul i64 %m, %stride
  %outside = getelementptr i8, ptr %p, i64 %far
  call void @llvm.memcpy.p0.p0.i64({order}, i64 %size, i1 false)"""
    return f"""
define internal void @emulated.{name}(i8 %t, ptr %p, i64 %stride) nounwind {{
  %m.at = alloca i64
  %height = call i64 @rows(i8 %t)
  %size = call i64 @bytes(i8 %t)
  {clear}{loop("m", "%height", body)}
  ret void
}}"""


BF16 = """
  %a.even = call float @half(i32 %x, i1 0)
  %b.even = call float @half(i32 %y, i1 0)
  %a.odd = call float @half(i32 %x, i1 1)
  %b.odd = call float @half(i32 %y, i1 1)
  %e = load float, ptr %even
  %o = load float, ptr %odd
  %e.sum = call float @llvm.fma.f32(float %a.even, float %b.even, float %e)
  %o.sum = call float @llvm.fma.f32(float %a.odd, float %b.odd, float %o)
  %e.now = call float @flushed(float %e.sum)
  %o.now = call float @flushed(float %o.sum)
  store float %e.now, ptr %even
  store float %o.now, ptr %odd"""
BF16_END = """
  %e.all = load float, ptr %even
  %o.all = load float, ptr %odd
  %both = fadd float %e.all, %o.all
  %pair = call float @flushed(float %both)
  %old = load float, ptr %c
  %total = fadd float %old, %pair
  %new = call float @flushed(float %total)
  store float %new, ptr %c"""


def whole(rows: str, columns: str) -> str:
    """Return the lines that add four products of bytes; `sext` or `zext` of both factors."""
    lines: list[str] = []
    for n in range(4):
        for name, word, kind in (("a", "x", rows), ("b", "y", columns)):
            lines.append(f"%{name}{n}.low = lshr i32 %{word}, {8 * n}")
            lines.append(f"%{name}{n}.byte = trunc i32 %{name}{n}.low to i8")
            lines.append(f"%{name}{n} = {kind} i8 %{name}{n}.byte to i32")
        lines += [f"%p{n} = mul i32 %a{n}, %b{n}", f"%c{n} = load i32, ptr %c", f"%s{n} = add i32 %c{n}, %p{n}"]
        lines.append(f"store i32 %s{n}, ptr %c")
    return "\n".join(f"  {line}" for line in lines)


def products(name: str, step: str, end: str) -> str:
    words = f"""
  %k.far = shl i64 %k, 2
  %x.at = getelementptr i8, ptr %x.row, i64 %k.far
  %x = load i32, ptr %x.at
  %y.row = call ptr @row(i8 %b, i64 %k)
  %y.at = getelementptr i8, ptr %y.row, i64 %n.far
  %y = load i32, ptr %y.at
{step}"""
    column = f"""
  %n.far = shl i64 %n, 2
  %c = getelementptr i8, ptr %c.row, i64 %n.far
  store float 0.0, ptr %even
  store float 0.0, ptr %odd{loop("k", "%depth", words)}
{end}"""
    line = f"""
  %c.row = call ptr @row(i8 %t, i64 %m)
  %x.row = call ptr @row(i8 %a, i64 %m){loop("n", "%width", column)}"""
    return f"""
define internal void @emulated.{name}(i8 %t, i8 %a, i8 %b) nounwind {{
  %m.at = alloca i64
  %n.at = alloca i64
  %k.at = alloca i64
  %even = alloca float
  %odd = alloca float
  %height = call i64 @rows(i8 %t)
  %size = call i64 @bytes(i8 %t)
  %width = lshr i64 %size, 2
  %terms = call i64 @bytes(i8 %a)
  %depth = lshr i64 %terms, 2{loop("m", "%height", line)}
  ret void
}}"""


PARTS = (
    HEAD,
    moves("tileloadd64", True),
    moves("tilestored64", False),
    products("tdpbf16ps", BF16, BF16_END),
    products("tdpbusd", whole("zext", "sext"), ""),
    products("tdpbsud", whole("sext", "zext"), ""),
)
EMULATOR = "\n".join(PARTS)


def without_intrinsics(text: str) -> str:
    """Return a module whose calls of the instructions are calls of the emulator; the system is not asked for them."""
    text = text.replace("%allowed = icmp eq i64 %code, 0", "%allowed = icmp eq i64 0, 0")
    called = rf"@llvm\.x86\.({'|'.join(NAMES)})\b"
    if not re.search(called, text):
        return text
    text = re.sub(rf"^declare void {called}.*$", "", text, flags=re.MULTILINE)
    text = re.sub(called, r"@emulated.\1", text)
    names = {line.split("(")[0] for line in text.splitlines() if line.startswith("declare ")}
    added = (line for line in EMULATOR.splitlines() if line.split("(")[0] not in names)
    return "\n".join((text, *added, ""))


def runs(target: Target) -> bool:
    """True if this machine has the target's instructions, but for tile registers, which it may emulate."""
    return not [f for f in missing_features(target.isa_features) if not f.startswith("amx")]


@contextmanager
def tile_registers() -> Iterator[None]:
    """Emulate tile registers in modules that are compiled meanwhile, if this machine has none."""
    plain = optimize._optimized
    with pytest.MonkeyPatch.context() as patch:
        if not HAS_TILES:
            patch.setattr(optimize, "_optimized", lambda text, *rest: plain(without_intrinsics(text), *rest))
        yield
