"""Module text -> machine code."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Literal

import llvmlite.binding as llvm

from aot.codegen.llvm.object.features import features_used
from aot.codegen.platforms import Format
from aot.codegen.target import Target
from aot.runtime.errors import InternalError

EFFORT = 3  # level of LLVM's code generator, 0 to 3; 0 compiles about four times as fast, and most tests set it
_KNOWN = range(20, 23)  # versions of LLVM that have all switches of machines: an unknown switch would end the process
_SWITCHING = Lock()
_MAKING = Lock()  # LLVM finds a target that another thread has made known in part


def compile_module(text: str, target: Target, level: int | None = 1) -> bytes:
    """Compile a module to position-independent object code. `level` None runs no passes, to compile fast."""
    machine = _machine(target.using(features_used(text, target.machine)))
    module = _optimized(text, target, machine, level)
    with _left_out(target, level):
        return machine.emit_object(module)


def assembly(text: str, target: Target, level: int | None = 1) -> str:
    """Compile a module to assembly text."""
    machine = _machine(target.using(features_used(text, target.machine)))
    module = _optimized(text, target, machine, level)
    with _left_out(target, level):
        return machine.emit_assembly(module)


def optimized(text: str, target: Target, level: int | None = 1) -> str:
    """Return the module after its passes, as LLVM text."""
    return str(_optimized(text, target, _machine(target.using(features_used(text, target.machine))), level))


@contextmanager
def _left_out(target: Target, level: int | None) -> Generator[None]:
    """Leave out passes of the code generator that do little for loops of vectors, while one module is compiled.

    LLVM keeps these switches for the whole process, whose other code generators must not notice them.
    """
    switches = target.left_out if level is None and llvm.llvm_version_info[0] in _KNOWN else ()
    with _SWITCHING:
        for name in switches:
            llvm.set_option("", f"-{name}=true")
        try:
            yield
        finally:
            for name in switches:
                llvm.set_option("", f"-{name}=false")


def _machine(target: Target) -> llvm.TargetMachine:
    with _MAKING:
        return _with_effort(target, EFFORT)


@lru_cache(maxsize=8)
def _with_effort(target: Target, effort: Literal[0, 1, 2, 3]) -> llvm.TargetMachine:
    """Return LLVM's machine, which is kept: for its first module it makes tables, longer than a small module takes."""
    return _known_target(target).create_target_machine(
        cpu=target.llvm_cpu,
        features=",".join(target.llvm_features),
        opt=effort,
        reloc="static" if target.platform.format is Format.WASM else "pic",  # a module has its memory to itself
        codemodel="default",
    )


def _known_target(target: Target) -> llvm.Target:
    """Return LLVM's target. Targets of other machines are made known when one is asked for: each module gets passes
    that step through all that are known.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        return llvm.Target.from_triple(_triple(target))
    except RuntimeError:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    try:
        return llvm.Target.from_triple(_triple(target))
    except RuntimeError as error:
        raise InternalError(f"target: unknown triple, got {target.triple}") from error


def _triple(target: Target) -> str:
    """Return LLVM's triple; it makes objects ELF files on every system."""
    return target.triple + target.platform.environment


def _optimized(text: str, target: Target, machine: llvm.TargetMachine, level: int | None) -> llvm.ModuleRef:
    head = f'target triple = "{_triple(target)}"\ntarget datalayout = "{machine.target_data}"\n'
    try:
        module = llvm.parse_assembly(head + text + target.machine.module_flags)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"emit: LLVM refuses the module, got {error}") from error
    if level is not None:
        # Loop nests decide vectors and unrolling: these passes would only undo or repeat that.
        tuning = llvm.create_pipeline_tuning_options(speed_level=level)
        tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = tuning.loop_interleaving = False
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
    return module
