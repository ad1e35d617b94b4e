"""x86-64 as code is made for it."""

from __future__ import annotations

from aot.codegen.machines.machine import Abilities, Dispatch, FlushMode, Machine
from aot.runtime.abi import DType
from aot.runtime.machines.x86_64 import AMX
from aot.runtime.machines.x86_64 import X86_64 as ARCHITECTURE

_WIDE = 64  # bytes of the registers of AVX-512
_SERVER_CACHES = (48 << 10, 2 << 20, 4 << 20)  # bytes of L1, L2, L3 of the first processors with tile registers
_FLUSH_TO_ZERO, _DENORMALS_ARE_ZERO = 1 << 15, 1 << 6  # bits of MXCSR

_INTRINSICS = {
    "dot_bytes": {lanes: f"llvm.x86.avx512.vpdpbusd.{32 * lanes}" for lanes in (4, 8, 16)},
    "dot_pairs": {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"},
    "dot_bf16": {lanes: f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}" for lanes in (4, 8, 16)},
    # these ignore higher bits of indices
    "permute_floats": {8: "llvm.x86.avx2.permps", 16: "llvm.x86.avx512.permvar.sf.512"},
    "permute_two_words": {16: "llvm.x86.avx512.vpermi2var.d.512"},
    "permute_two_bytes": {64: "llvm.x86.avx512.vpermi2var.qi.512"},
    "shuffle_bytes": {16: "llvm.x86.ssse3.pshuf.b.128", 32: "llvm.x86.avx2.pshuf.b"},
    "pack_i32": {32: "llvm.x86.avx512.packssdw.512"},
    "pack_i16_to_i8": {64: "llvm.x86.avx512.packsswb.512"},
    "pack_i16_to_u8": {64: "llvm.x86.avx512.packuswb.512"},
    "round_to_i32": {16: "llvm.x86.avx512.mask.cvtps2dq.512"},
    "tile_configure": {1: "llvm.x86.ldtilecfg"},
    "tile_release": {1: "llvm.x86.tilerelease"},
    "tile_zero": {1: "llvm.x86.tilezero"},
    "tile_load": {1: "llvm.x86.tileloadd64"},
    "tile_store": {1: "llvm.x86.tilestored64"},
    "tile_dot_bf16": {1: "llvm.x86.tdpbf16ps"},
    "tile_dot_u8i8": {1: "llvm.x86.tdpbusd"},
    "tile_dot_i8u8": {1: "llvm.x86.tdpbsud"},
}


def _vectors(features: frozenset[str]) -> tuple[int, int]:
    if features >= {"avx512f", "avx512vl", "avx512dq", "avx512bw"}:
        return _WIDE, 32
    return (32 if "avx2" in features else 16), 16


def _abilities(features: frozenset[str], vector_bytes: int) -> Abilities:
    avx2, wide = "avx2" in features, vector_bytes == _WIDE
    dots_of_bytes = "avxvnni" in features or features >= {"avx512vnni", "avx512vl"}
    any_bytes = wide and "avx512vbmi" in features
    return Abilities(
        fuses="fma" in features,
        converts=frozenset({DType.F16} if "f16c" in features else ()),
        masks=avx2,
        permutes=vector_bytes // 4 if avx2 else 0,
        permutes_bytes=128 if any_bytes else 16 if avx2 else 0,
        packs_bytes=wide and "avx512bw" in features,
        dots=4 if dots_of_bytes else 2,
        joins_bytes=dots_of_bytes and any_bytes,
        adds_pairs=avx2 and not dots_of_bytes,
        rounds_normal=features >= {"avx512bf16", "avx512vl"},
        tiles=features >= set(AMX),
        intrinsics=_INTRINSICS,
    )


def _scheduled(cpu: str) -> str:
    """Return LLVM's scheduling model: never Intel's, with which LLVM 22 spills some register tiles."""
    return cpu if cpu.startswith("znver") else "x86-64"


def _word(leaf: int, register: int, subleaf: int) -> str:
    """Return the call that reads a word of CPUID; registers are eax, ebx, ecx and edx."""
    signed = leaf if leaf < 1 << 31 else leaf - (1 << 32)
    return f"@word(i32 {signed}, i32 {register}, i32 {subleaf})"


def _bits(**places: int) -> dict[str, int]:
    return {name: 1 << bit for name, bit in places.items()}


_SAVED = "@saved(i32 %w0)"  # XCR0: registers that the system saves; the first word says whether it can be read
_ALWAYS = {
    _word(1, 2, 0): {
        **_bits(sse3=0, ssse3=9, fma=12, cx16=13, movbe=22, popcnt=23, xsave=27, avx=28, f16c=29),
        "sse4.1": 1 << 19,
        "sse4.2": 1 << 20,
    },
    _word(1, 3, 0): _bits(cx8=8, cmov=15, mmx=23, fxsr=24, sse=25, sse2=26),
    _word(7, 1, 0): _bits(bmi=3, avx2=5, bmi2=8, avx512f=16, avx512dq=17, avx512cd=28, avx512bw=30, avx512vl=31),
    _word(0x80000001, 2, 0): _bits(sahf=0, lzcnt=5),
}
_CPUID = Dispatch(
    template="dispatch_cpuid.ll",
    words={
        **_ALWAYS,
        _word(7, 2, 0): _bits(avx512vbmi=1, avx512vnni=11),
        _word(7, 3, 0): {"amx-bf16": 1 << 22, "amx-tile": 1 << 24, "amx-int8": 1 << 25},
        _word(7, 0, 1): _bits(avx512bf16=5),
        _SAVED: {"avx": 0x06, "avx512f": 0xE6, "amx-tile": 0x600E6},
    },
    always=frozenset({*_ALWAYS, _SAVED}),
    assembly=True,
)

X86_64 = Machine(
    architecture=ARCHITECTURE,
    cpu="x86-64",
    caches=(32 << 10, 512 << 10, 4 << 20),
    level_caches={"x86-64-v4-amx": _SERVER_CACHES},
    base=frozenset({*ARCHITECTURE.levels["x86-64-v4"], "64bit", "evex512"}),
    vectors=_vectors,
    abilities=_abilities,
    uses={
        r"@llvm\.x86\.avx512\.vpdp": ("avx512vnni", "avxvnni"),
        r"bfloat": ("avx512bf16",),
        r"@llvm\.x86\.avx512bf16\.": ("avx512bf16",),
        r"@llvm\.x86\.avx512\.(vpermi2var|permvar)\.qi": ("avx512vbmi",),
        r"shufflevector <\d+ x i8>": ("avx512vbmi",),
        r"@llvm\.x86\.(ldtilecfg|tile|tdp)": AMX,
        r"@llvm\.ctpop\.v": ("avx512vpopcntdq", "avx512bitalg"),
        r"shl <\d+ x i8>": ("gfni",),
        r"shr <\d+ x i8>": ("gfni",),
        r"@llvm\.bitreverse\.v": ("gfni",),
    },
    pause=("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    dispatch=dict.fromkeys(("linux", "windows", "android"), _CPUID),
    scheduled=_scheduled,
    left_out=("disable-lsr", "disable-cgp"),  # which take a third of LLVM's time
    flush=FlushMode(
        begin=(
            "%own.mode = alloca i32, align 4",
            "%flush.mode = alloca i32, align 4",
            "call void @llvm.x86.sse.stmxcsr(ptr %own.mode)",
            "%own = load i32, ptr %own.mode, align 4",
            f"%flush = or i32 %own, {_FLUSH_TO_ZERO | _DENORMALS_ARE_ZERO}",
            "store i32 %flush, ptr %flush.mode, align 4",
            "call void @llvm.x86.sse.ldmxcsr(ptr %flush.mode)",
        ),
        end=("call void @llvm.x86.sse.ldmxcsr(ptr %own.mode)",),
        declarations=tuple(f"declare void @llvm.x86.sse.{name}mxcsr(ptr)" for name in ("ld", "st")),
    ),
    fetches_near=False,
)
