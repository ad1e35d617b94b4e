"""The loop of a language model inside of its library: @generate and @forget of the table.

A language model has variables and the inputs of `aot.runtime.generation.interface`; other models have no loop.
"""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Const
from aot.codegen.ir.program import Program, Tensor
from aot.codegen.llvm.driver.sampling import sampling_functions
from aot.codegen.llvm.driver.shape_functions import function_text, static
from aot.codegen.llvm.pool import template_text
from aot.runtime import abi
from aot.runtime.abi import DType
from aot.runtime.generation.interface import CHUNK, IDS, LOGITS, MASK, NAMES, PLACES, ROWS

_INTEGERS = {DType.I32: 4, DType.I64: 8}  # bytes
_RANKS = {IDS: 2, MASK: 2, PLACES: 2, ROWS: 1}


def generation_functions(program: Program) -> list[str]:
    """Return @generate, @forget and the functions that they call, as LLVM text; none for a model of another kind."""
    model = _language_model(program)
    if model is None:
        return []
    outputs, (at, logits) = program.outputs, model
    words = static(logits.shape[-1])
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
        words=words,
        chunk=CHUNK,
        error_capacity=abi.ERROR_CAPACITY,
        error_memory=abi.ERROR_MEMORY,
        error_tokens=abi.ERROR_TOKENS,
        error_sampling=abi.ERROR_SAMPLING,
        error_logits=abi.ERROR_LOGITS,
    )
    return [loop, _give_inputs(program), *sampling_functions(words)]


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
    """@give_inputs: dimensions and elements of the inputs for %count tokens after %past; false if memory is full."""
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
