"""A language model with room for a number of tokens in its keys and values from the first call on.

    CacheSizes, CacheRoom     --max-context 4096     ->     CacheSizes(context=4096), CacheRoom(context=4096)

Rows then never move, memory never grows, and a longer sequence is an error.
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.dataclass import dataclass
from aot.ir.graph import Graph
from aot.opset.control.growing_variables import CacheRoom, CacheSizes
from aot.runtime.errors import UsageError

MAX_CONTEXT = 1 << 24  # tokens


@dataclass(frozen=True, slots=True)
class LimitContext:
    """Pass for `--max-context`; after `append_variables`. UsageError for other networks and numbers."""

    context: int
    name: str = "limit_context"
    required: bool = True
    run_not_recursively: bool = True  # variables that grow in place are the model's own

    def __call__(self, graph: Graph) -> bool:
        if not 1 <= self.context <= MAX_CONTEXT:
            raise UsageError(f"--max-context: must be 1 to {MAX_CONTEXT} tokens, got {self.context}")
        nodes = [n for n in graph.nodes.values() if isinstance(n.op, CacheSizes | CacheRoom)]
        if not nodes:
            rule = "the model must be a language model, whose variables all grow by the tokens of a call"
            raise UsageError(f"--max-context: {rule}, got a network without them")
        for node in nodes:
            assert isinstance(node.op, CacheSizes | CacheRoom)
            node.op = replace(node.op, context=self.context)
        return True
