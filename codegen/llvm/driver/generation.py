"""The loop of a language model inside of its library: @generate and @forget of the table.

A language model has variables and the inputs of `aot.runtime.generation.interface`; other models have no loop.
"""

from __future__ import annotations

import struct

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Const
from aot.codegen.ir.program import Program, Tensor
from aot.codegen.llvm.driver.shape_functions import function_text, static
from aot.codegen.llvm.pool import template_text
from aot.runtime import abi
from aot.runtime.abi import DType
from aot.runtime.generation import sampling
from aot.runtime.generation.interface import CHUNK, IDS, LOGITS, MASK, NAMES, PLACES, ROWS

_INTEGERS = {DType.I32: 4, DType.I64: 8}  # bytes
_RANKS = {IDS: 2, MASK: 2, PLACES: 2, ROWS: 1}
_RANDOM_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645  # of PCG64
_HASHES = {  # constants of NumPy's SeedSequence
    "hash_first": 0x43B0D7E5,
    "hash_factor": 0x931E8875,
    "state_first": 0x8B51F9DD,
    "state_factor": 0x58F38DED,
    "mix_left": 0xCA01F9DD,
    "mix_right": 0x4973F715,
}


def generation_functions(program: Program) -> list[str]:
    """Return @generate, @forget and the functions that they call, as LLVM text; none for a model of another kind."""
    model = _language_model(program)
    if model is None:
        return []
    outputs, (at, logits) = program.outputs, model
    before = [len(t.shape) for t in outputs[:at]]
    loop = template_text(
        "generate.ll",
        inputs=len(program.inputs),
        outputs=len(outputs),
        blocks=len(program.inputs) + len(outputs) + 3,
        symbols=program.words,
        input_dims=sum(len(t.shape) for t in program.inputs),
        output_dims=sum(len(t.shape) for t in outputs),
        logits=at,
        logits_dims=sum(before),
        logits_outer=len(logits.shape) - 1,
        words=static(logits.shape[-1]),
        chunk=CHUNK,
        error_capacity=abi.ERROR_CAPACITY,
        error_memory=abi.ERROR_MEMORY,
        error_tokens=abi.ERROR_TOKENS,
        error_sampling=abi.ERROR_SAMPLING,
        error_logits=abi.ERROR_LOGITS,
    )
    return [loop, _give_inputs(program), _sampling()]


def _language_model(program: Program) -> tuple[int, Tensor] | None:
    """Return the index of the logits and themselves, if the program is a language model."""
    inputs = {t.name: t for t in program.inputs}
    if IDS not in inputs or not inputs.keys() <= NAMES or not program.variables:
        return None
    if any(t.dtype not in _INTEGERS or len(t.shape) != _RANKS[name] for name, t in inputs.items()):
        return None
    at, logits = next(((i, t) for i, t in enumerate(program.outputs) if t.name == LOGITS), (0, program.outputs[0]))
    fixed = logits.shape and isinstance(logits.shape[-1], int | Const)
    return (at, logits) if fixed and logits.dtype is DType.F32 and not program.is_cancellable else None


@dataclass(frozen=True, slots=True)
class _Filled:
    """Content of an input: dimensions, and first element and step, or the tokens that are copied."""

    dims: tuple[str, ...]
    first: str = "0"
    step: int = 0
    ids: str = "null"


_FILLED = {
    IDS: _Filled(("1", "%count"), ids="%ids"),
    MASK: _Filled(("1", "%whole"), first="1"),
    PLACES: _Filled(("1", "%count"), first="%past", step=1),
    ROWS: _Filled(("1",)),
}


def _give_inputs(program: Program) -> str:
    """@give_inputs: dimensions and elements of the inputs for %count tokens behind %past; false if memory is full."""
    lines, fits, at = list[str](), "true", 0
    for i, tensor in enumerate(program.inputs):
        how = _FILLED[tensor.name]
        for dim in how.dims:
            lines += [f"%d{at} = getelementptr i64, ptr %dims, i64 {at}", f"store i64 {dim}, ptr %d{at}, align 8"]
            at += 1
        lines += [
            f"%block{i} = getelementptr %sequence, ptr %sequence, i64 0, i32 2, i64 {i}",
            f"%place{i} = getelementptr %sequence, ptr %sequence, i64 0, i32 11, i64 {i}",
            f"%fit{i} = call i1 @fill_block(ptr %block{i}, ptr %place{i}, i64 {how.dims[-1]}, "
            f"i64 {_INTEGERS[tensor.dtype]}, i64 {how.first}, i64 {how.step}, ptr {how.ids})",
            f"%fits{i} = and i1 {fits}, %fit{i}",
        ]
        fits = f"%fits{i}"
    parameters = "ptr %sequence, ptr %dims, ptr %ids, i64 %count, i64 %past, i64 %whole"
    return function_text(f"define internal i1 @give_inputs({parameters}) nounwind {{", lines, f"ret i1 {fits}")


def _sampling() -> str:
    first, *others = sampling.EXP_TERMS
    series, value = list[str](), _double(first)
    for n, term in enumerate(others):
        name = "%series" if n == len(others) - 1 else f"%term{n}"
        series += [f"%product{n} = fmul double {value}, %rest", f"{name} = fadd double %product{n}, {_double(term)}"]
        value = name
    reals = {
        "least_exponent": sampling.LEAST_EXPONENT,
        "log2_e": sampling.LOG2_E,
        "ln2_high": sampling.LN2_HIGH,
        "ln2_low": sampling.LN2_LOW,
        "rounding": 1.5 * 2.0**52,  # added and subtracted, it rounds to the nearest integer, to even ones
        "two_to_minus_53": 2.0**-53,
    }
    values = {name: _double(value) for name, value in reals.items()}
    return template_text(
        "sampling.ll", random_factor=_RANDOM_FACTOR, exp_series="\n  ".join(series), **values, **_HASHES
    )


def _double(value: float) -> str:
    """Return an LLVM constant, to the bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
