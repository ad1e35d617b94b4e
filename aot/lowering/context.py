"""The facts about a compilation that lowering passes may use."""

from __future__ import annotations

from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.codegen.target import Target
from aot.options import CompileOptions
from aot.options.rules import EXACT
from aot.precision import Precision, precision_of


@dataclass(frozen=True, slots=True)
class Context:
    """The target of a compilation and the options that lowering passes depend on; see `CompileOptions`."""

    target: Target
    precision: Precision = field(default_factory=Precision)
    activations: str = EXACT
    small_weights: bool = False
    plain_products: bool = False
    fast_math: bool = False
    weights: str | None = None

    @staticmethod
    def of(options: CompileOptions, target: Target) -> Context:
        """Return the context of a compilation with these options."""
        return Context(
            target,
            precision_of(options.precision),
            options.activations,
            options.small_weights,
            options.plain_products,
            options.fast_math,
            options.weights,
        )

    @property
    def adds_before_products(self) -> bool:
        """True if a product may use an algorithm that adds operands before it multiplies them."""
        return not (self.small_weights or self.plain_products or self.target.compact_code)

    @property
    def same_bits(self) -> bool:
        """True if bits may not depend on the target."""
        return not (self.precision.computes_in_f32 or self.fast_math)
