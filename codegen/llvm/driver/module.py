"""The LLVM modules of a program: its drivers, and what all programs for a target share, the thread pool.

module       aot_query_<tag> -> @table -> infer -> run_all                        @call_3 -> @k3, a kernel
                                       -> shapes, arena_size, error_text, ...        ^
pool_module                            -> pool_create, ...   run_calls -> participate, by @calls
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Const, Expr, Size, Var, as_expr, prim
from aot.codegen.ir.program import Program, Tensor
from aot.codegen.llvm.driver.control import control_functions
from aot.codegen.llvm.driver.generation import generation_functions
from aot.codegen.llvm.driver.plan import plan_bytes, plan_function
from aot.codegen.llvm.driver.shape_functions import depends, late_symbols_of, size_functions, static
from aot.codegen.llvm.driver.size_code import size_text
from aot.codegen.llvm.driver.thunks import thunks
from aot.codegen.llvm.pool import system_texts, template_text
from aot.codegen.nest.scheduled_kernel import facts_of
from aot.codegen.target import Target
from aot.runtime import abi
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

# Interval at which a loop checks for cancellation: interrupting it takes twice as long at most.
ASK_NS = 40_000_000


class Function(Protocol):
    """An emitted kernel; see `aot.codegen.llvm.emit.kernel`."""

    globals: list[str]
    declarations: set[str]
    scratch_bytes: Size  # over `sizes`
    sizes: tuple[Var, ...]

    def text(self) -> str: ...


# Marks in the text of a module: they stand for numbers that are known once the text is complete.
_TAG, _MANIFEST_BYTES = "\0tag\0", "\0bytes\0"


@dataclass(frozen=True, slots=True)
class Module:
    """The LLVM IR of a model; its symbols have no tag yet."""

    marked: str

    def text(self, tag: str, manifest_bytes: int) -> str:
        """Return the text with the tag of its symbols, and the length of the manifest."""
        return self.marked.replace(_TAG, tag).replace(_MANIFEST_BYTES, str(manifest_bytes))


def module(program: Program, functions: Mapping[str, Function], target: Target) -> Module:
    """Return the LLVM IR of a model; `functions` maps names of kernels to their emitted functions.

    Equal kernels may share a function. Weights and manifest are external symbols of the data object; functions of
    `pool_module` are hidden ones of another module.
    """
    names = {kernel: _function_name(function) for kernel, function in functions.items()}
    loop = generation_functions(program)
    kernels = {name: functions[kernel] for kernel, name in names.items()}
    parts = [
        template_text("types.ll"),  # before all else: types are defined before they are used
        _drivers(program, target, generates=bool(loop)),
        *(line for f in kernels.values() for line in f.globals),
        *(f.text() for f in kernels.values()),
        *thunks(program, names, _TAG, target.machine.flush),
        plan_function(program),
        *control_functions(program, _TAG),
        *size_functions(program, scratch_of(program, functions)),
        *loop,
        _table(program, generates=bool(loop)),
        *_pool_declarations(target),
    ]
    declared = {line for f in kernels.values() for line in f.declarations}
    if target.machine.flush is not None and any(call.flushes for call in program.calls):
        declared |= {*target.machine.flush.declarations}
    return Module(_joined(parts, declared))


@lru_cache(maxsize=1 << 4)
def pool_module(target: Target) -> str:
    """Return the LLVM IR that is the same for all programs: thread pool, and the loop that runs calls."""
    pause, declaration = target.machine.pause
    values = {**target.platform.numbers, **system_texts(target.platform, target.machine, target.features)}
    values |= {"pause": pause, "pause_declaration": declaration, "spin_ns": COSTS.spin_ns}
    values |= {
        "max_threads": abi.MAX_THREADS,
        "most_chunks_per_thread": COSTS.max_thread_chunks,
        "least_chunks_per_thread": COSTS.min_thread_chunks,
        "pieces_of_fine_chunk": COSTS.fine_chunk,
        "pieces_worth_sharing": COSTS.min_shared_pieces,
    }
    names = ("types.ll", "waiting.ll", "pool.ll", "placement.ll", "sharing.ll", "running.ll")
    return _joined([template_text(name, **values) for name in names], ())


@lru_cache(maxsize=1 << 4)
def _pool_declarations(target: Target) -> tuple[str, ...]:
    """Return declarations of what the module of the pool defines and declares."""
    text = pool_module(target)
    heads = re.findall(r"^define (?!internal )(.*) \{$", text, re.MULTILINE)
    return (*re.findall(r"^declare .*", text, re.MULTILINE), *(f"declare {_UNNAMED.sub('', head)}" for head in heads))


_UNNAMED = re.compile(r" %[\w.]+(?=[,)])")  # names of parameters


def scratch_of(program: Program, functions: Mapping[str, Function]) -> Size:
    """Return the scratch bytes of a thread: the maximum over all calls.

    They are reserved before an inference, so they must not depend on a size that it computes.
    """
    most_bytes, needed = 0, dict[Expr, None]()
    for call in program.calls:
        f = functions[call.kernel]
        if isinstance(f.scratch_bytes, int):
            most_bytes = max(most_bytes, f.scratch_bytes)
        else:
            known: dict[Expr, Expr] = {s: as_expr(n, DType.I64) for s, n in zip(f.sizes, call.sizes, strict=True)}
            needed[normal(rewrite(f.scratch_bytes, known), {}).expr()] = None
    late = depends(program)
    if wrong := next((e for e in needed if late_symbols_of(e, late)), None):
        raise InternalError(f"scratch memory has a size that is known before an inference, got {size_text(wrong)}")
    total: Size = most_bytes
    for size in needed:
        total = prim("max", size, total)
    return total


def _joined(parts: Iterable[str], declared: Iterable[str]) -> str:
    """Join the module's parts; each external function is declared once, at the end, if no part defines it."""
    body: list[str] = []
    declarations: dict[str, str] = {}
    defined: set[str] = set()
    lines = [line for part in parts for line in part.splitlines()]
    for line in [*lines, *sorted(declared)]:
        if line.startswith("declare "):
            declarations.setdefault(line.split("@", 1)[1].split("(", 1)[0], line)
        elif line and not line.lstrip().startswith(";"):
            body.append(line)
            if line.startswith("define "):
                defined.add(line.split("@", 1)[1].split("(", 1)[0])
    return "\n".join([*body, *(declarations[name] for name in sorted(declarations.keys() - defined))]) + "\n"


