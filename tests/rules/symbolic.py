"""Meaning of a graph as z3 terms: an element of an output, at symbolic indices, over symbolic inputs and sizes.

    y[i, j] = max(x[j, i], 0)     ->     If(x(j, i) > 0, x(j, i), 0),     0 <= i < n, 0 <= j < m

The definitions of the compiler (`aot.lowering.define`) are read, not written again. Floats are real numbers, integers
are unbounded, inputs are functions of their indices. Reductions must have fixed sizes and are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import z3

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Size, Var
from aot.codegen.ir.program import MemoryRegion
from aot.ir.graph import Graph
from aot.lowering.define.define import define
from aot.lowering.define.regions import lower_region
from aot.lowering.ir.steps import Steps
from aot.passes.middle.decompose import decompose
from aot.runtime.abi import DType

MAX_TERMS = 4096  # of a reduction that is written out
INFINITY = z3.Real("infinity")  # more than any element of an input
Term = Any  # z3 has no types that a checker could read
Index = tuple[Term, ...]
Bound = Mapping[Var, Term]


class NotExpressibleError(Exception):
    """A graph whose meaning z3 cannot hold: bits, statements, reductions of unknown size."""


class Meaning:
    """Elements of the outputs of a graph. Equal names of inputs and sizes are equal terms in all graphs."""

    def __init__(self, graph: Graph) -> None:
        decompose(graph)
        self.steps: Steps = define(graph, lower_region)
        self.facts: list[Term] = []  # axioms on sizes and functions
        self.works: dict[str, list[Definition]] = {}
        self._known: dict[tuple[str, tuple[str, ...]], Term] = {}
        for step in self.steps.steps:
            for work in step.works:
                if not isinstance(work, Definition):
                    raise NotExpressibleError(f"{step.kind}: statements")
                self.works.setdefault(work.out.name, []).append(work)
        for rule in self.steps.rules:
            self.facts.append(self.size(rule.one) == self.size(rule.other))

    def output(self, n: int, index: Index) -> Term:
        """Return an element of output `n`."""
        return self.element(self.steps.outputs[n], index)

    def shape(self, n: int) -> list[Term]:
        """Return the sizes of output `n`."""
        return [self.size(d) for d in self.steps.values[self.steps.outputs[n]].buffer.shape]

    def size(self, size: Size) -> Term:
        return z3.IntVal(size) if isinstance(size, int) else self.term(size, {})

    def element(self, name: str, index: Index) -> Term:
        """Return an element of a value."""
        key = (name, tuple(i.sexpr() for i in index))
        if key not in self._known:
            self._known[key] = self._element(name, index)
        return self._known[key]

    def _element(self, name: str, index: Index) -> Term:
        value = self.steps.values[name]
        if value.region is MemoryRegion.INPUT:
            sort = _sort(value.buffer.dtype)
            place = f"x{self.steps.inputs.index(name)}"
            found = z3.Function(place, *[z3.IntSort()] * len(index), sort)(*index) if index else z3.Const(place, sort)
            if value.buffer.dtype.is_float:
                self.facts += [found < INFINITY, -found < INFINITY]
            elif value.buffer.dtype is not DType.BOOL and not value.buffer.dtype.is_signed:
                self.facts.append(found >= 0)
            return found
        if value.array is not None:
            return _of_array(value.array, index)
        found: Term | None = None
        for work in self.works[name]:
            where, bound = self._placed(work, index)
            made = self.term(work.value, bound)
            found = made if found is None else z3.If(where, made, found)
        if found is None:
            raise NotExpressibleError(f"{name}: no definition")
        return found

    def _placed(self, work: Definition, index: Index) -> tuple[Term, dict[Var, Term]]:
        """Return the condition under which a definition writes an element, and its axes there."""
        bound: dict[Var, Term] = {}
        conditions: list[Term] = []
        for target, at in zip(work.target, index, strict=True):
            axes = [a for a in work.axes if a in _variables(target)]
            if not axes:
                conditions.append(at == self.term(target, bound))
                continue
            (axis,) = axes
            first = z3.simplify(self.term(target, {**bound, axis: z3.IntVal(0)}))
            second = z3.simplify(self.term(target, {**bound, axis: z3.IntVal(1)}))
            if not z3.is_true(z3.simplify(second - first == 1)):
                raise NotExpressibleError(f"{work.out.name}: strides of targets")
            bound[axis] = z3.simplify(at - first)
            conditions += [bound[axis] >= 0, bound[axis] < self.size(axis.extent or 0)]
        if work.where:
            raise NotExpressibleError(f"{work.out.name}: conditions on stores")
        return z3.And(*conditions), bound

    def term(self, e: Expr, bound: Bound) -> Term:
        match e:
            case Const():
                return _number(e.value, e.dtype)
            case Var():
                return self._variable(e, bound)
            case Load():
                return self.element(e.buffer.name, tuple(z3.simplify(self.term(i, bound)) for i in e.index))
            case Reduce():
                return self._reduced(e, bound)
            case Prim("within"):
                i, n, v = (self.term(a, bound) for a in e.args[:3])
                other = self.term(e.args[3], bound) if len(e.args) > 3 else _number(0, e.dtype)
                return z3.If(z3.And(i >= 0, i < n), v, other)
            case Prim():
                return self._primitive(e, [self.term(a, bound) for a in e.args])

    def _variable(self, v: Var, bound: Bound) -> Term:
        if v in bound:
            return bound[v]
        if v in self.steps.sizes.meaning:
            return self.term(self.steps.sizes.meaning[v], bound)
        found = z3.Int(v.name)
        self.facts.append(found >= v.low)
        if isinstance(v.extent, int):
            self.facts.append(found < v.extent)
        return found

    def _reduced(self, e: Reduce, bound: Bound) -> Term:
        extents = [a.extent for a in e.axes]
        if not all(isinstance(n, int) for n in extents) or np.prod(extents, dtype=object) > MAX_TERMS:
            raise NotExpressibleError("a reduction of unknown size")
        points = product(*(range(int(str(n))) for n in extents))
        terms = [
            self.term(e.body, {**bound, **dict(zip(e.axes, map(z3.IntVal, point), strict=True))}) for point in points
        ]
        if e.init is not None:
            terms.insert(0, self.term(e.init, bound))
        if e.fn not in FOLDED or not terms:
            raise NotExpressibleError(f"reduction {e.fn} of {len(terms)} terms")
        return FOLDED[e.fn](terms)

    def _primitive(self, e: Prim, args: list[Term]) -> Term:
        if e.fn == "cast":
            return _cast(args[0], e.args[0].dtype, e.dtype)
        if e.fn in ("floordiv", "mod", "div", "rem") and not e.dtype.is_float:
            return _quotient(e.fn, args)
        if e.fn == "pow":
            return self._power(e.args[1], *args)
        if e.fn.removesuffix("_normal") in FUNCTIONS:
            return self._function(e.fn.removesuffix("_normal"), args[0])
        if e.fn not in PRIMITIVES:
            raise NotExpressibleError(f"primitive {e.fn}")
        return PRIMITIVES[e.fn](*args)

    def _power(self, exponent: Expr, base: Term, power: Term) -> Term:
        if not isinstance(exponent, Const):
            raise NotExpressibleError("powers with exponents that are not known")
        if float(exponent.value).is_integer() and 0 <= exponent.value <= 4:
            return FOLDED["mul"]([base] * int(exponent.value)) if exponent.value else _number(1, exponent.dtype)
        if exponent.value == -1:
            return 1 / base
        if exponent.value == 0.5:
            return self._function("sqrt", base)
        raise NotExpressibleError(f"power {exponent.value}")

    def _function(self, name: str, x: Term) -> Term:
        found = z3.Function(name, z3.RealSort(), z3.RealSort())(x)
        self.facts += FUNCTIONS[name](x, found)
        return found


def _largest(a: Term, b: Term) -> Term:
    return z3.If(a >= b, a, b)


def _least(a: Term, b: Term) -> Term:
    return z3.If(a <= b, a, b)


def _each(of_two: Callable[[Term, Term], Term]) -> Callable[[Sequence[Term]], Term]:
    def fold(terms: Sequence[Term]) -> Term:
        found = terms[0]
        for one in terms[1:]:
            found = of_two(found, one)
        return found

    return fold


FOLDED: dict[str, Callable[[Sequence[Term]], Term]] = {
    "add": lambda terms: z3.Sum(*terms) if len(terms) > 1 else terms[0],
    "mul": lambda terms: z3.Product(*terms) if len(terms) > 1 else terms[0],
    "max": _each(_largest),
    "min": _each(_least),
    "and": lambda terms: z3.And(*terms),
    "or": lambda terms: z3.Or(*terms),
}


def _rounded(x: Term) -> Term:
    """Round to the nearest whole number, halves to the even one."""
    above = z3.ToInt(x + z3.RealVal("1/2"))
    is_odd_half = z3.And(z3.ToReal(above) - x == z3.RealVal("1/2"), above % 2 == 1)
    return z3.ToReal(z3.If(is_odd_half, above - 1, above))


PRIMITIVES: dict[str, Callable[..., Term]] = {
    "round_even": _rounded,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "abs": lambda a: z3.If(a >= 0, a, -a),
    "min": _least,
    "max": _largest,
    "fma": lambda a, b, c: a * b + c,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "and": z3.And,
    "or": z3.Or,
    "xor": z3.Xor,
    "not": z3.Not,
    "select": z3.If,
}
FUNCTIONS: dict[str, Callable[[Term, Term], list[Term]]] = {  # what is known of f(x), beyond that it is a function
    "exp": lambda x, y: [y > 0],
    "sqrt": lambda x, y: [z3.Implies(x >= 0, z3.And(y >= 0, y * y == x))],
    **{name: lambda x, y: [] for name in ("erf", "tanh", "log", "sin", "cos")},
}


def _quotient(fn: str, args: list[Term]) -> Term:
    a, b = args
    if not (z3.is_int_value(b) and b.as_long() > 0):
        raise NotExpressibleError("quotients by numbers that are not known or not positive")
    match fn:
        case "floordiv":
            return a / b
        case "mod":
            return a % b
        case "div":
            return z3.If(a >= 0, a / b, -((-a) / b))
        case _:
            return z3.If(a >= 0, a % b, -((-a) % b))


def _cast(x: Term, before: DType, after: DType) -> Term:
    if before is DType.BOOL and after is not DType.BOOL:
        return z3.If(x, _number(1, after), _number(0, after))
    if after is DType.BOOL:
        return x if before is DType.BOOL else x != 0
    if after.is_float:
        return x if before.is_float else z3.ToReal(x)
    if before.is_float:
        return z3.If(x >= 0, z3.ToInt(x), -z3.ToInt(-x))
    return x


def _sort(dtype: DType) -> Term:
    return z3.RealSort() if dtype.is_float else z3.BoolSort() if dtype is DType.BOOL else z3.IntSort()


def _number(value: object, dtype: DType) -> Term:
    if dtype is DType.BOOL:
        return z3.BoolVal(bool(value))
    if dtype.is_float:
        number = float(value)  # type: ignore[arg-type]
        if not np.isfinite(number):  # bounds that no number reaches
            return INFINITY if number > 0 else -INFINITY
        return z3.Q(*Fraction(number).as_integer_ratio())
    return z3.IntVal(int(value))  # type: ignore[call-overload]


def _of_array(array: np.ndarray[Any, Any], index: Index) -> Term:
    """Return an element of a constant: a choice among the values along each dimension in turn."""
    kind = array.dtype.kind
    dtype = DType.BOOL if kind == "b" else DType.I64 if kind in "iu" else DType.F32
    if not index:
        return _number(array[()], dtype)
    if not array.shape[0]:
        raise NotExpressibleError("an element of a constant without elements")
    if z3.is_int_value(index[0]) and 0 <= index[0].as_long() < array.shape[0]:
        return _of_array(array[index[0].as_long()], index[1:])
    found = _of_array(array[-1], index[1:])
    for n in range(array.shape[0] - 1):
        found = z3.If(index[0] == n, _of_array(array[n], index[1:]), found)
    return found


def _variables(e: Expr) -> set[Var]:
    return set(_walk(e))


def _walk(e: Expr) -> Iterator[Var]:
    match e:
        case Var():
            yield e
        case Prim():
            for a in e.args:
                yield from _walk(a)
        case Load():
            for a in e.index:
                yield from _walk(a)
        case _:
            return
