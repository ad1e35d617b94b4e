"""Features of the processor that a module can use beyond those of all code, as its text tells.

    call <16 x i32> @llvm.x86.avx512.vpdpbusd.512      ->  avx512vnni, avxvnni
    shufflevector <64 x i8> %a, <64 x i8> %b, ...      ->  avx512vbmi

LLVM gets no others, so no instruction of another one can be in the code.
"""

from __future__ import annotations

import re

from aot.runtime.levels import AMX

_USES = {  # each begins with a literal, by which it is searched for fast
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
}
_PATTERNS = {re.compile(pattern): features for pattern, features in _USES.items()}


def features_used(text: str) -> frozenset[str]:
    """Return the features, in LLVM's names, that instructions of a module or function call for."""
    return frozenset(f for pattern, features in _PATTERNS.items() if pattern.search(text) for f in features)
