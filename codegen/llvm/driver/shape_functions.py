"""Functions that compute sizes: symbols and output shapes from input shapes, bytes of the arena.

shapes        input dimensions -> symbols, initial capacities, sizes without late symbols; output dimensions
output_sizes  bytes of each output at most         output_dims     output dimensions of the last inference
state_size    bytes of the variables               scratch_bytes   bytes that each thread needs
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Const, Expr, Prim, Size, Var, prim
from aot.codegen.ir.program import Program, Tensor
from aot.codegen.ir.proof.affine_facts import coefficient
from aot.codegen.llvm.driver.size_code import CheckedSizeCode, SizeCode
from aot.runtime import abi
from aot.runtime.errors import InternalError, UnsupportedError


def size_functions(program: Program, scratch: Size) -> list[str]:
    """Return all of them, as LLVM text; `scratch`: bytes that each thread needs."""
    sizes = {"buffer_bytes": program.arena_bytes, "state_size": program.state_bytes, "scratch_bytes": scratch}
    bytes = (_bytes(name, program, size) for name, size in sizes.items())
    return [*bytes, _symbols_fit(program), _shapes(program, scratch), _sizes(program), _dims(program)]


def function_text(head: str, lines: Sequence[str], end: str) -> str:
    return "\n".join([head, *(f"  {line}" for line in lines), f"  {end}", "}"])


def symbol_code(program: Program, used: Iterable[Size], code: SizeCode | None = None) -> SizeCode:
    """Append to `code`, or to new code, loads from %symbols of the symbols that `used` depend on."""
    code = SizeCode({}) if code is None else code
    index_of = program.places
    read = {v.name for v in variables(*(size for size in used if isinstance(size, Expr)))}
    for i, name in sorted((index_of[name], name) for name in read if name in index_of):
        code.values[name] = f"%y{i}"
        code.lines.append(f"%y{i}.at = getelementptr i64, ptr %symbols, i64 {i}")
        code.lines.append(f"%y{i} = load i64, ptr %y{i}.at, align 8")
    return code


def static(size: Size) -> int:
    match size:
        case int():
            return size
        case Const(value):
            return int(value)
        case _:
            raise InternalError(f"module: a program without symbols has constant sizes, got {type(size).__name__}")


def depends(program: Program) -> Mapping[str, frozenset[str]]:
    """Return the late symbols that each stored size depends on, by name."""
    late_of = {x.symbol.name: frozenset((x.symbol.name,)) for x in program.late}
    for size, meaning in program.computed:
        late_of[size.name] = late_symbols_of(meaning, late_of)
    return late_of


def late_symbols_of(size: Size, late: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the late symbols that a size depends on; `late`: those of each name, from `depends`."""
    if not isinstance(size, Expr):
        return frozenset()
    return frozenset[str]().union(*(late.get(v.name, frozenset()) for v in variables(size)))


def _volume(tensor: Tensor) -> Size:
    total: Size = tensor.dtype.stored_bytes
    if tensor.most is not None:
        return tensor.most * total
    for n in tensor.shape:
        total = n * total
    return total


def _bytes(name: str, program: Program, size: Size) -> str:
    """Return the function @`name`: `size` in bytes, rounded up to whole cache lines."""
    code = symbol_code(program, [size])
    value = code.operand(size)
    code.lines += [f"%up = add i64 {value}, {abi.ARENA_ALIGN - 1}", f"%whole = and i64 %up, -{abi.ARENA_ALIGN}"]
    return function_text(f"define internal i64 @{name}(ptr %symbols) nounwind {{", code.lines, "ret i64 %whole")


def _symbols_fit(program: Program) -> str:
    code = symbol_code(program, program.symbols)
    fit = "true"
    for symbol in program.symbols:
        fit = within(code, symbol, fit)
    return function_text("define internal i1 @symbols_fit(ptr %symbols) nounwind {", code.lines, f"ret i1 {fit}")


def within(code: SizeCode, symbol: Var, fit: str) -> str:
    """Return an i1 operand: `fit`, and the symbol is in its range."""
    value = code.operand(symbol)
    low = code.add(f"icmp sge i64 {value}, {symbol.low}")
    fit = code.add(f"and i1 {fit}, {low}")
    if symbol.extent is None:
        return fit
    high = code.add(f"icmp slt i64 {value}, {static(symbol.extent)}")
    return code.add(f"and i1 {fit}, {high}")