def _function_name(function: Function) -> str:
    match = re.search(r"^(?:define|declare) [^@]*@([\w.$]+|\"[^\"]+\")\(", function.text(), re.MULTILINE)
    if match is None:
        raise InternalError("module: an emitted kernel defines a function, got none")
    return match[1]


# --- table, templates -------------------------------------------------------------------------------------------------


def _table(program: Program, *, generates: bool) -> str:
    manifest, weights = f"@{abi.MANIFEST_PREFIX}{_TAG}", f"@{abi.WEIGHTS_PREFIX}{_TAG}"
    fields = {
        "abi": f"i64 {abi.ABI_VERSION}",
        "manifest": f"ptr {manifest}",
        "manifest_bytes": f"i64 {_MANIFEST_BYTES}",
        "input_count": f"i64 {len(program.inputs)}",
        "inputs": "ptr @inputs",
        "output_count": f"i64 {len(program.outputs)}",
        "outputs": "ptr @outputs",
        "symbol_count": f"i64 {program.words}",
        "call_count": f"i64 {len(program.calls)}",
        "weights": f"ptr {weights}",
        "weights_bytes": f"i64 {program.constant_bytes}",
    }
    if not generates:
        fields |= {"generate": "ptr null", "forget": "ptr null"}
    entries: list[str] = []
    for name, *_ in abi.Table._fields_:  # pyrefly: ignore[protected-access]  of ctypes, public
        entries.append("i64 {bytes}" if name == "bytes" else fields.get(name, f"ptr @{name}"))
    texts = [
        f"@error_text.{i} = internal constant {_string(t)}"
        for i, t in enumerate(_error_texts(program, generates=generates))
    ]
    pointers = ", ".join(f"ptr @error_text.{i}" for i in range(len(texts)))
    body = ", ".join(entries).format(bytes=8 * len(entries))
    types = ", ".join(entry.split()[0] for entry in entries)
    return "\n".join(
        [
            # not hidden here, so that they are reached through the GOT, however far away a JIT puts them
            f"{weights} = external constant i8, align 4096",
            f"{manifest} = external constant i8",
            *_descriptors("inputs", program.inputs),
            *_descriptors("outputs", program.outputs),
            *texts,
            f"@error_texts = internal constant [{len(texts)} x ptr] [{pointers}]",
            f"@table = internal constant {{ {types} }} {{ {body} }}",
        ]
    )


