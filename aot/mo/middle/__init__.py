"""Transformations after shapes are inferred, on a graph with data nodes."""
