"""Rules that legal steps keep.

values    a work touches values by the buffers that they have: same type, shape, strides and origin
ranks     an index has as many parts as its buffer has dimensions
axes      of a definition differ, and its value uses no axis that is not its own, its reduction's or its group's
types     a stored value has the element type of its buffer
constants and inputs are never written; nothing but values, own temporaries and tables is touched
order     values are written before they are read, in this block or one around it; outputs are written
symbols   a size is made of the model's symbols, named sizes, and symbols that an earlier step binds
checks    where layouts are final, rules of sizes are checked before any work whose memory may rely on them
layouts   where they are final, each value of the arena has a size in memory; where they are not, it is dense
"""

from __future__ import annotations

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.loops import Buffer, Expr, Load, Var, dense
from aot.codegen.ir.printer import size_text
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work, expressions, members, reads, writes
from aot.codegen.nest.points import free
from aot.lowering.ir.dependencies import Producers
from aot.lowering.ir.steps import BranchControl, Layouts, LoopControl, Steps, Value
from aot.runtime.errors import InternalError

READ_ONLY = (MemoryRegion.INPUT, MemoryRegion.CONSTANT)
GIVEN = (MemoryRegion.INPUT, MemoryRegion.CONSTANT, MemoryRegion.STATE)  # memory with values before the first step runs


def verify_steps(steps: Steps) -> None:
    """Raise InternalError for steps that a pass broke; it names the step and the value."""
    for name, value in steps.values.items():
        _require(name == value.name, name, f"is listed under the name of {value.name}")
        _value(value, steps.layouts)
    written = {_memory(v) for v in steps.values.values() if v.region in GIVEN}
    written |= _never_written(steps)
    known = {*steps.symbols, *steps.sizes.meaning}
    if steps.layouts is Layouts.FINAL:
        for block in steps.blocks():
            _checks(block)
    _block(steps, written, known)
    for name in steps.outputs:
        if (value := steps.values.get(name)) is None:
            continue  # `define` keeps no value that no step touches: this output has no elements
        empty = any(n == 0 for n in value.buffer.shape)
        _require(_memory(value) in written or empty, name, "is an output that no step writes")


def _never_written(steps: Steps) -> set[str]:
    """Return the values of dynamic size that no step writes: tables of strings may be empty."""
    written = {b.name for block in steps.blocks() for s in block.steps for b in s.writes()}
    rest = (v for name, v in steps.values.items() if name not in written)
    return {_memory(v) for v in rest if v.half is None and not all(isinstance(n, int) for n in v.buffer.shape)}


def _require(holds: bool, where: str, text: str) -> None:
    if not holds:
        raise InternalError(f"steps: {where} {text}")


def _value(value: Value, layouts: Layouts) -> None:
    b = value.buffer
    ranks = len(b.shape) == len(b.strides)
    _require(ranks, b.name, f"has {len(b.shape)} dimensions and {len(b.strides)} strides")
    if value.region is MemoryRegion.CONSTANT and value.data is not None and value.arrange is None:
        fits = value.data.shape == b.shape
        _require(fits, b.name, f"has data of shape {list(value.data.shape)} for {list(map(str, b.shape))}")
    if value.region is MemoryRegion.ARENA and layouts is Layouts.LOGICAL:
        dense_buffer = dense(b.name, *b.shape, dtype=b.dtype)
        _require(b.strides == dense_buffer.strides, b.name, "has strides of its own before layouts are final")


def _block(steps: Steps, written: set[str], known: set[Var]) -> None:
    """Check one block. `written`, `known`: values and symbols that exist before it; the block's are added to both."""
    for step in steps.steps:
        where = f"step {' + '.join(step.layers)}"
        for symbol, load in step.binds.items():
            _read(load, steps, written, where)
            known.add(symbol)
        for work in step.works:
            _work(work, steps, written, where)
            _check_symbols(_free(work), steps, known, where)
        if step.control is not None:
            _control(step.control, steps, written, known)


def _control(control: BranchControl | LoopControl, steps: Steps, written: set[str], known: set[Var]) -> None:
    if isinstance(control, BranchControl):
        ends = [(set(written), set(known)) for _ in control.blocks()]
        for block, (memory, symbols) in zip(control.blocks(), ends, strict=True):
            _block(block, memory, symbols)
        for memory, symbols in ends:  # values of one branch alone are needed only where it has run
            written |= memory
            known |= symbols
        return
    for b in control.enters:
        if any(n == 0 for n in b.shape):  # no step writes values without elements
            written.add(_memory(steps.values[b.name]))
        ready = _memory(steps.values[b.name]) in written
        _require(ready, f"loop {control.counter.name}", f"begins before {b.name} is written")
    if isinstance(control.limit, int) and control.limit <= 0:
        return  # the body never runs, and steps for it alone have been dropped
    _block(control.body, written, {*known, *control.start})
    known.update(control.start)  # they keep the values of the last iteration
    written |= {_memory(steps.values[b.name]) for b in control.leaves}


