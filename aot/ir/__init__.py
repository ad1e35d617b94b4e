"""Graphs: types, operations, nodes and ports, text form."""
