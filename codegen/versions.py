"""One program from several of the same model: the sizes of a request choose which of them runs.

    jump to other1 unless batch == 1
      call 0, call 1                    made for batch 1
    jump to end
    other1
      call 2, call 3                    for all other sizes
    end

This is ordinary control flow: a choice costs a comparison, equal kernels are stored once, and the arena is as large as
the version that runs needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Const, Expr, Prim, Size, Var, as_expr, prim, select
from aot.codegen.ir.program import (
    Address,
    Bind,
    Call,
    Check,
    Control,
    DataDependentSize,
    Jump,
    Label,
    Let,
    Program,
    SizeConstraint,
    Tensor,
    Version,
)
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError, UnsupportedError

SizesByName = tuple[tuple[str, int], ...]

_END = "versions end"


def join_versions(general: Program, versions: Sequence[tuple[SizesByName, Program]]) -> Program:
    """Join `general` and its `versions`: a request runs the first version with its sizes, else `general`.

    They share inputs and outputs, names of kernels and offsets of weights; versions have no symbols that `general`
    lacks.
    """
    if not versions:
        return general
    joined = _Joined(general)
    for number, (sizes, program) in enumerate(versions, 1):
        if (len(program.inputs), len(program.outputs)) != (len(general.inputs), len(general.outputs)):
            raise InternalError(f"{general.name}: versions have inputs and outputs in common, got another number")
        if program.variables != general.variables:
            at = ", ".join(f"{name}={size}" for name, size in sizes)
            raise UnsupportedError(f"--specialise: versions must have equal variables, got other ones for {at}")
        joined.version(sizes, _Version(general, number, sizes).of(program))
    joined.add(general)
    joined.control.append(Label(len(joined.calls), _END))
    return joined.program()


class _Version:
    """Renames the symbols and labels of one version; for requests that do not run it, its rules always hold."""

    def __init__(self, general: Program, number: int, sizes: SizesByName) -> None:
        self.symbols = {s.name: s for s in general.symbols}
        self.prefix = f"version{number}."
        self.condition = _condition(general, sizes)
        self.names: dict[str, Var] = {}

    def of(self, program: Program) -> Program:
        self.names = {s.name: replace(s, name=self.prefix + s.name) for s in program.stored} | self.symbols
        return replace(
            program,
            calls=tuple(map(self._call, program.calls)),
            arena_bytes=self._size(program.arena_bytes),
            state_bytes=self._size(program.state_bytes),
            outputs=tuple(map(self._tensor, program.outputs)),
            computed=tuple((self._named(s), self._expr(meaning)) for s, meaning in program.computed),
            rules=tuple(map(self._rule, program.rules)),
            late=tuple(map(self._late, program.late)),
            control=tuple(map(self._control, program.control)),
        )

    def _expr(self, e: Expr) -> Expr:
        return rewrite(e, lambda part: self._named(part) if isinstance(part, Var) else None)

    def _named(self, symbol: Var) -> Var:
        return self.names[symbol.name]

    def _late(self, late: DataDependentSize) -> DataDependentSize:
        return DataDependentSize(self._named(late.symbol), late.capacity and self._named(late.capacity), late.initial)

    def _size(self, size: Size) -> Size:
        return self._expr(size) if isinstance(size, Expr) else size

    def _place(self, address: Address) -> Address:
        return replace(address, offset=self._size(address.offset))

    def _call(self, call: Call) -> Call:
        args, sizes = tuple(map(self._place, call.args)), tuple(map(self._size, call.sizes))
        work, traffic = map(self._size, (call.work, call.traffic))
        return replace(call, args=args, sizes=sizes, work=work, traffic=traffic)

    def _tensor(self, tensor: Tensor) -> Tensor:
        most = None if tensor.most is None else self._size(tensor.most)
        return replace(tensor, shape=tuple(map(self._size, tensor.shape)), most=most)

    def _rule(self, rule: SizeConstraint) -> SizeConstraint:
        one, other = (select(self.condition, _expr(self._size(size)), 0) for size in (rule.one, rule.other))
        return SizeConstraint(one, other, rule.text)

    def _control(self, entry: Control) -> Control:
        match entry:
            case Bind(at, symbol, place, dtype):
                return Bind(at, self._named(symbol), self._place(place), dtype)
            case Let(at, symbol, value):
                return Let(at, self._named(symbol), self._size(value))
            case Check(at, rule):
                return Check(at, self._rule(rule))
            case Label(at, name):
                return Label(at, self.prefix + name)
            case Jump(at, to, when, asks):
                return Jump(at, self.prefix + to, self._size(when), asks)


class _Joined:
    """The joined program under construction; the general program's part is added last."""

    def __init__(self, general: Program) -> None:
        self.general = general
        self.calls: list[Call] = []
        self.control: list[Control] = []
        self.versions: list[Version] = []
        self.parts: list[Program] = []

    def version(self, sizes: SizesByName, program: Program) -> None:
        """Append a version: requests with these sizes of symbols run its calls and skip all later ones."""
        first, otherwise = len(self.calls), f"version{len(self.versions) + 1} else"
        fits = select(_condition(self.general, sizes), 1, 0)
        self.control.append(Jump(first, otherwise, prim("eq", fits, 0)))
        self.add(program)
        self.versions.append(Version(sizes, first, len(self.calls)))
        self.control += [Jump(len(self.calls), _END), Label(len(self.calls), otherwise)]

    def add(self, program: Program) -> None:
        """Append the calls of a program and the control entries between them."""
        first = len(self.calls)
        self.calls += program.calls
        self.control += [replace(command, at=command.at + first) for command in program.control]
        self.parts.append(program)

    def program(self) -> Program:
        *special, general = self.parts
        blocks = {block.offset: block for part in self.parts for block in part.constants}
        rows = [(version.sizes, part) for version, part in zip(self.versions, special, strict=True)]
        arena, state = general.arena_bytes, general.state_bytes
        for sizes, part in reversed(rows):
            arena = select(_condition(general, sizes), _expr(part.arena_bytes), arena)
            state = state if state == part.state_bytes else prim("max", _expr(state), _expr(part.state_bytes))
        return replace(
            general,
            kernels=tuple({kernel.name: kernel for part in self.parts for kernel in part.kernels}.values()),
            calls=tuple(self.calls),
            constants=tuple(blocks.values()),
            arena_bytes=arena,
            state_bytes=state,
            outputs=tuple(self._output(i, tensor, rows) for i, tensor in enumerate(general.outputs)),
            computed=tuple(entry for part in self.parts for entry in part.computed),
            rules=tuple(dict.fromkeys(rule for part in (general, *special) for rule in part.rules)),
            late=tuple(entry for part in self.parts for entry in part.late),
            control=tuple(self.control),
            versions=tuple(self.versions),
        )

    def _output(self, index: int, tensor: Tensor, rows: Sequence[tuple[SizesByName, Program]]) -> Tensor:
        """Return an output with shape and `most` of the version that runs, as the sizes choose it."""
        shape, most = list(tensor.shape), tensor.most
        for sizes, part in reversed(rows):
            other, condition = part.outputs[index], _condition(self.general, sizes)
            for k, (general_size, special_size) in enumerate(zip(tensor.shape, other.shape, strict=True)):
                if not self._are_equal(general_size, special_size, sizes):
                    shape[k] = select(condition, _expr(special_size), shape[k])
            if most is not None or other.most is not None:
                most = select(condition, _expr(_upper_bound(other)), _upper_bound(tensor) if most is None else most)
        return replace(tensor, shape=tuple(shape), most=most)

    def _are_equal(self, general: Size, special: Size, sizes: SizesByName) -> bool:
        """True if both are the same for these sizes of the symbols."""
        values = dict(sizes)
        fixed = rewrite(_expr(general), lambda e: _known(e, values))
        return normal(fixed, {}).key == normal(_expr(special), {}).key


def _upper_bound(tensor: Tensor) -> Size:
    """Return an upper bound of the tensor's elements."""
    if tensor.most is not None:
        return tensor.most
    return reduce(lambda total, n: n * total, tensor.shape, Const(1))


def _condition(general: Program, sizes: SizesByName) -> Expr:
    """Return the condition that a request has these sizes."""
    symbols = {s.name: s for s in general.symbols}
    return reduce(lambda a, b: Prim("and", (a, b), DType.BOOL), [prim("eq", symbols[name], n) for name, n in sizes])


def _expr(size: Size) -> Expr:
    return as_expr(size, DType.I64)


def _known(e: Expr, values: Mapping[str, int]) -> Expr | None:
    return Const(values[e.name]) if isinstance(e, Var) and e.name in values else None
