"""WebAssembly, for browsers and any other engine: a module that imports nothing, or memory and threads of its host."""

from __future__ import annotations

from aot.codegen.platforms.platform import Format, Platform

WASM = Platform(
    name="wasm",
    suffix="unknown-unknown-wasm",
    library=".wasm",
    machines=("wasm32",),
    pool=("wasm.ll", "wasm_alone.ll"),
    pool_with={"atomics": ("wasm.ll", "wasm_threads.ll")},
    numbers={
        "signal_set_bytes": 8,  # no thread has signals
        "set_mask": 0,
        "cpus": 64,  # no thread is moved
        "cpu_words": 1,
        "cpu_bytes": 8,
    },
    calls={},
    tiles={},
    imports={"aot": ("clock", "wait", "spawn")},
    prefix="wasm",
    scarce_memory=True,
    format=Format.WASM,
)
