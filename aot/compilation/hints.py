"""Options that would make a compiled model faster on its target, with results that round more."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod
from pathlib import Path

from aot.codegen.target import Target
from aot.compilation.compilation import Compilation
from aot.compilation.search.precision import PRODUCTS
from aot.ir.graph import Graph, Node
from aot.ir.values.small_weights import rounds_data
from aot.options.rules import AUTO, EXACT, ROUNDED
from aot.precision import precision_of
from aot.runtime.machine import refused_tiles

Options = Mapping[str, object]  # fields of CompileOptions
BF16: Options = {"precision": "bf16"}
INT8: Options = {"activations": ROUNDED}
F32: Options = {"activations": EXACT}
SMALL = 1_000_000  # numbers that products read and write in an inference that takes well below a millisecond


def faster_lines(compilation: Compilation, model: Path) -> list[str]:
    """Return a line that names faster options for a compilation; none for small networks or if none is faster."""
    options = flags(faster(compilation)) if _numbers_of_products(compilation.optimized) >= SMALL else ""
    how = f"aot bench {model} --precisions measures it"
    return [f"products may be faster on this target, with larger errors, by {options}: {how}"] if options else []


def faster(compilation: Compilation) -> Options:
    """Return the options that speed up products of a model in f32; none for several targets.

    Data in 8 bits where weights have so few bits and data are not rounded yet; bf16 where the target sums its products.
    """
    options = compilation.decided
    if options.activations != AUTO or len(compilation.session.levels) > 1:
        return {}
    if not precision_of(options.precision).computes_in_f32:
        return {}
    if not _products(compilation.optimized) or rounds_data(compilation.optimized):
        return {}
    if compilation.weight_bits is not None:
        return INT8 if compilation.target.abilities.dots else {}
    return bf16_options(compilation.target, compilation.session.levels == ("native",))


def bf16_options(target: Target, is_own: bool) -> Options:
    """Return options under which bf16 products are faster than f32 products; no options if they are not."""
    if "amx-bf16" in target.features and not (is_own and refused_tiles()):
        return BF16
    return {**BF16, "fast_math": True} if target.abilities.rounds_normal else {}


def flags(options: Options) -> str:
    """Return the options as flags: `--precision bf16 --fast-math`."""
    parts = (f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}") for name, value in options.items())
    return " ".join(parts)


def _products(graph: Graph) -> list[Node]:
    return [node for node in graph.all_nodes() if isinstance(node.op, PRODUCTS)]


def _numbers_of_products(graph: Graph) -> float:
    """Return how many numbers the products of an inference read and write; infinite if a size of one varies."""
    types = [p.type for n in _products(graph) for p in (n.source(0), n.source(1), n.out_port(0))]
    return sum(prod(type.static_shape) if type.is_static else inf for type in types)