def _descriptors(name: str, tensors: Sequence[Tensor]) -> list[str]:
    lines: list[str] = []
    rows: list[str] = []
    for i, tensor in enumerate(tensors):
        rank = len(tensor.shape)
        dims = ", ".join(f"i64 {static(d) if isinstance(d, int | Const) else -1}" for d in tensor.shape)
        lines.append(f"@{name}.{i}.name = internal constant {_string(tensor.name)}")
        lines.append(f"@{name}.{i}.dtype = internal constant {_string(tensor.dtype.value)}")
        lines.append(f"@{name}.{i}.dims = internal constant [{rank} x i64] [{dims}]")
        at = f"@{name}.{i}"
        rows.append(f"{_DESCRIPTOR} {{ ptr {at}.name, ptr {at}.dtype, i64 {rank}, ptr {at}.dims }}")
    return [*lines, f"@{name} = internal constant [{len(rows)} x {_DESCRIPTOR}] [{', '.join(rows)}]"]


_DESCRIPTOR = "{ ptr, ptr, i64, ptr }"


def _string(text: str) -> str:
    """Return a C string as an LLVM constant."""
    data = text.encode().replace(b"\0", b"") + b"\0"
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    return f'[{len(data)} x i8] c"{escaped}"'


def _drivers(program: Program, target: Target, *, generates: bool) -> str:
    plan = _rounded(plan_bytes(program))
    texts = _error_texts(program, generates=generates)
    cancel = template_text("cancel.ll", ask_ns=ASK_NS) if program.is_cancellable else ""
    tiles = any(facts_of(kernel).tiles for kernel in program.kernels)
    return (
        cancel
        + template_text(
            "drivers.ll",
            plan_bytes=plan,
            profile_bytes=16 * len(program.calls),
            turn_bytes=abi.ARENA_ALIGN,
            fixed_bytes=fixed_bytes(program),
            error_arena=abi.ERROR_ARENA,
            error_symbol=abi.ERROR_SYMBOL,
            error_unknown=abi.ERROR_UNKNOWN,
            error_count=len(texts) if len(texts) > abi.ERROR_UNKNOWN + 1 else abi.ERROR_UNKNOWN,
        )
        + template_text(
            "query_tiles.ll" if tiles else "query.ll",
            abi_version=abi.ABI_VERSION,
            query=abi.QUERY_PREFIX + _TAG,
            ask_for_tiles=target.platform.tiles[target.machine.name] if tiles else "",
        )
    )


def _error_texts(program: Program, *, generates: bool) -> tuple[str, ...]:
    """Return the texts of the errors that the functions of the table can return."""
    last_code = abi.ERROR_LOGITS if generates else abi.ERROR_CANCELLED if program.is_cancellable else abi.ERROR_UNKNOWN
    return abi.ERROR_TEXTS[: last_code + 1]


def fixed_bytes(program: Program) -> int:
    """Return the bytes that drivers need after the arena's buffers: a plan, and counters of the pieces done."""
    return abi.ARENA_ALIGN + _rounded(plan_bytes(program)) + 2 * abi.ARENA_ALIGN * _longest_segment(program)


def fixed_memory(program: Program) -> dict[str, int]:
    """Return the bytes of arena, but for scratch memory of threads, and of state of a request; none that vary."""
    sizes = {"state": _rounded(program.state_bytes)} if isinstance(program.state_bytes, int) else {}
    if isinstance(program.arena_bytes, int):
        sizes["arena"] = _rounded(program.arena_bytes) + fixed_bytes(program)
    return sizes


def _longest_segment(program: Program) -> int:
    """Return the greatest number of calls without a control entry between them."""
    ends = sorted({0, len(program.calls), *(command.at for command in program.control)})
    return max((b - a for a, b in pairwise(ends)), default=0)


def _rounded(count: int) -> int:
    return -(-count // abi.ARENA_ALIGN) * abi.ARENA_ALIGN