def _checks(block: Steps) -> None:
    """Raise an error for a step of a block that comes before a check of its sizes."""
    producers, done = Producers(block), set[int]()
    for step in block.steps:
        late = [check for check in producers.checks_of(step) if id(check) not in done]
        _require(not late, f"step {' + '.join(step.layers)}", f"comes before a check of {[c.layers for c in late]}")
        done.add(id(step))


def _check_symbols(free: frozenset[Var], steps: Steps, known: set[Var], where: str) -> None:
    """Raise an error for a symbol of a step, or of one of its named sizes, that is not known."""
    missing = sorted(v.name for v in free if v not in known or steps.sizes.late_of(v) - known)
    _require(not missing, where, f"uses {', '.join(missing)}, which nothing sets before it")


def _free(work: Work) -> frozenset[Var]:
    """Return the variables of a work that neither its axes nor its loops bind."""
    match work:
        case Definition():
            bound = {*work.axes, *(work.reduction.axes if work.reduction else ())}
            extents = (n for a in bound if isinstance(n := a.extent, Expr))
            return variables(*expressions(work), *extents) - bound
        case Group():
            bound = {*work.axes, *(w.axis for w in work.row_ranges)}
            extents = (n for a in bound if isinstance(n := a.extent, Expr))
            return (variables(*extents).union(*map(_free, work.members))) - bound
        case _:
            return free(work)


def _work(work: Work, steps: Steps, written: set[str], where: str) -> None:
    alone = isinstance(work, Definition)
    outputs = {
        b.name for b in writes(work)
    }  # members of a group, and statements, read the results of those before them
    for load in reads(work):
        if alone or load.buffer.name not in outputs:
            _read(load, steps, written, where)
    for b in writes(work):
        value = steps.values.get(b.name)
        if value is None:
            raise InternalError(f"steps: {where} writes {b.name}, which is no value")
        _require(value.region not in READ_ONLY, where, f"writes {b.name}, which is {value.region.value}")
        _same(b, value, where)
        written.add(_memory(value))
    for d in members(work):
        _definition(d, where)


def _read(load: Load, steps: Steps, written: set[str], where: str) -> None:
    name = load.buffer.name
    value = steps.values.get(name)
    if value is None:
        raise InternalError(f"steps: {where} reads {name}, which is no value")
    _same(load.buffer, value, where)
    empty = any(n == 0 for n in value.buffer.shape)
    _require(_memory(value) in written or empty, where, f"reads {name} before it is written")


def _memory(value: Value) -> str:
    """Name the memory that a write to the value fills: the two halves of a loop-carried value alternate."""
    return value.name if value.half is None else value.half.pair


def _same(b: Buffer, value: Value, where: str) -> None:
    """Compare two buffers of a value.

    A step's may have a stricter alignment, or numbers for sizes that vary elsewhere.
    """
    own = value.buffer
    fits = b.dtype is own.dtype and len(b.shape) == len(own.shape) and len(b.strides) == len(own.strides)
    step_sizes, value_sizes = (*b.shape, *b.strides, b.origin), (*own.shape, *own.strides, own.origin)
    fits = fits and all(
        m == o for m, o in zip(step_sizes, value_sizes, strict=True) if isinstance(m, int) and isinstance(o, int)
    )
    if not fits:
        raise InternalError(f"steps: {where} touches {b.name} as {_place(b)}, which is {_place(own)}")


def _place(b: Buffer) -> str:
    shape, strides = (", ".join(map(size_text, sizes)) for sizes in (b.shape, b.strides))
    return f"{b.dtype.value}[{shape}] with strides {strides} from {size_text(b.origin)}"


def _definition(d: Definition, where: str) -> None:
    axes = [*d.axes, *(d.reduction.axes if d.reduction else ())]
    _require(len(axes) == len({*axes}), where, f"has one axis twice: {', '.join(a.name for a in axes)}")
    stored = (d.out, d.target), *((r.out, r.index) for r in d.results)
    for b, index in (*stored, *((x.buffer, x.index) for x in loads(*expressions(d)))):
        _require(len(index) == len(b.shape), where, f"indexes {b.name} by {len(index)} of {len(b.shape)} dimensions")
    for b, value in ((d.out, d.value), *((r.out, r.value) for r in d.results)):
        fits = value.dtype is b.dtype.compute
        _require(fits, where, f"stores {value.dtype.value} in {b.name}, which holds {b.dtype.value}")
    is_same_type = not d.results or d.value.dtype is d.out.dtype
    _require(is_same_type, where, f"has results beside {d.out.name}, which rounds to {d.out.dtype.value}")
