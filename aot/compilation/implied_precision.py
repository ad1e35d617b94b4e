"""Types that the weights of a model imply, where options leave the choice to the weights."""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.ir.graph import Graph
from aot.ir.values.small_weights import has_short_weights
from aot.text.library_texts import is_of_language_model


@dataclass(frozen=True, slots=True)
class ImpliedPrecision:
    """`quantizes_activations`: data in 8 bits; `uses_bf16`: layers in bf16, where that is faster on the target."""

    quantizes_activations: bool = False
    uses_bf16: bool = False


def asks_for_bf16(graph: Graph) -> bool:
    """True for a language model of GGUF or of a folder that stores its matrices in floats of 16 bits."""
    return is_of_language_model(graph.rt_info) and has_short_weights(graph)
