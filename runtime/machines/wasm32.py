"""WebAssembly of 32 bits as a loader sees it: an engine has all features of a module, or refuses it."""

from aot.runtime.machines.architecture import Architecture

_SIMD = ("simd128", "bulk-memory", "bulk-memory-opt", "mutable-globals", "nontrapping-fptoint", "sign-ext")
_RELAXED = (*_SIMD, "relaxed-simd")

WASM32 = Architecture(
    name="wasm32",
    elf=0x4157,  # "WA": WebAssembly has no number of its own there
    prefix="wasm-",
    levels={
        "wasm": _SIMD,
        "wasm-relaxed": _RELAXED,
        "wasm-threads": (*_SIMD, "atomics"),
        "wasm-relaxed-threads": (*_RELAXED, "atomics"),
    },
    kernel_names={},
    reported=frozenset({*_RELAXED, "atomics"}),
)
