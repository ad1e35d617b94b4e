"""The LLVM module of a program: kernels, one thunk for each call, drivers, thread pool, and the table of the ABI.

    aot_query_<tag> -> @table -> infer -> pool_run -> participate -> @call_17(request, begin, end, scratch)
                              |                                        -> @k3(%x, %w, %y, sizes, begin, end, scratch)
                              -> shapes, arena_size, pool_*, error_text, descriptors, manifest
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Protocol

from codegen.expressions import variables
from codegen.llvm.sizes import SizeCode
from codegen.loops import Const, Expr, Size, Var, prim
from codegen.program import Call, Place, Program, Region, Tensor
from codegen.target import Target
from runtime import abi
from runtime.errors import InternalError, UnsupportedError

# Below these a chunk costs more to hand over than to run.
CHUNK_WORK = 10_000
CHUNK_TRAFFIC = 16 * 1024
CHUNKS_PER_THREAD = 8
# Below this a whole inference takes less time than workers take to wake up.
PIECES_WORTH_SHARING = 32

_PAUSE = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}
_FUTEX = {"x86_64": 202, "aarch64": 98}
_REGION_FIELD = {Region.INPUT: "inputs", Region.OUTPUT: "outputs", Region.ARENA: "arena", Region.STATE: "state"}


class Function(Protocol):
    """An emitted kernel; see `codegen.llvm.emit`."""

    globals: list[str]
    declarations: set[str]
    scratch_bytes: int

    def text(self) -> str: ...


def module_text(
    program: Program, functions: Mapping[str, Function], tag: str, target: Target, manifest_bytes: int
) -> str:
    """LLVM IR of the whole model; `functions` maps kernel names to the functions they are emitted as.

    Equal kernels may share a function. Weights and manifest are external symbols of the data object.
    """
    names = {kernel: _function_name(function) for kernel, function in functions.items()}
    kernels = {name: functions[kernel] for kernel, name in names.items()}
    scratch = max([program.scratch_bytes, *(f.scratch_bytes for f in kernels.values())])
    parts = [
        _pool(target),  # before all else: types are defined before they are used
        _drivers(program, tag, _rounded(scratch)),
        *(line for f in kernels.values() for line in f.globals),
        *(f.text() for f in kernels.values()),
        *(_thunk(i, call, names[call.kernel], program, tag) for i, call in enumerate(program.calls)),
        _call_table(program),
        _plan(program),
        _buffer_bytes(program),
        _symbols_fit(program),
        _shapes(program),
        _table(program, tag, manifest_bytes),
    ]
    declared = {line for f in kernels.values() for line in f.declarations}
    return _joined(parts, declared)


def arch_of(target: Target) -> str:
    """The machine's name, as in `runtime.abi.MACHINES`; UnsupportedError for others."""
    arch = target.triple.split("-", 1)[0]
    if arch not in abi.MACHINES:
        raise UnsupportedError(f"target: the machine is one of {', '.join(abi.MACHINES)}, got {arch}")
    return arch


def _joined(parts: Iterable[str], declared: Iterable[str]) -> str:
    """Text of the module with each external function declared once, at its end."""
    body: list[str] = []
    declarations: dict[str, str] = {}
    lines = [line for part in parts for line in part.splitlines()]
    for line in [*lines, *sorted(declared)]:
        if line.startswith("declare "):
            declarations.setdefault(line.split("@", 1)[1].split("(", 1)[0], line)
        elif line and not line.lstrip().startswith(";"):
            body.append(line)
    return "\n".join([*body, *(declarations[name] for name in sorted(declarations))]) + "\n"


def _function_name(function: Function) -> str:
    found = re.search(r"^define [^@]*@([\w.$]+|\"[^\"]+\")\(", function.text(), re.MULTILINE)
    if found is None:
        raise InternalError("module: an emitted kernel defines a function, got none")
    return found[1]


# --- calls ------------------------------------------------------------------------------------------------------------


