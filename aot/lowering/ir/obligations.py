"""Obligations of the prover: each index is inside its dimension, and each named size is large enough."""

from __future__ import annotations

from enum import StrEnum

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.index import Affine
from aot.codegen.ir.loops import Buffer, Expr, Size, Var, prim
from aot.codegen.ir.printer import expr_text, size_text
from aot.codegen.ir.program import SizeConstraint


class Proof(StrEnum):
    """Reason why an access is inside of its buffer."""

    PROVED = "proved"  # by ranges of axes and sizes
    CHECKED = "checked"  # by rules on sizes that are tested before
    CLAMPED = "clamped"  # data in the index are clamped or tested in the definition
    TRUSTED = "trusted"  # by the algorithm: counters that the operation keeps, without data, or the room of a state
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Obligation:
    """0 <= index < extent, of a load or a store.

    `residue`: the least values of index and of extent - 1 - index, in sizes, where a place is in loops alone; `loops`:
    the numbers of iterations of the loops around it. `has_loads`: True if memory that is read decides the place;
    `has_elements`: True if the extent is proven not to be 0.
    """

    layers: tuple[str, ...]
    what: str
    buffer: Buffer
    place: tuple[Expr, ...]
    dimension: int
    proof: Proof
    residue: tuple[Affine, ...] = ()
    loops: tuple[Expr, ...] = ()
    has_loads: bool = False
    has_elements: bool = False

    @property
    def index(self) -> Expr:
        return self.place[self.dimension]

    @property
    def extent(self) -> Size:
        return self.buffer.shape[self.dimension]

    def __str__(self) -> str:
        bound = f"0 <= {expr_text(self.index)} < {size_text(self.extent)}"
        layers = " + ".join(self.layers)
        return f"{self.proof.value}: {layers}: {self.what} {self.buffer.name}, dimension {self.dimension}: {bound}"


@dataclass(frozen=True, slots=True)
class Least:
    """meaning >= least value, of the name of a size: nothing else is known of a name where it is used."""

    layers: tuple[str, ...]
    name: Var
    meaning: Expr
    proof: Proof

    @property
    def has_loads(self) -> bool:
        return False

    @property
    def rule(self) -> SizeConstraint:
        """Return the rule that tests it."""
        return SizeConstraint(prim("min", self.meaning - self.name.low, 0), 0, "")

    def __str__(self) -> str:
        text = f"{self.name.name} = {expr_text(self.meaning)} >= {self.name.low}"
        return f"{self.proof.value}: {' + '.join(self.layers)}: size {text}"
