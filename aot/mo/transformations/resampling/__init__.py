"""Interpolation: what becomes Interpolate, and sizes of it that the graph computes."""