def _shapes(program: Program, scratch: Size) -> str:
    """@shapes: symbols from input dimensions, output dimensions from symbols; -1 if data-dependent."""
    dims = [dim for tensor in program.inputs for dim in tensor.shape]
    code = CheckedSizeCode({})
    for i in range(len(dims)):
        code.lines.append(f"%d{i}.at = getelementptr i64, ptr %input_dims, i64 {i}")
        code.lines.append(f"%d{i} = load i64, ptr %d{i}.at, align 8")
    _bind_symbols(program, dims, code)
    fit, same = "true", "true"
    for symbol in program.symbols:
        fit = within(code, symbol, fit)
    _store_sizes(program, code)
    for rule in program.rules:
        equal = code.add(f"icmp eq i64 {code.operand(rule.one)}, {code.operand(rule.other)}")
        same = code.add(f"and i1 {same}, {equal}")
    for i, dim in enumerate(dims):
        equal = code.add(f"icmp eq i64 %d{i}, {code.operand(dim)}")
        same = code.add(f"and i1 {same}, {equal}")
    late = depends(program)
    for i, dim in enumerate(dim for tensor in program.outputs for dim in tensor.shape):
        value = "-1" if late_symbols_of(dim, late) else code.operand(dim)
        code.lines.append(f"%o{i} = getelementptr i64, ptr %output_dims, i64 {i}")
        code.lines.append(f"store i64 {value}, ptr %o{i}, align 8")
    room = _room(program, scratch, code)
    code.lines.append(f"%sized = select i1 {room}, i32 0, i32 {abi.ERROR_SIZE}")
    code.lines.append(f"%ranged = select i1 {fit}, i32 %sized, i32 {abi.ERROR_SYMBOL}")
    code.lines.append(f"%code = select i1 {same}, i32 %ranged, i32 {abi.ERROR_SHAPE}")
    head = "define internal i32 @shapes(ptr %input_dims, ptr %symbols, ptr %output_dims) nounwind {"
    return function_text(head, code.lines, "ret i32 %code")


def _bind_symbols(program: Program, dims: Sequence[Size], code: SizeCode) -> None:
    """Bind each symbol in `code` to the first input dimension, %d0 .., that determines it: n, or 2 n + 1 solved for n.

    What does not divide evenly is refused where the dimensions are compared. UnsupportedError if one has no value.
    """
    for i, dim in reversed(list(enumerate(dims))):
        if isinstance(dim, Var):
            code.values[dim.name] = f"%d{i}"
    missing = [s for s in program.symbols if s.name not in code.values]
    for symbol in missing * len(missing):  # one may need another
        for i, dim in enumerate(dims):
            solution = _solved(dim, symbol, Var(f"dimension {i}"), code) if isinstance(dim, Prim) else None
            if solution is not None and symbol.name not in code.values:
                code.values[f"dimension {i}"] = f"%d{i}"
                code.values[symbol.name] = code.operand(solution)
    unbound = [s.name for s in missing if s.name not in code.values]
    if unbound:
        raise UnsupportedError(f"{program.name}: every symbol is a dimension of an input, got {', '.join(unbound)}")


def _solved(dim: Expr, symbol: Var, value: Var, code: SizeCode) -> Expr | None:
    """Return `symbol` for a `dim` of size `value`; None if it is not n times the symbol and what `code` has."""
    affine = normal(dim, {})
    factor, nested = coefficient(affine, symbol)
    if factor is None or factor.terms or nested or not factor.const:
        return None
    rest = affine.plus(normal(symbol, {}), -factor.const).expr()
    known = all(v.name in code.values for v in variables(rest))
    return prim("floordiv", value - rest, factor.const) if known else None


def _store_sizes(program: Program, code: SizeCode) -> None:
    """Store the symbols, capacities of at least their initial values, and sizes without late symbols."""
    initial = {x.capacity.name: x.initial for x in program.late if x.capacity is not None}
    late, meaning = depends(program), {size.name: meaning for size, meaning in program.computed}
    for i, symbol in enumerate(program.stored):
        if late.get(symbol.name):
            continue
        code.lines.append(f"%y{i} = getelementptr i64, ptr %symbols, i64 {i}")
        if symbol.name in initial:
            code.lines.append(f"%y{i}.before = load i64, ptr %y{i}, align 8")
            least = f"i64 {initial[symbol.name]}"
            code.values[symbol.name] = code.add(f"call i64 @llvm.smax.i64(i64 %y{i}.before, {least})")
        elif symbol.name in meaning:
            code.values[symbol.name] = code.operand(meaning[symbol.name])
        code.lines.append(f"store i64 {code.values[symbol.name]}, ptr %y{i}, align 8")


def _room(program: Program, scratch: Size, code: CheckedSizeCode) -> str:
    """Return an i1 operand: no size overflows, and arena, scratch memory and outputs fit into the address space."""
    sizes = [program.arena_bytes, program.state_bytes, scratch, *(_volume(t) for t in program.outputs)]
    fit = "true"
    for size in sizes:
        if isinstance(size, Var | Prim):
            small = code.add(f"icmp ult i64 {code.operand(size)}, {abi.MAX_BYTES}")
            fit = code.add(f"and i1 {fit}, {small}")
    return code.add(f"and i1 {fit}, {code.fits}")


def _sizes(program: Program) -> str:
    """@output_sizes: upper bound of the bytes of each output."""
    sizes = [_volume(t) for t in program.outputs]
    return _stored("output_sizes", "bytes", program, sizes)


def _dims(program: Program) -> str:
    """@output_dims: the shapes that outputs have after an inference."""
    return _stored("output_dims", "dims", program, [n for t in program.outputs for n in t.shape])


def _stored(name: str, target: str, program: Program, sizes: Sequence[Size]) -> str:
    code = symbol_code(program, sizes)
    for i, size in enumerate(sizes):
        value = code.operand(size)
        code.lines.append(f"%o{i} = getelementptr i64, ptr %{target}, i64 {i}")
        code.lines.append(f"store i64 {value}, ptr %o{i}, align 8")
    head = f"define internal void @{name}(ptr %symbols, ptr %{target}) nounwind {{"
    return function_text(head, code.lines, "ret void")


def as_expr(size: Size) -> Expr:
    return Const(size) if isinstance(size, int) else size
