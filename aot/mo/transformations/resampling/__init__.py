"""Interpolation: operations that become Interpolate, and sizes of it that the graph computes."""
