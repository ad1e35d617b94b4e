from collections.abc import Callable, Iterator
from typing import Any

from networkx import MultiDiGraph

class MultiDiGraphMatcher:
    def __init__(
        self,
        G1: MultiDiGraph,
        G2: MultiDiGraph,
        node_match: Callable[[Any, Any], bool] | None = None,
        edge_match: Callable[[Any, Any], bool] | None = None,
    ) -> None: ...
    def isomorphisms_iter(self) -> Iterator[dict[Any, Any]]: ...
    def subgraph_isomorphisms_iter(self) -> Iterator[dict[Any, Any]]: ...
