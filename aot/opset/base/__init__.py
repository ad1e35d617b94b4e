"""Bases that families share: decompositions, maps of indices, elementwise and axis operations."""
