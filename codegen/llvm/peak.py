"""Limits of this machine: multiply-adds and memory bandwidth, measured by two loops made for its target.

multiply   as many independent fused multiply-adds as there are registers for
stream     sums a block of memory; the block decides which cache it comes from
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.object.optimize import compile_module
from aot.codegen.target import Target
from aot.runtime.abi import MAX_THREADS
from aot.runtime.arrays.tensors import aligned_empty
from aot.runtime.measuring.roofline import Roofline

_MULTIPLY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)
_STREAM = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
_STREAMS = 8
_TURNS = 100_000  # half a millisecond


class PeakLoops:
    """The compiled loops; each thread runs its own copy on its own block."""

    def __init__(self, target: Target) -> None:
        lanes = target.lanes_bytes // 4
        self._accumulators = 24 if target.registers >= 32 else 12
        self._per_turn = 2 * lanes * self._accumulators
        self._step = target.lanes_bytes * _STREAMS
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        code = compile_module(_text(lanes, self._accumulators), target)
        jit = llvm.create_lljit_compiler(use_jit_link=True)
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        tracker = library.export_symbol("multiply").export_symbol("stream").link(jit, "peak")
        self._keep = (jit, tracker)
        self._pool: ThreadPoolExecutor | None = None
        self._multiply = _MULTIPLY(tracker["multiply"])
        self._stream = _STREAM(tracker["stream"])
        self._sink = [aligned_empty((lanes,), np.dtype(np.float32), 64) for _ in range(MAX_THREADS)]
        for array, _ in self._sink:
            array[:] = 0  # numbers below the normal range are slow

    def multiply(self, turns: int, threads: int = 1) -> float:
        """Run the multiply-adds; return the number of floating-point operations."""
        self._seconds(threads, lambda i: self._multiply(turns, self._sink[i][1]))
        return float(self._per_turn * turns * threads)

    def turns(self, threads: int) -> int:
        """Return the turns of `multiply`: within one time slice; with several threads, long compared to their start."""
        return _TURNS if threads == 1 else 10 * _TURNS

    def flops(self, seconds: float = 0.1, threads: int = 1) -> float:
        """Measure FLOP/s: the best of many runs in `seconds`."""
        turns = self.turns(threads)
        spent = self._least(seconds, threads, lambda i: self._multiply(turns, self._sink[i][1]))
        return self._per_turn * turns * threads / spent

    def bandwidth(self, size: int, seconds: float = 0.05, threads: int = 1) -> float:
        """Measure bytes/s read by all threads together, each from its own block; `size`: bytes of all blocks."""
        part = max(self._step, size // threads // self._step * self._step)
        blocks = [aligned_empty((part // 4,), np.dtype(np.float32), 64) for _ in range(threads)]
        for array, _ in blocks:
            array[:] = 0
        rounds = max(1, (4 << 20) // part)

        def run(i: int) -> None:
            for _ in range(rounds):
                self._stream(part // self._step, blocks[i][1], self._sink[i][1])

        return part * threads * rounds / self._least(seconds, threads, run)

    def roofline(self, target: Target, threads: int = 1) -> Roofline:
        """Measure all limits, in about half a second."""
        sizes = [target.l2 * threads // 2, target.l3 // 2, max(128 << 20, 4 * target.l3)]
        limits = [target.l2 * threads, target.l3, 1 << 62]
        speeds = [self.bandwidth(size, threads=threads) for size in sizes]
        return Roofline(self.flops(threads=threads), tuple(zip(limits, speeds, strict=True)))

    def _least(self, seconds: float, threads: int, run: Callable[[int], None]) -> float:
        """Return the least `_seconds` of many runs in `seconds`."""
        least, end = math.inf, time.perf_counter() + seconds
        while time.perf_counter() < end or least == math.inf:
            least = min(least, self._seconds(threads, run))
        return least

    def _seconds(self, threads: int, run: Callable[[int], None]) -> float:
        """Call `run(i)` in each thread; return the processor time of the slowest: other processes change it little."""

        def one(i: int) -> float:
            begin = time.thread_time()
            run(i)
            return time.thread_time() - begin

        if threads == 1:
            return one(0)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MAX_THREADS)
        return max(self._pool.map(one, range(threads)))


@cache
def roofline_here(threads: int) -> Roofline:
    """Measure the roofline of the machine that this runs on, once in a process."""
    target = parse_target("native")
    return PeakLoops(target).roofline(target, threads)


def _text(lanes: int, accumulators: int) -> str:
    vector = f"<{lanes} x float>"
    bytes_ = lanes * 4
    sums = range(accumulators)
    lines = [
        f"declare {vector} @llvm.fmuladd.v{lanes}f32({vector}, {vector}, {vector})",
        "define void @multiply(i64 %turns, ptr %out) nounwind {",
        "entry:",
        # values loaded from memory: constants would be folded
        f"  %m = load {vector}, ptr %out, align {bytes_}",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]",
        *(f"  %s{k} = phi {vector} [ %m, %entry ], [ %t{k}, %loop ]" for k in sums),
        *(f"  %t{k} = call {vector} @llvm.fmuladd.v{lanes}f32({vector} %m, {vector} %m, {vector} %s{k})" for k in sums),
        "  %i.next = add i64 %i, 1",
        "  %more = icmp slt i64 %i.next, %turns",
        "  br i1 %more, label %loop, label %done",
        "done:",
        # stored, or the loops would be removed as dead code
        *(f"  store volatile {vector} %t{k}, ptr %out, align {bytes_}" for k in sums),
        "  ret void",
        "}",
        "define void @stream(i64 %turns, ptr %data, ptr %out) nounwind {",
        "entry:",
        f"  %m = load {vector}, ptr %out, align {bytes_}",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]",
    ]
    lines += [f"  %s{k} = phi {vector} [ %m, %entry ], [ %t{k}, %loop ]" for k in range(_STREAMS)]
    lines.append(f"  %base = mul i64 %i, {_STREAMS}")
    for k in range(_STREAMS):
        lines += [
            f"  %o{k} = add i64 %base, {k}",
            f"  %p{k} = getelementptr {vector}, ptr %data, i64 %o{k}",
            f"  %v{k} = load {vector}, ptr %p{k}, align {bytes_}",
            f"  %t{k} = fadd {vector} %s{k}, %v{k}",
        ]
    lines += [
        "  %i.next = add i64 %i, 1",
        "  %more = icmp slt i64 %i.next, %turns",
        "  br i1 %more, label %loop, label %done",
        "done:",
        *(f"  store volatile {vector} %t{k}, ptr %out, align {bytes_}" for k in range(_STREAMS)),
        "  ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"