def _thunk(index: int, call: Call, function: str, program: Program, tag: str) -> str:
    """@call_<index>: the kernel with the addresses and sizes of this call."""
    code = _symbol_code(program, call.sizes + tuple(p.offset for p in call.args))
    code.lines[:0] = [
        "%symbols.at = getelementptr %request, ptr %request, i64 0, i32 2",
        "%symbols = load ptr, ptr %symbols.at, align 8",
    ]
    args = [f"ptr {_address(i, place, code, tag)}" for i, place in enumerate(call.args)]
    args += [f"i64 {code.operand(size)}" for size in call.sizes]
    args += ["i64 %begin", "i64 %end", "ptr %scratch"]
    # a kernel is large and takes long to optimise: inlined, it would be optimised once for each call
    code.lines.append(f"call void @{function}({', '.join(args)}) noinline")
    head = f"define internal void @call_{index}(ptr %request, i64 %begin, i64 %end, ptr %scratch) nounwind {{"
    return _function(head, code.lines, "ret void")


def _address(i: int, place: Place, code: SizeCode, tag: str) -> str:
    if place.region is Region.CONSTANT:
        base = f"@{abi.WEIGHTS_PREFIX}{tag}"
    else:
        base = f"%a{i}.base"
        field = _field(_REGION_FIELD[place.region])
        code.lines.append(f"%a{i}.field = getelementptr %request, ptr %request, i64 0, i32 {field}")
        code.lines.append(f"{base} = load ptr, ptr %a{i}.field, align 8")
        if place.region in (Region.INPUT, Region.OUTPUT):
            code.lines.append(f"%a{i}.at = getelementptr ptr, ptr {base}, i64 {place.index}")
            base = f"%a{i}.tensor"
            code.lines.append(f"{base} = load ptr, ptr %a{i}.at, align 8")
    offset = code.operand(place.offset)
    if offset == "0":
        return base
    code.lines.append(f"%a{i} = getelementptr i8, ptr {base}, i64 {offset}")
    return f"%a{i}"


def _field(name: str) -> int:
    return int(getattr(abi.Request, name).offset) // 8


def _call_table(program: Program) -> str:
    entries = ", ".join(f"ptr @call_{i}" for i in range(len(program.calls)))
    return f"@calls = internal constant [{len(program.calls)} x ptr] [{entries}]"


