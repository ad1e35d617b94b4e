"""Steps: works in order, over values that lie in memory. All lowering passes change steps.

    step fc1+relu: relu1[i, j] = max(add[k in 784](x[i, k] * fc1_w[k, j]), 0)    for i in 1, j in 512

A step of control flow holds blocks, which are steps themselves; a pass sees one block at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from enum import StrEnum
from functools import lru_cache

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.by_identity import by_identity
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Size, Var, dense
from aot.codegen.ir.program import MemoryRegion, SizeConstraint, StateVariable
from aot.codegen.ir.schedule import Schedule
from aot.codegen.ir.traverse import Work, expressions, local, members, reads, writes
from aot.codegen.nest.points import free
from aot.ir.types import Array, Shape, dtype_of
from aot.ir.values.deferred import Deferred, value_of
from aot.lowering.ir.symbolic_sizes import Sizes

AXES = {1: "j", 2: "ij", 3: "bij", 4: "nchw", 5: "ncdhw"}


@dataclass(frozen=True, slots=True)
class BufferHalf:
    """Half `index`, 0 or 1, of the memory that value `pair` has."""

    pair: str
    index: Size


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that lies in memory. `buffer` has its logical dimensions; the layout gives strides and `elements`.

    With `arrange`, a constant is `arrange(data)`, made when it is written: it may be much larger than `data`.
    """

    buffer: Buffer
    region: MemoryRegion
    index: int = 0
    data: Array | Deferred | None = None
    elements: Size = 0
    half: BufferHalf | None = None
    arrange: Callable[[Array], Array] | None = None
    at: Size = 0  # byte of the state
    holds_bytes: bool = False  # all elements are integers from 0 to 255

    @property
    def name(self) -> str:
        return self.buffer.name

    @property
    def array(self) -> Array | None:
        """Return the data; deferred data are computed."""
        return None if self.data is None else value_of(self.data)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Repetition of all works, `count` times; `shifts`: elements that a value moves by each time."""

    count: int
    shifts: dict[str, int]


@dataclass(slots=True, eq=False)
class Step:
    """Works that run one after another, and the layers they come from. `schedule`: of the last work, if it has one.

    `binds`: symbols that are read from memory; `checks`: rules that are tested before the symbols are used.
    """

    works: tuple[Work, ...]
    layers: tuple[str, ...]
    kind: str
    schedule: Schedule | None = None
    repeat: Repeat | None = None
    control: BranchControl | LoopControl | None = None
    binds: dict[Var, Load] = field(default_factory=dict[Var, Load])
    checks: tuple[SizeConstraint, ...] = ()

    def reads(self) -> tuple[Load, ...]:
        if self.control is None and not self.binds and len(self.works) == 1:
            return reads(self.works[0])
        inner = [x for b in self.blocks() for s in b.steps for x in s.reads()]
        if isinstance(self.control, LoopControl):
            inner += [Load(b, (Const(0),) * len(b.shape)) for b in self.control.enters]
        return tuple(dict.fromkeys([*inner, *self.binds.values(), *(x for w in self.works for x in reads(w))]))

    def writes(self) -> tuple[Buffer, ...]:
        if self.control is None and len(self.works) == 1:
            return writes(self.works[0])
        inner = [b for block in self.blocks() for s in block.steps for b in s.writes()]
        if isinstance(self.control, LoopControl):
            inner += self.control.leaves
        return tuple(dict.fromkeys([*inner, *(b for w in self.works for b in writes(w))]))

    def sets(self) -> frozenset[Var]:
        """Return the symbols that have a value once the step has run."""
        inner = frozenset[Var]().union(*(s.sets() for b in self.blocks() for s in b.steps))
        own = self.control.start if isinstance(self.control, LoopControl) else self.binds
        return inner | frozenset(own)

    def sizes(self) -> frozenset[Var]:
        """Return the symbols and named sizes in the step."""
        inner = frozenset[Var]().union(*(s.sizes() for b in self.blocks() for s in b.steps))
        own = [self.control.sizes()] if self.control is not None else []
        rules = _variables(*(s for r in self.checks for s in (r.one, r.other)))
        return inner.union(*own, rules, *map(sizes_of, self.works))

    def blocks(self) -> tuple[Steps, ...]:
        """Return the blocks of its control flow."""
        return () if self.control is None else self.control.blocks()

    @property
    def definition(self) -> Definition | None:
        """Return the step's definition if it has only one."""
        return self.works[0] if len(self.works) == 1 and isinstance(self.works[0], Definition) else None


@dataclass(slots=True)
class BranchControl:
    """`then` where a size is not 0, else `other`."""

    condition: Size
    then: Steps
    other: Steps

    def blocks(self) -> tuple[Steps, ...]:
        return self.then, self.other

    def sizes(self) -> frozenset[Var]:
        return _variables(self.condition)


