"""Features of the processor that a module can use beyond those of all code, as its text tells.

    call <16 x i32> @llvm.x86.avx512.vpdpbusd.512      ->  avx512vnni, avxvnni
    shufflevector <64 x i8> %a, <64 x i8> %b, ...      ->  avx512vbmi

LLVM gets no others, so no instruction of another one can be in the code. Patterns of a machine begin with a literal, by
which they are searched for fast.
"""

from __future__ import annotations

import re
from functools import lru_cache

from aot.codegen.machines import Machine


def features_used(text: str, machine: Machine) -> frozenset[str]:
    """Return the features, in LLVM's names, that instructions of a module or function call for."""
    patterns = ((_pattern(pattern), features) for pattern, features in machine.uses.items())
    return frozenset(f for pattern, features in patterns if pattern.search(text) for f in features)


@lru_cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