def _pieces(call: Call) -> Size:
    """Into how many chunks the call is worth cutting, by its work and traffic; unknown work is worth any."""
    if isinstance(call.work, int) and isinstance(call.traffic, int):
        if not call.work and not call.traffic:
            return abi.MAX_THREADS * CHUNKS_PER_THREAD
        return max(1, call.work // CHUNK_WORK, call.traffic // CHUNK_TRAFFIC)
    work = _expr(call.work) // CHUNK_WORK
    traffic = _expr(call.traffic) // CHUNK_TRAFFIC
    return prim("max", prim("max", work, traffic), 1)


def _plan(program: Program) -> str:
    """@make_plan: units and pieces of each call; a constant where no size varies."""
    head = "define internal ptr @make_plan(ptr %symbols, ptr %area) nounwind {"
    rows = [(call.units, _pieces(call)) for call in program.calls]
    if not program.symbols:
        entries = ", ".join(f"[2 x i64] [i64 {_static(u)}, i64 {_static(p)}]" for u, p in rows)
        table = f"@plan = internal constant [{len(rows)} x [2 x i64]] [{entries}]"
        return table + "\n" + _function(head, [], "ret ptr @plan")
    code = _symbol_code(program, [size for row in rows for size in row])
    for i, size in enumerate(size for row in rows for size in row):
        value = code.operand(size)
        code.lines.append(f"%p{i} = getelementptr i64, ptr %area, i64 {i}")
        code.lines.append(f"store i64 {value}, ptr %p{i}, align 8")
    return _function(head, code.lines, "ret ptr %area")


def _plan_bytes(program: Program) -> int:
    return _rounded(16 * len(program.calls)) if program.symbols else 0


def _buffer_bytes(program: Program) -> str:
    code = _symbol_code(program, [program.arena_bytes])
    value = code.operand(program.arena_bytes)
    code.lines += [f"%up = add i64 {value}, {abi.ARENA_ALIGN - 1}", f"%whole = and i64 %up, -{abi.ARENA_ALIGN}"]
    return _function("define internal i64 @buffer_bytes(ptr %symbols) nounwind {", code.lines, "ret i64 %whole")


# --- sizes ------------------------------------------------------------------------------------------------------------


def _symbols_fit(program: Program) -> str:
    code = _symbol_code(program, program.symbols)
    fit = "true"
    for symbol in program.symbols:
        fit = _within(code, symbol, fit)
    return _function("define internal i1 @symbols_fit(ptr %symbols) nounwind {", code.lines, f"ret i1 {fit}")


def _within(code: SizeCode, symbol: Var, fit: str) -> str:
    value = code.operand(symbol)
    low = code.add(f"icmp sge i64 {value}, {symbol.low}")
    fit = code.add(f"and i1 {fit}, {low}")
    if symbol.extent is None:
        return fit
    high = code.add(f"icmp slt i64 {value}, {_static(symbol.extent)}")
    return code.add(f"and i1 {fit}, {high}")


def _shapes(program: Program) -> str:
    """@shapes: symbols from input dimensions, output dimensions from symbols."""
    dims = [dim for tensor in program.inputs for dim in tensor.shape]
    first = {dim.name: i for i, dim in reversed(list(enumerate(dims))) if isinstance(dim, Var)}
    unbound = [s.name for s in program.symbols if s.name not in first]
    if unbound:
        raise UnsupportedError(f"{program.name}: every symbol is a dimension of an input, got {', '.join(unbound)}")
    code = SizeCode({s.name: f"%d{first[s.name]}" for s in program.symbols})
    for i in range(len(dims)):
        code.lines.append(f"%d{i}.at = getelementptr i64, ptr %input_dims, i64 {i}")
        code.lines.append(f"%d{i} = load i64, ptr %d{i}.at, align 8")
    fit, same = "true", "true"
    for i, symbol in enumerate(program.symbols):
        code.lines.append(f"%y{i} = getelementptr i64, ptr %symbols, i64 {i}")
        code.lines.append(f"store i64 {code.operand(symbol)}, ptr %y{i}, align 8")
        fit = _within(code, symbol, fit)
    for i, (size, meaning) in enumerate(program.computed, len(program.symbols)):
        code.values[size.name] = code.operand(meaning)
        code.lines.append(f"%y{i} = getelementptr i64, ptr %symbols, i64 {i}")
        code.lines.append(f"store i64 {code.values[size.name]}, ptr %y{i}, align 8")
    for rule in program.rules:
        equal = code.add(f"icmp eq i64 {code.operand(rule.one)}, {code.operand(rule.other)}")
        same = code.add(f"and i1 {same}, {equal}")
    for i, dim in enumerate(dims):
        equal = code.add(f"icmp eq i64 %d{i}, {code.operand(dim)}")
        same = code.add(f"and i1 {same}, {equal}")
    for i, dim in enumerate(dim for tensor in program.outputs for dim in tensor.shape):
        value = code.operand(dim)
        code.lines.append(f"%o{i} = getelementptr i64, ptr %output_dims, i64 {i}")
        code.lines.append(f"store i64 {value}, ptr %o{i}, align 8")
    code.lines.append(f"%ranged = select i1 {fit}, i32 0, i32 {abi.ERROR_SYMBOL}")
    code.lines.append(f"%code = select i1 {same}, i32 %ranged, i32 {abi.ERROR_SHAPE}")
    head = "define internal i32 @shapes(ptr %input_dims, ptr %symbols, ptr %output_dims) nounwind {"
    return _function(head, code.lines, "ret i32 %code")


def _symbol_code(program: Program, used: Sequence[Size]) -> SizeCode:
    """Code that has the symbols loaded from %symbols, where any of `used` is not a number."""
    names = [s.name for s in _sizes(program)]
    code = SizeCode({name: f"%y{i}" for i, name in enumerate(names)})
    read = {v.name for v in variables(*(size for size in used if isinstance(size, Expr)))}
    for i, name in enumerate(names):
        if name in read:
            code.lines.append(f"%y{i}.at = getelementptr i64, ptr %symbols, i64 {i}")
            code.lines.append(f"%y{i} = load i64, ptr %y{i}.at, align 8")
    return code


def _sizes(program: Program) -> list[Var]:
    """What `Request.symbols` holds: the symbols, and what is computed from them."""
    return [*program.symbols, *(size for size, _ in program.computed)]


def _static(size: Size) -> int:
    match size:
        case int():
            return size
        case Const(value):
            return int(value)
        case _:
            raise InternalError(f"module: a program without symbols has constant sizes, got {type(size).__name__}")


def _expr(size: Size) -> Expr:
    return Const(size) if isinstance(size, int) else size


# --- table, templates -------------------------------------------------------------------------------------------------


def _table(program: Program, tag: str, manifest_bytes: int) -> str:
    manifest, weights = f"@{abi.MANIFEST_PREFIX}{tag}", f"@{abi.WEIGHTS_PREFIX}{tag}"
    fields = {
        "abi": f"i64 {abi.ABI_VERSION}",
        "manifest": f"ptr {manifest}",
        "manifest_bytes": f"i64 {manifest_bytes}",
        "input_count": f"i64 {len(program.inputs)}",
        "inputs": "ptr @inputs",
        "output_count": f"i64 {len(program.outputs)}",
        "outputs": "ptr @outputs",
        "symbol_count": f"i64 {len(_sizes(program))}",
        "call_count": f"i64 {len(program.calls)}",
        "state_bytes": f"i64 {program.state_bytes}",
        "weights": f"ptr {weights}",
        "weights_bytes": f"i64 {program.constant_bytes}",
    }
    entries: list[str] = []
    for name, *_ in abi.Table._fields_:
        entries.append("i64 {bytes}" if name == "bytes" else fields.get(name, f"ptr @{name}"))
    texts = [f'@error_text.{i} = internal constant {_string(t)}' for i, t in enumerate(abi.ERROR_TEXTS)]
    pointers = ", ".join(f"ptr @error_text.{i}" for i in range(len(texts)))
    body = ", ".join(entries).format(bytes=8 * len(entries))
    types = ", ".join(entry.split()[0] for entry in entries)
    return "\n".join(
        [
            # not hidden here: so they are reached through the GOT, however far away a JIT has them
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
        dims = ", ".join(f"i64 {_static(d) if isinstance(d, int | Const) else -1}" for d in tensor.shape)
        lines.append(f"@{name}.{i}.name = internal constant {_string(tensor.name)}")
        lines.append(f"@{name}.{i}.dtype = internal constant {_string(tensor.dtype.value)}")
        lines.append(f"@{name}.{i}.dims = internal constant [{rank} x i64] [{dims}]")
        at = f"@{name}.{i}"
        rows.append(f"{_DESCRIPTOR} {{ ptr {at}.name, ptr {at}.dtype, i64 {rank}, ptr {at}.dims }}")
    return [*lines, f"@{name} = internal constant [{len(rows)} x {_DESCRIPTOR}] [{', '.join(rows)}]"]


_DESCRIPTOR = "{ ptr, ptr, i64, ptr }"


def _string(text: str) -> str:
    """A C string as an LLVM constant."""
    data = text.encode().replace(b"\0", b"") + b"\0"
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    return f'[{len(data)} x i8] c"{escaped}"'


def _pool(target: Target) -> str:
    arch = arch_of(target)
    pause, declaration = _PAUSE[arch]
    return _template("pool.ll").substitute(
        pause=pause, pause_declaration=declaration, futex=_FUTEX[arch], max_threads=abi.MAX_THREADS
    )


def _drivers(program: Program, tag: str, scratch: int) -> str:
    counters = 2 * abi.ARENA_ALIGN * len(program.calls)
    plan = _plan_bytes(program)
    return _template("drivers.ll").substitute(
        calls=len(program.calls),
        chunks_per_thread=CHUNKS_PER_THREAD,
        pieces_worth_sharing=PIECES_WORTH_SHARING,
        scratch=scratch,
        plan_bytes=plan,
        counter_bytes=counters,
        fixed_bytes=plan + counters + abi.ARENA_ALIGN,  # never nothing: an arena has an address
        error_arena=abi.ERROR_ARENA,
        error_symbol=abi.ERROR_SYMBOL,
        error_unknown=abi.ERROR_UNKNOWN,
        abi_version=abi.ABI_VERSION,
        query=abi.QUERY_PREFIX + tag,
    )


def _template(name: str) -> Template:
    return Template((files("codegen.llvm") / name).read_text(encoding="utf-8"))


def _function(head: str, lines: Sequence[str], end: str) -> str:
    return "\n".join([head, *(f"  {line}" for line in lines), f"  {end}", "}"])


def _rounded(count: int) -> int:
    return -(-count // abi.ARENA_ALIGN) * abi.ARENA_ALIGN
