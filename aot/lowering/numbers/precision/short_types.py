"""Types of 16 bits by step and by value, and the form of sums of products of bf16."""

from __future__ import annotations

from collections import Counter

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.target import Target
from aot.lowering.ir.steps import Step, Steps
from aot.lowering.numbers.precision.often_loaded import loads_together, read_by_windows
from aot.precision import BF16, F16, Precision
from aot.runtime.abi import DType

READ = (
    MemoryRegion.INPUT,
    MemoryRegion.ARENA,
    MemoryRegion.CONSTANT,
)  # memory that no later step of a block writes again
SHORT = {BF16: DType.BF16, F16: DType.F16}


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of products of bf16 and f16: `pairs`: of bf16 by dots of two, in any order, instead of chains.

    `plain`: types whose products are sums of f32; a kernel that loads such numbers often reads f32. `divides`: Sigmoid
    and Mish divide, beside the multiply-adds that limit products: yolov8n takes 1.6 % less on a Zen 4.
    """

    pairs: bool = False
    plain: frozenset[DType] = frozenset({DType.F16})
    divides: bool = False

    @staticmethod
    def for_target(target: Target) -> Sums:
        """Return the sums of a target: with fast sums, chains are for tile registers only."""
        slow = target.fast_math and not target.abilities.tiles and not target.abilities.sums_pairs
        f32_kinds = frozenset({DType.BF16} if slow else ()) | frozenset(
            () if target.abilities.sums_half else {DType.F16}
        )
        return Sums(target.abilities.sums_pairs, f32_kinds, target.fast_math and not target.abilities.tiles)

    @property
    def fast(self) -> frozenset[DType]:
        """Types that products read in another order, or arithmetic, than all targets do."""
        pairs = {DType.BF16} if self.pairs or DType.BF16 in self.plain else ()
        return frozenset(pairs) | frozenset({DType.F16} - self.plain)


class ShortTypes:
    """The types of 16 bits that `precision` gives the layers of `steps`, and how values were used before the pass."""

    def __init__(self, steps: Steps, precision: Precision, sums: Sums) -> None:
        self.steps, self.precision, self.sums = steps, precision, sums
        self.constants = steps.constants()
        widens = any(SHORT[kind] in sums.plain and precision.has(kind) for kind in SHORT)
        self._loads = loads_together(steps) if widens else {}
        self._kinds: dict[str, set[DType | None]] = {}  # of the steps that read or write a value
        for step in (s for block in steps.blocks() for s in block.steps):
            for b in (*step.writes(), *(x.buffer for x in step.reads())):
                self._kinds.setdefault(b.name, set()).add(self.kind(step))
        self._producers = Counter(b.name for block in steps.blocks() for s in block.steps for b in s.writes())
        self.converted = read_by_windows(steps) if sums.fast else frozenset[str]()

    def kind(self, step: Step) -> DType | None:
        """Return the type of 16 bits that a step stores its values in; None: f32."""
        return SHORT.get(self.precision.of(step.layers))

    def rounds_results(self, step: Step) -> bool:
        """True if a step writes nothing but bf16 and bytes."""
        short = (b.dtype is DType.BF16 or self.steps.values[b.name].holds_bytes for b in step.writes())
        return self.kind(step) is DType.BF16 and all(short)

    def shared_kind(self, name: str) -> DType | None:
        """Return the type of 16 bits of all steps that read or write a value; None if they differ."""
        kinds = self._kinds.get(name, {None})
        return next(iter(kinds)) if len(kinds) == 1 else None

    def is_loaded_often(self, name: str) -> bool:
        """True if a kernel loads each element so often that conversions take longer than reading twice the bytes."""
        return self._loads.get(name, 0) > COSTS.memory_bound_loads

    def has_one_producer(self, name: str) -> bool:
        """True if one step at most writes a value, so that a copy of it can follow that step."""
        return self._producers[name] <= 1

    def can_copy(self, b: Buffer, kind: DType = DType.BF16) -> bool:
        """True if a copy of type `kind` can replace a value: all of it is written before, in the order of dimensions.

        A value of the state in bf16, as kept keys and values, is read where it lies.
        """
        value = self.steps.values.get(b.name)
        if value is None or b.dtype not in (DType.F32, kind):
            return False
        if value.region not in READ:
            return value.region is MemoryRegion.STATE and b.dtype is DType.BF16
        if b.dtype is DType.F32 and not self.has_one_producer(b.name):
            return False  # a copy of all parts would need those that this step may be made before
        return value.region is not MemoryRegion.CONSTANT or (value.data is not None and value.arrange is None)
