"""The state and the limits of the search for proofs over one set of sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.index import Key
from aot.codegen.ir.loops import Expr

Keys = tuple[Key, ...]
Place = tuple[object, ...]  # loops and tests around a place

# A goal is a sum to be shown nonnegative. A proof tries each goal whose bounds do not show it, and visits a goal that
# has no verdict yet: it derives further goals from which this one follows.
MAX_DEPTH = 14  # substitutions one after another
FIRST_GOALS = 8  # goals that a proof may visit before it splits into cases of sizes
MAX_GOALS = 40  # goals that a proof may visit
MAX_TRIES = 400  # goals that a proof may try, including those visited before
MIN_TRIES = 24  # goals that any proof may try
MAX_WORK = 1500  # goals that the proofs of one operation may try
MAX_CASES = 3  # pairs of sets of facts that a proof may tell apart, one inside of another
PRINTED_WORK = 15_000  # the same where they are printed


@dataclass(slots=True)
class SearchState:
    """State of the proofs over one set of sizes. `proved`: goals, each with its place; they stay so as facts are added.

    `goals`, `tries`: budgets of visits and tries of a proof; `left`: tries left to all proofs of one operation;
    `age`: how often facts were added.
    """

    shortest: Callable[[Expr], Expr] | None
    written: dict[Expr, Expr] = field(default_factory=dict[Expr, Expr])
    proved: set[tuple[Key, Place]] = field(default_factory=set[tuple[Key, Place]])
    is_written: bool = False  # goals are over sizes that have no meaning of their own
    goals: int = 0
    tries: int = 0
    left: int = MAX_WORK
    age: int = 0
    cases: int = 0  # nested case splits at present
