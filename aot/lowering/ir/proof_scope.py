"""Scopes of proofs: the loops and tests around a place in a work, and the values of names there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.index import Affine, normal
from aot.codegen.ir.loops import Alloc, Buffer, Expr, For, Let, Load, Stmt, Var, While
from aot.codegen.ir.proof.affine_facts import conditions
from aot.codegen.ir.proof.facts import Facts
from aot.codegen.ir.traverse import move_loads, writes


@dataclass(slots=True)
class ProofScope:
    """The loops and tests around a place in a work, from the outermost one on, and the values of names there.

    `base`: facts around the work; `plain`: those without rules, None if it does not matter whether a rule is needed.
    """

    base: Callable[[], Facts]
    plain: Facts | None = None
    around: tuple[tuple[tuple[Var, ...], tuple[Affine, ...]], ...] = ()
    env: dict[Var, Affine] = field(default_factory=dict[Var, Affine])
    has_guards: bool = False
    known: Facts | None = None
    seen: set[Load] = field(default_factory=set[Load], init=False)  # loads whose indices are proved or reported here

    @property
    def axes(self) -> tuple[Var, ...]:
        return tuple(a for axes, _ in self.around for a in axes)

    @property
    def checked(self) -> Facts:
        """Facts that hold here, with rules; made at the first use, since most indices need none."""
        if self.known is None:
            self.known = self._facts(self.base())
        return self.known

    def proves_plainly(self, goals: Iterable[Affine]) -> bool:
        """True if goals are shown without rules."""
        return self.plain is not None and all(map(self._facts(self.plain).proves, goals))

    def _facts(self, facts: Facts) -> Facts:
        for axes, tests in self.around:
            facts = facts.inside(*axes).where(*tests)
        return facts

    def inside(self, *axes: Var) -> ProofScope:
        return replace(self, around=(*self.around, (axes, ())), known=None) if axes else self

    def enter(self, s: For | While | Let | Alloc) -> ProofScope:
        """Return the scope of the body of a statement."""
        match s:
            case For(var, body):
                if not isinstance(var.extent, Expr) or not (
                    loads(var.extent) or self.env.keys() & variables(var.extent)
                ):
                    return self.inside(var)
                axis = replace(var, extent=_as_now(self.value_of(var.extent), var, body))
                return replace(self.inside(axis), env={**self.env, var: Affine({axis: 1})})
            case Let(var, value, body):
                return replace(self, env={**self.env, var: normal(_as_now(self.value_of(value), var, body), {})})
            case _:
                return self

    def value_of(self, e: Expr) -> Expr:
        """Return an expression with each name replaced by its value."""
        return normal(e, self.env).expr()

    def guarded(self, facts: list[Affine]) -> ProofScope:
        """Return the scope inside of a test."""
        return replace(self, around=(*self.around, ((), tuple(facts))), known=None, has_guards=True) if facts else self

    def under(self, condition: Expr, holds: bool, stored: tuple[Buffer, ...]) -> ProofScope:
        """Return the scope inside a branch, where the condition holds or not; memory written there is left out."""
        known: dict[Expr, Expr] = {v: a.expr() for v, a in self.env.items()}
        condition = rewrite(condition, known) if known else condition
        names = {b.name for b in stored}
        indices = conditions(condition, holds)
        return self.guarded([f for f in indices if all(x.buffer.name not in names for x in loads(f.expr()))])

    def residue(self, goals: Sequence[Affine]) -> tuple[Affine, ...]:
        """Return the least values of the goals as sums of sizes, if they are in loops alone."""
        if self.has_guards:
            return ()
        indices = [self.checked.residue(g) for g in goals]
        return tuple(f for f in indices if f is not None) if None not in indices else ()


def _as_now(e: Expr, name: Var, body: tuple[Stmt, ...]) -> Expr:
    """Return the value of `name` at its definition: memory that the body writes later is another variable."""
    if not loads(e):
        return e
    return rewrite(e, move_loads({b.name: replace(b, name=f"{b.name}.{name.name}") for b in writes(body)}))
