"""No module imports itself by way of others: cycles make the order of imports matter."""

from __future__ import annotations

import grimp
import networkx as nx


def test_imports_have_no_cycles() -> None:
    graph = grimp.build_graph("aot", exclude_type_checking_imports=True, cache_dir=None)
    edges = [(module, other) for module in graph.modules for other in graph.find_modules_directly_imported_by(module)]
    assert len(edges) > len(graph.modules) > 1000
    cycles = nx.strongly_connected_components(nx.DiGraph(edges))
    assert [sorted(cycle) for cycle in cycles if len(cycle) > 1] == []
