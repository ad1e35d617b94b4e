"""A page about a compiled model, that needs no network: graph, times, memory, weights."""
