"""x86-64 as a loader sees it."""

from aot.runtime.machines.architecture import Architecture

AMX = ("amx-bf16", "amx-int8", "amx-tile")
_V2 = ("cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_PAIRS = (*_V4, "avx512bf16", "avx512vnni")
_V4_AMX = (*_PAIRS, "avx512vbmi", *AMX)

X86_64 = Architecture(
    name="x86_64",
    elf=62,
    aliases=("AMD64",),
    prefix="x86-64-",
    levels={
        "x86-64-v2": _V2,
        "x86-64-v3": _V3,
        "x86-64-v4": _V4,
        "x86-64-v4-bf16": _PAIRS,
        "x86-64-v4-amx": _V4_AMX,
    },
    matrix=AMX,
    matrix_prefix="amx-",
    kernel_names={
        "sse3": "pni",
        "bmi": "bmi1",
        "lzcnt": "abm",
        "sahf": "lahf_lm",
        "pclmul": "pclmulqdq",
        "sha": "sha_ni",
        "prfchw": "3dnowprefetch",
        "rdrnd": "rdrand",
        "cmov": "cmov",
        "64bit": "lm",
        "crc32": "sse4_2",
        "avx512vnni": "avx512_vnni",
        "avx512bf16": "avx512_bf16",
        "avx512fp16": "avx512_fp16",
        "avx512bitalg": "avx512_bitalg",
        "avx512vbmi2": "avx512_vbmi2",
        "avx512vpopcntdq": "avx512_vpopcntdq",
        "avx512vp2intersect": "avx512_vp2intersect",
        "avxvnni": "avx_vnni",
        "evex512": "avx512f",
    },
    reported=frozenset(
        "64bit adx aes amx-bf16 amx-int8 amx-tile avx avx2 avx512bf16 avx512bitalg avx512bw avx512cd avx512dq avx512f "
        "avx512fp16 avx512ifma avx512vbmi avx512vbmi2 avx512vl avx512vnni avx512vp2intersect avx512vpopcntdq avxvnni "
        "bmi bmi2 cmov crc32 cx16 cx8 evex512 f16c fma fma4 gfni lzcnt mmx movbe pclmul popcnt prfchw sahf sha sse "
        "sse2 sse3 sse4.1 sse4.2 ssse3 vaes vpclmulqdq xop".split()
    ),
    unused=frozenset(
        "shstk pku rdpid rdpru invpcid mwaitx clzero clflushopt clwb wbnoinvd fsgsbase xsave xsavec xsaveopt xsaves "
        "fxsr rdrnd rdseed lwp tbm sse4a ptwrite waitpkg serialize hreset uintr tsxldtrk rtm cldemote movdiri "
        "movdir64b pconfig sgx enqcmd usermsr kl widekl prefetchi invlpgb".split()
    ),
)