@dataclass(slots=True)
class LoopControl:
    """`body` while `counter < limit` and, after the first time, `going` is not 0.

    `start`: symbols' values before the first iteration; `follow`: their values after each, all set at once. `enters`:
    buffers that are written before the first one; `leaves`: buffers that are written after the last one.
    """

    counter: Var
    limit: Size
    going: Size
    body: Steps
    start: dict[Var, Size]
    follow: dict[Var, Size]
    enters: tuple[Buffer, ...]
    leaves: tuple[Buffer, ...]

    def blocks(self) -> tuple[Steps, ...]:
        return (self.body,)

    def sizes(self) -> frozenset[Var]:
        return _variables(self.limit, self.going, *self.start.values(), *self.follow.values())


class Layouts(StrEnum):
    """State of the decisions on memory layouts."""

    LOGICAL = "logical"  # dense, in the order of their dimensions: only indices count
    FINAL = "final"  # strides, halos and pitches are chosen, and padded reads find their halo


@dataclass(slots=True)
class Steps:
    """Steps in an order that runs, and the values by name; blocks inside of control flow share the values.

    `in_floats`: layers whose products stay f32 although the user wants data in 8 bits, by the reason.
    `aot.lowering.ir.verify` has the rules, `aot.lowering.ir.printer` prints steps.
    """

    name: str
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    steps: list[Step] = field(default_factory=list[Step])
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[str] = field(default_factory=list[str])
    symbols: tuple[Var, ...] = ()
    sizes: Sizes = field(default_factory=Sizes)
    rules: list[SizeConstraint] = field(default_factory=list[SizeConstraint])
    state_bytes: Size = 0
    variables: tuple[StateVariable, ...] = ()
    layouts: Layouts = Layouts.LOGICAL
    in_floats: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def known(self) -> tuple[Var, ...]:
        """Return the variables with a value while a step runs: the model's symbols, late symbols, named sizes."""
        return (*self.symbols, *self.sizes.late, *self.sizes.meaning)

    @property
    def has_symbols(self) -> bool:
        """True if a size is not a number."""
        return bool(self.symbols or self.sizes.late or self.sizes.meaning)

    def is_known(self, v: Var) -> bool:
        """True if `v` is one of `known`."""
        return v in self.sizes.meaning or v in self.sizes.late or v in self.symbols

    def blocks(self) -> Iterator[Steps]:
        """Yield these steps, and all blocks of control flow in them."""
        yield self
        for step in self.steps:
            for block in step.blocks():
                yield from block.blocks()

    def touched(self) -> list[str]:
        """Return the values that the steps touch outside of the blocks in them."""
        works = [w for s in self.steps for w in s.works]
        buffers = dict.fromkeys(b.name for w in works for b in (*writes(w), *(x.buffer for x in reads(w))))
        return [name for name in buffers if name in self.values]

    def unused(self, name: str) -> str:
        """Return this name, or a longer one that no value has.

        Several steps may write one value, the parts of a Concat.
        """
        while name in self.values:
            name += "_"
        return name

    def constant(self, name: str, data: Array | Deferred) -> Buffer:
        """Add a value known at compile time, with this name or a longer one."""
        name = self.unused(name)
        later = isinstance(data, Deferred)
        buffer = dense(name, *data.shape, dtype=data.type.dtype if later else dtype_of(data))
        self.values[name] = Value(buffer, MemoryRegion.CONSTANT, data=data if later else np.ascontiguousarray(data))
        return buffer

    def is_constant(self, name: str) -> bool:
        """True if `name` is that of a value known at compile time."""
        value = self.values.get(name)
        return value is not None and value.region is MemoryRegion.CONSTANT

    def constants(self) -> frozenset[str]:
        """Return the names of values known at compile time."""
        return frozenset(n for n, v in self.values.items() if v.region is MemoryRegion.CONSTANT)


@lru_cache(maxsize=1 << 10)  # many values have the same shape
def indices(shape: Shape) -> tuple[tuple[Var, ...], tuple[Expr, ...]]:
    """Return axes for all dimensions that are not 1, and the index they form: 0 where a dimension is 1."""
    names = AXES.get(len(shape)) or [f"d{i}" for i in range(len(shape))]
    index = tuple(Const(0) if n == 1 else Var(name, n) for name, n in zip(names, shape, strict=True))
    return tuple(i for i in index if isinstance(i, Var)), index


@by_identity(1 << 12, "known_sizes")
def sizes_of(work: Work) -> frozenset[Var]:
    """Return the variables of a work that are no axes: sizes known at run time only, and axes bound by statements."""
    axes: set[Var] = set()
    for d in members(work):
        extents = [a.extent for a in d.axes] + [a.extent for a in (d.reduction.axes if d.reduction else ())]
        axes |= _variables(*(n for n in extents if n is not None))
    axes |= variables(*expressions(work))
    if isinstance(work, tuple):
        axes |= free(work)
    for b in (*writes(work), *local(work), *(x.buffer for x in reads(work))):
        axes |= _sizes_of_buffer(b)
    return frozenset(axes)


@by_identity(1 << 12, "known_sizes")
def _sizes_of_buffer(b: Buffer) -> frozenset[Var]:
    return _variables(*b.shape, *b.strides, b.origin)


def _variables(*sizes: Size) -> frozenset[Var]:
    return variables(*(s for s in sizes if isinstance(s, Expr)))
